"""The oracle: the Task's reference in float64, and how far a result is from it.

Invariants:
- NaN never passes: where the oracle is finite, so must the result be; where it is not, the result must match it.
- The bound scales with the result: `rtol * |expected| + atol * rms(expected)`, so zeros never hide below it.
- Integers are exact.
"""

# ruff: noqa: B905 - zip has no strict= in Python 3.9
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .draw import numbers
from .dtypes import DTYPES, decode, encode, ordered, rounded
from .outcome import HarnessError
from .request import Case, Operand

COPY = "copy_of_input"


class Oracle:
    """The Task's reference, compiled once."""

    def __init__(self, text: str) -> None:
        namespace: dict[str, Any] = {"__name__": "akf_reference"}
        try:
            exec(compile(text, "reference.py", "exec"), namespace)  # noqa: S102 - the Task's own, trusted text
            self._reference = namespace["reference"]
        except Exception as error:
            raise HarnessError("REFERENCE_INVALID", f"reference.py: {error}", 2) from error

    def expected(self, case: Case, inputs: dict[str, Any]) -> list[Any]:
        """The outputs in wide precision, in the order of the case's written operands; `inputs` are as stored."""
        arguments = [numbers(operand, inputs[operand.name]) for operand in case.inputs]
        try:
            results = self._reference(*arguments, **case.attributes)
        except Exception as error:
            raise HarnessError("REFERENCE_INVALID", f"reference.py raised {error!r}", 2) from error
        if not isinstance(results, tuple) or len(results) != len(case.outputs):
            raise HarnessError("REFERENCE_INVALID", f"reference must return {len(case.outputs)} outputs", 2)
        wide = []
        for operand, result in zip(case.outputs, results):
            array = np.asarray(result)
            if array.shape != operand.shape:
                raise HarnessError("REFERENCE_INVALID", f"{operand.name}: shape {array.shape}", 2)
            wide.append(array if DTYPES[operand.dtype].exact else array.astype(np.float64))
        return wide


@dataclass(frozen=True)
class Errors:
    """How far one output is from the oracle."""

    elements: int
    violations: int
    non_finite: int
    max_ulp: int
    max_abs: float
    max_rel: float
    bound_share: float

    @property
    def accepted(self) -> bool:
        """Inside the bound everywhere, and finite where the oracle is."""
        return self.violations == 0 and self.non_finite == 0

    def as_json(self) -> dict[str, Any]:
        """Integers as they are, other figures as hexadecimal floats: exact and the same everywhere."""
        return {
            "elements": self.elements,
            "violations": self.violations,
            "non_finite": self.non_finite,
            "max_ulp": self.max_ulp,
            "max_abs": float(self.max_abs).hex(),
            "max_rel": float(self.max_rel).hex(),
            "bound_share": float(self.bound_share).hex(),
        }


def _exact(actual: Any, expected: Any) -> Errors:
    wrong = int(np.count_nonzero(actual != expected))
    gap = int(np.max(np.abs(actual.astype(object) - expected.astype(object)))) if wrong else 0
    return Errors(actual.size, wrong, 0, gap, float(gap), math.inf if wrong else 0.0, math.inf if wrong else 0.0)


def compare(stored: Any, expected: Any, tolerance: dict[str, float], dtype: str) -> Errors:
    """Errors of one output against the oracle."""
    if DTYPES[dtype].exact:
        return _exact(stored, expected)
    actual = decode(stored, dtype)
    with np.errstate(all="ignore"):
        nearest = rounded(expected, dtype)
        finite = np.isfinite(nearest)
        matched = np.where(np.isnan(nearest), np.isnan(actual), actual == nearest)
        non_finite = int(np.count_nonzero(finite & ~np.isfinite(actual)))
        usable = finite & np.isfinite(actual)
        target = np.where(usable, expected, 0.0)
        gap = np.abs(np.where(usable, actual.astype(np.float64), 0.0) - target)
        size = np.abs(target)
        level = math.sqrt(float(np.mean(target * target))) if target.size else 0.0
        bound = tolerance["rtol"] * size + tolerance["atol"] * level
        share = np.where(gap == 0.0, 0.0, gap / bound)
        outside = usable & (gap > bound)
        violations = int(np.count_nonzero(outside) + np.count_nonzero(~finite & ~matched))
        relative = np.where(gap == 0.0, 0.0, gap / size)
        steps = np.where(usable, np.abs(ordered(stored, dtype) - ordered(encode(expected, dtype), dtype)), 0)
    return Errors(
        elements=int(actual.size),
        violations=violations,
        non_finite=non_finite,
        max_ulp=int(steps.max(initial=0)),
        max_abs=float(gap.max(initial=0.0)),
        max_rel=float(relative.max(initial=0.0)),
        bound_share=float(share.max(initial=0.0)),
    )


def within(stored: Any, expected: Any, tolerance: dict[str, float], dtype: str) -> bool:
    """Whether `compare` would accept, without the figures: most results are finite and need one pass."""
    if DTYPES[dtype].exact:
        return bool(np.array_equal(stored, expected))
    actual = decode(stored, dtype)
    level = math.sqrt(float(np.mean(expected * expected))) if expected.size else 0.0
    gap = np.abs(actual - expected)
    if bool(np.all(gap <= tolerance["rtol"] * np.abs(expected) + tolerance["atol"] * level)):
        return bool(np.all(np.isfinite(gap)))
    return compare(stored, expected, tolerance, dtype).accepted


def forgeries(case: Case, inputs: dict[str, Any], expected: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Results as stored that are wrong on purpose; an oracle that takes one of them is not sensitive enough."""
    outputs = case.outputs
    yield "zeros", [encode(np.zeros(operand.shape), operand.dtype) for operand in outputs]
    yield "constant", [_constant(operand, value) for operand, value in zip(outputs, expected)]
    arrays = [(operand, numbers(operand, inputs[operand.name])) for operand in case.inputs]
    copies = [_copy(operand, arrays) for operand in outputs]
    if all(copy is not None for copy in copies):
        yield COPY, copies
    with np.errstate(all="ignore"):
        yield "permuted", [_permuted(operand, value) for operand, value in zip(outputs, expected)]


def _constant(operand: Operand, value: Any) -> Any:
    return encode(np.full(operand.shape, np.mean(value)), operand.dtype)


def _copy(operand: Operand, arrays: Sequence[tuple[Operand, Any]]) -> Any:
    return next((encode(array, operand.dtype) for _, array in arrays if array.shape == operand.shape), None)


def _permuted(operand: Operand, value: Any) -> Any:
    return encode(np.roll(value.reshape(-1), 1).reshape(value.shape), operand.dtype)
