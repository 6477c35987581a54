"""Every exit status of the table, by real processes; each answers with one document."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.support import runs
from tests.support.cli import akf, inside
from tests.support.drafts import ASCEND, Draft
from tests.support.runs import Ready, overwrite, tree

from akf.contracts.shipped import shipped

pytestmark = pytest.mark.usefixtures("state")


def test_0_a_draft_is_valid(tmp_path: Path) -> None:
    answer = akf("validate-suite", Draft(tmp_path / "suite").suite).accepted()
    document = answer.document
    assert (document["valid"], document["ready"]) == (True, False)
    assert len(document["arms"]) == 3
    assert document["blockers"]


def test_1_an_artifact_is_invalid(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    draft.check(lambda value: value.update(arm=7))
    answer = akf("validate-campaign", draft.campaign).refused(1)
    assert (answer.document["valid"], answer.document["ready"]) == (False, False)
    assert {problem["pointer"] for problem in answer.problems} == {"/arm"}


@pytest.mark.parametrize("words", [["judge"], ["no-such-command"], ["validate-suite"], ["judge", "a", "b", "--what"]])
def test_2_usage(words: list[str]) -> None:
    assert akf(*words).refused(2).codes == {"AKF-U001"}


def test_2_gates_of_another_place(whole_run: Path, whole_keys: Path) -> None:
    for gates in (whole_run, whole_run / "attempts" / "fused", whole_run / "attempts" / "nobody" / "gates"):
        akf("judge", whole_run, gates, "--keys", whole_keys).refused(2)


def test_3_integrity(whole_run: Path, whole_keys: Path) -> None:
    gates = whole_run / "attempts" / "fused" / "gates"
    overwrite(gates / "serving.json", (gates / "serving.json").read_bytes().replace(b"pass", b"fail", 1))
    before = tree(whole_run)
    for words in (["judge", whole_run, gates, "--keys", whole_keys], ["audit", whole_run]):
        answer = akf(*words).refused(3)
        assert any(problem["file"] == "attempts/fused/gates/serving.json" for problem in answer.problems)
    assert tree(whole_run) == before


def test_4_a_draft_makes_no_run(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    before = tree(tmp_path)
    answer = akf("init-run", draft.campaign, "--runs-root", tmp_path / "runs").refused(4)
    assert answer.codes == {"AKF-P101"}
    assert tree(tmp_path) == before


def test_5_it_exists(ready: Ready, tmp_path: Path) -> None:
    words = ["init-run", ready.campaign, "--runs-root", tmp_path, "--run-id", "one", "--keys", ready.keys]
    assert akf(*words).accepted().document["run"] == "one"
    before = tree(tmp_path)
    akf(*words).refused(5)
    assert tree(tmp_path) == before


def test_6_no_compiler(open_run: Path, ready: Ready, tmp_path: Path) -> None:
    akf("submit", open_run, runs.submission(tmp_path / "agent"), "--keys", ready.keys).accepted()
    before = tree(open_run)
    (tmp_path / "empty").mkdir()
    answer = akf("build", open_run, "rmsnorm-fused", "--keys", ready.keys, env={"PATH": str(tmp_path / "empty")})
    assert answer.refused(6).codes == {"AKF-E101"}
    assert "g++" in answer.problems[0]["message"]
    assert "apt-get" in answer.problems[0]["hint"]
    assert tree(open_run) == before


def test_7_input_or_output_fails(ready: Ready, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = akf("init-run", ready.campaign, "--runs-root", tmp_path / "file" / "runs", "--keys", ready.keys).refused(7)
    assert answer.codes == {"AKF-F106"}


def test_10_not_ready_although_required(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    for words in (["validate-suite", draft.suite], ["validate-campaign", draft.campaign]):
        answer = akf(*words, "--require-ready")
        assert answer.status == 10
        assert (answer.document["valid"], answer.document["ready"], answer.problems) == (True, False, [])


def test_10_another_verdict_than_required(whole_run: Path, whole_keys: Path) -> None:
    gates = whole_run / "attempts" / "fused" / "gates"
    words = ["judge", whole_run, gates, "--keys", whole_keys]
    assert akf(*words, "--dry-run", "--require", "rejected").status == 10
    assert akf(*words, "--require", "promotable").accepted().document["verdict"] == "promotable"
    assert akf(*words, "--recheck", "--require", "rejected").status == 10
    answer = akf(*words, "--require", "promotible").refused(2)
    assert "promotable" in answer.problems[0]["hint"]


def test_70_a_defect_of_akf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import akf.contracts.rules.check as module  # noqa: PLC0415

    def broken(path: Path) -> None:
        raise AssertionError(f"{path.name}: \x1b[31mred")

    monkeypatch.setattr(module, "check_suite", broken)
    monkeypatch.setattr("akf.cli.commands.validate.check_suite", broken, raising=False)
    answer = inside("validate-suite", Draft(tmp_path / "suite").suite).refused(70)
    assert answer.codes == {"AKF-X070"}
    assert "AssertionError" in answer.problems[0]["message"]
    assert "report" in answer.problems[0]["hint"]
    assert answer.problems[0]["found"]


@pytest.mark.parametrize(
    "error", [RecursionError, MemoryError, KeyError("x"), UnicodeDecodeError("utf-8", b"", 0, 1, "?")]
)
def test_70_whatever_it_is(monkeypatch: pytest.MonkeyPatch, error: BaseException, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("akf.store.overview.overview", broken)
    assert inside("status", tmp_path).refused(70).codes == {"AKF-X070"}


def test_130_an_interrupt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("akf.store.overview.overview", interrupted)
    assert inside("status", tmp_path).refused(130).codes == {"AKF-U003"}


def test_the_seed_s_demo_of_three_arms() -> None:
    suite = shipped("suites") / ASCEND
    for arm in json.loads((suite / "suite.json").read_bytes())["required_arms"]:
        answer = akf("validate-campaign", suite / arm["path"]).accepted()
        assert (answer.document["valid"], answer.document["ready"]) == (True, False)


def test_a_module_and_a_script_are_the_same_program(tmp_path: Path) -> None:
    script = shutil.which("akf", path=os.pathsep.join([*os.get_exec_path()]))
    if script is None:
        pytest.skip("needs the console script: pip install -e .")
    import subprocess  # noqa: PLC0415

    done = subprocess.run([script, "status", str(tmp_path)], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == akf("status", tmp_path)[:2]
