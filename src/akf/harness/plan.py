"""The ids of every sample, fixed before the first launch.

Invariants:
- One function names them; the harness measures exactly these, once each, in this order.
- Rows follow each other within a pair; each block of a row runs A B B A, so that linear drift cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SIDES = "ABBA"


def planned(rows: Sequence[str], pairs: int, blocks: int) -> list[dict[str, Any]]:
    """Every planned sample, in the order in which it is taken."""
    return [
        {
            "id": f"p{pair:02d}.b{block}.s{segment}.{row}",
            "row": row,
            "pair": pair,
            "block": block,
            "segment": segment,
            "side": side,
        }
        for pair in range(pairs)
        for row in rows
        for block in range(blocks)
        for segment, side in enumerate(SIDES)
    ]


def planned_ids(rows: Sequence[str], pairs: int, blocks: int) -> list[str]:
    """The ids alone."""
    return [sample["id"] for sample in planned(rows, pairs, blocks)]
