"""How far two times of a profile can be trusted: the spread of the speed-up, and what it is not.

Invariants:
- The spread reaches from the slowest part of the candidate against the fastest of the reference to the reverse.
- It is the least that the speed-up is uncertain by: both are timed one after the other, on a machine that others may
  use. So it is never called evidence, and where it holds 1 it is said that neither is known to be the faster.
"""

from __future__ import annotations

from typing import Any

import orjson

BASE, CANDIDATE = "base_profile_result.json", "generation_profile_result.json"
_DIAGNOSIS = "a diagnosis, no evidence: timed one after the other; akf evaluate measures"


def spread(answer: dict[str, Any]) -> dict[str, Any]:
    """What stands beside the speed-up of a worker's profile."""
    base, candidate = (_parts(answer, name) for name in (BASE, CANDIDATE))
    if not base or not candidate:
        low = high = None
        known = "its spread is not known"
    else:
        low, high = min(base) / max(candidate), max(base) / min(candidate)
        known = "the spread holds 1: neither is known to be faster" if low <= 1 <= high else "the spread leaves out 1"
    return {"speedup_low": low, "speedup_high": high, "evidence": False, "note": f"{known}; {_DIAGNOSIS}"}


def _parts(answer: dict[str, Any], name: str) -> list[float]:
    """Times of the parts that a profile was taken in, in microseconds; none where they are not all positive numbers."""
    try:
        found = orjson.loads(answer.get("artifacts", {}).get(name, "{}"))
    except orjson.JSONDecodeError:
        return []
    parts = found.get("block_times_us") if isinstance(found, dict) else None
    if not isinstance(parts, list):
        return []
    good = all(isinstance(each, int | float) and not isinstance(each, bool) and each > 0 for each in parts)
    return [float(each) for each in parts] if good else []
