"""Where the tables of a profile are, in whatever folder they are looked for.

Invariants:
1. A profile is a folder that holds a list of kernels: `ASCEND_PROFILER_OUTPUT` inside `*_ascend_pt`, or msprof's
   `mindstudio_profiler_output` inside `PROF_*`, or a bare folder; a folder of several is looked through. What lies
   beside `ASCEND_PROFILER_OUTPUT` is the same profile, raw.
2. A symbolic link is not followed inside a folder. A folder is looked through to `MAX_DEPTH` levels and `MAX_SEEN`
   names; where that is not enough, nothing is taken.
3. A path without a profile is refused, with what to do about a profile that was not exported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from akf.contracts.files import refusal
from akf.contracts.problems import AkfError, InvalidError, Problem

MAX_DEPTH = 8
MAX_SEEN = 100_000
TORCH_NPU, MSPROF = "torch_npu.profiler", "msprof"
TRACE = "trace_view.json"
_TABLE = re.compile(
    r"(kernel_details|op_summary|op_statistic|task_time|step_trace_time|step_trace|api_statistic"
    r"|operator_memory|memory_record)(?:_[A-Za-z0-9_]+)?\.csv"
)
_INFO = re.compile(r"profiler_info(?:_\d+)?\.json")
_DEVICE = re.compile(r"device_\d+")
_DEVICE_INFO = re.compile(r"info\.json(?:\.\d+)?")
_EXPORTED = "ASCEND_PROFILER_OUTPUT"
_KERNELS = {"kernel_details": TORCH_NPU, "op_summary": MSPROF}


class Site(NamedTuple):
    """One profile.

    Attributes:
        tool: What wrote it.
        tables: Its tables by kind (`kernel_details`, `op_statistic`, ...).
        infos: Files that say how it was recorded, or on which devices.
        traces: What torch_npu wrote of the same run as events.
    """

    tool: str
    tables: dict[str, list[Path]]
    infos: list[Path]
    traces: list[Path]

    @property
    def kernels(self) -> list[Path]:
        """The lists of kernels."""
        return self.tables.get("kernel_details") or self.tables["op_summary"]


def find(paths: Sequence[Path]) -> list[Site]:
    """The profiles under these paths.

    Raises:
        InvalidError: A path holds none, or cannot be looked through.
    """
    found: list[Site] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            looked = _Look()
            sites = list(looked.through(path, 0)) if path.is_dir() else [_file(path)]
            found += sites
            if not sites:
                problems.append(_none(path, looked.unexported))
            problems += looked.links
        except AkfError as error:
            problems += error.problems
    if problems:
        raise InvalidError(problems)
    return found


def kind_of(name: str) -> str | None:
    """Which table a file is by its name."""
    found = _TABLE.fullmatch(name)
    return found.group(1) if found else None


def _file(path: Path) -> Site:
    kind = kind_of(path.name)
    if kind is not None and kind not in _KERNELS:
        hint = "name its folder, or the kernel_details.csv or op_summary_*.csv beside it"
        raise InvalidError.of("AKF-F127", f"{path.name} says nothing about single kernels", file=str(path), hint=hint)
    kind = kind or "op_summary"
    return Site(_KERNELS[kind], {kind: [path]}, [], [])


def _none(path: Path, unexported: str | None) -> Problem:
    hints = {
        None: "name a *_ascend_pt or PROF_* folder, or a kernel_details.csv or op_summary_*.csv",
        "torch": "it was not exported as text: run torch_npu.profiler.profiler.analyse(FOLDER)",
        "msprof": "it was not exported: run msprof --export=on --output=FOLDER",
    }
    return Problem("AKF-F127", "no list of kernels is here", str(path), hint=hints[unexported])


class _Look:
    """One look through a folder."""

    def __init__(self) -> None:
        self.unexported: str | None = None
        self.links: list[Problem] = []
        self._seen = 0

    def through(self, folder: Path, depth: int) -> Iterator[Site]:
        """The profiles in a folder, in the order of names."""
        name = os.path.basename(os.path.abspath(folder))  # noqa: PTH100, PTH119 - links are not followed
        if name.endswith("_ascend_pt"):
            self.unexported = "torch"
        elif name.startswith("PROF_") and self.unexported is None:
            self.unexported = "msprof"
        files, folders = self._listed(folder)
        tables: dict[str, list[Path]] = {}
        for file in files:
            if (kind := kind_of(file.name)) is not None:
                tables.setdefault(kind, []).append(file)
        tool = next((tool for kind, tool in _KERNELS.items() if kind in tables), None)
        if tool is not None:
            traces = [file for file in files if file.name == TRACE and tool == TORCH_NPU]
            yield Site(tool, tables, self._infos(folder, name, files, tool), traces)
        exported = [inner for inner in folders if inner.name == _EXPORTED]
        if depth == MAX_DEPTH and folders:
            raise _too_much(folder, f"folders lie deeper than {MAX_DEPTH} levels")
        for inner in exported or folders:
            yield from self.through(inner, depth + 1)

    def _infos(self, folder: Path, name: str, files: list[Path], tool: str) -> list[Path]:
        if tool == MSPROF:
            if name != "mindstudio_profiler_output":
                return []
            devices = [inner for inner in self._listed(folder / os.pardir)[1] if _DEVICE.fullmatch(inner.name)]
            return [file for inner in devices for file in self._listed(inner)[0] if _DEVICE_INFO.fullmatch(file.name)]
        own = [file for file in files if _INFO.fullmatch(file.name)]
        if own or name != _EXPORTED:
            return own
        return [file for file in self._listed(folder / os.pardir)[0] if _INFO.fullmatch(file.name)]

    def _listed(self, folder: Path) -> tuple[list[Path], list[Path]]:
        files, folders = [], []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._seen += 1
                    if self._seen > MAX_SEEN:
                        raise _too_much(folder, f"more than {MAX_SEEN} files and folders")
                    path = folder / entry.name
                    if entry.is_symlink():
                        self._link(path)
                    elif entry.is_dir():
                        folders.append(path)
                    else:
                        files.append(path)
        except OSError as error:
            raise refusal(str(folder), error) from error
        return sorted(files), sorted(folders)

    def _link(self, path: Path) -> None:
        if path.is_dir() or kind_of(path.name) or _INFO.fullmatch(path.name):
            hint = "name what it points to as a path of its own"
            self.links.append(Problem("AKF-F128", "a symbolic link stands in a profile", str(path), hint=hint))


def _too_much(folder: Path, why: str) -> InvalidError:
    return InvalidError.of("AKF-F131", why, file=str(folder), hint="name the folders of the profiles themselves")
