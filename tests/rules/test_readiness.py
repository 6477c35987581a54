"""Drafts: valid, not ready, one blocker for each open fact, and no run of them."""

import shlex
from pathlib import Path

import pytest
from tests.support.drafts import ARMS, ASCEND, HOST, Draft, codes
from tests.support.runs import Ready, change, tree

from akf.contracts.pointer import get, put
from akf.contracts.problems import InvalidError, PreconditionError
from akf.contracts.rules.check import check_campaign, check_suite
from akf.store.snapshot import init_run

DRAFTS = [(ASCEND, arm) for arm in ARMS] + [(HOST, "host_reference")]


@pytest.mark.parametrize(("name", "arm"), DRAFTS)
def test_a_draft_is_valid_and_not_ready_and_no_run_is_made_of_it(tmp_path: Path, name: str, arm: str) -> None:
    draft = Draft(tmp_path / "suite", name, arm)
    result = check_campaign(draft.campaign)
    assert (result.valid, result.ready, codes(result)) == (True, False, set())
    before = tree(tmp_path)
    with pytest.raises(PreconditionError) as refused:
        init_run(draft.campaign, tmp_path / "runs", tmp_path / "keys")
    assert refused.value.exit_code == 4
    assert {problem.code for problem in refused.value.problems} == {"AKF-P101"}
    assert len(refused.value.problems) == len(result.blockers)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("name", "arm"), DRAFTS)
def test_every_blocker_is_at_a_null_and_its_command_names_the_campaign_or_the_file(
    tmp_path: Path, name: str, arm: str
) -> None:
    draft = Draft(tmp_path / "suite", name, arm)
    for blocker in check_campaign(draft.campaign).blockers:
        assert get(draft.value(Path(blocker["file"])), blocker["pointer"]) is None
        words = blocker["command"].split(" ")
        assert words[0] == "akf"
        assert {str(draft.campaign), blocker["file"]} & set(words) or "WORKLOAD" in words, blocker
        assert "CAMPAIGN" not in words


def test_the_suite_is_ready_only_when_all_of_its_arms_are(my_ready: Ready) -> None:
    suite = my_ready.folder / "suite.json"
    assert check_suite(suite).ready
    change(my_ready.campaign, lambda value: value["baseline"].update(incumbent_digest=None))
    result = check_suite(suite)
    assert (result.valid, result.ready) == (True, False)
    assert [blocker["pointer"] for blocker in result.blockers] == ["/baseline/incumbent_digest"]
    assert result.arms[0]["blockers"] == 1


OPEN = [
    "/environment/soc/name", "/environment/toolkit/version", "/environment/toolkit/build", "/environment/python",
    "/environment/frameworks/0/revision", "/environment/libraries", "/environment/host/cores",
    "/environment/host/compiler_digest", "/model/config_digest", "/model/weights_digest", "/ranks/devices",
    "/baseline/incumbent_digest", "/workload/path", "/capture/path", "/acceptance/gains/0/threshold_ratio",
    "/acceptance/guards/0/margin_ratio", "/acceptance/row_margin_ratio", "/noise/noise_limit_ratio", "/trust/keys",
]  # fmt: skip


@pytest.mark.parametrize("place", OPEN)
def test_one_open_fact_is_enough(my_ready: Ready, tmp_path: Path, place: str) -> None:
    assert check_campaign(my_ready.campaign).ready
    change(my_ready.campaign, lambda value: put(value, place, None))
    result = check_campaign(my_ready.campaign)
    assert place in {blocker["pointer"] for blocker in result.blockers}
    assert not result.ready
    with pytest.raises(PreconditionError):
        init_run(my_ready.campaign, tmp_path / "runs", my_ready.keys)
    assert not (tmp_path / "runs").exists()


def test_a_null_that_is_no_placeholder_is_no_blocker_but_a_problem(my_ready: Ready, tmp_path: Path) -> None:
    change(my_ready.campaign, lambda value: value.update(arm=None))
    result = check_campaign(my_ready.campaign)
    assert (result.valid, result.blockers) == (False, ())
    with pytest.raises(InvalidError):
        init_run(my_ready.campaign, tmp_path / "runs", my_ready.keys)
    assert not (tmp_path / "runs").exists()


def test_another_supervisors_key_makes_no_run(my_ready: Ready, tmp_path: Path) -> None:
    from akf.trust.keys import init_keys  # noqa: PLC0415

    init_keys(tmp_path / "other")
    with pytest.raises(PreconditionError) as refused:
        init_run(my_ready.campaign, tmp_path / "runs", tmp_path / "other")
    assert refused.value.problems[0].code == "AKF-P102"
    assert not (tmp_path / "runs").exists()


def test_the_same_files_say_the_same_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = Draft(tmp_path / "suite")
    monkeypatch.chdir(tmp_path)
    near = check_campaign(Path("suite/arms/xllm.json"))
    monkeypatch.chdir(tmp_path / "suite" / "arms")
    here = check_campaign(Path("xllm.json"))
    far = check_campaign(draft.campaign)
    found = [
        sorted((Path(blocker["file"]).name, blocker["pointer"], blocker["expected"]) for blocker in each.blockers)
        for each in (near, here, far)
    ]
    assert found[0] == found[1] == found[2]


def test_a_command_is_one_that_a_shell_takes(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "a suite; of FILE $CAMPAIGN")
    for blocker in check_campaign(draft.campaign).blockers:
        words = shlex.split(blocker["command"].replace(", then", ""))
        assert {str(draft.campaign), str(draft.workload), str(draft.suite), "WORKLOAD"} & set(words), blocker


@pytest.mark.parametrize("name", [ASCEND, HOST])
def test_what_the_suite_leaves_open_is_filled_through_a_campaign(tmp_path: Path, name: str) -> None:
    draft = Draft(tmp_path / "suite", name)
    for result in (check_suite(draft.suite), check_campaign(draft.campaign)):
        mine = [blocker for blocker in result.blockers if blocker["file"] == str(draft.suite)]
        assert mine
        for blocker in mine:
            assert str(draft.suite if "--set" in blocker["command"] else draft.campaign) in blocker["command"]


def test_what_a_command_writes_is_a_new_file(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    found = {blocker["command"] for blocker in check_campaign(draft.campaign).blockers}
    onto = f"akf ingest trace TRACE --onto {draft.workload}"
    assert {f"{onto} --out FILE", f"{onto} --capture CAPTURE --out FILE"} <= found
