"""`validate-suite` and `validate-campaign` on what ships: valid, not ready, arms recognised, blockers useful."""

from pathlib import Path

import pytest

from akf.contracts.rules.check import check_campaign, check_suite

SUITES = Path(__file__).parents[2] / "suites"
ARMS = sorted(SUITES.glob("*/arms/*.json"))


@pytest.mark.parametrize(
    ("suite", "arms"),
    [("qwen3-8b-a3-bf16", ["xllm", "vllm_ascend", "sglang_ascend"]), ("host-demo", ["host_reference"])],
)
def test_a_shipped_suite_is_valid_and_not_ready_and_its_arms_are_recognised(suite: str, arms: list[str]) -> None:
    result = check_suite(SUITES / suite / "suite.json")
    assert [problem.to_json() for problem in result.problems] == []
    assert (result.valid, result.ready) == (True, False)
    assert [arm["id"] for arm in result.arms] == arms
    for arm in result.arms:
        assert (arm["recognised"], arm["valid"], arm["ready"]) == (True, True, False)
        assert arm["blockers"] > 0


@pytest.mark.parametrize("path", ARMS, ids=lambda path: path.stem)
def test_a_shipped_campaign_is_valid_and_not_ready(path: Path) -> None:
    result = check_campaign(path)
    assert [problem.to_json() for problem in result.problems] == []
    assert (result.valid, result.ready) == (True, False)


@pytest.mark.parametrize("suite", ["qwen3-8b-a3-bf16", "host-demo"])
def test_every_blocker_says_where_what_and_how(suite: str) -> None:
    blockers = check_suite(SUITES / suite / "suite.json").blockers
    assert blockers
    for blocker in blockers:
        assert blocker["pointer"].startswith("/")
        assert blocker["expected"]
        assert blocker["command"].startswith("akf ")
    places = [(blocker["file"], blocker["pointer"]) for blocker in blockers]
    assert len(set(places)) == len(places)


def test_the_a3_blockers_name_the_commands_that_fill_them() -> None:
    commands = {blocker["command"] for blocker in check_suite(SUITES / "qwen3-8b-a3-bf16" / "suite.json").blockers}
    for start in ("akf arm freeze", "akf calibrate", "akf ingest", "akf fill", "akf keys init"):
        assert any(command.startswith(start) for command in commands), start
