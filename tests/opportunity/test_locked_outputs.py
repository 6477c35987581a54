"""A place that may not be written to: every command that writes files says so, and what it wrote before is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import traffic
from tests.support.arms import QWEN3_8B
from tests.support.process import NOBODY, open_to_others

WORDS: dict[str, tuple[str, ...]] = {
    "ingest profile": ("--out",),
    "ingest bench": ("--out",),
    "ingest framework": ("--out",),
    "triage": ("--out", "--html"),
    "survey": ("--out", "--html"),
    "report": ("--out",),
}
"""Commands and their outputs; `ingest trace` has its own tests of this."""


def inputs(command: str, folder: Path, run: Path) -> tuple[object, ...]:
    """What the command reads."""
    if command in {"triage", "report"}:
        return (run,)
    if command == "ingest framework":
        return ("--arm", "vllm_ascend", "--model-config", QWEN3_8B)
    example = traffic.written(folder / "in")
    return {
        "ingest profile": (example / traffic.PROFILE,),
        "ingest bench": (example / "bench.json",),
        "survey": (example, *traffic.FRAMEWORK),
    }[command]


TWICE = """
import json, os, sys
from tests.support.cli import inside

first, second, uid = json.loads(sys.argv[1])
inside(*first).accepted()  # the words are right, and what is imported late is imported as this user
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
answer = inside(*second)
print(json.dumps([answer.status, [[problem["code"], problem["file"]] for problem in answer.problems]]))
"""
"""A process of its own, since the threads of polars do not survive a fork."""


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for command, options in WORDS.items() for option in options]
)
def test_nothing_is_left(command: str, option: str, traced_run: Path, tmp_path: Path) -> None:
    open_to_others(tmp_path)
    words = [*command.split(), *inputs(command, tmp_path, traced_run)]
    first, mine, locked = tmp_path / "first", tmp_path / "mine", tmp_path / "locked"
    for folder, mode in ((first, 0o777), (mine, 0o777), (locked, 0o555)):
        folder.mkdir()
        folder.chmod(mode)

    def line(places: dict[str, Path]) -> list[str]:
        return [str(word) for word in [*words, *(part for each in WORDS[command] for part in (each, places[each]))]]

    names = {each: each.strip("-") for each in WORDS[command]}
    open_line = line({each: first / name for each, name in names.items()})
    locked_line = line({each: (locked if each == option else mine) / name for each, name in names.items()})
    said = subprocess.run(
        [sys.executable, "-c", TWICE, json.dumps([open_line, locked_line, NOBODY])],
        check=True, capture_output=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    place = locked / names[option]
    assert json.loads(said.stdout) == [7, [["AKF-F104", str(place)]]]
    assert list(locked.iterdir()) == list(mine.iterdir()) == []
