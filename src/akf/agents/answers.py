"""What a model answered, as files: parsed strictly, as data.

Invariants:
- A file stands in a block of its own: a line `FILE: src/NAME`, then a fenced block. Two blocks of one path are refused.
- A single fenced block without a name is the kernel, since nothing else was asked for.
- Of an answer only sources are taken. Manifest and launch spec are made from the Task, whatever the answer says.
- An answer is read up to `MAX_ANSWER` characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from akf.agents.files import MANIFEST, SOURCES, capped, file_problems
from akf.contracts.canonical import digest
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import printable

MAX_ANSWER = 2 * 1024 * 1024
MAX_NOTE = 600
KERNEL = "src/kernel.cpp"
LAUNCH = "launch.json"
_FILE = re.compile(r"^[#*\s]*FILE:\s*`?([^`\n]{1,400}?)`?[*\s]*$")
_FENCE = re.compile(r"^(```+|~~~+)[\w+.-]*\s*$")


def files_of(answer: str) -> dict[str, str]:
    """The sources of an answer, by path.

    Raises:
        InvalidError: it holds none, too much, or a path that is not the candidate's.
    """
    if len(answer) > MAX_ANSWER:
        message = f"the answer has {len(answer):,} characters, at most {MAX_ANSWER:,} are read"
        raise InvalidError.of("AKF-S721", message, expected=MAX_ANSWER, found=len(answer))
    named: dict[str, str] = {}
    loose: list[str] = []
    problems: list[Problem] = []
    for path, text in _blocks(answer):
        if path is None:
            loose.append(text)
        elif path in named:
            problems.append(Problem("AKF-S722", f"the answer has the file {printable(path[:200])} twice"))
        else:
            named[path] = text
    if not named and len(loose) == 1:
        named = {KERNEL: loose[0]}
    if not named:
        problems.append(
            Problem("AKF-S722", "the answer holds no file: one block for each, after a line `FILE: src/NAME`")
        )
    problems += file_problems(named, "the answer")
    problems += [
        Problem("AKF-P721", f"{path} is made from the Task and is not the answer's to write", found=path)
        for path in named
        if path in {MANIFEST, f"{SOURCES}{LAUNCH}"}
    ]
    if problems:
        raise InvalidError(capped(problems))
    return named


def _blocks(answer: str) -> list[tuple[str | None, str]]:
    """Fenced blocks with the name that stands before each."""
    found: list[tuple[str | None, str]] = []
    name: str | None = None
    fence, lines = "", [""]
    for line in answer.splitlines():
        if fence:
            if line.strip() == fence:
                found.append((name, "\n".join(lines) + "\n"))
                fence, name = "", None
            else:
                lines.append(line)
        elif opened := _FENCE.match(line.strip()):
            fence, lines = opened[1], []
        elif named := _FILE.match(line):
            name = named[1].strip()
    return found


def candidate_of(
    task: Mapping[str, Any], route: str, files: Mapping[str, str], note: str, owner: str
) -> dict[str, str]:
    """The whole folder of a candidate whose sources an agent wrote.

    Args:
        task: the Task, with the texts of its kernels.
        route: the route that it answers by.
        files: sources, below `src/`.
        note: what the agent says of it; data.
        owner: who answers for the sources.
    """
    if not task.get("plain") and not task.get("perturbed"):
        return dict(files)
    plain = next(each for each in (*task["plain"], *task["perturbed"]) if each["route"] == route)
    launch = next(each["text"] for each in plain["files"] if each["path"] == LAUNCH)
    sources = {**files, f"{SOURCES}{LAUNCH}": launch}
    said = " ".join(printable(note).split())[:MAX_NOTE] or "The agent said nothing of it."
    manifest = {
        "kind": "CandidateManifest", "schema_version": 1, "id": name_of(str(task["id"]), sources),
        "task": task["id"], "route": route, "abi": task["abi"]["kind"],
        "hypothesis": {
            "active_bound": "compute", "metric": "latency", "direction": "lower", "size_low_ratio": 0.0,
            "size_high_ratio": 0.99, "falsified_by": "The weighted latency of the Task's rows does not fall.",
        },
        "data_flow_change": said, "failure_boundary": "None is declared: the candidate claims the Task's whole domain.",
        "launch": LAUNCH, "license": "Apache-2.0", "owner": owner,
    }  # fmt: skip
    return {**sources, MANIFEST: orjson.dumps(manifest, option=orjson.OPT_INDENT_2).decode() + "\n"}


def name_of(task: str, sources: Mapping[str, str]) -> str:
    """A name that follows from the sources."""
    framed = orjson.dumps(sorted(sources.items()))
    return f"{task[:32]}-{digest(framed)[7:19]}"
