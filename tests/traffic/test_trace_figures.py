"""Figures of a trace, worked out by hand."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from tests.support.request_traces import (
    AZURE_HEADER,
    BURST3_HEADER,
    EVERYTHING,
    Request,
    azure,
    bailian,
    draft,
    made,
    mooncake,
    stage,
    text,
    timed,
    trace,
)

from akf.traffic.traces.figures import (
    arrivals,
    busiest,
    gaps,
    partial_prompts,
    quantile,
    reuse,
    reused_in_session,
    sessions,
    spread,
)
from akf.traffic.traces.rows import Calendar, number_ns
from akf.traffic.traces.subset import distance

S = 1_000_000_000


def test_the_rate_is_gaps_over_span_and_the_spread_is_that_of_the_gaps() -> None:
    found = gaps([0, 1 * S, 2 * S, 6 * S])
    assert found.rate_per_s == Fraction(1, 2)
    assert found.cv_squared == Fraction(1 + 1 + 4, 3) / 4 - 0  # gaps 1, 1, 4: mean 2, variance (1 + 1 + 4) / 3
    assert found.instants == 4


def test_even_arrivals_have_no_spread_and_one_instant_has_no_rate() -> None:
    assert gaps([5, 10, 15]).cv_squared == 0
    assert gaps([7, 7, 7]) == (None, None, 1)
    one = arrivals([7])
    assert (one["rate_per_s"], one["gap_cv_ratio"], one["instants"]) == (None, None, 1)
    assert arrivals([]) == {"process": "trace"}


def test_a_window_is_half_open() -> None:
    times = [0, S - 1, S, S + 1, 10 * S]
    assert busiest(times, 1) == 3  # from S - 1 to 2 S - 2
    assert busiest([0, S], 1) == 1
    assert busiest(times, 10) == 4
    assert busiest([0, 0, 0], 60) == 3


def test_quantiles_are_nearest_rank() -> None:
    counts = Counter(range(1, 101))
    assert [quantile(counts, Fraction(p, 100)) for p in (50, 90, 99, 100)] == [50, 90, 99, 100]
    assert quantile(Counter([1, 2, 3]), Fraction(1, 2)) == 2
    assert spread(Counter([10, 10, 500]))["total_tokens"] == 520


def test_the_distance_of_two_samples() -> None:
    assert distance(Counter([1, 2, 3, 4]), Counter([1, 2, 3, 4])) == 0
    assert distance(Counter([1, 2, 3, 4]), Counter([4])) == Fraction(3, 4)
    assert distance(Counter([1, 2, 3, 4]), Counter([1, 2])) == Fraction(1, 2)
    assert distance(Counter([1]), Counter([2])) == 1


def test_sessions() -> None:
    assert sessions([0, 0, 1, None, None]) == {"sessions": 4, "follow_ups": 1, "longest_turns": 2}
    assert sessions([]) is None


def test_a_block_is_reused_when_an_earlier_request_had_it(tmp_path: Path) -> None:
    rows = [
        Request(0, 64, 9, (7, 8, 9, 7), chat=1),  # 7 comes twice in its own prompt: new
        Request(1000, 48, 9, (7, 5, 9), chat=2, parent=1),  # 7 and 9 known, 5 breaks the start
        Request(2000, 30, 9, (5, 6), chat=3),  # 5 known, of another session; 30 tokens leave a block unfull
    ]
    requests = trace(text(tmp_path / "t.jsonl", map(bailian, rows))).requests.numbered()
    assert reuse(requests) == (9, 3, 2)
    assert reuse(requests, 2) == (2, 0, 0), "a window knows nothing of what was before it"
    assert reused_in_session(requests) == 2
    assert partial_prompts(requests, 16) == 1


def test_sparse_ids_are_counted_like_dense_ones(tmp_path: Path) -> None:
    for scale in (1, 10**15):
        rows = [Request(index, 1024, 9, (0, (index + 1) * scale)) for index in range(3)]
        requests = trace(text(tmp_path / f"{scale}.jsonl", map(mooncake, rows))).requests.numbered()
        assert reuse(requests)[:2] == (6, 2)
        assert list(requests.blocks) == [0, 1, 0, 2, 0, 3]


@pytest.mark.parametrize(
    ("written", "unit", "expected"),
    [
        ("61.114", S, 61_114_000_000),
        ("0.0", S, 0),
        ("1700000000.123456789", S, 1_700_000_000_123_456_789),
        ("0.0000000005", S, 0),
        ("0.0000000015", S, 2),
        ("0.30000000000000004", S, 300_000_000),
        ("27482", 1_000_000, 27_482_000_000),
        ("19440110.0", S, 19_440_110_000_000_000),
    ],
)
def test_a_number_of_time_is_exact(written: str, unit: int, expected: int) -> None:
    assert number_ns(written, "timestamp", "number", unit) == expected


def test_dates_are_exact_and_zones_count() -> None:
    first, second = Calendar(), Calendar()
    assert first.ns("1970-01-01 00:00:00.0000001", "t") == 100
    base = first.ns("2023-11-16 18:15:46.6805900", "t")
    assert first.ns("2023-11-16 18:15:50.9951690", "t") - base == 4_314_579_000
    assert base == 1_700_158_546_680_590_000
    assert second.ns("2024-05-12 02:00:10+02:00", "t") == second.ns("2024-05-12T00:00:10Z", "t")


def test_a_request_outside_all_bounds_is_counted_and_in_no_other_figure(tmp_path: Path) -> None:
    stages = [stage("short_prefill", (1, 100), (1, 10)), stage("decode", (1, 100), (11, 50))]
    rows = [(0, 50, 5), (1000, 50, 20), (2000, 100, 50), (3000, 101, 5), (4000, 100, 51), (5000, 0, 5), (6000, 100, 10)]
    path = text(tmp_path / "t.csv", [AZURE_HEADER, *(azure(Request(*row)) for row in rows)], "\r\n")
    workload = made(draft(stages), path).workload
    traffic = workload["traffic"]
    assert (traffic["requests"], traffic["outside"], traffic["outside_ratio"]) == (4, 3, 3 / 7)
    assert [one["requests"] for one in workload["stages"]] == [2, 2]
    assert [one["weight_ratio"] for one in workload["stages"]] == [0.5, 0.5]
    assert traffic["span_ns"] == 6 * S
    assert traffic["arrivals"]["rate_per_s"] == 0.5
    assert [one["arrivals"]["rate_per_s"] for one in workload["stages"]] == [1 / 6, 1.0]
    assert traffic["input"] == {
        "p50_tokens": 50, "p90_tokens": 100, "p99_tokens": 100, "max_tokens": 100, "total_tokens": 300,
    }  # fmt: skip


def test_failures_of_burstgpt_are_counted_apart(tmp_path: Path) -> None:
    rows = [
        "19440110.0,a,43,GPT-4,906,446,1352,Conversation log",
        "19440111.0,a,2,GPT-4,36,0,36,Conversation log",
        "19440112.0,a,2,ChatGPT,36,10,46,API log",
        "19440114.0,,2,ChatGPT,36,10,46,API log",
        "19440115.0,,2,ChatGPT,36,10,46,API log",
    ]
    workload = made(draft(EVERYTHING), text(tmp_path / "t.csv", [BURST3_HEADER, *rows])).workload
    traffic = workload["traffic"]
    assert (traffic["requests"], traffic["failures"]) == (4, 1)
    assert traffic["arrivals"]["rate_per_s"] == 3 / 5
    assert traffic["sessions"] == {"sessions": 3, "follow_ups": 1, "longest_turns": 2}
    assert traffic["kinds"] == [
        {"name": "ChatGPT, API log", "requests": 3},
        {"name": "GPT-4, Conversation log", "requests": 1},
    ]
    assert "prefix" not in workload


def test_an_answer_of_no_tokens_is_a_count_where_the_layout_marks_no_failures(tmp_path: Path) -> None:
    rows = [azure(Request(0, 10, 0)), azure(Request(1, 10, 1))]
    path = text(tmp_path / "t.csv", [AZURE_HEADER, *rows])
    workload = made(draft([stage("mixed", (1, 100), (1, 100))]), path).workload
    assert (workload["traffic"]["failures"], workload["traffic"]["outside"]) == (0, 1)


def test_a_session_goes_back_before_the_trace(tmp_path: Path) -> None:
    rows = [
        Request(0, 32, 9, chat=10, parent=3),  # 3 was before the trace
        Request(1000, 32, 9, chat=11, parent=10),
        Request(2000, 32, 9, chat=12, parent=3),
        Request(3000, 32, 9, chat=13),
    ]
    found = made(draft(EVERYTHING), text(tmp_path / "t.jsonl", map(bailian, rows))).workload["traffic"]["sessions"]
    assert found == {"sessions": 2, "follow_ups": 2, "longest_turns": 3}


def test_units_survive(tmp_path: Path) -> None:
    """One second and one minute are what they are, whatever the layout counts in."""
    rows = [Request(0, 1000, 20), Request(1000, 1000, 20), Request(61_000, 1000, 20)]
    seconds = [mooncake(row).replace(f'"timestamp": {row.ms}', f'"timestamp": {row.ms / 1000}') for row in rows]
    named = text(tmp_path / "s.jsonl", seconds)
    fields = [line.replace("input_length", "tokens in").replace("timestamp", "ts") for line in map(mooncake, rows)]
    found = [
        made(draft(EVERYTHING), text(tmp_path / "m.jsonl", map(mooncake, rows))),
        made(draft(EVERYTHING), text(tmp_path / "b.jsonl", map(bailian, rows))),
        made(draft(EVERYTHING), text(tmp_path / "a.csv", [AZURE_HEADER, *map(azure, rows)])),
        made(draft(EVERYTHING), named, layout=timed("1", 512)),
        made(
            draft(EVERYTHING),
            text(tmp_path / "f.jsonl", fields),
            layout=timed("0.001", 512, ["timestamp=ts", "input_length=tokens in"]),
        ),
    ]
    for one in found:
        traffic = one.workload["traffic"]
        assert traffic["span_ns"] == 61 * S
        assert traffic["arrivals"]["rate_per_s"] == 2 / 61
        assert math.isclose(traffic["arrivals"]["gap_cv_ratio"], 59 / 61)
        assert [window["requests"] for window in traffic["arrivals"]["busiest"]] == [1, 2, 2]
    assert [one.workload.get("prefix", {}).get("block_size_tokens") for one in found] == [512, 16, None, 512, 512]
    units = [one.workload["source"].get("time_unit_ns") for one in found]
    assert units == [1_000_000, S, None, S, 1_000_000]
