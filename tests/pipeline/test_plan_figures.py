"""What `evaluate --plan` prints: from which noise it comes, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

from akf import stats
from akf.contracts.measured import Measured
from akf.evaluate import planning

Value = dict[str, Any]
ROWS = ["decode-1", "decode-8"]


def campaign(**acceptance: Any) -> Value:
    gain = {"gate": "operator", "metric": "latency", "threshold_ratio": 0.05}
    pairs = {"operator": 12, "model": 6, "serving": 6, "reproduction": 8, "blocks": 3}
    given = {"confidence": 0.95, "gains": [gain], "row_margin_ratio": 0.05, "pairs": pairs}
    return {"acceptance": given | acceptance, "noise": {"noise_limit_ratio": 0.05}}


def capture(*noise: tuple[str, float, float]) -> Value:
    return {"noise": [{"metric": m, "pairs": 12, "low_ratio": low, "high_ratio": high} for m, low, high in noise]}


def reduced(*spreads: float) -> Measured:
    """A/A whose rows have one pair up and one down by their spread, over and over."""
    rows = {
        row: stats.Reduction(tuple(1 + size * sign for sign in (-1, 1, 0) * 4), None)
        for row, size in zip(ROWS, spreads, strict=True)
    }
    return Measured(stats.Reduced(rows, stats.Reduction(tuple(1 + 0.01 * sign for sign in (-1, 1, 0) * 4), None)))


class TestNoise:
    def test_samples_of_this_machine_come_first_row_by_row(self) -> None:
        found = planning.noise_of(campaign(), capture(("latency", 0.9, 1.1)), ROWS, reduced(0.001, 0.02))
        assert found.source == "aa_samples"
        assert found.total == stats.spread([0.99, 1.01, 1.0] * 4)
        assert found.rows["decode-1"] < found.total < found.rows["decode-8"]

    def test_then_the_captures_widest_interval_of_the_metric(self) -> None:
        noise = capture(("latency", 0.996, 1.002), ("latency", 0.999, 1.008), ("ttft", 0.5, 1.5))
        found = planning.noise_of(campaign(), noise, ROWS, None)
        assert found.source == "capture"
        assert found.total == pytest.approx(0.008 * 12**0.5 / 2)
        assert set(found.rows.values()) == {found.total}

    def test_else_the_noise_limit_and_it_says_so(self) -> None:
        found = planning.noise_of(campaign(), capture(("ttft", 0.5, 1.5)), ROWS, Measured(None, "SAMPLES_MISSING"))
        assert found.source == "noise_limit"
        assert found.total == pytest.approx(0.05 * 12**0.5 / 2)


class TestEstimate:
    def test_the_figures_are_those_of_the_statistics(self) -> None:
        noise = planning.Noise(0.02, {"decode-1": 0.03, "decode-8": 0.05}, "aa_samples")
        found = planning.estimate(campaign(), noise, 8.64, shared=False)
        assert found["detectable_gain_ratio"] == stats.detectable_gain(0.02, 12, 0.95, 0.05)
        both = stats.power(0.05, 0.03, 12, 0.95) * stats.power(0.05, 0.05, 12, 0.95)
        assert found["rows_power_ratio"] == pytest.approx(both)
        assert 0.5 < found["rows_power_ratio"] < 0.95
        assert found["pairs_for_rows"] == stats.pairs_for_power([(0.05, 0.03), (0.05, 0.05)], 0.95, 500)
        assert found["wall_s"] > found["device_s"] > 0

    def test_launches_that_are_long_take_their_time(self) -> None:
        task = {"callsite": "norm", "rows": [{"symbols": {"T": 1}}, {"symbols": {"T": 8}}]}
        seen = [
            {"callsite": "norm", "symbols": {"T": 1}, "calls": 100, "time_ns": 400_000},  # 4 us a launch
            {"callsite": "norm", "symbols": {"T": 8}, "calls": 10, "time_ns": 500_000_000},  # 50 ms a launch
            {"callsite": "rope", "symbols": {"T": 1}, "calls": 1, "time_ns": 10**12},
        ]
        segments = 12 * 3 * 4
        assert planning.segments_s(campaign(), {}, task) == pytest.approx(2 * segments * planning.SEGMENT_S)
        found = planning.segments_s(campaign(), {"entries": seen}, task)
        assert found == pytest.approx(segments * (planning.SEGMENT_S + 4 * 2 * 0.050))

    def test_lent_noise_halves_the_device_time(self) -> None:
        noise = planning.Noise(0.02, dict.fromkeys(ROWS, 0.02), "capture")
        own, lent = (planning.estimate(campaign(), noise, 8.64, shared=shared) for shared in (False, True))
        assert lent["device_s"] == pytest.approx(own["device_s"] / 2, abs=0.1)

    def test_more_rows_need_more_pairs(self) -> None:
        def needed(rows: int) -> int:
            noise = planning.Noise(0.04, {str(row): 0.04 for row in range(rows)}, "capture")
            return int(planning.estimate(campaign(), noise, 8.64, shared=False)["pairs_for_rows"])

        assert needed(1) < needed(4) < needed(16)

    def test_what_no_number_of_pairs_reaches_is_left_out(self) -> None:
        noise = planning.Noise(5.0, dict.fromkeys(ROWS, 5.0), "noise_limit")
        assert "pairs_for_rows" not in planning.estimate(campaign(), noise, 8.64, shared=False)


@pytest.mark.parametrize(("tries", "pairs"), [(1, 6), (3, 7), (6, 8), (100, 12)])
def test_a_claim_pays_for_its_tries(tries: int, pairs: int) -> None:
    found = planning.claim(campaign(), tries)
    assert (found["tries"], found["fewest_pairs"], found["reproduction_pairs"]) == (tries, pairs, 8)
    assert found["one_sided_error_ratio"] == pytest.approx(0.025 / tries)
