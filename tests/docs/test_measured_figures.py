"""Figures in the documentation are those that a run of this repository gives."""

from __future__ import annotations

import random
import re

import pytest
from docs.generator.pages import DOCS
from tests.stats.test_false_gains import _dependent

from akf.stats import gain_outcome, signed_rank_interval

RUNS, SEED = 10_000, 17
ROW = re.compile(r"^\| (0\.\d) \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$", re.MULTILINE)


def share(rho: float, pairs: int) -> float:
    """How many runs of dependent pairs without a difference claim a gain, in per cent."""
    rng, found = random.Random(SEED), 0
    for _ in range(RUNS):
        interval = signed_rank_interval(_dependent(rng, pairs, rho), 0.95)
        assert interval is not None
        found += gain_outcome(interval, 0.0) == "pass"
    return 100 * found / RUNS


@pytest.mark.soak
def test_the_table_of_dependent_pairs_is_what_the_simulation_draws() -> None:
    rows = ROW.findall((DOCS / "evidence.md").read_text(encoding="utf-8"))
    assert [row[0] for row in rows] == ["0.3", "0.6"]
    for rho, *stated in rows:
        for pairs, text in zip((6, 12, 20), stated, strict=True):
            assert f"{share(float(rho), pairs):.1f}" == text, (rho, pairs)
