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
from .dtypes import DTYPES, decode, encode, ordered
from .outcome import HarnessError
from .request import Case, Operand

COPY = "copy_of_input"
PIECE = 1 << 16


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
    pieces = [_Piece(*each, dtype) for each in _pieces(stored, expected)]
    elements = max(1, expected.size)
    level = math.sqrt(math.fsum(piece.square_sum for piece in pieces) / elements)
    found = [piece.errors(tolerance["rtol"], tolerance["atol"] * level) for piece in pieces]
    return Errors(
        elements=expected.size,
        violations=sum(each.violations for each in found),
        non_finite=sum(each.non_finite for each in found),
        max_ulp=max((each.max_ulp for each in found), default=0),
        max_abs=max((each.max_abs for each in found), default=0.0),
        max_rel=max((each.max_rel for each in found), default=0.0),
        bound_share=max((each.bound_share for each in found), default=0.0),
    )


def _pieces(stored: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    """Both in runs that stay in the processor's cache: every step below goes over them again."""
    ours, theirs = stored.reshape(-1), expected.reshape(-1)
    for start in range(0, theirs.size, PIECE):
        yield ours[start : start + PIECE], theirs[start : start + PIECE]


class _Piece:
    """A run of elements: where a result can be held to the oracle, and how far off it is there."""

    def __init__(self, stored: Any, expected: Any, dtype: str) -> None:
        actual = decode(stored, dtype)
        with np.errstate(all="ignore"):
            self._kept = encode(expected, dtype)
            nearest = decode(self._kept, dtype)
            finite = np.isfinite(nearest)
            matched = np.where(np.isnan(nearest), np.isnan(actual), actual == nearest)
            self._usable = finite & np.isfinite(actual)
            target = np.where(self._usable, expected, 0.0)
            self._gap = np.abs(np.where(self._usable, actual.astype(np.float64), 0.0) - target)
            self._size = np.abs(target)
            self.square_sum = float(np.sum(target * target))
        self._stored, self._dtype = stored, dtype
        self._non_finite = int(np.count_nonzero(finite & ~self._usable))
        self._unmatched = int(np.count_nonzero(~finite & ~matched))

    def errors(self, rtol: float, absolute: float) -> Errors:
        """Its errors, beside a bound that scales with the whole result."""
        with np.errstate(all="ignore"):
            bound = rtol * self._size + absolute
            share = np.where(self._gap == 0.0, 0.0, self._gap / bound)
            relative = np.where(self._gap == 0.0, 0.0, self._gap / self._size)
            outside = int(np.count_nonzero(self._usable & (self._gap > bound)))
            apart = np.abs(ordered(self._stored, self._dtype) - ordered(self._kept, self._dtype))
            steps = np.where(self._usable, apart, 0)
        return Errors(
            elements=self._size.size,
            violations=outside + self._unmatched,
            non_finite=self._non_finite,
            max_ulp=int(steps.max(initial=0)),
            max_abs=float(self._gap.max(initial=0.0)),
            max_rel=float(relative.max(initial=0.0)),
            bound_share=float(share.max(initial=0.0)),
        )


def within(stored: Any, expected: Any, tolerance: dict[str, float], dtype: str) -> bool:
    """Whether `compare` would accept, without the figures: most results are finite and need one pass."""
    if DTYPES[dtype].exact:
        return bool(np.array_equal(stored, expected))
    actual = decode(stored, dtype)
    level = math.sqrt(float(np.mean(expected * expected))) if expected.size else 0.0
    with np.errstate(all="ignore"):
        for ours, theirs in _pieces(actual, expected):
            gap = np.abs(ours - theirs)
            if not np.isfinite(gap).all():
                break
            if (gap > tolerance["rtol"] * np.abs(theirs) + tolerance["atol"] * level).any():
                return False
        else:
            return True
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
