"""In a run: the arm's own compiler, and no other; what nobody named is not built.

CANN's tools are recorded scripts (`tests.support.recorded`): the way to them is real, what they make is not.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import ascend
from tests.support.cli import Answer, inside
from tests.support.runs import tree

Value = dict[str, Any]
ROUTE = "ascendc_direct"


def kernel(text: str) -> dict[str, str]:
    return {"kernel.asc": f"// {text}\n", "launch.json": json.dumps(ascend.launch())}


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKF_TOOLCHAINS", str(tmp_path / "store"))
    return tmp_path / "store"


def ready(folder: Path, edit: Callable[[Value], object] = lambda _: None) -> Path:
    run = ascend.opened(folder, ROUTE, kernel("wrong"), edit)
    ascend.submit(run, folder / "agent", ROUTE, kernel("mine")).accepted()
    return run


def built(run: Path, *more: object) -> Answer:
    return inside("build", run, "mine", *more)


def refused(run: Path, status: int, code: str) -> Answer:
    before = tree(run)
    answer = built(run).refused(status)
    assert answer.codes == {code}
    assert tree(run) == before
    return answer


def test_candidate_and_perturbed_kernel_are_built_by_the_arm_s_compiler(tmp_path: Path) -> None:
    inside("toolchain", "add", ascend.cann(tmp_path / "cann", "bisheng")).accepted()
    run = ready(tmp_path)
    document = built(run).accepted().document
    assert (document["outcome"], document["stage"]) == ("built", "device_object")
    folder = run / "attempts" / "mine"
    value = json.loads((folder / "build.json").read_bytes())
    assert value["soc"] == "ascend910_9391"
    assert value["toolkit"] == {"name": "cann", "version": "9.1.0", "build": ascend.BUILD}
    assert [each["id"] for each in value["toolchains"]] == ["cann-9.1.0"]
    assert value["reproduction"]["reproducible"] is True
    objects = {each["subject"]: each["path"] for each in value["outputs"] if each["role"] == "kernel_object"}
    assert objects == {"candidate": "candidate/kernel.o", "perturbed": "perturbed/kernel.o"}
    calls = {subject: (folder / "build" / path).read_text() for subject, path in objects.items()}
    assert calls["candidate"] == calls["perturbed"], "the same command line for both"
    assert "--npu-arch=dav-2201" in calls["candidate"]
    assert str(tmp_path) not in json.dumps(value)
    assert inside("audit", run).status == 0


@pytest.mark.parametrize(
    ("made", "field", "found"),
    [
        ({"inner": "V100R001C25SPC005B220"}, "build", "V100R001C25SPC005B220"),
        ({"version": "9.0.0"}, "version", "9.0.0"),
    ],
)
def test_another_toolkit_is_refused_with_the_field(made: Value, field: str, found: str, tmp_path: Path) -> None:
    inside("toolchain", "add", ascend.cann(tmp_path / "cann", "bisheng", **made)).accepted()
    (problem,) = refused(ready(tmp_path), 4, "AKF-P405").problems
    assert (problem["file"], problem["pointer"]) == ("campaign.json", f"/environment/toolkit/{field}")
    assert problem["found"] == found


def test_of_two_toolkits_the_arm_s_is_taken(tmp_path: Path) -> None:
    inside("toolchain", "add", ascend.cann(tmp_path / "old", "bisheng", version="9.0.0")).accepted()
    inside("toolchain", "add", ascend.cann(tmp_path / "new", "bisheng")).accepted()
    assert built(ready(tmp_path)).accepted().document["stage"] == "device_object"


def test_a_build_that_is_killed_leaves_nothing_and_can_be_made_again(tmp_path: Path) -> None:
    """SIGKILL at five moments: the attempt has a whole Build with its line, or none."""
    inside("toolchain", "add", ascend.cann(tmp_path / "cann", "bisheng")).accepted()
    run = ready(tmp_path)
    chance = random.Random(20261201)
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-m", "akf", "build", str(run), "mine", "--quiet"])
        time.sleep(chance.uniform(0.1, 2.0))
        process.kill()
        process.wait()
        if (run / "attempts" / "mine" / "build.json").exists():
            break
        answer = inside("audit", run).accepted().document
        assert {*answer["leftovers"]} <= {"attempts/mine/build"} or all(".tmp" in each for each in answer["leftovers"])
    if not (run / "attempts" / "mine" / "build.json").exists():
        assert built(run).accepted().document["outcome"] == "built"
    assert inside("audit", run).accepted().document["leftovers"] == []


def test_no_toolkit_is_blocked_with_the_remedy(tmp_path: Path) -> None:
    (problem,) = refused(ready(tmp_path), 6, "AKF-E101").problems
    assert "bisheng" in problem["message"]
    assert "akf toolchain add" in problem["hint"]


def test_a_toolkit_that_changed_since_it_was_registered_is_refused(tmp_path: Path) -> None:
    root = ascend.cann(tmp_path / "cann", "bisheng")
    inside("toolchain", "add", root).accepted()
    run = ready(tmp_path)
    with (root / "bin" / "bisheng").open("a") as script:
        script.write("# another\n")
    answer = built(run).refused(3)
    assert answer.codes == {"AKF-I403"}


DSL = {"kernel.py": "", "launch.json": json.dumps(ascend.launch())}


def test_what_a_route_may_not_claim_is_not_built(tmp_path: Path) -> None:
    """The Campaign names a tuple that the route does not claim: CATLASS DSL exists for 950 alone."""
    run = ascend.opened(tmp_path, "catlass_dsl", DSL)
    ascend.submit(run, tmp_path / "agent", "catlass_dsl", DSL, domain={"T": [16, 16]}).accepted()
    (problem,) = refused(run, 4, "AKF-P404").problems
    assert (problem["pointer"], problem["found"]) == ("/capabilities/0/soc_family", "ascend910_93")


def test_too_many_specialisations_are_refused_at_submission_with_their_count(tmp_path: Path) -> None:
    """Two values of an attribute for each of 64 shapes; half of the domain would do."""
    both = lambda task: task["abi"]["attributes"][0].update(values=[1e-6, 1e-5])  # noqa: E731
    run = ascend.opened(tmp_path, "catlass_dsl", DSL, task_edit=both)
    answer = ascend.submit(run, tmp_path / "all", "catlass_dsl", DSL).refused(1)
    (problem,) = answer.problems
    assert problem["code"] == "AKF-M049"
    assert problem["message"].startswith("128 specialisations are needed")
    ascend.submit(run, tmp_path / "half", "catlass_dsl", DSL, domain={"T": [33, 64]}).accepted()


def test_a_package_s_release_is_the_arm_s(tmp_path: Path) -> None:
    """Another release, a compiler that the Campaign does not name, another Python: all are said at once."""
    inside("toolchain", "add", ascend.environment(tmp_path / "env")).accepted()
    run = ascend.opened(tmp_path, ascend.ROUTE, ascend.triton("0.5"), older)
    ascend.submit(run, tmp_path / "agent", ascend.ROUTE, ascend.triton("1.0")).accepted()
    problems = refused(run, 4, "AKF-P405").problems
    said = {problem["pointer"]: (problem.get("expected"), problem.get("found")) for problem in problems}
    assert said == {
        "/environment/frameworks": ("ascendnpu-ir", None),
        "/environment/frameworks/2/revision": ("3.1.0", "3.2.0"),
        "/environment/python": ("3.12.11", "3.11.7"),
    }


def older(value: Value) -> None:
    value["environment"]["frameworks"][2]["revision"] = "3.1.0"


def test_a_variable_of_the_arm_that_names_a_place_is_refused(tmp_path: Path) -> None:
    inside("toolchain", "add", ascend.environment(tmp_path / "env")).accepted()
    variables = [{"name": "TRITON_NPU_COMPILER_PATH", "value": "../npuc"}]

    def edit(value: Value) -> None:
        ascend.arm(value)
        value["environment"].update(variables=variables)

    run = ascend.opened(tmp_path, ascend.ROUTE, ascend.triton("0.5"), edit)
    ascend.submit(run, tmp_path / "agent", ascend.ROUTE, ascend.triton("1.0")).accepted()
    (problem,) = refused(run, 4, "AKF-P405").problems
    assert problem["pointer"] == "/environment/variables/0/value"
