"""Large products: a hidden subset of the output is held to the oracle, and all of it to Freivalds' check.

Invariants:
- Where an output has at most `LARGE` elements, and in every correctness case, the whole of it meets the oracle.
- `ELEMENTS` places are drawn after the launch; so are places of the rows and columns that a changed input reaches.
- Freivalds' check: with signs drawn after the launch, blocks of `BLOCK` columns are folded into one; what is folded of
  the output must be the left operand times what is folded of the right one, as far as the bounds of a block allow: in
  double precision, at a `BLOCK`th of the product's cost.
- A reference that is not the product that the Task states is refused, not believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import outcome
from .draw import numbers
from .outcome import HarnessError
from .request import Case, Product

LARGE = 1 << 20
ELEMENTS, REACHED, BLOCK = 4096, 256, 64
_COLUMNS, _GATHERED = 4096, 512
_ALIKE = 1e-9


@dataclass(frozen=True)
class Change:
    """An element of an operand that differs from what was there before."""

    operand: str
    place: int


def applies(product: Any, case: Case) -> bool:
    """Whether a timed output of this case is checked in this way."""
    return product is not None and math.prod(case.outputs[0].shape) > LARGE


def confirm(product: Product, case: Case, inputs: Mapping[str, Any], expected: Sequence[Any]) -> None:
    """The reference is the product of these operands.

    Raises:
        HarnessError: it is something else.
    """
    left, right = _operands(product, case, inputs)
    wide = left.astype(np.float64) @ right.astype(np.float64)
    level = float(np.sqrt(np.mean(wide * wide)))
    if wide.shape != expected[0].shape or not np.allclose(wide, expected[0], rtol=_ALIKE, atol=_ALIKE * level):
        message = f"the reference is not {product.left} @ {product.right} in case {case.id}"
        raise HarnessError("REFERENCE_INVALID", message, 2)


def wrong(
    product: Product,
    case: Case,
    inputs: Mapping[str, Any],
    stored: Any,
    changes: Sequence[Change],
    secret: Any,
    tolerance: Mapping[str, float],
) -> str:
    """Why an output is not the product, as a code; empty where nothing was found.

    Args:
        product: the operands.
        case: the case.
        inputs: what the launch read, as stored.
        stored: what it wrote, in its shape.
        changes: elements of the operands that the launch may have overlooked.
        secret: the generator of what nobody can know.
        tolerance: the bound of the output's dtype.
    """
    found = numbers(case.outputs[0], stored)
    if not np.isfinite(found).all():
        return outcome.NON_FINITE
    left, right = _operands(product, case, inputs)
    rows, columns = _places(product, left, right, changes, secret)
    wide = _elements(left, right, rows, columns)
    level = float(np.sqrt(np.mean(wide[:ELEMENTS] ** 2)))
    absolute = tolerance["atol"] * level
    gap = np.abs(found[rows, columns].astype(np.float64) - wide)
    if (gap > tolerance["rtol"] * np.abs(wide) + absolute).any():
        return outcome.WRONG_RESULT
    holds = _folds(left, right, found, secret, tolerance["rtol"], absolute)
    return "" if holds else outcome.WRONG_RESULT


def _operands(product: Product, case: Case, inputs: Mapping[str, Any]) -> tuple[Any, Any]:
    named = {operand.name: operand for operand in case.inputs}
    return numbers(named[product.left], inputs[product.left]), numbers(named[product.right], inputs[product.right])


def _places(product: Product, left: Any, right: Any, changes: Sequence[Change], secret: Any) -> tuple[Any, Any]:
    """Rows and columns of the elements that meet the oracle; the first ones are drawn from all."""
    height, width = left.shape[0], right.shape[1]
    rows, columns = [secret.integers(height, size=ELEMENTS)], [secret.integers(width, size=ELEMENTS)]
    for change in changes:
        if change.operand == product.left:
            rows.append(np.full(REACHED, change.place // left.shape[1]))
            columns.append(secret.integers(width, size=REACHED))
        elif change.operand == product.right:
            rows.append(secret.integers(height, size=REACHED))
            columns.append(np.full(REACHED, change.place % width))
    return np.concatenate(rows), np.concatenate(columns)


def _elements(left: Any, right: Any, rows: Any, columns: Any) -> Any:
    """Single elements of the product, in double precision."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), _GATHERED):
        part = slice(start, start + _GATHERED)
        ours, theirs = left[rows[part]].astype(np.float64), right[:, columns[part]].T.astype(np.float64)
        found[part] = np.einsum("ij,ij->i", ours, theirs)
    return found


def _folds(left: Any, right: Any, found: Any, secret: Any, rtol: float, absolute: float) -> bool:
    """Freivalds' check over blocks of columns."""
    wide = left.astype(np.float64)
    for start in range(0, right.shape[1], _COLUMNS):
        part = slice(start, start + _COLUMNS)
        theirs, mine = right[:, part].astype(np.float64), found[:, part].astype(np.float64)
        signs = secret.choice((-1.0, 1.0), size=mine.shape[1])
        starts = np.arange(0, mine.shape[1], BLOCK)
        lengths = np.diff(np.append(starts, mine.shape[1]))
        gap = np.add.reduceat(mine * signs, starts, axis=1) - wide @ np.add.reduceat(theirs * signs, starts, axis=1)
        bound = rtol * np.add.reduceat(np.abs(mine), starts, axis=1) + absolute * lengths
        if (np.abs(gap) > bound).any():
            return False
    return True
