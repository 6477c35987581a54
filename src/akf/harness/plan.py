"""The ids of every sample, fixed before the first launch.

Invariants:
- One function names them; the harness measures exactly these, once each, in this order.
- Rows follow each other within a pair; a block of a row runs A B B A, or B A A B when pair + block is odd, so that drift cancels.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

SIDES = "ABBA"

def planned(rows: Sequence[str], pairs: int, blocks: int) -> List[Dict[str, Any]]:
    """Every planned sample, in the order in which it is taken."""
    samples: List[Dict[str, Any]] = []
    for pair in range(pairs):
        for row in rows:
            for block in range(blocks):
                sides = SIDES[(pair + block) % 2]
                samples += [
                    {
                        "id": f"p{pair:02d}.b{block}.s{segment}.{row}",
                        "row": row,
                        "pair": pair,
                        "block": block,
                        "segment": segment,
                        "side": side,
                    }
                    for segment, side in enumerate(SIDES)
                ]
    return samples

def planned_ids(rows: Sequence[str], pairs: int, blocks: int) -> List[str]:
    """The ids alone."""
    return [sample["id"] for sample in planned(rows, pairs, blocks)]
