"""Which profiler wrote what a person names, and who reads it.

Invariants:
1. A format is known by what lies there, never by what is asked for: by the names of tables, or by the start of a trace.
2. A folder is of the first format in the list of which it holds something. `msprof op` writes pictures as traces beside
   its tables, and torch_npu a trace that is an array; neither is a trace of torch.
3. All paths of one Capture are of one format.
4. Formats are told apart without polars; it is there before any profile is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from akf.contracts.problems import InvalidError
from akf.traffic import need_polars, op_files, torch_files
from akf.traffic.ascend import folders
from akf.traffic.profiles import Options, Shown

MAX_SEEN = folders.MAX_SEEN
_EXPORTED = frozenset({"ASCEND_PROFILER_OUTPUT", "mindstudio_profiler_output"})


class Format(NamedTuple):
    """A kind of profile.

    Attributes:
        name: What people call it.
        knows: Whether a file is one of its own.
        module: Where its `ingest` is.
    """

    name: str
    knows: Callable[[Path], bool]
    module: str


FORMATS = (
    Format("torch_npu or msprof", lambda file: folders.kind_of(file.name) is not None, "akf.traffic.ascend.profile"),
    Format("msprof op", lambda file: op_files.table_of(file.name) is not None, "akf.traffic.msprof_op"),
    Format("torch", torch_files.is_trace, "akf.traffic.torch_profile"),
)


def ingest(paths: Sequence[Path], options: Options, shown: Shown = lambda _done, _all: None) -> dict[str, Any]:
    """Make a Capture of all that lies under these paths.

    Raises:
        InvalidError: With the problems of all files; or the paths are of different formats, or of none.
        BlockedError: polars is not installed.
        StorageError: A file cannot be read.
    """
    found = [(path, _format(path)) for path in paths]
    named: dict[str, Path] = {}
    for path, of_path in found:
        named.setdefault(of_path.name, path)
    if len(named) > 1:
        told = ", ".join(f"{path} of {name}" for name, path in sorted(named.items()))
        hint = "make a Capture of each by itself"
        raise InvalidError.of("AKF-F164", f"the paths are of different profilers: {told}", hint=hint)
    made: dict[str, Any] = _module(found[0][1]).ingest(paths, options, shown)
    return made


def recorded(path: Path) -> dict[str, str]:
    """How the profiles under a path were recorded, as far as it is known before they are read.

    Raises:
        InvalidError: What says so is malformed.
        StorageError: It cannot be read.
    """
    found: dict[str, str] = _module(_format(path)).recorded(path)
    return found


def _module(one: Format) -> ModuleType:
    need_polars()
    return import_module(one.module)


def of_folder(folder: Path) -> str | None:
    """The format whose profile a folder is, by its own name and what stands directly in it; None for any other."""
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return None
    files = [path for path in inside if path.is_file()]
    for one in FORMATS[:2]:
        if any(map(one.knows, files)):
            return one.name
    exported = any(path.name in _EXPORTED and path.is_dir() for path in inside)
    if not exported and not folder.name.endswith("_ascend_pt") and not folder.name.startswith(("PROF_", "OPPROF_")):
        return None
    return _format(folder).name


def of_file(path: Path) -> str | None:
    """The format whose file this is; None for any other."""
    return next((one.name for one in FORMATS if one.knows(path)), None)


def _format(path: Path) -> Format:
    """The format of a path; of one that is none of them, the first, which refuses it."""
    if path.is_dir():
        files = list(_files(path))
        return next((one for one in FORMATS if any(map(one.knows, files))), FORMATS[0])
    if torch_files.may_be_trace(path):
        return FORMATS[-1]
    return next((one for one in FORMATS if one.knows(path)), FORMATS[0])


def _files(folder: Path) -> Iterator[Path]:
    seen = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            seen += 1
            if seen > MAX_SEEN:
                return
            yield Path(inside) / name
