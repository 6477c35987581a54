"""From planned samples to figures: orientation, totals, and everything that keeps them from being complete."""

import dataclasses
import random
from typing import Any

import pytest

from akf.stats import (
    Design,
    Incomplete,
    Reduced,
    Sample,
    TooFewSamples,
    block_ratio,
    pair_ratio,
    reduce_samples,
    signed_rank_interval,
)


def _abba(rows: dict[str, float], pairs: int = 6, blocks: int = 3, **more: Any) -> tuple[Design, list[Sample]]:
    rng = random.Random(9)
    samples = [
        Sample(
            id=f"{row}.{pair}.{block}.{segment}",
            row=row,
            pair=pair,
            block=block,
            segment=segment,
            side="A" if segment in {0, 3} else "B",
            values=tuple(rng.randrange(900, 1100) + 200 * (segment in {0, 3}) for _ in range(5)),
        )
        for pair in range(pairs)
        for row in rows
        for block in range(blocks)
        for segment in range(4)
    ]
    planned = tuple(sample.id for sample in samples)
    return Design(kind="abba", rows=rows, pairs=pairs, blocks=blocks, planned=planned, **more), samples


def _legs(rows: dict[str, float], pairs: int = 6, count: int = 9, **more: Any) -> tuple[Design, list[Sample]]:
    samples = [
        Sample(
            id=f"leg {pair}.{segment} {row}",
            row=row,
            pair=pair,
            block=0,
            segment=segment,
            side="A" if (pair + segment) % 2 == 0 else "B",
            values=tuple((110 if (pair + segment) % 2 == 0 else 100) * (1 + at) + pair for at in range(count)),
        )
        for pair in range(pairs)
        for segment in range(2)
        for row in rows
    ]
    return Design(kind="legs", rows=rows, pairs=pairs, planned=tuple(s.id for s in samples), **more), samples


def _reduced(design: Design, samples: list[Sample]) -> Reduced:
    result = reduce_samples(design, samples)
    assert isinstance(result, Reduced)
    return result


def _middle(samples: list[Sample], row: str, pair: int, block: int, segment: int) -> int:
    place = (row, pair, block, segment)
    (values,) = (s.values for s in samples if (s.row, s.pair, s.block, s.segment) == place)
    return sorted(values)[len(values) // 2]


def test_a_row_is_the_median_of_its_blocks() -> None:
    design, samples = _abba({"x": 1.0})
    result = _reduced(design, samples)
    expected = tuple(
        pair_ratio([block_ratio(*(_middle(samples, "x", pair, block, at) for at in range(4))) for block in range(3)])
        for pair in range(6)
    )
    assert result.rows["x"].ratios == expected
    assert result.rows["x"].interval == signed_rank_interval(expected, 0.95)
    assert min(expected) > 1.1  # B takes about 1000 where A takes 1200


def test_the_total_weighs_latencies_and_not_ratios() -> None:
    design, samples = _abba({"slow": 3.0, "fast": 1.0}, blocks=1)
    samples = [dataclasses.replace(s, values=(s.values[0] * (100 if s.row == "slow" else 1),)) for s in samples]
    result = _reduced(design, samples)
    for pair in range(6):
        a1, b1, b2, a2 = (
            _middle(samples, "fast", pair, 0, at) + 3.0 * _middle(samples, "slow", pair, 0, at) for at in range(4)
        )
        assert result.total.ratios[pair] == block_ratio(a1, b1, b2, a2)
    assert list(result.rows) == ["fast", "slow"]


def test_one_row_is_its_own_total() -> None:
    design, samples = _abba({"x": 1.0})
    result = _reduced(design, samples)
    assert result.total == result.rows["x"]


def test_legs_alternate_and_are_oriented() -> None:
    design, samples = _legs({"ttft": 1.0})
    ratios = _reduced(design, samples).rows["ttft"].ratios
    assert ratios == tuple((550 + pair) / (500 + pair) for pair in range(6))
    more = dataclasses.replace(design, better="higher")
    assert _reduced(more, samples).rows["ttft"].ratios == tuple((500 + pair) / (550 + pair) for pair in range(6))


def test_blocks_where_more_is_better_are_inverted() -> None:
    design, samples = _abba({"x": 1.0, "y": 2.0})
    lower, higher = _reduced(design, samples), _reduced(dataclasses.replace(design, better="higher"), samples)
    for one, other in ((lower.rows["x"], higher.rows["x"]), (lower.total, higher.total)):
        assert other.ratios == pytest.approx([1 / ratio for ratio in one.ratios], rel=1e-15)


def test_too_few_pairs_leave_the_ratios_without_an_interval() -> None:
    design, samples = _abba({"x": 1.0}, pairs=5)
    assert _reduced(design, samples).total.interval is None
    ninety = _reduced(dataclasses.replace(design, confidence=0.9), samples)
    assert ninety.total.interval is not None
    assert ninety.total.interval.confidence == 0.9


def test_a_quantile_needs_its_samples_in_each_arm() -> None:
    design, samples = _legs({"a": 1.0, "b": 1.0}, count=34, statistic=("quantile", 0.95))
    result = _reduced(design, samples)  # 6 * 34 = 204 >= 200
    assert result.rows["a"].ratios[0] == (110 * 33) / (100 * 33)  # rank ceil(0.95 * 34) = 33
    short = [dataclasses.replace(s, values=s.values[:29]) if (s.row, s.side) == ("b", "B") else s for s in samples]
    assert reduce_samples(design, short) == TooFewSamples(needed=200, found=174, row="b", side="B")
    assert isinstance(reduce_samples(dataclasses.replace(design, statistic="median"), short), Reduced)


def test_the_order_of_samples_and_rows_is_no_input() -> None:
    design, samples = _abba({"b": 0.1, "a": 0.7, "c": 0.2})
    expected = repr(_reduced(design, samples))
    rng = random.Random(3)
    for _ in range(5):
        rng.shuffle(samples)
        rows = dict(sorted(design.rows.items(), key=lambda _: rng.random()))
        planned = tuple(sorted(design.planned, key=lambda _: rng.random()))
        other = dataclasses.replace(design, rows=rows, planned=planned)
        assert repr(_reduced(other, samples)) == expected


def test_a_dropped_a_doubled_and_an_unplanned_sample_are_all_named() -> None:
    design, samples = _abba({"x": 1.0})
    stranger = dataclasses.replace(samples[0], id="extra")
    broken = [stranger, *samples[2:], samples[5], samples[5]]
    assert reduce_samples(design, broken) == Incomplete(
        missing=("x.0.0.0", "x.0.0.1"), unplanned=("extra",), duplicated=("x.0.1.1",), invalid=()
    )
    assert reduce_samples(design, []) == Incomplete(tuple(sorted(design.planned)), (), ())


@pytest.mark.parametrize(
    "change",
    [
        {"row": "y"},
        {"pair": 6},
        {"pair": -1},
        {"block": 3},
        {"segment": 4},
        {"segment": -1},
        {"side": "B"},
        {"side": "A "},
        {"values": ()},
        {"values": (0, 5)},
        {"values": (-3,)},
        {"values": (1.5,)},
        {"values": (True,)},
        {"values": (2**53,)},
        {"values": (float("nan"),)},
    ],
)
def test_a_sample_out_of_place_or_without_values_is_invalid(change: dict[str, Any]) -> None:
    design, samples = _abba({"x": 1.0})
    samples[0] = dataclasses.replace(samples[0], **change)
    result = reduce_samples(design, samples)
    assert isinstance(result, Incomplete)
    assert "x.0.0.0" in result.invalid
    assert (result.missing, result.unplanned, result.duplicated) == ((), (), ())


def test_two_samples_in_one_place_are_both_invalid_in_any_order() -> None:
    design, samples = _abba({"x": 1.0})
    samples[0] = dataclasses.replace(samples[0], segment=3)
    expected = Incomplete((), (), (), invalid=("x.0.0.0", "x.0.0.3"))
    assert reduce_samples(design, samples) == expected
    assert reduce_samples(design, samples[::-1]) == expected


def test_exchanged_legs_are_invalid() -> None:
    design, samples = _legs({"x": 1.0})
    first, second = samples[0], samples[1]
    samples[0], samples[1] = dataclasses.replace(first, side="B"), dataclasses.replace(second, side="A")
    assert reduce_samples(design, samples) == Incomplete((), (), (), invalid=tuple(sorted([first.id, second.id])))


def test_a_sample_is_read_from_its_record() -> None:
    sample = Sample(id="s", row="x", pair=1, block=0, segment=2, side="B", values=(3, 4))
    assert (
        Sample.of({**dataclasses.asdict(sample), "values": [3, 4], "note": "ignored here, the schema is strict"})
        == sample
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "abab"},
        {"better": "faster"},
        {"rows": {}},
        {"rows": {"x": 0.0}},
        {"rows": {"x": float("nan")}},
        {"rows": {"x": 1.0, "y": 1.0}},
        {"pairs": 0},
        {"pairs": 501},
        {"pairs": 5},
        {"blocks": 2},
        {"blocks": -1},
        {"kind": "legs"},
        {"statistic": ("mean", 0.5)},
        {"statistic": ("quantile", 1.0)},
        {"confidence": 95},
        {"planned": ()},
        {"planned": ("x",) * 72},
    ],
)
def test_parts_that_make_no_design_are_refused(change: dict[str, Any]) -> None:
    design, _ = _abba({"x": 1.0})
    with pytest.raises(ValueError, match=r"design|pairs|blocks|weight|statistic|between"):
        dataclasses.replace(design, **change)
