"""The environment gate of an Ascend host, read through the driver's own tool and files. No board is here: see
`docs/not-proved.md`. The tool is a program that answers in the documented layouts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import boards, evidence, installations

from akf.evaluate import environment
from akf.frameworks import ascend_machine, npu_smi
from akf.frameworks.machine import Die
from akf.lease import FileLeases, held

Value = dict[str, Any]
A3 = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)]
DIES = ("npu-0-die-0", "npu-0-die-1")
LOADED = (1800, 1800)


class TestTexts:
    @pytest.mark.parametrize("width", [25, 40])
    def test_a_table_of_two_chips_a_package_whatever_its_width(self, width: int) -> None:
        text = boards.table([(0, 0, 0), (0, 1, 12)], {(0, 1): [77, 99]}, width=width)
        assert npu_smi.table(text) == npu_smi.Table(
            "25.5.1",
            {(0, 0): npu_smi.Shown("Ascend910", True, 0), (0, 1): npu_smi.Shown("Ascend910", True, 12)},
            {(0, 1): (77, 99)},
        )

    def test_no_process_is_no_process_and_no_table_of_them_is_unread(self) -> None:
        text = boards.table(A3, {})
        assert npu_smi.table(text).processes == {}
        cut = text[: text.index("| NPU     Chip")]
        assert npu_smi.table(cut).processes is None

    def test_the_controller_beside_the_chips_is_no_chip(self) -> None:
        chips = npu_smi.chips(boards.common(0, (800, 1800), (900, 1850)))
        assert [npu_smi.frequencies(chips[chip]) for chip in (0, 1)] == [(800, 1800), (900, 1850)]
        assert chips[1]["Temperature(C)"] == "40"

    def test_one_chip_without_a_chip_id_is_chip_0(self) -> None:
        fields = {"NPU ID": 0, "Aicore Freq(MHZ)": 1650, "Aicore curFreq(MHZ)": 100}
        text = "".join(f"{name:<31}: {value}\n" for name, value in fields.items())
        assert npu_smi.frequencies(npu_smi.chips(text)[0]) == (100, 1650)

    @pytest.mark.parametrize("value", ["NA", "-", "", "1e3", "١٨٠٠"])
    def test_what_is_no_number_is_unread(self, value: str) -> None:
        assert npu_smi.frequencies({"Aicore Freq(MHZ)": value, "Aicore curFreq(MHZ)": "800"}) == (800, None)

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            (boards.board("910B4"), "ascend910b4"),
            (boards.board("Ascend910", "9391"), "ascend910_9391"),
            (boards.board("Ascend910"), None),
            (boards.board("Ascend910", "9999"), None),
            ("", None),
        ],
    )
    def test_the_boards_own_name_of_the_soc(self, text: str, name: str | None) -> None:
        assert npu_smi.soc_name(text) == name

    @pytest.mark.parametrize("text", ["", "|", "| a | 0000:9D:00.0 | 0 |", "x" * 10_000, "| Process id |\n" * 3])
    def test_other_texts_show_no_die(self, text: str) -> None:
        assert npu_smi.table(text).dies == {}


class TestHost:
    """A host with two packages, its toolkit and its driver."""

    @pytest.fixture
    def root(self, tmp_path: Path, state: Path) -> Path:
        del state
        root = tmp_path / "Ascend"
        installations.install(root / "cann")
        for part, version in (("driver", "25.5.1"), ("firmware", "7.8.0.6.201")):
            (root / part).mkdir()
            (root / part / "version.info").write_text(f"Version={version}\nInnerversion=V100\n", encoding="utf-8")
        return root

    @pytest.fixture
    def texts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
        answers = {
            "info": boards.table(A3, {}),
            "info -t board -i 0 -c 0": boards.board("Ascend910", "9391"),
            "info -t common -i 0": boards.common(0, (800, 1800), (800, 1800)),
            "info -t common -i 0.loaded": boards.common(0, LOADED, LOADED),
        }
        return boards.install(tmp_path, answers, monkeypatch)

    def campaign(self, root: Path) -> Value:
        """A Campaign that this host is the machine of, as far as the host can say it."""
        campaign = copy.deepcopy(evidence.evidence(platform="ascend").value("campaign.json"))
        read = ascend_machine.read([0], root).reading.facts["environment"]
        environment = campaign["environment"]
        environment |= {name: read[name] for name in ("soc", "toolkit")}
        environment["ascend"] |= read["ascend"]
        return campaign

    @contextmanager
    def load(self, texts: Path) -> Iterator[None]:
        (texts / "loaded").touch()
        yield
        (texts / "loaded").unlink()

    def outcomes(self, campaign: Value, root: Path, texts: Path, tmp_path: Path) -> dict[str, Value]:
        machine = environment.ascend(campaign, root, lambda: self.load(texts))
        with held(FileLeases(tmp_path / "leases"), DIES, "test") as holding:
            checks = environment.checks(campaign, machine, holding)
        return {check["name"]: check for check in checks}

    def test_what_the_host_says_of_itself(self, root: Path, texts: Path) -> None:
        del texts
        reading, tree = ascend_machine.read([0], root)
        found = reading.facts["environment"]
        assert found["soc"] == {"family": "ascend910_93", "name": "ascend910_9391"}
        assert found["toolkit"] == {"name": "cann", "version": "9.1.0", "build": "V100R001C25SPC005B220"}
        assert tree is not None
        assert found["ascend"] == {"driver": "25.5.1", "firmware": "7.8.0.6.201", "toolkit_tree_digest": tree.digest}
        assert reading.dies == {name: Die(name, (), 0, 800, 1800) for name in DIES}

    def test_a_gate_on_the_campaigns_machine(self, root: Path, texts: Path, tmp_path: Path) -> None:
        """What only the arm's process knows is unread and blocks; nothing differs, and the devices are ready."""
        found = self.outcomes(self.campaign(root), root, texts, tmp_path)
        assert {name: check["outcome"] for name, check in found.items()} == {
            "identity": "blocked",
            "leases": "pass",
            "exclusive": "pass",
            "clock": "pass",
            "toolkit_unmodified": "pass",
            "baseline_health": "blocked",
        }
        assert "/environment/ascend/torch_npu: only the arm's own process knows it" in found["identity"]["note"]

    def test_a_foreign_process_on_the_sibling_die(self, root: Path, texts: Path, tmp_path: Path) -> None:
        campaign = self.campaign(root)
        (texts / "info").write_text(boards.table(A3, {(0, 1): [4242], (1, 0): [7]}))
        check = self.outcomes(campaign, root, texts, tmp_path)["exclusive"]
        assert (check["outcome"], check["reasons"]) == ("blocked", ["DEVICE_BUSY"])
        assert check["note"] == "npu-0-die-1 has processes 4242"

    def test_load_of_another_container_shows_without_a_process(self, root: Path, texts: Path, tmp_path: Path) -> None:
        campaign = self.campaign(root)
        (texts / "info").write_text(boards.table([(0, 0, 0), (0, 1, 35)], {}))
        check = self.outcomes(campaign, root, texts, tmp_path)["exclusive"]
        assert (check["outcome"], check["note"]) == ("blocked", "npu-0-die-1 is 35 % busy without a process")

    def test_a_die_that_is_not_healthy_is_not_there(self, root: Path, texts: Path, tmp_path: Path) -> None:
        campaign = self.campaign(root)
        (texts / "info").write_text(boards.table(A3, {}, sick=frozenset({(0, 1)})))
        check = self.outcomes(campaign, root, texts, tmp_path)["exclusive"]
        assert (check["outcome"], check["reasons"]) == ("blocked", ["DEVICE_MISSING"])

    def test_the_same_version_with_another_inner_build(self, root: Path, texts: Path, tmp_path: Path) -> None:
        campaign = self.campaign(root)
        installations.install(root / "cann", inner="V100R001C25SPC005B221")
        found = self.outcomes(campaign, root, texts, tmp_path)
        assert (found["identity"]["outcome"], found["identity"]["reasons"]) == ("incomparable", ["IDENTITY_MISMATCH"])
        assert (
            '/environment/toolkit/build: the Campaign has "V100R001C25SPC005B220", this machine "V100R001C25SPC005B221"'
            in found["identity"]["note"]
        )
        assert found["toolkit_unmodified"]["reasons"] == ["TOOLKIT_MISMATCH"]

    def test_a_board_that_is_another_than_the_variable_says(
        self, root: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        campaign = self.campaign(root)
        monkeypatch.setenv("SOC_VERSION", "ascend910_9391")
        (texts / "info_-t_board_-i_0_-c_0").write_text(boards.board("Ascend910", "9362"))
        note = self.outcomes(campaign, root, texts, tmp_path)["identity"]["note"]
        assert '/environment/soc/name: the Campaign has "ascend910_9391", this machine "ascend910_9362"' in note

    def test_a_clock_that_stays_low_under_load(
        self, root: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(environment, "_LOOK_S", 0.0)
        campaign = self.campaign(root)
        (texts / "info_-t_common_-i_0.loaded").write_text(boards.common(0, LOADED, (1650, 1800)))
        check = self.outcomes(campaign, root, texts, tmp_path)["clock"]
        assert (check["outcome"], check["reasons"]) == ("blocked", ["CLOCK_LOW"])
        assert check["note"] == "npu-0-die-1 ran at 1650 MHz under load, rated 1800 MHz"

    def test_without_a_load_the_clock_is_not_read(self, root: Path, texts: Path, tmp_path: Path) -> None:
        del texts
        campaign = self.campaign(root)
        with held(FileLeases(tmp_path / "leases"), DIES, "test") as holding:
            checks = environment.checks(campaign, environment.ascend(campaign, root), holding)
        assert next(check for check in checks if check["name"] == "clock")["outcome"] == "blocked"

    def test_a_pre_release_of_the_toolkit_is_named(self, root: Path, texts: Path, tmp_path: Path) -> None:
        campaign = self.campaign(root)
        installations.install(root / "cann", version="9.1.0-beta.1")
        note = self.outcomes(campaign, root, texts, tmp_path)["identity"]["note"]
        assert "CANN 9.1.0-beta.1 is no released version" in note

    def test_no_board_no_driver_no_toolkit_blocks_and_never_fails(self, tmp_path: Path, state: Path) -> None:
        del state
        campaign = evidence.evidence(platform="ascend").value("campaign.json")
        machine = environment.ascend(campaign, tmp_path / "nothing")
        with held(FileLeases(tmp_path / "leases"), DIES, "test") as holding:
            checks = environment.checks(campaign, machine, holding)
        found = {check["name"]: check["outcome"] for check in checks}
        assert found.pop("leases") == "pass"
        assert set(found.values()) == {"blocked"}
