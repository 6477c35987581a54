"""Integer expressions over shape symbols: parsed to a tree, evaluated by walking it.

Invariants:
- Text never reaches Python's own evaluator; the grammar below is all there is.
- Length, depth and magnitude are limited, so no text takes long to parse or to evaluate.
- Division is floor division of non-negative results; a divisor of zero or less is an error.

Grammar::

    sum     := product (("+" | "-") product)*
    product := atom (("*" | "//" | "%") atom)*
    atom    := integer | name | function "(" sum "," sum ")" | "(" sum ")" | "-" atom
    function := "ceildiv" | "min" | "max"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

MAX_LENGTH = 200
MAX_DEPTH = 16
MAX_MAGNITUDE = 2**53 - 1

_TOKEN = re.compile(r"\s*(?:(?P<int>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<op>//|[-+*%(),]))")


class ExpressionError(ValueError):
    """The text is no expression, or it has no value for the given symbols."""


@dataclass(frozen=True)
class Number:
    """An integer literal."""

    value: int


@dataclass(frozen=True)
class Symbol:
    """A shape symbol or an integer attribute."""

    name: str


@dataclass(frozen=True)
class Operation:
    """A binary operation or one of the three functions."""

    operator: str
    left: Expression
    right: Expression


Expression: TypeAlias = "Number | Symbol | Operation"


def _floor_divide(left: int, right: int) -> int:
    if right <= 0:
        raise ExpressionError(f"division by {right}")
    return left // right


def _modulo(left: int, right: int) -> int:
    if right <= 0:
        raise ExpressionError(f"remainder by {right}")
    return left % right


def _ceil_divide(left: int, right: int) -> int:
    if right <= 0:
        raise ExpressionError(f"division by {right}")
    return -(-left // right)


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "//": _floor_divide,
    "%": _modulo,
    "ceildiv": _ceil_divide,
    "min": min,
    "max": max,
}
FUNCTIONS = frozenset({"ceildiv", "min", "max"})


def _bounded(value: int) -> int:
    if abs(value) > MAX_MAGNITUDE:
        raise ExpressionError("a value is larger than 2^53 - 1")
    return value


class _Parser:
    """Recursive descent over the token list."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"longer than {MAX_LENGTH} characters")
        self._tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ExpressionError(f"unexpected {text[position:].strip()[:1]!r} at column {position + 1}")
            self._tokens.append(match.group(match.lastgroup or 0))
            position = match.end()
        self._next = 0

    def parse(self) -> Expression:
        tree = self._sum(0)
        if self._peek():
            raise ExpressionError(f"unexpected {self._peek()!r} after the expression")
        return tree

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise ExpressionError("the expression ends too early")
        self._next += 1
        return token

    def _expect(self, token: str) -> None:
        found = self._take()
        if found != token:
            raise ExpressionError(f"expected {token!r}, found {found!r}")

    def _sum(self, depth: int) -> Expression:
        tree = self._product(depth)
        while self._peek() in {"+", "-"}:
            tree = Operation(self._take(), tree, self._product(depth))
        return tree

    def _product(self, depth: int) -> Expression:
        tree = self._atom(depth)
        while self._peek() in {"*", "//", "%"}:
            tree = Operation(self._take(), tree, self._atom(depth))
        return tree

    def _atom(self, depth: int) -> Expression:
        if depth >= MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH}")
        token = self._take()
        if token == "(":  # noqa: S105 - a token of the grammar
            tree = self._sum(depth + 1)
            self._expect(")")
            return tree
        if token == "-":  # noqa: S105 - as above
            return Operation("-", Number(0), self._atom(depth + 1))
        if token.isdecimal():
            return Number(_bounded(int(token)))
        if token in FUNCTIONS:
            self._expect("(")
            left = self._sum(depth + 1)
            self._expect(",")
            right = self._sum(depth + 1)
            self._expect(")")
            return Operation(token, left, right)
        if token[0].isalpha() or token[0] == "_":
            return Symbol(token)
        raise ExpressionError(f"unexpected {token!r}")


def parse(text: str | int) -> Expression:
    """Parse one expression; an integer stands for itself."""
    if isinstance(text, bool):
        raise ExpressionError("a boolean is no expression")
    return Number(_bounded(text)) if isinstance(text, int) else _Parser(text).parse()


def symbols(tree: Expression) -> frozenset[str]:
    """The names that the expression reads."""
    if isinstance(tree, Symbol):
        return frozenset({tree.name})
    if isinstance(tree, Operation):
        return symbols(tree.left) | symbols(tree.right)
    return frozenset()


def evaluate(tree: Expression, values: Mapping[str, int]) -> int:
    """The expression's value for these symbols."""
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Symbol):
        if tree.name not in values:
            raise ExpressionError(f"the symbol {tree.name!r} has no value")
        return _bounded(values[tree.name])
    left = evaluate(tree.left, values)
    return _bounded(_OPERATIONS[tree.operator](left, evaluate(tree.right, values)))


def render(tree: Expression) -> str:
    """Text that parses to the same tree, fully parenthesised."""
    if isinstance(tree, Number):
        return str(tree.value) if tree.value >= 0 else f"(0 - {-tree.value})"
    if isinstance(tree, Symbol):
        return tree.name
    left, right = render(tree.left), render(tree.right)
    if tree.operator in FUNCTIONS:
        return f"{tree.operator}({left}, {right})"
    return f"({left} {tree.operator} {right})"


def normal(text: str | int) -> str:
    """One spelling per tree, so that two texts can be compared."""
    return render(parse(text))
