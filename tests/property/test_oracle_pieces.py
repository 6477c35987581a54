"""The comparison goes over a result in pieces: where they end changes nothing, and both ways to ask agree."""

from __future__ import annotations

import math
from dataclasses import asdict
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from akf.harness import oracle
from akf.harness.dtypes import encode

VALUES = st.one_of(st.floats(-4, 4), st.sampled_from([0.0, 1e-30, 1e30, math.inf, -math.inf, math.nan]))
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=24)
NEAR = st.lists(st.tuples(st.floats(-4, 4), st.floats(-1e-3, 1e-3)), min_size=1, max_size=24).map(
    lambda pairs: [(value, value + error) for value, error in pairs]
)


@given(st.one_of(PAIRS, NEAR), st.sampled_from(["float32", "bfloat16", "float64"]), st.integers(1, 25))
def test_pieces_change_nothing_and_both_ways_agree(pairs: list[tuple[float, float]], dtype: str, piece: int) -> None:
    expected, other = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        stored = encode(other, dtype)
    tolerance = {"rtol": 2.0**-8, "atol": 2.0**-8}
    whole = oracle.compare(stored, expected, tolerance, dtype)
    with mock.patch.object(oracle, "PIECE", piece):
        parts = oracle.compare(stored, expected, tolerance, dtype)
        accepted = oracle.within(stored, expected, tolerance, dtype)
    assert {**asdict(whole), "bound_share": 0} == {**asdict(parts), "bound_share": 0}
    assert math.isclose(whole.bound_share, parts.bound_share, rel_tol=1e-9)
    if np.isfinite(expected).all():
        assert accepted == whole.accepted or not np.isfinite(encode(expected, dtype).astype(np.float64)).all()


def test_errors_by_hand() -> None:
    expected = np.array([1.0, -2.0, 0.0, 4.0])
    stored = np.array([1.0, -2.0 - 2.0**-22, 0.0, 5.0], dtype=np.float32)
    found = oracle.compare(stored, expected, {"rtol": 0.125, "atol": 0.0}, "float32")
    assert (found.elements, found.violations, found.non_finite) == (4, 1, 0)
    assert (found.max_abs, found.max_rel, found.bound_share) == (1.0, 0.25, 2.0)
    assert found.max_ulp == 1 << 21
