"""Finding a route's tools and reading their identity.

Invariants:
- A tool is looked for where its declaration says, in that order, and nowhere else: no other PATH, no near miss.
- Identity is what the file is (SHA-256 of its bytes, after links), then what it says of itself.
- A version is asked of the resolved file with a fixed environment; what it prints is bounded and printable.
- A missing tool is named with every place that was looked at and with how to get it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import digest_file
from akf.contracts.problems import Problem
from akf.contracts.text import printable
from akf.contracts.tree import tree_digest
from akf.routes.declaration import Program

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
ROOTS = {"environment": ("packages", "env"), "toolkit": ("toolkit",), "headers": ("headers",)}
"""Folders by name in which a kind of tool may stand: an environment's packages and the environment itself."""
MAX_TEXT = 4096
_ASK_S = 60


class ToolMissing(RuntimeError):  # noqa: N818 - a result that is raised: the name says what is the case
    """A tool that a route needs is not on this machine."""

    def __init__(self, name: str, hint: str, looked: str = "") -> None:
        super().__init__(f"{name} is not installed: {hint}")
        self.name = name
        self.hint = hint
        self.looked = looked

    def problem(self) -> Problem:
        """This as a problem with its remedy."""
        message = f"{self.name} is not on this machine"
        if self.looked:
            message = f"{self.name} is missing: {self.looked}"
        return Problem("AKF-E101", message, expected=self.name, hint=self.hint)


class Package(NamedTuple):
    """A distribution as it was installed."""

    version: str
    wheel_digest: str | None


class Place(NamedTuple):
    """Where tools may be: folders by root name, and the packages of the environment."""

    roots: Mapping[str, Path] = {}
    packages: Mapping[str, Package] = {}

    def merged(self, other: Place) -> Place:
        """Both places; the first one wins."""
        return Place({**other.roots, **self.roots}, {**other.packages, **self.packages})


class Found(NamedTuple):
    """A tool of this machine."""

    program: Program
    path: Path
    record: dict[str, Any]
    """As artifacts name it."""
    call: str
    """As a command names it: below its root's name, or by its own path."""


def find(program: Program, place: Place) -> tuple[Path, str] | None:
    """The tool's file, and how a command names it; None when it is in none of its places."""
    if program.found == "path":
        for name in program.places:
            found = shutil.which(name)
            if found is not None:
                return Path(found), str(Path(found).resolve())
        return None
    if program.found == "environment" and program.package and program.package not in place.packages:
        return None  # a file of the same name of another distribution is another tool
    for root in ROOTS[program.found]:
        for relative in program.places if root in place.roots else ():
            path = place.roots[root] / relative
            if path.exists():
                return path, f"{{{root}}}/{relative}"
    return None


def need(program: Program, place: Place) -> Found:
    """The tool with its identity.

    Raises:
        ToolMissing: it is in none of its places.
    """
    found = find(program, place)
    if found is None:
        raise missing(program, place)
    path, call = found
    return Found(program, path, record(program, path, place), call)


def missing(program: Program, place: Place) -> ToolMissing:
    """What is said of a tool that is not there."""
    names = ", ".join(program.places)
    if program.found == "path":
        looked = f"no {names} on PATH"
    elif set(ROOTS[program.found]) & set(place.roots):
        looked = f"no {names} in the registered {program.found}"
    else:
        looked = f"no {program.found} that could hold {names} is registered"
    return ToolMissing(program.name, program.get, looked)


def record(program: Program, path: Path, place: Place) -> dict[str, Any]:
    """The tool's identity as artifacts hold it."""
    value: dict[str, Any] = {"name": program.name, "version_text": "no version of its own"}
    said = version_text(program, path)
    package = place.packages.get(program.package or "")
    if package is not None:
        value["package"] = f"{program.package} {package.version}"
        value["version_text"] = value["package"]
        if package.wheel_digest is not None:
            value["wheel_digest"] = package.wheel_digest
    if said:
        value["version_text"] = said
        commit = re.search(program.commit, said) if program.commit else None
        if commit is not None:
            value["commit"] = commit[1]
    value["files"] = [{"name": path.name, "digest": content_digest(path)}]
    return value


def version_text(program: Program, path: Path) -> str:
    """The first lines of what a tool says of its version; empty when it says nothing."""
    if not program.version:
        return ""
    lines = ask(path, *program.version).splitlines()
    kept = [printable(line.strip()) for line in lines if line.strip()][: program.version_lines]
    return "\n".join(kept)[:MAX_TEXT]


def ask(path: Path, *arguments: str) -> str:
    """What a tool prints when it is asked; empty when it cannot be run."""
    env = {"PATH": search_path(path), "LANG": "C", "LC_ALL": "C"}
    try:
        result = subprocess.run(
            [str(path), *arguments],
            capture_output=True,
            check=False,
            env=env,
            stdin=subprocess.DEVNULL,
            timeout=_ASK_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (result.stdout or result.stderr).decode("utf-8", "replace")


def search_path(path: Path) -> str:
    """Where a program looks for its helpers: its own folder and the system's, not the user's PATH."""
    folder = str(path.parent)
    return SYSTEM_PATH if folder in SYSTEM_PATH.split(":") else f"{folder}:{SYSTEM_PATH}"


def content_digest(path: Path) -> str:
    """Digest of a file, or of all files of a folder."""
    if path.is_dir():
        return tree_digest(tree(path))
    return digest_file(path)


def tree(folder: Path, skip: Iterable[str] = ()) -> list[tuple[str, bool, str]]:
    """Path, execute permission and digest of every regular file below a folder; links count by where they lead."""
    left_out = frozenset(skip)
    found = []
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in left_out)
        for name in sorted(names):
            path = Path(base, name)
            if path.is_file():
                executable = bool(path.stat().st_mode & 0o100)
                found.append((path.relative_to(folder).as_posix(), executable, digest_file(path)))
    return found
