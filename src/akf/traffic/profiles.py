"""From the files of a profiler to a Capture: what is asked for, and what every importer shares.

Invariants:
1. Sources are named by rank and kind (`rank0/kernel_details.csv`), never by the folders or names that they have here.
2. Everything is read before anything is said: the problems of all files are listed at once.
3. Kernels are given to callsites where a Workload is named; where the arm is, too, the calls that it should have made
   are compared with those seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from akf.contracts.problems import AkfError, InvalidError, Problem, UsageError

Shown = Callable[[int, int], object]
"""Told of bytes read, and of bytes to read."""
CallsiteOf = Callable[..., tuple[str | None, dict[str, int]]]
"""Called with kernel, op_type, inputs, outputs and graph, as they stand in an entry."""


def nowhere(
    _kernel: str,
    _op_type: str | None,
    _inputs: list[dict[str, Any]],
    _outputs: list[dict[str, Any]],
    _graph: bool | None,
) -> tuple[None, dict[str, int]]:
    """The callsite of a kernel where no Workload is given."""
    return None, {}


@dataclass(frozen=True)
class Options:
    """What a person says about a profile."""

    id: str
    title: str | None
    data_class: str
    platform: str | None = None
    stage: str | None = None
    step_kernel: str | None = None
    workload: Mapping[str, Any] | None = None
    arm: str | None = None

    def expect(self, platform: str) -> None:
        """Refuse profiles of another platform than the one that was named.

        Raises:
            UsageError: They are.
        """
        if self.platform not in {None, platform}:
            message = f"--platform: the profiles are of {platform}, not of {self.platform}"
            raise UsageError.of("AKF-F135", message, expected=self.platform, found=platform)


class Complaints:
    """Problems of many files, to be told together."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._error: type[AkfError] = InvalidError

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a refusal and go on."""
        try:
            yield
        except AkfError as error:
            self._problems += error.problems
            if error.exit_code != InvalidError.exit_code:
                self._error = type(error)

    def add(self, problem: Problem) -> None:
        """Note one problem."""
        self._problems.append(problem)

    def refuse(self) -> None:
        """Raise what was noted, if anything was."""
        if self._problems:
            raise self._error(self._problems)


class Sources:
    """Digests of the files that a Capture is made of."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, rank: int, kind: str, digest: str) -> None:
        """Add one file; `kind` is its name without what differs from machine to machine."""
        self._found.setdefault(f"rank{rank}/{kind}", []).append(digest)

    def named(self) -> list[dict[str, str]]:
        """Names and digests; of several files of one kind, numbered in the order of their digests."""
        named = []
        for name, digests in sorted(self._found.items()):
            stem, dot, suffix = name.rpartition(".")
            for number, digest in enumerate(sorted(digests)):
                own = name if not number else f"{stem}.{number + 1}{dot}{suffix}"
                named.append({"name": own, "digest": digest})
        return named


def callsite_of(options: Options) -> CallsiteOf:
    """Finds the callsite of a kernel in the Workload that was named."""
    if options.workload is None:
        return nowhere
    from akf.frameworks.mapping import Mapper  # noqa: PLC0415 - only with a Workload

    return Mapper(options.workload, options.arm).of


def with_completeness(capture: dict[str, Any], options: Options) -> dict[str, Any]:
    """The Capture, with the calls that the arm should have made against those seen."""
    if options.workload is None or options.arm is None:
        return capture
    from akf.frameworks.calls import completeness  # noqa: PLC0415 - only with a Workload

    steps = {line["rank"]: line["steps"] for line in capture["breakdown"]}
    return capture | {"completeness": completeness(options.workload, options.arm, capture["entries"], steps)}


def alike(found: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """How several profiles were recorded; where they differ, all of it."""
    values: dict[str, set[str]] = {}
    for one in found:
        for name, value in one.items():
            values.setdefault(name, set()).add(value)
    return {name: " and ".join(sorted(each)) for name, each in sorted(values.items())}


def tool(name: str, versions: Iterable[str], settings: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """The tool of a Capture.

    Raises:
        InvalidError: Its profiles were made by different versions, or with different settings.
    """
    problems = []
    if len(found := sorted(set(versions))) > 1:
        problems.append(("version", found))
    held = list(settings)
    merged: dict[str, str] = {}
    for key in sorted({key for one in held for key in one}):
        values = sorted({one.get(key, "not stated") for one in held})
        if len(values) > 1:
            problems.append((key, values))
        merged[key] = values[0]
    if problems:
        hint = "take together only what was recorded alike"
        raise InvalidError(
            Problem("AKF-F133", f"the profiles differ in {key}: {', '.join(values)}", hint=hint)
            for key, values in problems
        )
    return {"name": name, "version": found[0], "settings": [{"name": k, "value": v} for k, v in merged.items()]}
