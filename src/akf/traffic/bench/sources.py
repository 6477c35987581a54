"""The files behind some paths, each read once and known by its tool.

Invariants:
1. A file named twice, or by two ways, counts once; links to folders are not followed.
2. In a folder, what is no benchmark result is passed over and named; a file named by itself is read or refused.
3. A file holds results of one tool; `Infinity` stands only where that tool writes it.
4. A database with pickled objects is never opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akf.contracts.problems import InvalidError, Problem
from akf.traffic.bench import aisbench
from akf.traffic.bench.meaning import looked_for, recognised, tools
from akf.traffic.foreign import File, Foreign, documents

MAX_FILES = 1_000
_SUFFIXES = (".json", ".jsonl", ".csv")
_SKIPPED = (".pytorch.json",)
_PICKLE = "benchmark_data.db"


@dataclass
class Read:
    """A file with its documents, all of one tool and layout."""

    file: File
    tool: str
    layout: str
    documents: list[Foreign] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)


def read_all(paths: Iterable[Path], problems: list[Problem]) -> tuple[list[Read], list[str]]:
    """Return what was read and what was passed over; add what is wrong to `problems`."""
    read: list[Read] = []
    ignored: list[str] = []
    for path, asked in _once(_expanded(paths, problems)):
        try:
            found = _read_one(path, asked)
        except InvalidError as error:
            problems += error.problems
            continue
        if found is None:
            ignored.append(path.name)
        else:
            read.append(found)
    return read, ignored


def tool_of(path: Path) -> str | None:
    """Which tool wrote a file, and in which layout; None when it is nobody's.

    Raises:
        InvalidError: It is malformed, so that nobody can say.
    """
    read = _read_one(path, asked=False)
    return None if read is None else f"{read.tool} {read.layout}"


def _once(found: list[tuple[Path, bool]]) -> list[tuple[Path, bool]]:
    """Each file once, by the first of its names, and as named by itself where it ever was."""
    alone = {os.path.realpath(path) for path, asked in found if asked}
    once: dict[str, tuple[Path, bool]] = {}
    for path, _ in sorted(found, key=lambda entry: (entry[0].name, os.fspath(entry[0]))):
        real = os.path.realpath(path)
        once.setdefault(real, (path, real in alone))
    return list(once.values())


def _expanded(paths: Iterable[Path], problems: list[Problem]) -> list[tuple[Path, bool]]:
    """The files, and whether each was named by itself."""
    found: list[tuple[Path, bool]] = []
    for path in paths:
        if not path.is_dir():
            found.append((path, True))
            continue
        inside = 0
        for folder, names, files in os.walk(path):
            names.sort()
            for file in sorted(files):
                if file.endswith(_SUFFIXES) and not file.endswith(_SKIPPED):
                    inside += 1
                    found.append((Path(folder, file), False))
        if inside > MAX_FILES:
            text = f"the folder holds {inside} files that may be results"
            problems.append(Problem("AKF-F209", text, os.fspath(path), expected=MAX_FILES, hint="name smaller folders"))
            return []
    return found


def _read_one(path: Path, asked: bool) -> Read | None:
    if path.name == _PICKLE:
        raise InvalidError.of(
            "AKF-F210",
            "this database holds pickled Python objects and is never opened",
            file=os.fspath(path),
            hint="name its folder: benchmark_summary.json and benchmark_percentile.json are read",
        )
    file = File(path)
    if path.suffix == ".csv":
        table = aisbench.rows(file)
        if table is None:
            if asked:
                raise InvalidError([_unknown(file, None)])
            return None
        if table[1]:
            raise InvalidError(table[1])
        return Read(file, "aisbench", "table", rows=table[0])
    found = documents(file.data, file.name)
    fits = [recognised(document.value) for document in found]
    if not asked and not any(fits):
        return None
    problems = [_unknown(file, document, fit) for document, fit in zip(found, fits, strict=True) if len(fit) != 1]
    kinds = {fit[0] for fit in fits if len(fit) == 1}
    if not problems and len(kinds) > 1:
        listed = " and ".join(sorted(tools()[tool]["title"] for tool, _ in kinds))
        problems = [
            Problem("AKF-F208", f"the file holds results of {listed}", file.name, hint="name one file for each tool")
        ]
    problems += [
        _infinite(document, fit[0][0])
        for document, fit in zip(found, fits, strict=True)
        if len(fit) == 1 and _endless(document, fit[0][0])
    ]
    if problems:
        raise InvalidError(problems)
    tool, layout = next(iter(kinds))
    return Read(file, tool, layout, found)


def _unknown(file: File, document: Foreign | None, fits: Sequence[tuple[str, str]] = ()) -> Problem:
    if fits:
        listed = " and of ".join(tools()[tool]["title"] for tool, _ in fits)
        message = f"this document has the keys of {listed}, so nobody can say who wrote it"
    else:
        message = "this is no benchmark result that AKF knows"
    hint = f"looked for the keys of {looked_for()}"
    if document is None:
        return Problem(
            "AKF-F208", message, file.name, None, 1, hint=f"looked for the header {', '.join(aisbench.HEADER)}, …"
        )
    return document.problem("AKF-F208", message, hint=hint)


def _endless(document: Foreign, tool: str) -> bool:
    if not document.infinite:
        return False
    allowed = tools()[tool].get("infinity", [])
    inside = sum(1 for key in allowed if str(document.value.get(key)) == "Infinity")
    return inside == 0


def _infinite(document: Foreign, tool: str) -> Problem:
    text = f"Infinity is not a JSON value, and {tools()[tool]['title']} does not write it here"
    return document.problem("AKF-S007", text, found="Infinity")
