"""Backends and architectures as services name them: what may be registered, submitted and served.

Invariants:
- A name that no client of the wire could ask for is refused, with the names that there are.
- A SoC of Ascend is known by its family, with or without the word `ascend` before it; both spellings are one.
"""

from __future__ import annotations

from collections.abc import Sequence

from akf.contracts.rules import soc
from akf.contracts.text import did_you_mean, show

ARCHS = {
    "ascend": (*(name for names in soc.FAMILIES.values() for name in names), "ascend950..."),
    "cuda": ("a100", "v100", "h20", "l20", "rtx3090", "h100", "h200"),
    "cpu": ("x86_64", "aarch64"),
}


def platform(backend: str, arch: str) -> list[str]:
    """What is wrong with a backend and an architecture."""
    if backend not in ARCHS:
        return one_of("backend", backend, tuple(ARCHS))
    known = soc.family(arch) is not None or arch.startswith("ascend950") if backend == "ascend" else False
    return [] if known else one_of("arch", arch, ARCHS[backend])


def same_arch(one: str, other: str) -> bool:
    """Whether two names are of one architecture."""
    return one.lower().removeprefix("ascend") == other.lower().removeprefix("ascend")


def one_of(name: str, value: str, allowed: Sequence[str]) -> list[str]:
    """What is wrong with a value that is none of the allowed ones."""
    if value in allowed:
        return []
    near = did_you_mean(value, allowed)
    return [f"{name} {show(value)} is not one of {', '.join(allowed)}{f'; did you mean {near}?' if near else ''}"]
