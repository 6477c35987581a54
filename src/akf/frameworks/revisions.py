"""Revisions of a framework, and whether what AKF knows of it holds for them.

Invariants:
1. A revision is a version (`0.23.0`, `v0.25.1rc1`, `0.22.0.post1`) or a commit (7 to 40 hexadecimal digits, also behind
   `+g` of a development version); versions are compared as versions, never as strings.
2. Outside the ranges and commits that were read nothing is mapped and nothing is guessed.
3. A commit is newer than every version, as far as `since` and `until` of a case ask; so is a revision nobody stated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from akf.contracts.problems import PreconditionError, UsageError
from akf.contracts.text import printable

Order: TypeAlias = "tuple[tuple[int, ...], int, int]"

NEWEST: Order = ((10**9,), 0, 0)
_VERSION = re.compile(
    r"v?(?P<numbers>\d{1,6}(?:\.\d{1,6}){1,5})(?:[-_.]?(?P<pre>a|b|rc)[-_.]?(?P<n>\d{1,6}))?"
    r"(?:[-_.]?post[-_.]?(?P<post>\d{1,6}))?(?P<dev>[-_.]?dev\d*)?(?:\+(?P<local>[0-9A-Za-z._-]{1,64}))?",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_LOCAL_COMMIT = re.compile(r"(?:^|[._-])g([0-9a-f]{7,40})(?:$|[._-])", re.IGNORECASE)
_PRE = {"a": -3, "b": -2, "rc": -1}
_SIZE = 6


def placed(arm: Mapping[str, Any], revision: str | None) -> Order:
    """Return where a stated revision stands among the versions of an arm that is known.

    Raises:
        UsageError: it is neither a version nor a commit.
        PreconditionError: nothing is known of this revision.
    """
    if revision is None:
        return NEWEST
    commit = _commit(revision)
    if commit is not None and any(_same(commit, known) for known in arm["revisions"]["commits"]):
        return NEWEST
    match = _VERSION.fullmatch(revision)
    if match is None and commit is None:
        raise UsageError.of(
            "AKF-F305",
            f"--revision: {printable(revision)} is neither a version nor a commit",
            found=revision,
            hint="a version looks like 0.23.0 or v0.25.1rc1, a commit like 182b75ea",
        )
    if match is not None and match["dev"] is None:
        order = _order(match)
        if any(version(first) <= order <= version(last) for first, last in arm["revisions"]["ranges"]):
            return order
    raise PreconditionError.of(
        "AKF-F304",
        f"{arm['title']} {printable(revision)} is unmapped: its operators were not read, so none is named",
        expected=known(arm),
        found=revision,
        hint="take a revision that is known, or read this one and add it as docs/arms-and-models.md says",
    )


def known(arm: Mapping[str, Any]) -> list[str]:
    """Return the revisions of an arm for which its map holds, for people."""
    ranges = [first if first == last else f"{first} to {last}" for first, last in arm["revisions"]["ranges"]]
    return [*ranges, *(f"commit {commit}" for commit in arm["revisions"]["commits"])]


def version(text: str) -> Order:
    """Return a version of AKF's own data as something to compare."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return _order(match)


def _order(match: re.Match[str]) -> Order:
    numbers = [int(part) for part in match["numbers"].split(".")]
    padded = (*numbers, *[0] * (_SIZE - len(numbers)))
    if match["pre"] is not None:
        return (padded, _PRE[match["pre"].lower()], int(match["n"]))
    return (padded, 0, int(match["post"] or 0))


def _commit(revision: str) -> str | None:
    if _COMMIT.fullmatch(revision.lower()):
        return revision.lower()
    local = _LOCAL_COMMIT.search(revision.partition("+")[2])
    return local[1].lower() if local else None


def _same(commit: str, known: str) -> bool:
    return commit.startswith(known) or known.startswith(commit)
