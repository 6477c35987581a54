"""Files of a candidate, from any hand: checked before one of them is written, written in one place only.

Invariants:
- A path is relative, plain and below `src/`, or it is `candidate.json`; nothing else can be named.
- All that is wrong is said at once; nothing is written when anything is wrong.
- A candidate's folder appears whole below the inbox, never in parts, and replaces nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from akf.contracts.ids import path_problem
from akf.contracts.problems import InvalidError, Problem, unlisted
from akf.contracts.text import counted, printable
from akf.store.publish import StagedFolder, make_folder

MANIFEST = "candidate.json"
SOURCES = "src/"
MAX_FILES = 64
MAX_FILE_BYTES = 1024 * 1024
MAX_TOTAL_BYTES = 4 * 1024 * 1024
MAX_NAME = 200
MAX_LISTED = 20
MAX_LEVELS = 8

Files = Mapping[str, str]


def file_problems(files: Files, where: str, *, folder: str = "") -> list[Problem]:
    """What forbids a set of files.

    Args:
        files: text by path.
        where: how messages name their origin.
        folder: what stands before each path, say `src/`.
    """
    found: list[Problem] = []
    if len(files) > MAX_FILES:
        message = f"{where} has {counted(len(files), 'file')}, at most {MAX_FILES} are taken"
        return [Problem("AKF-S721", message, file=where, expected=MAX_FILES, found=len(files))]
    total = 0
    for path, text in files.items():
        size = len(text.encode("utf-8", "surrogatepass"))
        total += size
        if size > MAX_FILE_BYTES:
            message = f"{printable(path[:MAX_NAME])} has {size:,} bytes, at most {MAX_FILE_BYTES:,} are taken"
            found.append(Problem("AKF-S721", message, file=where, expected=MAX_FILE_BYTES, found=size))
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            message = f"{printable(path[:MAX_NAME])} is no Unicode text"
            found.append(Problem("AKF-S722", message, file=where))
        found += _path_problems(folder + path, where)
    if total > MAX_TOTAL_BYTES:
        message = f"the files of {where} have {total:,} bytes together, at most {MAX_TOTAL_BYTES:,} are taken"
        found.append(Problem("AKF-S721", message, file=where, expected=MAX_TOTAL_BYTES, found=total))
    return found


def _path_problems(path: str, where: str) -> list[Problem]:
    problem = path_problem(path, field="path", file=where)
    if problem is not None:
        return [problem]
    segments = path.split("/")
    hidden = any(segment.startswith(".") for segment in segments)
    inside = path == MANIFEST or (path.startswith(SOURCES) and len(segments) <= MAX_LEVELS)
    if inside and not hidden and len(path) <= MAX_NAME:
        return []
    message = f"{printable(path[:MAX_NAME])} is outside what a candidate may write"
    return [Problem("AKF-P721", message, file=where, expected=[MANIFEST, f"{SOURCES}..."], found=path[:MAX_NAME])]


def write_candidate(inbox: Path, name: str, files: Files) -> Path:
    """Write a candidate's folder below `inbox`; returns it.

    Raises:
        InvalidError: a path or a size is not taken.
        ConflictError: the folder exists.
        StorageError: it cannot be written.
    """
    problems = file_problems(files, name)
    if "/" in name or path_problem(name) is not None or name.startswith("."):
        problems.insert(0, Problem("AKF-P721", f"{printable(name[:MAX_NAME])} is no name of a folder", found=name[:80]))
    if problems:
        raise InvalidError(capped(problems))
    make_folder(inbox)
    with StagedFolder(inbox / name) as stage:
        for path in sorted(files):
            stage.write(path, files[path].encode(), mode=0o644)
    return inbox / name


def capped(problems: list[Problem]) -> list[Problem]:
    """The first of many problems, and how many more there are."""
    if len(problems) <= MAX_LISTED:
        return problems
    return [*problems[:MAX_LISTED], unlisted("AKF-S722", len(problems) - MAX_LISTED, problems[MAX_LISTED - 1])]
