"""Properties of the reduction of samples: any damage is noticed, no order matters."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from akf.stats import Design, Incomplete, Kind, Reduced, Sample, reduce_samples

values = st.lists(st.integers(min_value=1, max_value=10**9), min_size=1, max_size=3).map(tuple)


@st.composite
def measured(draw: st.DrawFn, kinds: tuple[Kind, ...] = ("abba", "legs")) -> tuple[Design, list[Sample]]:
    rows = draw(st.dictionaries(st.text(min_size=1, max_size=2), st.floats(0.01, 100), min_size=1, max_size=2))
    pairs, blocks = draw(st.integers(5, 7)), draw(st.sampled_from([1, 3]))
    kind = draw(st.sampled_from(kinds))
    places = [
        (row, pair, block, segment)
        for row in rows
        for pair in range(pairs)
        for block in range(blocks if kind == "abba" else 1)
        for segment in range(4 if kind == "abba" else 2)
    ]
    design = Design(
        kind=kind,
        rows=rows,
        pairs=pairs,
        blocks=blocks if kind == "abba" else 1,
        better=draw(st.sampled_from(["lower", "higher"])),
        planned=tuple(f"s{at}" for at in range(len(places))),
    )
    samples = [
        Sample(f"s{at}", *place, design.side(place[1], place[3]), draw(values))  # type: ignore[arg-type]
        for at, place in enumerate(places)
    ]
    return design, samples


@settings(max_examples=40)
@given(measured(), st.data())
def test_any_order_gives_the_same_bytes(case: tuple[Design, list[Sample]], data: st.DataObject) -> None:
    design, samples = case
    expected = reduce_samples(design, samples)
    assert isinstance(expected, Reduced)
    assert repr(reduce_samples(design, data.draw(st.permutations(samples)))) == repr(expected)
    for reduction in [expected.total, *expected.rows.values()]:
        assert len(reduction.ratios) == design.pairs
        assert (reduction.interval is None) == (design.pairs < 6)


@settings(max_examples=40)
@given(measured(kinds=("legs",)))
def test_a_total_over_legs_lies_between_its_rows(case: tuple[Design, list[Sample]]) -> None:
    result = reduce_samples(*case)
    assert isinstance(result, Reduced)
    for pair, total in enumerate(result.total.ratios):
        of_rows = [reduction.ratios[pair] for reduction in result.rows.values()]
        assert min(of_rows) * (1 - 1e-12) <= total <= max(of_rows) * (1 + 1e-12)


@settings(max_examples=40)
@given(measured(), st.data())
def test_damage_is_noticed_and_named(case: tuple[Design, list[Sample]], data: st.DataObject) -> None:
    design, samples = case
    at = data.draw(st.integers(0, len(samples) - 1))
    sample = samples[at]
    dropped = reduce_samples(design, samples[:at] + samples[at + 1 :])
    assert dropped == Incomplete(missing=(sample.id,), unplanned=(), duplicated=())
    doubled = reduce_samples(design, [*samples, sample])
    assert doubled == Incomplete(missing=(), unplanned=(), duplicated=(sample.id,))
    renamed = reduce_samples(design, [*samples[:at], dataclasses.replace(sample, id="t"), *samples[at + 1 :]])
    assert renamed == Incomplete(missing=(sample.id,), unplanned=("t",), duplicated=())
    other = dataclasses.replace(sample, side="B" if sample.side == "A" else "A")
    moved = reduce_samples(design, [*samples[:at], other, *samples[at + 1 :]])
    assert moved == Incomplete(missing=(), unplanned=(), duplicated=(), invalid=(sample.id,))
