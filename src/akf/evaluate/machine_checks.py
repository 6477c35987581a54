"""The checks of the environment gate, each a function of what the Campaign wants and what was read.

Invariants:
- None of them fails a candidate. What differs is `incomparable`; what is missing, busy, unread or not leased is
  `blocked`; a difference outweighs what could not be read.
- A difference names its field with both values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from akf.contracts.canonical import jcs
from akf.contracts.problems import ConflictError
from akf.contracts.text import printable
from akf.frameworks.machine import Die, Reading
from akf.frameworks.toolkit_tree import Tree, differing
from akf.lease import Holding

Check = dict[str, Any]
_SHOWN = 8
_VALUE_CHARS = 100
_BUSY_PERCENT = 1
"""Above this, a device without a process of its own is busy all the same."""


def identity(wanted: Mapping[str, Any], reading: Reading) -> Check:
    """Every field of the machine is the Campaign's.

    Args:
        wanted: `environment` and `ranks` of the Campaign.
        reading: the machine.
    """
    differing = []
    unread = []
    for pointer, mine, theirs in _leaves(wanted, reading.facts, ""):
        why = next((reading.unread[each] for each in _above(pointer) if each in reading.unread), None)
        if why is not None:
            unread.append(f"{pointer}: {why}")
        elif mine != theirs:
            differing.append(f"{pointer}: the Campaign has {_shown(mine)}, this machine {_shown(theirs)}")
    if differing:
        return _check("identity", "incomparable", "IDENTITY_MISMATCH", differing)
    return _check("identity", "blocked", "FACT_UNREAD", unread) if unread else _check("identity")


def leases(devices: Sequence[str], holding: Holding) -> Check:
    """All devices are leased, and the lease holds."""
    missing = [f"{name} is not leased" for name in devices if name not in holding.lease.devices]
    try:
        holding.check()
    except ConflictError as error:
        missing.append(error.problems[0].message)
    return _check("leases", "blocked", "DEVICE_NOT_LEASED", missing) if missing else _check("leases")


def exclusive(devices: Sequence[str], dies: Mapping[str, Die], own: Iterable[int] = ()) -> Check:
    """Nothing else is on any of the devices, the sibling die of a package included.

    Args:
        devices: names as they are leased.
        dies: what was read of each.
        own: processes that belong to this evaluation.
    """
    mine = set(own)
    missing = [f"{name} is not there" for name in devices if name not in dies]
    if missing:
        return _check("exclusive", "blocked", "DEVICE_MISSING", missing)
    unread = [f"{name}: its processes cannot be read" for name in devices if dies[name].processes is None]
    busy = []
    for name in devices:
        foreign = sorted(set(dies[name].processes or ()) - mine)
        if foreign:
            busy.append(f"{name} has processes {', '.join(map(str, foreign[:_SHOWN]))}")
        elif (dies[name].busy_percent or 0) > _BUSY_PERCENT:
            busy.append(f"{name} is {dies[name].busy_percent} % busy without a process")
    if busy:
        return _check("exclusive", "blocked", "DEVICE_BUSY", busy)
    return _check("exclusive", "blocked", "FACT_UNREAD", unread) if unread else _check("exclusive")


def clock(devices: Sequence[str], under_load: Mapping[str, Die]) -> Check:
    """Every device ran at its rated frequency while it was loaded."""
    unread, low = [], []
    for name in devices:
        die = under_load.get(name, Die(name))
        if not die.mhz or not die.rated_mhz:
            unread.append(f"{name}: its frequency under load cannot be read")
        elif die.mhz != die.rated_mhz:
            low.append(f"{name} ran at {die.mhz} MHz under load, rated {die.rated_mhz} MHz")
    if low:
        return _check("clock", "blocked", "CLOCK_LOW", low)
    return _check("clock", "blocked", "FACT_UNREAD", unread) if unread else _check("clock")


def toolkit_unmodified(wanted: str, now: Tree | None, before: Tree | None) -> Check:
    """The toolkit's files are those that were frozen.

    Args:
        wanted: the digest that the Campaign froze.
        now: the files as they are; None where they cannot be read.
        before: the files that have the frozen digest, where their list is kept on this machine.
    """
    if now is None:
        return _check("toolkit_unmodified", "blocked", "FACT_UNREAD", ["the toolkit's files cannot be read"])
    if now.digest == wanted:
        return _check("toolkit_unmodified")
    text = [f"the toolkit's files have the digest {now.digest}, not {wanted}"]
    lines = text if before is None else differing(before, now)
    return _check("toolkit_unmodified", "incomparable", "TOOLKIT_MISMATCH", lines)


def baseline_health(incumbent: str, found: str | None) -> Check:
    """The baseline is the one that was frozen; None for one that cannot be read."""
    if found is None:
        return _check("baseline_health", "blocked", "FACT_UNREAD", ["/baseline/incumbent_digest cannot be read here"])
    if found == incumbent:
        return _check("baseline_health")
    text = f"/baseline/incumbent_digest: the Campaign has {incumbent}, the baseline here is {found}"
    return _check("baseline_health", "incomparable", "IDENTITY_MISMATCH", [text])


def _check(name: str, outcome: str = "pass", reason: str | None = None, lines: Sequence[str] = ()) -> Check:
    check: Check = {"name": name, "category": "environment", "outcome": outcome, "profiler": "off"}
    if reason is not None:
        more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        check |= {"reasons": [reason], "note": printable("; ".join(lines[:_SHOWN]) + more)}
    return check


def _leaves(wanted: Any, found: Any, pointer: str) -> list[tuple[str, Any, Any]]:
    """Every leaf of either side, in order, with both values."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        names = sorted(wanted.keys() | found.keys())
        return [leaf for name in names for leaf in _leaves(wanted.get(name), found.get(name), f"{pointer}/{name}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        both = enumerate(zip(wanted, found, strict=True))
        return [leaf for index, (mine, theirs) in both for leaf in _leaves(mine, theirs, f"{pointer}/{index}")]
    return [(pointer, wanted, found)]


def _above(pointer: str) -> list[str]:
    """A pointer and all that it lies in."""
    parts = pointer.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]


def _shown(value: Any) -> str:
    text = "nothing" if value is None else jcs(value).decode()
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}..."
