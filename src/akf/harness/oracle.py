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

from .outcome import HarnessError
from .request import Case, Operand

_ORDERED = {"float16": np.int16, "float32": np.int32, "float64": np.int64}


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
        """The outputs in wide precision, in the order of the case's written operands."""
        arguments = [inputs[operand.name] for operand in case.inputs]
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
            wide.append(array if operand.dtype.startswith("int") else array.astype(np.float64))
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


def _ordered(values: Any) -> Any:
    """Floats as integers in the same order, so that neighbours differ by one."""
    kind = _ORDERED[str(values.dtype)]
    bits = values.view(kind).astype(np.int64)
    lowest = np.int64(-(1 << (8 * values.dtype.itemsize - 1)))
    return np.where(bits < 0, lowest - bits, bits)


def _exact(actual: Any, expected: Any) -> Errors:
    wrong = int(np.count_nonzero(actual != expected))
    gap = int(np.max(np.abs(actual.astype(object) - expected.astype(object)))) if wrong else 0
    return Errors(actual.size, wrong, 0, gap, float(gap), math.inf if wrong else 0.0, math.inf if wrong else 0.0)


def compare(actual: Any, expected: Any, tolerance: dict[str, float]) -> Errors:
    """Errors of one output against the oracle."""
    if actual.dtype.kind in "iu":
        return _exact(actual, expected)
    with np.errstate(all="ignore"):
        rounded = expected.astype(actual.dtype)
        finite = np.isfinite(rounded)
        matched = np.where(np.isnan(rounded), np.isnan(actual), actual == rounded)
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
        steps = np.where(usable, np.abs(_ordered(actual) - _ordered(rounded)), 0)
    return Errors(
        elements=int(actual.size),
        violations=violations,
        non_finite=non_finite,
        max_ulp=int(steps.max(initial=0)),
        max_abs=float(gap.max(initial=0.0)),
        max_rel=float(relative.max(initial=0.0)),
        bound_share=float(share.max(initial=0.0)),
    )


def within(actual: Any, expected: Any, tolerance: dict[str, float]) -> bool:
    """Whether `compare` would accept, without the figures: most results are finite and need one pass."""
    if actual.dtype.kind in "iu":
        return bool(np.array_equal(actual, expected))
    level = math.sqrt(float(np.mean(expected * expected))) if expected.size else 0.0
    gap = np.abs(actual - expected)
    if bool(np.all(gap <= tolerance["rtol"] * np.abs(expected) + tolerance["atol"] * level)):
        return bool(np.all(np.isfinite(gap)))
    return compare(actual, expected, tolerance).accepted


def forgeries(case: Case, inputs: dict[str, Any], expected: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Results that are wrong on purpose; an oracle that takes one of them is not sensitive enough."""
    outputs = case.outputs
    yield "zeros", [np.zeros(operand.shape, operand.dtype) for operand in outputs]
    yield "constant", [_constant(operand, value) for operand, value in zip(outputs, expected)]
    copies = [_copy(operand, inputs) for operand in outputs]
    if all(copy is not None for copy in copies):
        yield "copy_of_input", copies
    with np.errstate(all="ignore"):
        yield "permuted", [_permuted(operand, value) for operand, value in zip(outputs, expected)]


def _constant(operand: Operand, value: Any) -> Any:
    return np.full(operand.shape, np.mean(value), dtype=operand.dtype)


def _copy(operand: Operand, inputs: dict[str, Any]) -> Any:
    for array in inputs.values():
        if array.shape == operand.shape:
            return array.astype(operand.dtype)
    return None


def _permuted(operand: Operand, value: Any) -> Any:
    return np.roll(value.reshape(-1), 1).reshape(value.shape).astype(operand.dtype)
