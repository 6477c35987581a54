"""What holds for any trace: order leaves no trace, shares are whole, more requests never make less."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.request_traces import Request, bailian, draft, made, mooncake, stage, text

from akf.traffic.traces.figures import busiest, gaps

STAGES = [
    stage("short_prefill", (0, 600), (0, 20)),
    stage("long_prefill", (601, 2000), (0, 20)),
    stage("decode", (0, 600), (21, 90)),
]
DRAFT = draft(STAGES, callsites=draft().value["callsites"][:1])


@st.composite
def requests(draw: st.DrawFn, size: int = 16) -> list[Request]:
    """Requests with blocks of `size` tokens, few of each kind, so that times, blocks and chats come again."""
    found = []
    for chat in range(draw(st.integers(1, 12))):
        tokens = draw(st.sampled_from([0, 1, 16, 17, 600, 601, 1500, 2500]))
        ids = draw(st.lists(st.integers(0, 5), min_size=-(-tokens // size), max_size=-(-tokens // size)))
        found.append(
            Request(
                draw(st.sampled_from([0, 1, 999, 1000, 1001, 60_000])),
                tokens,
                draw(st.sampled_from([0, 1, 20, 21, 90, 91])),
                tuple(ids),
                chat,
                draw(st.integers(-1, chat - 1)),
                draw(st.sampled_from(["text", "search"])),
            )
        )
    return [Request(0, 10, 10, (0,), 99), *found]


def workload(*parts: list[Request], line: Any = bailian, **options: Any) -> dict[str, Any]:
    """The Workload, without what names the files."""
    with tempfile.TemporaryDirectory() as folder:
        files = [text(Path(folder) / f"{number}.jsonl", map(line, rows)) for number, rows in enumerate(parts)]
        found: dict[str, Any] = made(DRAFT, *files, **options).workload
    del found["source"]
    return found


@settings(max_examples=60, deadline=None)
@given(requests(), st.randoms(use_true_random=False))
def test_the_order_of_rows_leaves_no_trace(rows: list[Request], chance: Any) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)
    assert workload(shuffled, subset=1) == workload(rows, subset=1)


@settings(max_examples=40, deadline=None)
@given(requests(), st.integers(0, 3), st.booleans())
def test_parts_of_a_trace_are_the_trace(rows: list[Request], cut: int, turned: bool) -> None:
    ordered = sorted(rows, key=lambda row: row.ms)
    edges = [place for place, (one, other) in enumerate(pairwise(ordered), 1) if one.ms < other.ms]
    if not edges:
        return
    place = edges[cut % len(edges)]
    parts = [ordered[:place], ordered[place:]]
    assert workload(*(parts[::-1] if turned else parts)) == workload(rows)


@settings(max_examples=60, deadline=None)
@given(requests())
def test_shares_are_whole(rows: list[Request]) -> None:
    found = workload(rows)
    stages, traffic = found["stages"], found["traffic"]
    assert sum(Fraction(one["requests"], traffic["requests"]) for one in stages) == 1
    assert abs(sum(one["weight_ratio"] for one in stages) - 1) < 1e-9
    assert traffic["requests"] + traffic["outside"] == len(rows)
    assert sum(kind["requests"] for kind in traffic["kinds"]) == traffic["requests"]
    if (prefix := found.get("prefix")) is not None:
        assert 0 <= prefix["leading_ratio"] <= prefix["reuse_ratio"] < 1
        assert 0 <= prefix["session_ratio"] <= prefix["reuse_ratio"]


@settings(max_examples=60, deadline=None)
@given(requests())
def test_a_sample_of_everything_has_no_error(rows: list[Request]) -> None:
    total = workload(rows)["traffic"]["requests"]
    sample = workload(rows, subset=total)["sample"]
    assert sample["worst_ratio"] == 0
    assert all(error["whole_value"] == error["sample_value"] for error in sample["errors"])


@settings(max_examples=60, deadline=None)
@given(requests(), requests())
def test_one_request_more_never_lowers_a_count(rows: list[Request], more: list[Request]) -> None:
    added = more[-1]._replace(chat=500, parent=-1)
    before, after = workload(rows), workload([*rows, added])
    for name in ("requests", "outside", "failures", "span_ns"):
        assert after["traffic"][name] >= before["traffic"][name]
    counts = {one["id"]: one["requests"] for one in after["stages"]}  # a stage without requests is left out
    for one in before["stages"]:
        assert counts[one["id"]] >= one["requests"]
    for one, other in zip(
        before["traffic"]["arrivals"]["busiest"], after["traffic"]["arrivals"]["busiest"], strict=True
    ):
        assert other["requests"] >= one["requests"]
    for name in ("prompt_blocks", "reused_blocks"):
        assert after.get("prefix", {}).get(name, 0) >= before.get("prefix", {}).get(name, 0)
    for side in ("input", "output"):
        assert after["traffic"][side]["total_tokens"] >= before["traffic"][side]["total_tokens"]


@settings(max_examples=40, deadline=None)
@given(requests(512))
def test_names_of_blocks_mean_nothing(rows: list[Request]) -> None:
    renamed = [row._replace(blocks=tuple(9_000_000_000_000 + 7 * block for block in row.blocks)) for row in rows]
    assert workload(renamed, line=mooncake) == workload(rows, line=mooncake)


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=30).map(sorted))
def test_arrivals_agree_with_their_definitions(times: list[int]) -> None:
    between = [later - earlier for earlier, later in pairwise(times)]
    found = gaps(times)
    assert found.instants == len(set(times))
    if sum(between):
        mean = Fraction(sum(between), len(between))
        assert found.rate_per_s == 10**9 / mean
        assert found.cv_squared == sum((gap - mean) ** 2 for gap in between) / len(between) / mean**2
    for window in (1, 10, 60):
        assert busiest(times, window) == max(
            sum(start <= time < start + window * 10**9 for time in times) for start in times
        )
