"""Which part of a long suite runs.

`AKF_SOAK_SLICE="i/n"` takes every n-th point from the i-th on; the n slices together are the whole. Tests that are
marked `soak` and divide no points of their own are taken or left out whole, by their names. Without it a test that is
marked `soak` runs whole, and a test of the default run takes one of its `parts` slices: which one follows from the
commit, so that the slices rotate.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from zlib import crc32

VARIABLE = "AKF_SOAK_SLICE"


class Slice(NamedTuple):
    """Every `stride`-th point, from `offset` on."""

    offset: int
    stride: int


def whole() -> Slice:
    """The slice of a test that is marked `soak`."""
    return _named() or Slice(0, 1)


def part(parts: int) -> Slice:
    """The slice of a test of the default run; a named slice is a part of it."""
    named = _named() or Slice(0, 1)
    mine = _commit() % parts
    return Slice(mine + parts * named.offset, parts * named.stride)


def taken(name: str, module: ModuleType) -> bool:
    """Whether the named slice holds a whole test; one whose module divides points is in every slice."""
    named = _named()
    if named is None or any(getattr(value, "__module__", None) == __name__ for value in vars(module).values()):
        return True
    if any(value is sys.modules[__name__] for value in vars(module).values()):
        return True
    return crc32(name.encode()) % named.stride == named.offset


def _named() -> Slice | None:
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    index, _, parts = text.partition("/")
    found = Slice(int(index), int(parts))
    if not 0 <= found.offset < found.stride:
        raise ValueError(f"{VARIABLE} is {text!r}; it must be i/n with 0 <= i < n")
    return found


@cache
def _commit() -> int:
    """A number that follows from the commit; 0 outside a checkout."""
    answer = subprocess.run(
        ["git", "-C", str(Path(__file__).parents[2]), "rev-parse", "--short=6", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return int(answer.stdout.strip(), 16) if answer.returncode == 0 else 0
