"""What `correctness` consists of, step by step, with the evidence of each.

Invariants:
- Steps have one order; a step that a stopped candidate never reached is `not_run`, not passed.
- Every reason code of the check belongs to one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import outcome
from .outcome import Check

STEPS: tuple[tuple[str, frozenset[str]], ...] = (
    ("loads", frozenset((outcome.CHILD_LOAD_FAILED,))),
    ("evaluator_unchanged", frozenset(("EVALUATOR_TAMPERED", outcome.RESULT_FORGED))),
    (
        "returns",
        frozenset((
            "CANDIDATE_RAISED", outcome.CHILD_CRASHED, outcome.CHILD_EXITED, outcome.CHILD_TIMEOUT, outcome.CHILD_OOM,
            outcome.CHILD_KILLED, outcome.ISOLATION_UNAVAILABLE,
        )),
    ),
    (
        "metadata",
        frozenset((
            "TYPE_MISMATCH", "LAZY_OUTPUT", "ARITY_MISMATCH", "DTYPE_MISMATCH", "SHAPE_MISMATCH", "STRIDE_MISMATCH",
            "DEVICE_MISMATCH",
        )),
    ),
    ("memory_of_its_own", frozenset(("OUTPUT_ALIASED",))),
    ("nothing_left_running", frozenset((outcome.ASYNCHRONOUS_WORK,))),
    ("inputs_unchanged", frozenset((outcome.INPUT_MUTATED, outcome.OUT_OF_BOUNDS_WRITE))),
    ("outputs_written", frozenset((outcome.OUTPUT_NOT_WRITTEN,))),
    ("finite", frozenset((outcome.NON_FINITE,))),
    ("values", frozenset((outcome.WRONG_RESULT,))),
    ("twins", frozenset((outcome.RESULT_REPLAY,))),
    ("held_back", frozenset((outcome.ENVELOPE_OVERCLAIM,))),
    ("against_baseline", frozenset((outcome.WORSE_THAN_BASELINE, outcome.BASELINE_FAILED))),
    ("determinism", frozenset((outcome.NONDETERMINISTIC,))),
)  # fmt: skip
_BLOCKING = frozenset((outcome.BASELINE_FAILED,))
_FIGURES = ("max_abs", "max_rel", "max_ulp", "bound_share")


def steps(check: Check, *, stopped: bool) -> list[dict[str, str]]:
    """Every step with its outcome.

    Args:
        check: `correctness`, settled.
        stopped: the candidate did not get through all cases; steps after the one that stopped it are open.
    """
    codes = {reason["code"] for reason in check.reasons}
    found = []
    over = False
    for name, own in STEPS:
        mine = codes & own
        if mine:
            found.append({"step": name, "outcome": outcome.BLOCKED if mine == _BLOCKING else outcome.FAIL})
        else:
            found.append({"step": name, "outcome": outcome.NOT_RUN if over else outcome.PASS})
        over = over or (stopped and bool(mine))
    return found


def worst(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The largest error of each side over all cases and outputs, as the lines have them."""
    return {
        side: {name: max((line[name] for line in mine), key=_size) for name in _FIGURES}
        for side in ("baseline", "candidate")
        if (mine := [line for line in lines if line["side"] == side])
    }


def _size(value: Any) -> float:
    return float.fromhex(value) if isinstance(value, str) else float(value)
