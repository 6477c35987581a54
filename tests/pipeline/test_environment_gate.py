"""The environment gate on this machine: leases, and what the checks say of machines that are not as they should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.support import runs
from tests.support.cli import inside
from tests.support.runs import Ready, tree

from akf.contracts.problems import ConflictError
from akf.contracts.tree import tree_digest
from akf.evaluate import environment, evaluate, machine_checks
from akf.frameworks import host_reference
from akf.frameworks.machine import Die, Reading
from akf.frameworks.toolkit_tree import Tree, keep
from akf.lease import FileLeases, Holding, held

Value = dict[str, Any]
NAIVE = "rmsnorm-naive"
DIES = ("npu-0-die-0", "npu-0-die-1")


def outcome(check: Value) -> tuple[str, list[str]]:
    return check["outcome"], check.get("reasons", [])


@pytest.mark.usefixtures("measured")
class TestLeased:
    def test_a_gate_is_measured_under_a_lease_whose_token_stands_in_the_journal(
        self, measured_run: Path, ready: Ready
    ) -> None:
        gate = evaluate(measured_run, NAIVE, "environment", ready.keys)
        assert [(check["name"], check["outcome"]) for check in gate["checks"]] == [
            ("identity", "pass"),
            ("leases", "pass"),
            ("toolkit_unmodified", "pass"),
            ("baseline_health", "pass"),
        ]
        notes = [json.loads(line) for line in (measured_run / "journal.jsonl").read_bytes().splitlines()]
        note = next(note for note in reversed(notes) if note["event"] == "measured")
        lease = note["lease"]
        assert note["clock"]["answer"] in {"fixed", "varies", "cannot tell"}
        assert lease["devices"] == ["host"]
        with held(FileLeases(Path(os.environ["AKF_LEASES"])), ["host"], "next") as (_, later):
            assert later.token > lease["token"]

    def test_another_that_measures_here_is_named_and_nothing_is_written(self, measured_run: Path, ready: Ready) -> None:
        before = tree(measured_run)
        with held(FileLeases(Path(os.environ["AKF_LEASES"])), ["host"], "akf evaluate other-run"):
            answer = inside("evaluate", measured_run, NAIVE, "--keys", ready.keys).refused(5)
        assert answer.codes == {"AKF-C120"}
        assert "akf evaluate other-run" in answer.document["problems"][0]["message"]
        assert tree(measured_run) == before

    def test_it_waits_for_another_as_long_as_it_was_told(self, measured_run: Path, ready: Ready) -> None:
        words = ["evaluate", measured_run, NAIVE, "--gate", "environment", "--wait", "600", "--keys", ready.keys]
        with held(FileLeases(Path(os.environ["AKF_LEASES"])), ["host"], "first"):
            waiting = subprocess.Popen(
                [sys.executable, "-m", "akf", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            lock = measured_run / ".lock"
            while f'"pid":{waiting.pid},' not in lock.read_text():
                time.sleep(0.01)  # it holds the run, and waits or will wait for the machine
        said, _ = waiting.communicate(timeout=600)
        assert json.loads(said)["gate_status"] == "pass"

    def test_a_lease_that_was_lost_publishes_nothing_and_the_plan_is_resumed(
        self, measured_run: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = environment.measure

        def lost(*args: Any) -> Any:
            found = real(*args)
            (Path(os.environ["AKF_LEASES"]) / "host.lease").unlink()
            return found

        with monkeypatch.context() as patch:
            patch.setattr(environment, "measure", lost)
            with pytest.raises(ConflictError) as refused:
                evaluate(measured_run, NAIVE, "environment", ready.keys)
        assert refused.value.problems[0].code == "AKF-C121"
        attempt = measured_run / "attempts" / NAIVE
        assert (attempt / "plan" / "environment.json").exists()
        assert not (attempt / "gates" / "environment.json").exists()
        gate = evaluate(measured_run, NAIVE, "environment", ready.keys)
        assert (gate["status"], gate["resumes"]) == ("pass", 1)

    def test_a_changed_file_of_the_toolkit_is_named(
        self, measured_run: Path, ready: Ready, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        frozen = host_reference.toolkit_tree()
        keep(frozen, state / "state")
        path = next(path for path, _, _ in frozen.entries if path.endswith("/cmath"))
        entries = tuple((*each[:2], "sha256:" + "0" * 64) if each[0] == path else each for each in frozen.entries)
        changed = Tree(tree_digest(entries), entries)
        monkeypatch.setattr(host_reference, "toolkit_tree", lambda: changed)
        gate = evaluate(measured_run, NAIVE, "environment", ready.keys)
        check = next(check for check in gate["checks"] if check["name"] == "toolkit_unmodified")
        assert outcome(check) == ("incomparable", ["TOOLKIT_MISMATCH"])
        assert check["note"] == f"~ {path}"
        document = inside("judge", measured_run, measured_run / "attempts" / NAIVE / "gates", "--keys", ready.keys)
        assert document.accepted().document["verdict"] == "incomparable"

    def test_filling_in_a_draft_measures_under_a_lease_too(self, tmp_path: Path, state: Path) -> None:
        del state
        with held(FileLeases(Path(os.environ["AKF_LEASES"])), ["host"], "first"):
            answer = inside("fill", runs.DRAFT, "--host", "--out", tmp_path / "out").refused(5)
        assert answer.codes == {"AKF-C120"}
        assert not (tmp_path / "out").exists()


class TestIdentity:
    WANTED: ClassVar[Value] = {
        "environment": {"soc": {"name": "a"}, "list": [1, 2], "driver": "25.5.1"},
        "ranks": {"tp": 1},
    }

    def found(self, **environment: Any) -> Value:
        return {**self.WANTED, "environment": {**self.WANTED["environment"], **environment}}

    def test_the_same_is_the_same(self) -> None:
        assert outcome(machine_checks.identity(self.WANTED, Reading(self.found(), {}, {}))) == ("pass", [])

    def test_each_difference_is_named_with_both_values(self) -> None:
        reading = Reading(self.found(soc={"name": "b"}, list=[1, 3], extra=True), {}, {})
        check = machine_checks.identity(self.WANTED, reading)
        assert outcome(check) == ("incomparable", ["IDENTITY_MISMATCH"])
        assert check["note"] == (
            "/environment/extra: the Campaign has nothing, this machine true; "
            "/environment/list/1: the Campaign has 2, this machine 3; "
            '/environment/soc/name: the Campaign has "a", this machine "b"'
        )

    def test_what_cannot_be_read_blocks_and_a_difference_outweighs_it(self) -> None:
        unread = {"/environment/driver": "there is no version.info"}
        check = machine_checks.identity(self.WANTED, Reading(self.found(driver=None), unread, {}))
        assert outcome(check) == ("blocked", ["FACT_UNREAD"])
        assert check["note"] == "/environment/driver: there is no version.info"
        both = machine_checks.identity(self.WANTED, Reading(self.found(driver=None, soc={"name": "b"}), unread, {}))
        assert outcome(both) == ("incomparable", ["IDENTITY_MISMATCH"])

    def test_many_differences_are_counted(self) -> None:
        check = machine_checks.identity({"x": {str(n): n for n in range(20)}}, Reading({"x": {}}, {}, {}))
        assert check["note"].endswith("; and 12 more")

    def test_a_value_cannot_paint_the_terminal_or_fill_the_gate(self) -> None:
        check = machine_checks.identity({"x": "\x1b[2J"}, Reading({"x": "y" * 10_000}, {}, {}))
        assert "\x1b" not in check["note"]
        assert len(check["note"]) < 300


class TestDevices:
    def dies(self, **changes: Any) -> dict[str, Die]:
        idle = Die(DIES[0], (), 0, 1800, 1800)
        return {DIES[0]: idle, DIES[1]: idle._replace(name=DIES[1], **changes)}

    def test_idle_is_idle(self) -> None:
        assert outcome(machine_checks.exclusive(DIES, self.dies())) == ("pass", [])

    def test_a_foreign_process_on_the_sibling_die_blocks(self) -> None:
        check = machine_checks.exclusive(DIES, self.dies(processes=(7, 99)), own=[7])
        assert outcome(check) == ("blocked", ["DEVICE_BUSY"])
        assert check["note"] == "npu-0-die-1 has processes 99"
        assert outcome(machine_checks.exclusive(DIES, self.dies(processes=(7,)), own=[7])) == ("pass", [])

    def test_busy_without_a_process_blocks(self) -> None:
        """A process of another container is not listed, but its load is seen."""
        check = machine_checks.exclusive(DIES, self.dies(busy_percent=40))
        assert outcome(check) == ("blocked", ["DEVICE_BUSY"])

    def test_missing_and_unread_block(self) -> None:
        assert outcome(machine_checks.exclusive(DIES, {})) == ("blocked", ["DEVICE_MISSING"])
        assert outcome(machine_checks.exclusive(DIES, self.dies(processes=None))) == ("blocked", ["FACT_UNREAD"])

    def test_a_clock_below_its_rated_value_under_load_blocks(self) -> None:
        assert outcome(machine_checks.clock(DIES, self.dies())) == ("pass", [])
        check = machine_checks.clock(DIES, self.dies(mhz=1650))
        assert outcome(check) == ("blocked", ["CLOCK_LOW"])
        assert check["note"] == "npu-0-die-1 ran at 1650 MHz under load, rated 1800 MHz"
        assert outcome(machine_checks.clock(DIES, self.dies(mhz=None))) == ("blocked", ["FACT_UNREAD"])
        assert outcome(machine_checks.clock(DIES, {})) == ("blocked", ["FACT_UNREAD"])

    def test_what_is_not_leased_blocks(self, tmp_path: Path) -> None:
        leases = FileLeases(tmp_path)
        with held(leases, DIES[:1], "half a package") as holding:
            check = machine_checks.leases(DIES, holding)
            assert outcome(check) == ("blocked", ["DEVICE_NOT_LEASED"])
            assert check["note"] == "npu-0-die-1 is not leased"
            assert outcome(machine_checks.leases(DIES[:1], holding)) == ("pass", [])
        assert outcome(machine_checks.leases(DIES[:1], Holding(leases, holding.lease))) == (
            "blocked",
            ["DEVICE_NOT_LEASED"],
        )


def test_no_environment_check_fails_a_candidate(tmp_path: Path) -> None:
    with held(FileLeases(tmp_path), ["other"], "me") as holding:
        checks = [
            machine_checks.identity({"x": 1}, Reading({"x": 2}, {}, {})),
            machine_checks.leases(DIES, holding),
            machine_checks.exclusive(DIES, {}),
            machine_checks.clock(DIES, {}),
            machine_checks.baseline_health("a", "b"),
        ]
    assert {check["outcome"] for check in checks} == {"blocked", "incomparable"}
