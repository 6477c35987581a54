"""One candidate of the `python` ABI as text, and what a true evaluator may say of it."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import NamedTuple

RIGHT = "torch.relu(x @ w + b)"
HONEST = f"return {RIGHT}"


class Cheat(NamedTuple):
    """One candidate; no reasons for one that is honest."""

    reasons: frozenset[str]
    body: str
    head: str = ""
    task: str = "small"
    arguments: str = "x, w, b"

    @property
    def source(self) -> str:
        """The module's text."""
        body = indent(dedent(self.body).strip("\n"), "    ")
        return f"import torch\n\n{dedent(self.head).strip()}\n\n\ndef run({self.arguments}):\n{body}\n"


def cheat(reasons: str, body: str, head: str = "", task: str = "small", arguments: str = "x, w, b") -> Cheat:
    return Cheat(frozenset(reasons.split()), body, head, task, arguments)


STALE = "WRONG_RESULT RESULT_REPLAY OUTPUT_ALIASED NONDETERMINISTIC"
