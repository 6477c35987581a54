"""Each tool's layouts: what is read, in which unit, of which requests, and what it means."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support import benchmarks
from tests.support.benchmarks import Request, metric, one, steady, with_failures, write

from akf.traffic.bench import ingest

RUN = steady()
TTFTS = sorted(request.ttft_ns for request in RUN)
GAPS = sorted(gap for request in RUN for gap in request.gaps_ns)


def identity(result: dict[str, object]) -> dict[str, tuple[str, str]]:
    facts = result["identity"]
    assert isinstance(facts, list)
    return {fact["name"]: (fact["value"], fact["stated_by"]) for fact in facts}


class TestVllm:
    def test_times_are_recomputed_from_the_detail(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.json", benchmarks.vllm(RUN)))
        assert metric(result, "ttft", "min")["value_ns"] == TTFTS[0]
        assert metric(result, "ttft", "p50", recomputed=True) == {
            "concept": "ttft", "statistic": "p50", "value_ns": TTFTS[11], "method": "nearest_rank",
            "population": "completed", "weight": "request", "samples": 24, "recomputed": True,
        }  # fmt: skip
        assert metric(result, "itl", "max")["samples"] == 72
        mean = metric(result, "tpot", "mean")
        assert mean["value_ns"] == round(Fraction(sum(sum(r.gaps_ns) for r in RUN), 72))
        assert abs(mean["printed_difference_ns"]) <= 1
        assert result["duration_ns"] == 2_500_000_000
        assert result["load"] == {"process": "closed_loop", "rate_per_s": None, "concurrency": 4, "burstiness": 1.0}
        assert result["tokens"]["output_mean_tokens"] == 4.0
        assert result["remarks"] == []

    def test_the_printed_quantile_of_another_rule_is_a_figure_of_its_own(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.json", benchmarks.vllm(RUN)))
        assert metric(result, "ttft", "p50", method="linear")["value_ns"] == (TTFTS[11] + TTFTS[12]) // 2

    def test_failed_requests_are_counted_and_none_of_their_times_is_used(self, tmp_path: Path) -> None:
        clean = one(write(tmp_path / "a.json", benchmarks.vllm(RUN)))
        mixed = one(write(tmp_path / "b.json", benchmarks.vllm(with_failures(RUN, (0, 7, 25)))))
        assert mixed["requests"] == {"sent": 27, "completed": 24, "failed": 3, "failed_from": "printed"}
        assert mixed["metrics"] == clean["metrics"]

    def test_an_older_file_has_no_failed_and_its_errors_are_counted(self, tmp_path: Path) -> None:
        value = benchmarks.vllm(with_failures(RUN, (3,)), failed=...)
        result = one(write(tmp_path / "a.json", value))
        assert result["requests"]["failed"] == 1
        assert result["requests"]["failed_from"] == "errors"

    def test_without_detail_the_latencies_alone_still_give_the_end_to_end_times(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.json", benchmarks.vllm(RUN, detailed=False)))
        assert metric(result, "e2e", "max")["value_ns"] == max(r.e2e_ns for r in RUN)
        assert metric(result, "ttft", "mean")["recomputed"] is False
        assert metric(result, "ttft", "mean")["samples"] == 24
        assert metric(result, "tpot", "mean")["samples"] is None

    def test_without_error_texts_failures_cannot_be_told_apart(self, tmp_path: Path) -> None:
        value = benchmarks.vllm(with_failures(RUN, (3,)), errors=...)
        result = one(write(tmp_path / "a.json", value))
        assert not any(found["recomputed"] for found in result["metrics"])
        assert [remark["name"] for remark in result["remarks"]] == ["failures-not-separable"]

    def test_a_percentile_with_a_decimal_point_keeps_it(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.json", benchmarks.vllm(RUN)))
        entry = next(r for r in result["refused"] if (r["concept"], r["statistic"]) == ("ttft", "p99.9"))
        assert (entry["reason"], entry["samples"], entry["needed_samples"]) == ("too_few_samples", 24, 10_000)
        assert entry["printed_ns"] > TTFTS[-2]

    def test_metadata_may_replace_the_identity(self, tmp_path: Path) -> None:
        value = benchmarks.vllm(RUN, model_id="Other/Model", num_prompts="12", tp="8")
        result = one(write(tmp_path / "a.json", value))
        assert identity(result)["model"] == ("Other/Model", "replaceable")
        assert [remark["name"] for remark in result["remarks"]] == ["identity-replaced", "metadata"]

    def test_appended_runs_stay_apart(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", benchmarks.vllm(RUN), benchmarks.vllm(RUN[:20], request_rate=4.0))
        results = ingest([path]).artifact["results"]
        assert [(r["id"], r["position"], r["requests"]["completed"]) for r in results] == [
            ("run-1", 1, 24),
            ("run-2", 2, 20),
        ]
        assert results[1]["load"]["process"] == "rate"
        assert results[1]["load"]["rate_per_s"] == 4.0

    def test_a_run_in_which_nothing_completed_has_no_latency(self, tmp_path: Path) -> None:
        value = benchmarks.vllm([Request(0, (), failed=True)] * 5)
        result = one(write(tmp_path / "a.json", value))
        assert result["metrics"] == []
        assert {entry["reason"] for entry in result["refused"]} == {"no_request_completed"}
        assert result["requests"]["failed"] == 5

    def test_a_time_of_zero_is_no_measurement(self, tmp_path: Path) -> None:
        value = benchmarks.vllm([request._replace(ttft_ns=0) for request in RUN])
        result = one(write(tmp_path / "a.json", value))
        assert not [found for found in result["metrics"] if found["concept"] == "ttft"]
        assert {e["reason"] for e in result["refused"] if e["concept"] == "ttft"} == {"zero_is_no_measurement"}

    def test_a_printed_figure_that_its_own_detail_does_not_give_is_remarked(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.json", benchmarks.vllm(RUN, median_ttft_ms=1.0, p50_ttft_ms=1.0)))
        (remark,) = result["remarks"]
        assert remark["name"] == "printed-disagrees"
        assert "1000000 ns" in remark["text"]
        assert str((TTFTS[11] + TTFTS[12]) // 2) in remark["text"]

    def test_the_objectives_of_its_goodput_are_not_in_the_file(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.json", benchmarks.vllm(RUN, request_goodput=3.25)))
        assert result["goodput"] == {"objectives": None, "rate_per_s": 3.25}

    def test_offline_latency_and_throughput_are_not_serving_latencies(self, tmp_path: Path) -> None:
        latency = {
            "avg_latency": 0.3,
            "latencies": [0.1 * i for i in range(1, 21)],
            "percentiles": {"10": 0.2, "99": 2.0},
        }
        result = one(write(tmp_path / "latency.json", latency))
        assert {found["concept"] for found in result["metrics"]} == {"batch_e2e"}
        assert metric(result, "batch_e2e", "p50", recomputed=True)["value_ns"] == 1_000_000_000
        rates = {"elapsed_time": 10.0, "num_requests": 200, "total_num_tokens": 40_000}
        rates |= {"requests_per_second": 20.0, "tokens_per_second": 4000.0}
        result = one(write(tmp_path / "throughput.json", rates))
        assert result["tokens"]["total_tokens"] == 40_000
        assert result["metrics"] == []


class TestSglang:
    def test_failures_are_what_did_not_complete(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.jsonl", benchmarks.sglang(with_failures(RUN, (1, 2)))))
        assert result["requests"] == {"sent": 26, "completed": 24, "failed": 2, "failed_from": "errors"}
        assert metric(result, "ttft", "min")["value_ns"] == TTFTS[0]

    def test_a_bare_infinity_is_its_rate_without_bound(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", benchmarks.sglang(RUN))
        assert "Infinity" in path.read_text()
        assert one(path)["load"]["process"] == "closed_loop"

    def test_end_to_end_and_tpot_have_no_detail(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.jsonl", benchmarks.sglang(RUN)))
        assert metric(result, "e2e", "mean")["recomputed"] is False
        assert metric(result, "tpot", "mean")["recomputed"] is False
        assert metric(result, "itl", "mean")["recomputed"] is True

    def test_without_detail_failures_are_not_known(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.jsonl", benchmarks.sglang(RUN, detailed=False)))
        assert result["requests"] == {"sent": None, "completed": 24, "failed": None, "failed_from": None}

    def test_its_attainment_divides_by_the_requests_sent(self, tmp_path: Path) -> None:
        changes: dict[str, Any] = {
            "goodput_slos_ms": {"ttft": 50.5, "e2el": 300},
            "request_goodput": 5.0,
            "slo_attainment": 0.5,
        }
        result = one(write(tmp_path / "a.jsonl", benchmarks.sglang(RUN, **changes)))
        assert result["goodput"] == {
            "objectives": [
                {"concept": "e2e", "at_most_ns": 300_000_000}, {"concept": "ttft", "at_most_ns": 50_500_000},
            ],
            "rate_per_s": 5.0, "attainment_ratio": 0.5, "attainment_over": "sent",
        }  # fmt: skip

    def test_with_speculation_its_itl_is_another_concept(self, tmp_path: Path) -> None:
        changes: dict[str, Any] = {"backend": "sglang-oai", "accept_length": 2.5}
        result = one(write(tmp_path / "a.jsonl", benchmarks.sglang(RUN, detailed=False, **changes)))
        assert "itl" not in {found["concept"] for found in result["metrics"]}
        assert metric(result, "itl_per_token", "mean")["recomputed"] is False

    def test_facts_of_the_server_are_the_harness_s_own(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "a.jsonl", benchmarks.sglang(RUN)))
        assert identity(result)["model"] == ("Qwen3-8B", "harness")
        assert identity(result)["server-version"] == ("0.5.23", "harness")


class TestEvalscope:
    def test_a_folder_is_one_result(self, tmp_path: Path) -> None:
        result = one(benchmarks.evalscope(tmp_path / "parallel_4_number_24", RUN))
        assert result["harness"]["layout"] == "arguments+percentiles+summary"
        assert identity(result) == {
            "model": ("Qwen3-8B", "harness"), "tokenizer": ("tok", "harness"), "backend": ("openai", "harness"),
            "dataset": ("random", "harness"),
        }  # fmt: skip
        assert result["load"]["process"] == "closed_loop"
        assert metric(result, "ttft", "p50")["method"] == "nearest_rank"
        assert metric(result, "ttft", "p50")["value_ns"] == TTFTS[11]
        assert metric(result, "e2e", "max")["value_ns"] == round(max(r.e2e_ns for r in RUN), -5)
        assert "input_tokens_per_s" not in result["throughput"]

    def test_other_files_of_the_folder_are_passed_over_and_named(self, tmp_path: Path) -> None:
        found = ingest([benchmarks.evalscope(tmp_path / "a", RUN)])
        assert found.ignored == ["workload_throughput.json"]

    def test_runs_of_two_folders_are_two_results(self, tmp_path: Path) -> None:
        benchmarks.evalscope(tmp_path / "a" / "parallel_1", RUN)
        benchmarks.evalscope(tmp_path / "a" / "parallel_8", RUN[:22])
        results = ingest([tmp_path / "a"]).artifact["results"]
        assert sorted(result["requests"]["completed"] for result in results) == [22, 24]

    @pytest.mark.parametrize("key", ["TTFT (ms)", "Avg TTFT (ms)"])
    def test_its_keys_drift(self, tmp_path: Path, key: str) -> None:
        changes = {"Avg TTFT (ms)": ..., key: 50.29}
        result = one(benchmarks.evalscope(tmp_path / "a", RUN, **changes))
        assert metric(result, "ttft", "mean")["value_ns"] == 50_290_000

    def test_the_unit_is_the_one_in_the_key(self, tmp_path: Path) -> None:
        result = one(benchmarks.evalscope(tmp_path / "a", RUN, **{"Avg TTFT (ms)": ..., "Avg TTFT (s)": 0.05}))
        assert metric(result, "ttft", "mean")["value_ns"] == 50_000_000

    def test_minus_one_is_not_measured(self, tmp_path: Path) -> None:
        result = one(benchmarks.evalscope(tmp_path / "a", RUN, **{"Avg TTFT (ms)": -1}))
        assert not [m for m in result["metrics"] if (m["concept"], m["statistic"]) == ("ttft", "mean")]


class TestAiperf:
    def test_lines_and_summary_are_one_result(self, tmp_path: Path) -> None:
        result = one(benchmarks.aiperf(tmp_path / "a", with_failures(RUN, (0, 5))))
        assert result["harness"] == {"name": "aiperf", "version": "0.13.0", "layout": "records+summary"}
        assert result["requests"] == {
            "sent": 26,
            "completed": 24,
            "failed": 2,
            "failed_from": "errors",
            "incomplete": 0,
        }
        assert metric(result, "ttft", "min")["value_ns"] == TTFTS[0], "the warm-up does not count"
        assert metric(result, "itl", "mean")["samples"] == 72
        assert metric(result, "e2e", "p50", recomputed=True)["value_ns"] == sorted(r.e2e_ns for r in RUN)[11]
        assert result["remarks"] == []

    def test_a_clean_run_has_no_count_of_errors(self, tmp_path: Path) -> None:
        result = one(benchmarks.aiperf(tmp_path / "a", RUN, records=False))
        assert result["requests"] == {"sent": 24, "completed": 24, "failed": 0, "failed_from": "printed"}

    def test_adjusted_percentiles_include_failures(self, tmp_path: Path) -> None:
        result = one(benchmarks.aiperf(tmp_path / "a", RUN, records=False))
        assert metric(result, "ttft", "p50", population="includes_failures")["method"] == "as_printed"
        assert metric(result, "ttft", "p50", population="completed")["method"] == "linear"

    def test_the_unit_stands_beside_the_value(self, tmp_path: Path) -> None:
        entry = {"unit": "us", "avg": 52_625.5, "count": 24}
        result = one(benchmarks.aiperf(tmp_path / "a", RUN, records=False, time_to_first_token=entry))
        assert metric(result, "ttft", "mean")["value_ns"] == 52_625_500

    def test_its_goodput_has_its_objectives(self, tmp_path: Path) -> None:
        result = one(benchmarks.aiperf(tmp_path / "a", RUN))
        assert result["goodput"] == {
            "objectives": [{"concept": "ttft", "at_most_ns": 50_000_000}], "rate_per_s": 1.0, "attainment_ratio": 0.1,
            "attainment_over": "sent",
        }  # fmt: skip


class TestGuidellm:
    def test_its_inter_token_latency_is_tpot_weighted_by_tokens(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "benchmarks.json", benchmarks.guidellm(RUN, detailed=False)))
        assert metric(result, "tpot", "mean")["weight"] == "token"
        assert metric(result, "e2e_per_output_token", "mean")["weight"] == "token"
        assert metric(result, "e2e", "mean")["value_ns"] == round(Fraction(sum(r.e2e_ns for r in RUN), 24))

    def test_where_the_requests_are_the_unweighted_figures_are_recomputed(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "benchmarks.json", benchmarks.guidellm(RUN)))
        assert metric(result, "tpot", "p50", weight="request")["recomputed"] is True
        assert metric(result, "ttft", "p50")["printed_difference_ns"] == 0
        assert result["tokens"]["output_tokens"] == 96

    def test_a_sweep_is_several_results(self, tmp_path: Path) -> None:
        path = write(tmp_path / "benchmarks.json", benchmarks.guidellm(RUN, loads=3))
        results = ingest([path]).artifact["results"]
        assert [result["position"] for result in results] == [1, 2, 3]

    def test_a_sample_of_the_requests_is_not_taken_for_all(self, tmp_path: Path) -> None:
        value = benchmarks.guidellm(RUN)
        del value["benchmarks"][0]["requests"]["successful"][3:]
        result = one(write(tmp_path / "benchmarks.json", value))
        assert [remark["name"] for remark in result["remarks"]] == ["requests-sampled"]
        assert not any(found["recomputed"] for found in result["metrics"])

    def test_requests_without_a_first_token_are_zeros_in_its_ttft(self, tmp_path: Path) -> None:
        value = benchmarks.guidellm(RUN, detailed=False)
        value["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"]["min"] = 0.0
        result = one(write(tmp_path / "benchmarks.json", value))
        assert not [found for found in result["metrics"] if found["concept"] == "ttft"]
        assert {e["reason"] for e in result["refused"] if e["concept"] == "ttft"} == {"zero_is_no_measurement"}

    def test_failures_and_objectives(self, tmp_path: Path) -> None:
        result = one(write(tmp_path / "benchmarks.json", benchmarks.guidellm(with_failures(RUN, (2,)))))
        assert result["requests"] == {
            "sent": 25,
            "completed": 24,
            "failed": 1,
            "failed_from": "printed",
            "incomplete": 1,
        }
        assert result["goodput"]["objectives"] == [{"concept": "ttft", "at_most_ns": 50_000_000}]
        assert result["goodput"]["attainment_over"] == "evaluated"


class TestAisbench:
    def test_units_are_suffixes(self, tmp_path: Path) -> None:
        result = one(benchmarks.aisbench(tmp_path / "a", with_failures(RUN, (2,))))
        assert result["duration_ns"] == 2_500_000_000
        assert result["requests"]["failed"] == 1
        assert result["throughput"]["output_tokens_per_s"] == 3264.3388
        assert metric(result, "ttft", "min")["value_ns"] == TTFTS[0]
        assert metric(result, "ttft", "p50")["samples"] == 24

    def test_its_n_does_not_count_gaps(self, tmp_path: Path) -> None:
        result = one(benchmarks.aisbench(tmp_path / "a", RUN))
        assert metric(result, "itl", "mean")["samples"] is None

    def test_stages_stay_apart(self, tmp_path: Path) -> None:
        folder = benchmarks.aisbench(tmp_path / "a", RUN, stages=("stable", "total"))
        results = ingest([folder]).artifact["results"]
        assert [result["harness"]["layout"] for result in results] == ["common+table:stable", "common+table:total"]

    def test_seconds_and_milliseconds_are_told_apart(self, tmp_path: Path) -> None:
        folder = benchmarks.aisbench(tmp_path / "a", RUN, changes={"Benchmark Duration": {"total": "2.5 s"}})
        assert one(folder)["duration_ns"] == 2_500_000_000


def everything(folder: Path) -> Path:
    folder.mkdir()
    mixed = with_failures(RUN, (4,))
    write(folder / "vllm.json", benchmarks.vllm(mixed, note=benchmarks.PROMPT))
    write(folder / "sglang.jsonl", benchmarks.sglang(mixed, tag="http://10.1.2.3/x"))
    write(folder / "guidellm.json", benchmarks.guidellm(mixed))
    benchmarks.evalscope(folder / "evalscope", mixed)
    benchmarks.aiperf(folder / "aiperf", mixed)
    benchmarks.aisbench(folder / "aisbench", mixed)
    return folder


def test_no_text_host_path_or_user_is_kept(tmp_path: Path) -> None:
    artifact = json.dumps(ingest([everything(tmp_path / "a")]).artifact)
    for text in (*benchmarks.TEXTS, "alice", "10.1.2.3", "secret", "Service Unavailable", str(tmp_path)):
        assert text not in artifact


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"), ("/srv/alice/Qwen3-8B/", "Qwen3-8B"), ("C:\\alice\\Qwen3", "Qwen3"),
        ("qwen3:8b", "qwen3:8b"), ("10.1.2.3", None), ("10.1.2.3:8000", None), ("node-7.local:8000", None),
        ("[fe80::1]:80", None), ("http://node-7/v1", None), ("alice@node-7", None), ("\x1b[31mred", "\\x1b[31mred"),
    ],
)  # fmt: skip
def test_of_a_place_only_the_last_part_is_a_name_and_of_an_address_nothing(
    tmp_path: Path, text: str, kept: str | None
) -> None:
    result = one(write(tmp_path / "a.json", benchmarks.vllm(RUN, model_id=text)))
    assert identity(result).get("model", (None,))[0] == kept


def test_a_stage_s_name_cannot_paint_a_terminal(tmp_path: Path) -> None:
    result = one(benchmarks.aisbench(tmp_path / "a", RUN, stages=("to\x1btal",)))
    assert result["harness"]["layout"] == "common+table:to\\x1btal"


def test_a_file_with_two_names_has_the_same_one_in_any_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", benchmarks.vllm(RUN))
    link = tmp_path / "b.json"
    link.symlink_to(path)
    assert ingest([path, link]).artifact == ingest([link, path]).artifact


def test_the_same_files_give_the_same_artifact_in_any_order(tmp_path: Path) -> None:
    folder = everything(tmp_path / "a")
    parts = sorted(folder.iterdir())
    whole = ingest([folder])
    assert len(whole.artifact["results"]) == 6
    assert ingest(parts[::-1]).artifact == whole.artifact
    assert ingest([*parts, folder, parts[0]]).artifact == whole.artifact, "named twice, counted once"
