"""Files of agents: what they may name, and that nothing is written when anything is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from akf.agents.files import MAX_FILE_BYTES, file_problems, write_candidate
from akf.contracts.problems import AkfError, ConflictError, InvalidError

GOOD = {"candidate.json": "{}", "src/kernel.cpp": "int x;\n", "src/deep/er/launch.json": "{}"}
BAD = [
    "/etc/passwd", "../keys/judge.pem", "src/../../x", "src/./x", "src//x", "src", "candidate.json/x", "task.json",
    "src/.git/config", ".bashrc", "gates/operator.json", "src\\..\\x", "C:/x", "src/a\nb", "src/a\u202eb", "", "src/",
    "runs/x/ledger.jsonl", "src/" + "a/" * 9 + "x", "src/" + "x" * 300, "Candidate.json",
]  # fmt: skip


def test_a_candidate_is_written_whole_and_replaces_nothing(tmp_path: Path) -> None:
    folder = write_candidate(tmp_path / "inbox", "mine", GOOD)
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert found == GOOD
    with pytest.raises(ConflictError):
        write_candidate(tmp_path / "inbox", "mine", {"candidate.json": "[]"})
    assert (folder / "candidate.json").read_text() == "{}"


@pytest.mark.parametrize("path", BAD)
def test_a_path_outside_is_refused_and_nothing_is_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidError):
        write_candidate(tmp_path / "inbox", "mine", GOOD | {path: "x"})
    assert [each.name for each in tmp_path.rglob("*")] == []


@pytest.mark.parametrize("name", ["../mine", "a/b", "", ".hidden", "/abs", "a\nb"])
def test_a_folder_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AkfError):
        write_candidate(tmp_path / "inbox", name, GOOD)
    assert [each.name for each in tmp_path.rglob("*")] == []


def test_too_much_is_refused_by_size_and_by_number() -> None:
    assert file_problems({"src/a": "x" * MAX_FILE_BYTES}, "here") == []
    assert [each.code for each in file_problems({"src/a": "x" * (MAX_FILE_BYTES + 1)}, "here")] == ["AKF-S721"]
    assert [each.code for each in file_problems({f"src/{n}": "" for n in range(65)}, "here")] == ["AKF-S721"]
    assert "AKF-S721" in {each.code for each in file_problems({f"src/{n}": "é" * 2**19 for n in range(5)}, "here")}
    assert [each.code for each in file_problems({"src/a": "\ud800"}, "here")] == ["AKF-S722"]
