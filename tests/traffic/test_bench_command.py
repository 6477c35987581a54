"""`akf ingest bench`: one document out, a canonical file, and nothing partial."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support import benchmarks
from tests.support.benchmarks import aiperf, steady, write
from tests.support.cli import inside

from akf.contracts.canonical import digest, parse_canonical
from akf.contracts.schemas import validate
from akf.traffic.bench import ingest

RUN = steady()
SHARED = Path(os.environ.get("AKF_SHARED_DATA") or Path(__file__).parents[3] / "shared" / "data")
FOLDERS = {"vllm_bench": 3, "sglang_bench": 1, "evalscope": 1, "aiperf": 1}


if SHARED.is_dir():  # a second pass over real files, where they are

    @pytest.mark.parametrize(("name", "results"), FOLDERS.items())
    def test_real_results_are_read_and_their_figures_are_those_of_their_detail(name: str, results: int) -> None:
        found = ingest([SHARED / name]).artifact["results"]
        assert len(found) == results
        for result in found:
            assert not [remark for remark in result["remarks"] if remark["name"].endswith("disagrees")]
            assert all(abs(metric.get("printed_difference_ns", 0)) <= 1 for metric in result["metrics"])


def test_the_file_is_canonical_and_of_its_kind(tmp_path: Path) -> None:
    source, out = write(tmp_path / "a.json", benchmarks.vllm(RUN)), tmp_path / "new" / "benchmark.json"
    answer = inside("ingest", "bench", source, "--out", out, "--id", "decode", "--data-class", "public").accepted()
    data = out.read_bytes()
    assert answer.document["digest"] == digest(data)
    document = parse_canonical(data, str(out))
    assert validate(document, "ServingBenchmark") == []
    assert (document.value["id"], document.value["data_class"]) == ("decode", "public")
    assert "artifact" not in answer.document
    (summary,) = answer.document["results"]
    assert (summary["sent"], summary["completed"], summary["failed"]) == (24, 24, 0)
    assert inside("validate", out).accepted().document["valid"] is True


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    source, out = write(tmp_path / "a.json", benchmarks.vllm(RUN)), tmp_path / "out.json"
    out.write_text("mine")
    inside("ingest", "bench", source, "--out", out).refused(5)
    assert out.read_text() == "mine"


def test_nothing_is_written_when_one_file_is_malformed(tmp_path: Path) -> None:
    write(tmp_path / "in.json", benchmarks.vllm(RUN))
    write(tmp_path / "bad.json", benchmarks.vllm(RUN, failed=1))
    before = sorted(tmp_path.iterdir())
    answer = inside("ingest", "bench", tmp_path, "--out", tmp_path / "out.json").refused(1)
    assert answer.codes == {"AKF-F205"}
    assert sorted(tmp_path.iterdir()) == before


def test_quantiles_may_be_chosen(tmp_path: Path) -> None:
    source = write(tmp_path / "a.json", benchmarks.vllm(steady(400, tokens=2)))
    answer = inside("ingest", "bench", source, "--quantile", "0.975", "--quantile", "0.25").accepted()
    found = answer.document["artifact"]["results"][0]["metrics"]
    assert {m["statistic"] for m in found if m["recomputed"] and m["concept"] == "ttft"} >= {"p25", "p97.5"}


@pytest.mark.parametrize(
    "words",
    [
        ("--quantile", "99"), ("--quantile", "1/2"), ("--quantile", "x"), ("--quantile", "0"),
        ("--quantile", ".999999999"),
        ("--data-class", "secret"), ("--id", "A B"), ("--compare",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_senseless_option_is_a_usage_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    source = write(tmp_path / "a.json", benchmarks.vllm(RUN))
    inside("ingest", "bench", source, *words).refused(2)


def test_two_results_side_by_side_the_first_named_first(tmp_path: Path) -> None:
    old = write(tmp_path / "z-old.json", benchmarks.vllm(RUN))
    new = write(tmp_path / "a-new.json", benchmarks.vllm([r._replace(ttft_ns=r.ttft_ns // 2) for r in RUN]))
    answer = inside("ingest", "bench", old, new, "--compare").accepted()
    comparison = answer.document["comparison"]
    sources = {result["id"]: result["source"] for result in answer.document["results"]}
    assert (sources[comparison["a"]], sources[comparison["b"]]) == ("z-old.json", "a-new.json")
    change = next(p for p in comparison["pairs"] if (p["concept"], p["statistic"]) == ("ttft", "max"))
    assert change["change_ratio"] == 0.5


def test_two_parts_of_one_run_are_no_two_sides(tmp_path: Path) -> None:
    folder = aiperf(tmp_path / "a", RUN)
    parts = [folder / "profile_export_aiperf.json", folder / "profile_export.jsonl"]
    assert inside("ingest", "bench", *parts, "--compare").refused(2).codes == {"AKF-F212"}
    assert inside("ingest", "bench", folder, folder, "--compare").accepted().document["comparison"]["comparable"]


def test_a_path_with_two_runs_has_no_side(tmp_path: Path) -> None:
    both = write(tmp_path / "a.json", benchmarks.vllm(RUN), benchmarks.vllm(RUN))
    other = write(tmp_path / "b.json", benchmarks.vllm(RUN))
    inside("ingest", "bench", both, other, "--compare").refused(2)
