"""Calls expected against calls seen."""

from __future__ import annotations

import json
from typing import Any

from akf.contracts.shipped import shipped
from akf.frameworks.calls import completeness, expected_calls

WORKLOAD: dict[str, Any] = json.loads(
    (shipped("suites") / "qwen3-8b-a3-bf16" / "workload.json").read_text(encoding="utf-8")
)


def entry(callsite: str | None, calls: int, rank: int | None = None) -> dict[str, Any]:
    return {"callsite": callsite, "calls": calls} | ({} if rank is None else {"rank": rank})


def test_steps_of_decode_expect_no_prefill() -> None:
    expected = expected_calls(WORKLOAD, "sglang_ascend", 10, {"sglang_ascend.decode-attention": 360})
    assert expected["sglang_ascend.prefill-attention"] == 0
    assert expected["sglang_ascend.decode-attention"] == 360
    assert expected["sglang_ascend.add-rms-norm"] == 720
    assert expected["sglang_ascend.lm-head"] == 10
    assert not any(name.startswith("xllm") for name in expected)


def test_prefills_are_whole_steps_and_the_rest_are_decodes() -> None:
    seen = {"xllm.prefill-attention": 71, "xllm.decode-attention": 288}
    expected = expected_calls(WORKLOAD, "xllm", 10, seen)
    assert expected["xllm.prefill-attention"] == 72, "two steps, one of which lost a row"
    assert expected["xllm.decode-attention"] == 288


def test_a_capture_that_lost_its_attention_misses_decodes() -> None:
    expected = expected_calls(WORKLOAD, "xllm", 10, {})
    assert expected["xllm.decode-attention"] == 360


def test_steps_that_mix_requests_attend_twice() -> None:
    seen = {"xllm.prefill-attention": 360, "xllm.decode-attention": 360}
    expected = expected_calls(WORKLOAD, "xllm", 10, seen)
    assert expected["xllm.prefill-attention"] == expected["xllm.decode-attention"] == 360


def test_each_rank_is_counted_by_itself() -> None:
    entries = [entry("xllm.swiglu", 36, 0), entry("xllm.swiglu", 20, 1), entry("xllm.swiglu", 16, 1), entry(None, 9, 1)]
    lines = completeness(WORKLOAD, "xllm", entries, {1: 1, 0: 1})
    assert [line for line in lines if line["callsite"] == "xllm.swiglu"] == [
        {"rank": 0, "callsite": "xllm.swiglu", "expected_calls": 36, "seen_calls": 36},
        {"rank": 1, "callsite": "xllm.swiglu", "expected_calls": 36, "seen_calls": 36},
    ]
    assert {line["callsite"] for line in lines if line["seen_calls"] == 0 and line["rank"] == 0} == {
        site["id"] for site in WORKLOAD["callsites"] if site["arm"] == "xllm"
    } - {"xllm.swiglu"}


def test_an_entry_without_a_rank_is_the_only_ranks() -> None:
    lines = completeness(WORKLOAD, "xllm", [entry("xllm.swiglu", 72)], {0: 2})
    assert {"callsite": "xllm.swiglu", "expected_calls": 72, "seen_calls": 72} in lines
