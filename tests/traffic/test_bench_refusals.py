"""Malformed results: a problem with its line, and nothing is made. Each beside the result that is fine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import benchmarks
from tests.support.benchmarks import steady, write

from akf.contracts.problems import InvalidError, Problem
from akf.traffic import foreign
from akf.traffic.bench import ingest

RUN = steady()


def refusal(*paths: Path) -> list[Problem]:
    with pytest.raises(InvalidError) as caught:
        ingest(paths)
    return list(caught.value.problems)


def pretty(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1))
    return path


def line_of(path: Path, text: str) -> int:
    (found,) = [number for number, line in enumerate(path.read_text().split("\n"), 1) if text in line]
    return found


class TestSyntax:
    def text(self) -> str:
        return json.dumps(benchmarks.vllm(RUN), indent=1)

    @pytest.mark.parametrize(
        ("code", "change"),
        [
            ("AKF-S002", lambda text: "\ufeff" + text),
            ("AKF-S004", lambda text: text[: len(text) // 2]),
            ("AKF-S006", lambda text: text.replace('"failed": 0', '"completed": 24')),
            ("AKF-S007", lambda text: text.replace('"failed": 0', '"failed": NaN')),
            ("AKF-S007", lambda text: text.replace('"failed": 0', '"failed": -Infinity')),
            ("AKF-S011", lambda text: text.replace('"failed": 0', '"failed": ' + "[" * 70 + "]" * 70)),
            ("AKF-S001", lambda _: " \n"),
        ],
        ids=["bom", "cut", "key-twice", "nan", "minus-infinity", "deep", "empty"],
    )
    def test_what_is_no_json_is_one_problem_with_its_line(
        self, tmp_path: Path, code: str, change: Callable[[str], str]
    ) -> None:
        path = tmp_path / "a.json"
        path.write_text(change(self.text()))
        (problem,) = refusal(path)
        assert problem.code == code
        assert problem.line is not None
        path.write_text(self.text())
        assert ingest([path]).artifact["results"]

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(self.text().encode().replace(b"vllm", b"vll\xff", 1))
        assert [(p.code, p.line) for p in refusal(path)] == [("AKF-S003", 3)]

    def test_the_second_of_two_appended_runs_has_its_own_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", benchmarks.vllm(RUN), benchmarks.vllm(RUN))
        path.write_text(path.read_text()[:-20])
        (problem,) = refusal(path)
        assert (problem.code, problem.line) == ("AKF-S004", 2)

    def test_infinity_is_read_only_where_its_tool_writes_it(self, tmp_path: Path) -> None:
        assert {
            p.code for p in refusal(write(tmp_path / "a.json", benchmarks.vllm(RUN, request_rate=float("inf"))))
        } == {"AKF-S007"}
        fine = write(tmp_path / "b.jsonl", benchmarks.sglang(RUN, request_rate=float("inf")))
        assert ingest([fine]).artifact["results"]
        wrong = write(tmp_path / "c.jsonl", benchmarks.sglang(RUN, mean_ttft_ms=float("inf")))
        assert {p.code for p in refusal(wrong)} == {"AKF-F201"}

    def test_a_large_file_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path / "a.json", benchmarks.vllm(RUN))
        monkeypatch.setattr(foreign, "MAX_BYTES", path.stat().st_size)
        assert ingest([path]).artifact["results"]
        monkeypatch.setattr(foreign, "MAX_BYTES", path.stat().st_size - 1)
        assert [p.code for p in refusal(path)] == ["AKF-F200"]


class TestValues:
    @pytest.mark.parametrize(
        ("key", "value", "says"),
        [
            ("duration", "12,5", "12,5"),
            ("duration", -1.0, "no duration"),
            ("duration", 1e12, "longer"),
            ("completed", 23.5, "not a count"),
            ("completed", -3, "not a count"),
            ("completed", True, "not a number"),
            ("mean_ttft_ms", "41.5", "not a time"),
            ("p99_itl_ms", -0.1, "no duration"),
            ("request_throughput", [1], "not a number"),
            ("max_concurrency", 1.5, "not a count"),
        ],
    )
    def test_a_wrong_value_is_named_with_its_line(self, tmp_path: Path, key: str, value: Any, says: str) -> None:
        path = pretty(tmp_path / "a.json", benchmarks.vllm(RUN, detailed=False, latencies=..., **{key: value}))
        (problem,) = refusal(path)
        assert problem.code == "AKF-F201"
        assert says in problem.message
        assert problem.line == line_of(path, f'"{key}":')
        assert problem.pointer == f"/{key}"

    def test_a_missing_value_is_named(self, tmp_path: Path) -> None:
        path = pretty(tmp_path / "a.json", benchmarks.vllm(RUN, completed=None))
        (problem,) = refusal(path)
        assert "completed is missing" in problem.message

    @pytest.mark.parametrize("key", ["errors", "ttfts", "itls", "output_lens", "latencies"])
    def test_arrays_of_unequal_length_are_refused(self, tmp_path: Path, key: str) -> None:
        value = benchmarks.vllm(RUN)
        value[key] = value[key][:-1]
        problems = refusal(pretty(tmp_path / "a.json", value))
        assert {problem.code for problem in problems} == {"AKF-F204"}
        assert any(key in problem.message for problem in problems)

    def test_counts_that_do_not_add_up_are_refused(self, tmp_path: Path) -> None:
        (problem,) = refusal(pretty(tmp_path / "a.json", benchmarks.vllm(RUN, failed=2)))
        assert (problem.code, problem.found, problem.expected) == ("AKF-F205", 26, 24)
        assert [p.code for p in refusal(pretty(tmp_path / "b.json", benchmarks.sglang(RUN, completed=25)))] == [
            "AKF-F205"
        ]

    def test_a_time_inside_an_array_is_found(self, tmp_path: Path) -> None:
        value = benchmarks.vllm(RUN)
        value["ttfts"][5] = -0.001
        (problem,) = refusal(pretty(tmp_path / "a.json", value))
        assert problem.pointer == "/ttfts/5"
        assert problem.message.startswith("ttfts/5: ")
        value["ttfts"][5] = 9.0
        (problem,) = refusal(pretty(tmp_path / "a.json", value))
        assert "before its first token" in problem.message

    def test_all_problems_are_listed_up_to_a_limit(self, tmp_path: Path) -> None:
        value = benchmarks.vllm(RUN) | {f"p{n}_ttft_ms": "x" for n in range(1, 99)}
        problems = refusal(pretty(tmp_path / "a.json", value))
        assert len(problems) == 51
        assert "more problems are not listed" in next(p for p in problems if p.code == "AKF-F211").message


class TestUnits:
    @pytest.mark.parametrize(("unit", "code"), [("tokens", "AKF-F203"), ("minutes", "AKF-F203"), (None, "AKF-F202")])
    def test_aiperf_s_unit_beside_the_value(self, tmp_path: Path, unit: str | None, code: str) -> None:
        entry = {"avg": 50.0} | ({} if unit is None else {"unit": unit})
        folder = benchmarks.aiperf(tmp_path / "a", RUN, time_to_first_token=entry)
        (problem,) = refusal(folder)
        assert problem.code == code
        start = line_of(folder / "profile_export_aiperf.json", '"time_to_first_token": {')
        assert problem.line == (start if unit is None else start + 2)

    @pytest.mark.parametrize(
        ("cell", "code"),
        [("2500.0", "AKF-F202"), (2500.0, "AKF-F202"), ("2500.0 token/s", "AKF-F203"), ("2,5 s", "AKF-F201")],
    )
    def test_aisbench_s_duration_is_refused_when_it_is_ambiguous(self, tmp_path: Path, cell: Any, code: str) -> None:
        folder = benchmarks.aisbench(tmp_path / "a", RUN, changes={"Benchmark Duration": {"total": cell}})
        (problem,) = refusal(folder)
        assert problem.code == code
        assert problem.line is not None

    def test_a_nightly_result_has_lost_its_units(self, tmp_path: Path) -> None:
        metrics = {"Benchmark_Duration": 1234.5, "Output_Token_Throughput(OTT)": 3264.3}
        value = {"name": "x", "metrics": metrics, "test_input": {}, "target": {}, "pass_fail": "pass"}
        path = pretty(tmp_path / "a.json", value)
        (problem,) = refusal(path)
        assert (problem.code, problem.line) == ("AKF-F202", line_of(path, "Benchmark_Duration"))

    def test_a_comma_in_a_table_shifts_the_row(self, tmp_path: Path) -> None:
        folder = benchmarks.aisbench(tmp_path / "a", RUN)
        lines = (folder / "gsm8k.csv").read_text().splitlines()
        lines[2] = lines[2].replace(".", ",", 1)
        (folder / "gsm8k.csv").write_text("\n".join(lines))
        (problem,) = refusal(folder)
        assert (problem.code, problem.line) == ("AKF-F207", 3)

    @pytest.mark.parametrize(
        ("old", "new", "code", "line"),
        [
            ("Average", '"Average', "AKF-F207", None),
            ("Average", "A" * 200_000, "AKF-F207", 1),
            (",24", "," + "9" * 5_000, "AKF-F201", 2),
            (",24", ",24.5", "AKF-F201", 2),
        ],
        ids=["open-quote", "endless-name", "endless-count", "broken-count"],
    )
    def test_a_table_that_cannot_be_read_is_refused(
        self, tmp_path: Path, old: str, new: str, code: str, line: int | None
    ) -> None:
        folder = benchmarks.aisbench(tmp_path / "a", RUN)
        text = (folder / "gsm8k.csv").read_text()
        (folder / "gsm8k.csv").write_text(text.replace(old, new, 1))
        (problem,) = refusal(folder)
        assert problem.code == code
        assert line in {None, problem.line}

    def test_a_cell_without_a_unit_is_named_with_its_line(self, tmp_path: Path) -> None:
        folder = benchmarks.aisbench(tmp_path / "a", RUN)
        text = (folder / "gsm8k.csv").read_text()
        (folder / "gsm8k.csv").write_text(text.replace(" ms", "", 1))
        (problem,) = refusal(folder)
        assert (problem.code, problem.line) == ("AKF-F202", 2)


class TestFiles:
    def test_an_unknown_file_is_told_what_was_looked_for(self, tmp_path: Path) -> None:
        (problem,) = refusal(pretty(tmp_path / "a.json", {"ttft": 1}))
        assert problem.code == "AKF-F208"
        assert problem.hint is not None
        assert "guidellm benchmark: metadata.guidellm_version, benchmarks" in problem.hint

    def test_a_file_that_fits_two_tools_is_nobody_s(self, tmp_path: Path) -> None:
        value = benchmarks.vllm(RUN, input_throughput="1")
        (problem,) = refusal(pretty(tmp_path / "a.json", value))
        assert "vllm bench serve and of sglang.bench_serving" in problem.message

    @pytest.mark.parametrize("kind", ["vllm", "sglang", "guidellm"])
    def test_an_array_around_results_is_no_result(self, tmp_path: Path, kind: str) -> None:
        value = getattr(benchmarks, kind)(RUN)
        assert [p.code for p in refusal(pretty(tmp_path / "a.json", [value]))] == ["AKF-F208"]

    @pytest.mark.parametrize(
        ("kind", "part"),
        [
            ("evalscope", "benchmark_summary.json"), ("evalscope", "benchmark_percentile.json"),
            ("aiperf", "profile_export_aiperf.json"), ("aisbench", "gsm8k.json"),
        ],
    )  # fmt: skip
    def test_a_part_of_a_run_is_one_object_and_one_document(self, tmp_path: Path, kind: str, part: str) -> None:
        folder = getattr(benchmarks, kind)(tmp_path / "a", RUN)
        path = folder / part
        whole = path.read_text().rstrip()
        path.write_text(f"{whole}\n{whole}\n")
        (problem,) = refusal(folder)
        assert (problem.code, problem.line) == ("AKF-F206", whole.count("\n") + 2)
        path.write_text(whole[1:-1] if whole.startswith("[") else f"[{whole}]")
        assert refusal(path)

    def test_a_file_named_by_itself_is_refused_also_inside_a_folder_that_is_named(self, tmp_path: Path) -> None:
        write(tmp_path / "a.json", benchmarks.vllm(RUN))
        other = pretty(tmp_path / "b.json", {"ttft": 1})
        assert ingest([tmp_path]).ignored == ["b.json"]
        assert refusal(tmp_path, other) == refusal(other, tmp_path)

    @pytest.mark.parametrize("header", ["Performance Parameters,Stages,N", "Performance,Stage,N", "", '"'])
    def test_another_table_is_nobody_s(self, tmp_path: Path, header: str) -> None:
        path = tmp_path / "a.csv"
        path.write_text(f"{header}\nTTFT,total,1\n")
        assert [p.code for p in refusal(path)] == ["AKF-F208"]

    def test_a_folder_without_any_result_is_refused(self, tmp_path: Path) -> None:
        pretty(tmp_path / "a.json", {"ttft": 1})
        (problem,) = refusal(tmp_path)
        assert problem.code == "AKF-F208"

    def test_a_database_with_pickles_is_never_opened(self, tmp_path: Path) -> None:
        folder = benchmarks.evalscope(tmp_path / "a", RUN)
        assert [p.code for p in refusal(folder / "benchmark_data.db")] == ["AKF-F210"]
        assert ingest([folder]).artifact["results"]

    def test_latencies_without_the_counts_are_refused(self, tmp_path: Path) -> None:
        folder = benchmarks.evalscope(tmp_path / "a", RUN)
        assert [p.code for p in refusal(folder / "benchmark_percentile.json")] == ["AKF-F206"]
        other = benchmarks.aisbench(tmp_path / "b", RUN)
        assert [p.code for p in refusal(other / "gsm8k.csv")] == ["AKF-F206"]

    def test_the_same_part_twice_in_a_folder_is_two_runs(self, tmp_path: Path) -> None:
        folder = benchmarks.evalscope(tmp_path / "a", RUN)
        (folder / "copy.json").write_bytes((folder / "benchmark_summary.json").read_bytes())
        assert [p.code for p in refusal(folder)] == ["AKF-F206"]

    def test_lines_that_are_not_the_summary_s_are_refused(self, tmp_path: Path) -> None:
        folder = benchmarks.aiperf(tmp_path / "a", RUN)
        lines = (folder / "profile_export.jsonl").read_text().splitlines(keepends=True)
        (folder / "profile_export.jsonl").write_text("".join(lines[:-1]))
        assert [p.code for p in refusal(folder)] == ["AKF-F205"]

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        assert [p.code for p in refusal(tmp_path / "a.json")] == ["AKF-F001"]

    def test_problems_of_all_files_are_said_at_once(self, tmp_path: Path) -> None:
        pretty(tmp_path / "a.json", benchmarks.vllm(RUN, failed=2))
        pretty(tmp_path / "b.json", benchmarks.vllm(RUN, completed=None))
        pretty(tmp_path / "c.json", benchmarks.vllm(RUN))
        assert [Path(p.file or "").name for p in refusal(tmp_path)] == ["a.json", "b.json"]
