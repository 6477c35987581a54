"""Expressions: what they mean, what is refused, and that text and tree agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.routes.expressions import (
    Expression,
    ExpressionError,
    Number,
    Operation,
    Symbol,
    evaluate,
    normal,
    parse,
    render,
    symbols,
)

VALUES = {"T": 7, "H": 4096}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("H // T", 585),
        ("H % T", 1),
        ("ceildiv(H, T)", 586),
        ("ceildiv(T, 8) * 8", 8),
        ("min(T, 4) + max(T, 9)", 13),
        ("-T + H", 4089),
        ("2 * -T", -14),
        (12, 12),
        ("  T  ", 7),
    ],
)
def test_value(text: str | int, value: int) -> None:
    assert evaluate(parse(text), VALUES) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "too early"),
        ("T +", "too early"),
        ("T T", "after the expression"),
        ("T / 2", "unexpected '/'"),
        ("T ** 2", "unexpected '\\*'"),
        ("__import__('os')", 'unexpected "\'"'),
        ("f(1, 2)", "unexpected '\\('"),
        ("min(1)", "expected ','"),
        ("(T", "too early"),
        ("T.x", "unexpected '.'"),
        ("1.5", "unexpected '.'"),
        ("\uff19", "unexpected"),
        ("(" * 40 + "1" + ")" * 40, "nested deeper"),
        ("-" * 40 + "1", "nested deeper"),
        ("1 + " * 60 + "1", "longer than"),
        ("99999999999999999999", "larger than"),
        (True, "boolean"),
    ],
)
def test_refused(text: str | int, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("T // 0", "division by 0"),
        ("T % (0 - 1)", "remainder by -1"),
        ("ceildiv(T, T - 7)", "division by 0"),
        ("X", "'X' has no value"),
        ("H * H * H * H * H", "larger than"),
    ],
)
def test_without_a_value(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        evaluate(parse(text), VALUES)


def test_spellings_of_one_tree_are_equal() -> None:
    assert normal("T*H + 1") == normal("(T * H)+1") != normal("T * (H + 1)")


_OPERATORS = ["+", "-", "*", "//", "%", "ceildiv", "min", "max"]


def _trees() -> st.SearchStrategy[Expression]:
    leaves: st.SearchStrategy[Expression] = st.one_of(
        st.builds(Number, st.integers(0, 99)), st.builds(Symbol, st.sampled_from(sorted(VALUES)))
    )
    return st.recursive(
        leaves, lambda inner: st.builds(Operation, st.sampled_from(_OPERATORS), inner, inner), max_leaves=6
    )


_PYTHON: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}


def _independent(tree: Expression) -> int | None:
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Symbol):
        return VALUES[tree.name]
    left, right = _independent(tree.left), _independent(tree.right)
    if left is None or right is None or (tree.operator in {"//", "%", "ceildiv"} and right <= 0):
        return None
    return _PYTHON[tree.operator](left, right)


@given(_trees())
def test_text_and_tree_agree(tree: Expression) -> None:
    assert parse(render(tree)) == tree
    assert symbols(tree) <= set(VALUES)


@given(_trees())
def test_value_agrees_with_python(tree: Expression) -> None:
    expected = _independent(tree)
    if expected is None or abs(expected) >= 2**53:
        return
    assert evaluate(tree, VALUES) == expected
