"""The example inputs are what the script beside them writes, and read like the tools' own files."""

from __future__ import annotations

from pathlib import Path

from tests.support import traffic


def test_the_committed_files_are_the_generated_ones(tmp_path: Path) -> None:
    written = traffic.written(tmp_path / "in")
    wanted = {path.relative_to(written): path.read_bytes() for path in written.rglob("*") if path.is_file()}
    found = {
        path.relative_to(traffic.EXAMPLE): path.read_bytes()
        for name in ("decode_ascend_pt", "bench.json", "config.json", "requests.jsonl")
        for path in [traffic.EXAMPLE / name, *(traffic.EXAMPLE / name).rglob("*")]
        if path.is_file()
    }
    assert found == wanted


def test_no_story_is_like_another() -> None:
    tables = {name: traffic.generator().kernel_details(case) for name, (case, _, _) in traffic.variants().items()}
    assert tables["kernel"] != tables["integration"] != tables["pipeline"]


def test_there_are_enough_steps_for_an_interval() -> None:
    steps = {line.split(",")[0] for line in traffic.generator().kernel_details(traffic.case()).splitlines()[1:]}
    assert len(steps) == 8
