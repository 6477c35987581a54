"""Figures are paired by meaning, never by what a tool calls them; what else differs is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support import benchmarks
from tests.support.benchmarks import Request, one, steady, with_failures, write

from akf.traffic.bench import compare

RUN = steady()


def pairs(comparison: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(pair["concept"], pair["statistic"]): pair for pair in comparison["pairs"]}


def refused(comparison: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(entry["concept"], entry["statistic"]): entry["reason"] for entry in comparison["refused"]}


def remarks(comparison: dict[str, Any]) -> set[str]:
    return {remark["name"] for remark in comparison["remarks"]}


@pytest.fixture
def vllm(tmp_path: Path) -> dict[str, Any]:
    return one(write(tmp_path / "vllm.json", benchmarks.vllm(RUN)))


def test_two_tools_that_mean_the_same_are_paired(tmp_path: Path, vllm: dict[str, Any]) -> None:
    other = one(write(tmp_path / "s.jsonl", benchmarks.sglang([r._replace(ttft_ns=2 * r.ttft_ns) for r in RUN])))
    comparison = compare(vllm, other)
    assert pairs(comparison)["ttft", "mean"]["change_ratio"] == pytest.approx(2.0, abs=1e-6)
    assert pairs(comparison)["ttft", "p50"]["method"] == "nearest_rank"
    assert pairs(comparison)["itl", "mean"]["change_ratio"] == 1.0
    assert comparison["comparable"] is True
    json.dumps(comparison)


def test_a_guidellm_time_per_output_token_is_never_compared_with_a_tpot(tmp_path: Path, vllm: dict[str, Any]) -> None:
    report = write(tmp_path / "benchmarks.json", benchmarks.guidellm(RUN, detailed=False))
    comparison = compare(vllm, one(report))
    assert not [pair for pair in comparison["pairs"] if pair["concept"] in {"tpot", "e2e_per_output_token"}]
    assert refused(comparison)["e2e_per_output_token", "mean"] == "only B has it"
    assert refused(comparison)["tpot", "mean"] == "weights differ: request and token"
    assert ("e2e", "mean") in pairs(comparison)


def test_quantiles_of_different_rules_are_not_compared(tmp_path: Path, vllm: dict[str, Any]) -> None:
    plain = one(write(tmp_path / "s.jsonl", benchmarks.sglang(RUN, detailed=False)))
    evalscope = one(benchmarks.evalscope(tmp_path / "e", RUN))
    assert refused(compare(plain, evalscope))["ttft", "p50"] == "quantile rules differ: linear and nearest_rank"
    assert pairs(compare(vllm, evalscope))["ttft", "p50"]["method"] == "nearest_rank"
    assert pairs(compare(vllm, plain))["ttft", "p50"]["method"] == "linear"


def test_populations_are_not_mixed(tmp_path: Path) -> None:
    a = one(benchmarks.aiperf(tmp_path / "a", RUN, records=False))
    b = one(benchmarks.aiperf(tmp_path / "b", RUN, records=False))
    b["metrics"] = [m for m in b["metrics"] if m["population"] == "includes_failures"]
    a["metrics"] = [m for m in a["metrics"] if m["population"] == "completed"]
    assert "populations differ: completed and includes_failures" in refused(compare(a, b))["ttft", "p50"]


def test_failures_over_the_bound_make_them_incomparable(tmp_path: Path, vllm: dict[str, Any]) -> None:
    failing = one(write(tmp_path / "f.json", benchmarks.vllm(with_failures(RUN, (1,)))))
    comparison = compare(vllm, failing)
    assert comparison["comparable"] is False
    assert remarks(comparison) == {"failed-share"}
    unknown = one(write(tmp_path / "s.jsonl", benchmarks.sglang(RUN, detailed=False)))
    assert "failures-unknown" in remarks(compare(vllm, unknown))
    assert compare(vllm, vllm)["comparable"] is True


def test_other_tokens_are_other_work(tmp_path: Path, vllm: dict[str, Any]) -> None:
    longer = one(write(tmp_path / "l.json", benchmarks.vllm(steady(tokens=5))))
    comparison = compare(vllm, longer)
    assert comparison["comparable"] is False
    assert remarks(comparison) == {"tokens"}


def test_another_load_is_said(tmp_path: Path, vllm: dict[str, Any]) -> None:
    faster = one(write(tmp_path / "l.json", benchmarks.vllm(RUN, request_rate=8.0, max_concurrency=None)))
    comparison = compare(vllm, faster)
    assert comparison["comparable"] is True
    assert [remark["text"] for remark in comparison["remarks"]] == [
        "process of the load differs: closed_loop and rate",
        "rate_per_s of the load differs: None and 8.0",
        "concurrency of the load differs: 4 and None",
    ]


def test_goodputs_need_equal_objectives_and_denominators(tmp_path: Path) -> None:
    def sglang(name: str, slo: float) -> dict[str, Any]:
        changes: dict[str, Any] = {"goodput_slos_ms": {"ttft": slo}, "request_goodput": 5.0, "slo_attainment": 0.5}
        return one(write(tmp_path / name, benchmarks.sglang(RUN, **changes)))

    silent = one(write(tmp_path / "v.json", benchmarks.vllm(RUN, request_goodput=4.0)))
    guidellm = one(write(tmp_path / "g.json", benchmarks.guidellm(RUN)))
    assert remarks(compare(sglang("a", 50), sglang("b", 50))) == set()
    assert "objectives" in remarks(compare(sglang("a", 50), sglang("c", 60)))
    assert "objectives" in remarks(compare(silent, sglang("a", 50)))
    assert "attainment" in remarks(compare(sglang("a", 50), guidellm))


def test_a_zero_has_no_ratio(tmp_path: Path) -> None:
    gapless = [Request(r.ttft_ns, (0, *r.gaps_ns[1:])) for r in RUN]
    result = one(write(tmp_path / "a.json", benchmarks.vllm(gapless)))
    assert pairs(compare(result, result))["itl", "min"]["change_ratio"] is None
