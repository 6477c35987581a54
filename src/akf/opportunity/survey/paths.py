"""Which of a user's files and folders can be read, and as what.

Invariants:
- A format is known by its importer, from content; here they are only asked, in the order of `KINDS`.
- What was named is recognised or a problem. What a named folder holds besides is passed over, counted, and not opened
  when its name ends as no input's does.
- One file counts once, however it is reached; links inside folders are not followed.
- A walk is bounded: `MAX_ENTRIES` names, `MAX_OPENED` files; beyond, the folder is a problem.
- All problems of all paths are listed at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from akf.contracts.files import open_regular, refusal
from akf.contracts.problems import AkfError, InvalidError, Problem, StorageError, unlisted
from akf.contracts.text import printable

MAX_ENTRIES = 100_000
MAX_OPENED = 1_000
MAX_DEPTH = 8
MAX_LISTED = 20
HEAD_BYTES = 65_536
INPUT_SUFFIXES = (".json", ".jsonl", ".csv", ".log", ".txt", ".yaml", ".yml", ".toml", ".gz", ".db")


class Found(NamedTuple):
    """Something that an importer reads."""

    path: Path
    kind: str
    layout: str


class Kind(NamedTuple):
    """One kind of input.

    Attributes:
        name: what a Found calls it.
        what: what it is, for people, and how to get it.
        folder: says of a folder which layout it is, or None.
        file: likewise of a file, given its beginning; raises InvalidError when it is too malformed to say.
    """

    name: str
    what: str
    folder: Callable[[Path], str | None]
    file: Callable[[Path, bytes], str | None]


@dataclass
class Walk:
    """What was found below the paths."""

    found: list[Found] = field(default_factory=list)
    passed: int = 0
    repeated: int = 0
    problems: list[AkfError] = field(default_factory=list)


def walk(paths: Sequence[Path], kinds: Sequence[Kind], named: Mapping[str, Path] = MappingProxyType({})) -> Walk:
    """Recognise paths.

    Args:
        paths: files and folders.
        kinds: what may be recognised.
        named: files whose kind the person said.

    Raises:
        InvalidError: a path is missing, empty, or nothing that AKF knows; with every problem.
        StorageError: every problem is one of the system.
    """
    walker = _Walker(kinds)
    for kind, path in named.items():
        walker.told(kind, path)
    for path in paths:
        walker.named(path)
    _refuse(walker.result.problems)
    walker.result.found.sort(key=lambda each: (each.kind, os.fspath(each.path)))
    return walker.result


class _Walker:
    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = kinds
        self.result = Walk()
        self._seen: set[tuple[int, int]] = set()
        self._entries = 0
        self._opened = 0

    def told(self, kind: str, path: Path) -> None:
        """Take a file as what somebody says it is; its importer sees to it."""
        try:
            if not self._again(path):
                beginning(path)
                self.result.found.append(Found(path, kind, "named"))
        except AkfError as error:
            self.result.problems.append(error)

    def named(self, path: Path) -> None:
        """Recognise one path that somebody named."""
        self._entries = self._opened = 0
        try:
            if self._again(path):
                return
            if not path.is_dir():
                self._file(path)
                return
            before, passed, repeated = len(self.result.found), self.result.passed, self.result.repeated
            self._folder(path, 0)
            if len(self.result.found) == before and self.result.repeated == repeated:
                self.result.problems.append(self._nothing(path, self.result.passed - passed))
        except AkfError as error:
            self.result.problems.append(error)

    def _again(self, path: Path) -> bool:
        try:
            state = path.stat()
        except (OSError, ValueError) as error:
            raise refusal(os.fspath(path), error) from error
        if (state.st_dev, state.st_ino) in self._seen:
            self.result.repeated += 1
            return True
        self._seen.add((state.st_dev, state.st_ino))
        return False

    def _file(self, path: Path) -> None:
        head = beginning(path)
        found, malformed = self._recognised(path, head)
        if found is None:
            raise malformed or self._unknown(path, head)
        self.result.found.append(found)

    def _recognised(self, path: Path, head: bytes) -> tuple[Found | None, InvalidError | None]:
        """What a file is; or why an importer cannot say."""
        malformed = None
        for kind in self.kinds:
            try:
                layout = kind.file(path, head)
            except InvalidError as error:
                malformed = malformed or error
                continue
            if layout is not None:
                return Found(path, kind.name, layout), None
        return None, malformed

    def _folder(self, folder: Path, depth: int) -> None:
        for kind in self.kinds:
            layout = kind.folder(folder)
            if layout is not None:
                self.result.found.append(Found(folder, kind.name, layout))
                return
        for entry in self._listed(folder):
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH and not self._again(path):
                    self._folder(path, depth + 1)
            elif not entry.is_file(follow_symlinks=False) or not entry.name.lower().endswith(INPUT_SUFFIXES):
                self.result.passed += 1
            elif not self._again(path):
                self._maybe(path, folder)

    def _maybe(self, path: Path, folder: Path) -> None:
        """Recognise a file of a folder; one that is nothing is passed over."""
        self._opened += 1
        if self._opened > MAX_OPENED:
            text = f"the folder holds more than {MAX_OPENED} files that may be inputs"
            raise InvalidError.of("AKF-F402", text, file=os.fspath(folder), hint="name the files, or smaller folders")
        found, _ = self._recognised(path, beginning(path))
        if found is None:
            self.result.passed += 1
        else:
            self.result.found.append(found)

    def _listed(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise refusal(os.fspath(folder), error) from error
        self._entries += len(listed)
        if self._entries > MAX_ENTRIES:
            text = f"the folder holds more than {MAX_ENTRIES} names"
            raise InvalidError.of("AKF-F402", text, file=os.fspath(folder), hint="name the files, or smaller folders")
        return iter(listed)

    def _nothing(self, folder: Path, passed: int) -> InvalidError:
        held = f"none of its {passed} files is anything that AKF reads" if passed else "it is empty"
        return InvalidError.of(
            "AKF-F401", f"the folder holds no input: {held}", file=os.fspath(folder), expected=self._known(),
            hint="name a profiler folder, a benchmark result, a request trace, or a model's config.json",
        )  # fmt: skip

    def _unknown(self, path: Path, head: bytes) -> InvalidError:
        what, hint = _guess(head)
        return InvalidError.of(
            "AKF-F400", f"this is no input that AKF knows: {what}", file=os.fspath(path), line=1 if head else None,
            expected=self._known(), hint=hint,
        )  # fmt: skip

    def _known(self) -> list[str]:
        return [f"{kind.name}: {kind.what}" for kind in self.kinds]


def beginning(path: Path) -> bytes:
    """The first bytes of a file.

    Raises:
        InvalidError: it is missing or no regular file.
        StorageError: it cannot be read.
    """
    descriptor = open_regular(path)
    try:
        return os.read(descriptor, HEAD_BYTES)
    except OSError as error:
        raise refusal(os.fspath(path), error) from error
    finally:
        os.close(descriptor)


_MAGIC = (
    (b"SQLite format 3\x00", "it is a database", "name the text files beside it: databases are not read"),
    (b"PK\x03\x04", "it is a zip archive", "unpack it and name what is inside"),
    (
        b"\x1f\x8b",
        "it is packed with gzip, and what is inside is no trace of events",
        "unpack it and name what is inside",
    ),
    (b"\x7fELF", "it is a program or a library", None),
    (b"\x89PNG", "it is a picture", None),
)


def _guess(head: bytes) -> tuple[str, str | None]:
    """What an unknown file seems to be, and what to do about it."""
    if not head.strip():
        return "it is empty", "name the file that holds the data"
    for magic, what, hint in _MAGIC:
        if head.startswith(magic):
            return what, hint
    if b'"ph"' in head and head.lstrip().startswith(b"["):
        return "it is a trace of events without a profile around it", "name the *_ascend_pt folder that holds it"
    if b'"schema_version"' in head and b'"kind"' in head:
        return "it is an artifact of AKF", "give Capture and Workload to: akf triage"
    if b"\x00" in head:
        return "it is not text", None
    first = head.split(b"\n", 1)[0][:80].decode("utf-8", "replace").strip()
    hint = "docs/commands/survey.md lists what is read; a file of a listed tool may have been cut off or converted"
    return f"it begins with {printable(first)!r}", hint


def _refuse(errors: Sequence[AkfError]) -> None:
    """Raise all problems as one refusal, at most `MAX_LISTED` of them."""
    if not errors:
        return
    problems = [problem for error in errors for problem in error.problems]
    if len(problems) > MAX_LISTED:
        hidden = len(problems) - MAX_LISTED
        problems = sorted(problems, key=Problem.sort_key)[:MAX_LISTED]
        problems.append(unlisted("AKF-F403", hidden, problems[-1]))
    whole = StorageError if all(isinstance(error, StorageError) for error in errors) else InvalidError
    raise whole(problems)
