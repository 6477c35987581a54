"""Amdahl's law: what a share of the step can give at most.

Invariants:
- A share lies in [0, 1]; `None` stands for "without bound" (ceiling) and "out of reach" (needed speed-up).
- A larger share never lowers a ceiling; a higher target never lowers a needed speed-up.
"""

from __future__ import annotations


def ceiling(share: float) -> float | None:
    """Speed-up of the whole if the part cost nothing: 1 / (1 - h); None when the part is the whole."""
    return None if share >= 1 else 1 / (1 - share)


def bound(share: float, speedup: float) -> float:
    """Speed-up of the whole for a local speed-up: 1 / ((1 - h) + h / s)."""
    return 1 / ((1 - share) + share / speedup)


def needed_speedup(share: float, target: float) -> float | None:
    """Local speed-up that the target needs: h / (1 / target - (1 - h)); None when none reaches it."""
    left = 1 / target - (1 - share)
    if share == 0:
        return 1.0 if target <= 1 else None
    return share / left if left > 0 else None


def reaches(share: float, target: float) -> bool:
    """Whether the ceiling is at least the target."""
    most = ceiling(share)
    return most is None or most >= target
