"""What must hold of a triage whatever the Capture says."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import captures

from akf.contracts.canonical import canonical_bytes
from akf.opportunity.amdahl import bound, ceiling, needed_speedup
from akf.opportunity.cost import detectable
from akf.opportunity.policy import policy_of
from akf.opportunity.triage import triage

Value = dict[str, Any]

shares = st.floats(0, 0.999999)
targets = st.floats(1.0, 3.0)
noises = st.floats(0, 0.2)


def said(capture: Value, **flags: float) -> Value:
    return triage(captures.workload(), capture, policy_of(capture, None, {"most_unmapped_ratio": 1, **flags}))


@st.composite
def profiles(draw: st.DrawFn) -> Value:
    """Kernels and lines that fill at most 95 % of the steps."""
    parts = draw(st.lists(st.integers(0, 100), min_size=5, max_size=5))
    scale = 0.95 / max(sum(parts), 1)
    first, second, third, gap, wait = (part * scale for part in parts)
    kernels = (
        captures.kernel(first, jitter=draw(st.floats(0, 0.05))),
        captures.kernel(second, tokens=8),
        captures.kernel(third * 0.2, None, name="Cast", calls=1),
    )
    return captures.capture(*kernels, lines={"host_gap": gap * 0.9, "waiting": wait * 0.9})


@given(st.lists(shares, min_size=2, max_size=2), targets, st.floats(1, 100))
def test_a_larger_share_never_lowers_a_ceiling(pair: list[float], target: float, speedup: float) -> None:
    small, large = sorted(pair)
    low, high = ceiling(small), ceiling(large)
    assert low is not None
    assert high is not None
    assert low <= high
    assert bound(small, speedup) <= bound(large, speedup) * (1 + 1e-12)
    first, second = needed_speedup(small, target), needed_speedup(large, target)
    if small > 0 and first is not None:
        assert second is not None
        assert second <= first * (1 + 1e-9)


@given(noises, noises, st.sampled_from([6, 8, 12]))
@settings(deadline=None)
def test_more_noise_never_makes_a_smaller_gain_detectable(one: float, other: float, pairs: int) -> None:
    found = [
        detectable(policy_of({}, None, {"noise_ratio": noise, "serving_pairs": pairs}))
        for noise in sorted((one, other))
    ]
    assert None not in found
    assert found == sorted(found)  # type: ignore[type-var]


@given(profiles())
@settings(deadline=None, max_examples=40)
def test_lines_add_up_to_the_steps(capture: Value) -> None:
    body = said(capture)
    assert sum(line["time_ns"] for line in body["lines"]) == body["step_ns"]
    assert abs(sum(line["share_ratio"] for line in body["lines"]) - 1) < 1e-9
    kernels = sum(each["exposed_ns"] for each in body["hotspots"] if each["what"] != "line")
    assert kernels == next(line["time_ns"] for line in body["lines"] if line["name"] == "kernels")


@given(profiles(), st.lists(targets, min_size=2, max_size=2))
@settings(deadline=None, max_examples=40)
def test_a_higher_target_never_turns_no_go_into_go(capture: Value, pair: list[float]) -> None:
    low, high = (
        {each["name"]: each["answer"] for each in said(capture, target_ratio=target)["hotspots"]}
        for target in sorted(pair)
    )
    assert [name for name in low if low[name] == "no_go" != high[name]] == []


@given(profiles())
@settings(deadline=None, max_examples=40)
def test_intervals_hold_their_estimates_and_shares_their_order(capture: Value) -> None:
    hotspots = said(capture)["hotspots"]
    for each in hotspots:
        if each["interval"] is not None:
            assert 0 <= each["interval"]["low_ratio"] <= each["share_ratio"] <= each["interval"]["high_ratio"] <= 1
    found = [each["share_ratio"] for each in hotspots]
    assert found == sorted(found, reverse=True)


@given(profiles(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=20)
def test_the_order_of_entries_is_no_input(capture: Value, rng: Any) -> None:
    before = canonical_bytes(said(capture))
    rng.shuffle(capture["entries"])
    assert canonical_bytes(said(capture)) == before


@given(profiles())
@settings(deadline=None, max_examples=20)
def test_the_answer_is_one_of_five_and_ready_only_without_blockers(capture: Value) -> None:
    body = said(capture)
    assert body["answer"]["answer"] in {"kernel", "integration", "configuration", "pipeline", "no_go", None}
    assert body["ready"] is (body["answer"]["answer"] not in {"no_go", None} and not body["blockers"])
    for first, second in itertools.pairwise(body["hotspots"]):
        assert (first["what"], first["name"]) != (second["what"], second["name"])
