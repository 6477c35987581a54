"""What is said of a node that failed.

Invariants:
- Whatever an agent raises becomes a reason, a message and, where there is one, a traceback: bounded, and printable.
"""

from __future__ import annotations

import traceback
from typing import Any

from akf.contracts.text import printable
from akf.runtime.processes import Died
from akf.runtime.values import Garbage

_TRACE, _MESSAGE = 8192, 1000


def failure(error: BaseException) -> dict[str, Any]:
    """The error of a node whose agent ended with this."""
    if isinstance(error, Garbage):
        return {"reason": "garbage", "message": f"its answer cannot be kept: {error}"}
    if isinstance(error, Died):
        found = {"reason": error.reason, "message": printable(str(error))[:_MESSAGE]}
        return {**found, "traceback": error.trace} if error.trace else found
    message = f"{type(error).__name__}: {_text(error)}"
    trace = "".join(traceback.format_exception(error))[-_TRACE:]
    return {"reason": "raised", "message": message, "traceback": trace}


def _text(error: BaseException) -> str:
    try:
        return printable(str(error))[:_MESSAGE]
    except Exception:  # noqa: BLE001 - an exception that cannot say what it is
        return "(it cannot be shown)"
