"""Declared spaces: what is refused, what a point gives, and that the shipped ones hold what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from akf.agents.space import Space, load_space
from akf.contracts.problems import InvalidError

ROOT = Path(__file__).resolve().parents[2]
SPACES = ROOT / "examples" / "spaces"
SHIPPED = {"rmsnorm": 96, "softmax": 72, "matmul": 108}


def written(folder: Path, kernel: str = "int width = @width@;\n", **changes: Any) -> Path:
    """A small space with some fields changed."""
    value = json.loads((SPACES / "rmsnorm" / "space.json").read_text())
    value["parameters"] = [{"name": "width", "title": "Width.", "values": [1, 2, 4]}]
    value |= {"behaviour": ["width"], "islands": "width"} | changes
    (folder / "src").mkdir(parents=True)
    (folder / "space.json").write_text(json.dumps(value))
    (folder / "src" / "kernel.cpp").write_text(kernel)
    (folder / "src" / "launch.json").write_text('{"abi": "@width@"}')
    return folder


@pytest.fixture(params=sorted(SHIPPED))
def shipped(request: pytest.FixtureRequest) -> Space:
    return load_space(SPACES / request.param)


def test_a_shipped_space_has_the_launch_spec_of_its_task(shipped: Space) -> None:
    plain = ROOT / "examples" / "tasks" / shipped.declared.task / "plain" / "host_cpp" / "launch.json"
    assert json.loads(shipped.templates["launch.json"]) == json.loads(plain.read_text())
    assert shipped.size == SHIPPED[shipped.declared.task]


def test_each_point_of_a_shipped_space_is_another_kernel(shipped: Space) -> None:
    sources = {shipped.render(point)["kernel.cpp"] for point in shipped.points()}
    assert len(sources) == len({shipped.name(point) for point in shipped.points()}) == shipped.size
    assert not any("@" in source for source in sources)


def test_a_point_becomes_a_valid_candidate(shipped: Space) -> None:
    from akf.contracts.loader import parse  # noqa: PLC0415
    from akf.contracts.schemas import validate  # noqa: PLC0415

    files = shipped.candidate(next(shipped.points()), "Found in 3 tries.")
    document = parse(files["candidate.json"].encode(), "candidate.json")
    assert validate(document, "CandidateManifest") == []
    assert document.value["data_flow_change"].endswith("Found in 3 tries.")
    assert sorted(files) == ["candidate.json", "src/kernel.cpp", "src/launch.json"]


def test_values_are_put_in_and_nothing_else_is_touched(tmp_path: Path) -> None:
    space = load_space(written(tmp_path / "s", "int w = @width@; // @ width@ a@b.c ${width} {width}\n"))
    assert space.render((2,))["kernel.cpp"] == "int w = 4; // @ width@ a@b.c ${width} {width}\n"
    assert space.render((2,))["launch.json"] == '{"abi": "@width@"}'


def test_neighbours_differ_by_one_step_of_one_parameter() -> None:
    space = load_space(SPACES / "matmul")
    assert set(space.neighbours((0, 1, 2, 1))) == {
        (1, 1, 2, 1),
        (0, 0, 2, 1),
        (0, 2, 2, 1),
        (0, 1, 1, 1),
        (0, 1, 2, 0),
        (0, 1, 2, 2),
    }


@pytest.mark.parametrize(
    ("kernel", "changes", "said"),
    [
        ("int w = 4;", {}, "'width' stands in no template"),
        ("@width@ @depth@", {}, "@depth@ of a template is no parameter"),
        ("@width@", {"behaviour": ["depth"]}, "names 'depth'"),
        ("@width@", {"islands": "depth"}, "names 'depth'"),
        ("@width@", {"launch": "other.json"}, "no launch spec"),
        ("@width@", {"more": 1}, "Extra inputs"),
        ("@width@", {"parameters": [{"name": "width", "title": "W.", "values": [1, 1]}]}, "stands twice"),
        ("@width@", {"parameters": [{"name": "width", "title": "W.", "values": ["1; f(0)", "b"]}]}, "match pattern"),
        ("@width@", {"parameters": [{"name": "width", "title": "W.", "values": [1.5, 2]}]}, "valid integer"),
        ("@width@", {"task": "../rmsnorm"}, "match pattern"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_space_is_said(tmp_path: Path, kernel: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidError) as caught:
        load_space(written(tmp_path / "s", kernel, **changes))
    assert any(said in problem.message for problem in caught.value.problems), str(caught.value)
    assert {problem.code for problem in caught.value.problems} == {"AKF-S720"}
