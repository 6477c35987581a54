"""Outcomes and reason codes of the harness, and the error that carries one.

Invariants:
- A child's failure costs that child only: it becomes a reason, never an exception of the program.
- The machine's or the baseline's fault is never the candidate's: it gives `blocked` or `incomparable`, not `fail`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PASS, FAIL, BLOCKED, INCOMPARABLE, NOT_RUN = "pass", "fail", "blocked", "incomparable", "not_run"

WRONG_RESULT = "WRONG_RESULT"
WORSE_THAN_BASELINE = "WORSE_THAN_BASELINE"
NON_FINITE = "NON_FINITE"
OUTPUT_NOT_WRITTEN = "OUTPUT_NOT_WRITTEN"
INPUT_MUTATED = "INPUT_MUTATED"
OUT_OF_BOUNDS_WRITE = "OUT_OF_BOUNDS_WRITE"
NONDETERMINISTIC = "NONDETERMINISTIC"
RESULT_REPLAY = "RESULT_REPLAY"
RESULT_FORGED = "RESULT_FORGED"
CHILD_CRASHED = "CHILD_CRASHED"
CHILD_EXITED = "CHILD_EXITED"
CHILD_TIMEOUT = "CHILD_TIMEOUT"
CHILD_OOM = "CHILD_OOM"
CHILD_KILLED = "CHILD_KILLED"
ASYNCHRONOUS_WORK = "ASYNCHRONOUS_WORK"
CHILD_LOAD_FAILED = "CHILD_LOAD_FAILED"
HIT_NOT_PROVED = "HIT_NOT_PROVED"
INSENSITIVE_ORACLE = "INSENSITIVE_ORACLE"
TIMING_MISMATCH = "TIMING_MISMATCH"
BASELINE_FAILED = "BASELINE_FAILED"
ISOLATION_UNAVAILABLE = "ISOLATION_UNAVAILABLE"
FRAMEWORK_MISSING = "FRAMEWORK_MISSING"
HIDDEN_FALLBACK = "HIDDEN_FALLBACK"
ENVELOPE_OVERCLAIM = "ENVELOPE_OVERCLAIM"
CORES_EXCEEDED = "CORES_EXCEEDED"
REFUSED_RESULTS = frozenset((
    "TYPE_MISMATCH", "LAZY_OUTPUT", "ARITY_MISMATCH", "DTYPE_MISMATCH", "SHAPE_MISMATCH", "STRIDE_MISMATCH",
    "DEVICE_MISMATCH", "OUTPUT_ALIASED", "EVALUATOR_TAMPERED", "CANDIDATE_RAISED", ASYNCHRONOUS_WORK, CHILD_LOAD_FAILED,
))  # fmt: skip
"""What a python child itself may say of its candidate."""


class HarnessError(Exception):
    """The harness cannot do its work; `exit_code` says why (2 request, 3 integrity, 6 blocked)."""

    def __init__(self, code: str, message: str, exit_code: int) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.exit_code = exit_code


class ChildFailure(Exception):  # noqa: N818 - it names what happened to the child
    """A child crashed, hung, left, forged or could not load; `code` is the reason."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclass
class Check:
    """The outcome of one check, with every reason that it found."""

    outcome: str = NOT_RUN
    reasons: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, code: str, outcome: str = FAIL, **where: Any) -> None:
        """Record a reason, once; the worst outcome stays."""
        reason = {"code": code, **where}
        if reason not in self.reasons:
            self.reasons.append(reason)
        order = (NOT_RUN, PASS, INCOMPARABLE, BLOCKED, FAIL)
        if order.index(outcome) > order.index(self.outcome):
            self.outcome = outcome

    def settle(self) -> None:
        """No reason was found: the check passes."""
        if self.outcome == NOT_RUN and not self.reasons:
            self.outcome = PASS

    def as_json(self) -> dict[str, Any]:
        """The check as the report shows it."""
        return {"outcome": self.outcome, "reasons": self.reasons, "facts": self.facts}
