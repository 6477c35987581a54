"""Traces of torch's profiler as Captures: by hand, whatever their order, all ranks together."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.traces import (
    Event,
    array,
    collective,
    kernel,
    kineto,
    launch,
    layers,
    operator,
    step,
    two_steps,
    write,
)

from akf.contracts.canonical import jcs
from akf.contracts.loader import parse
from akf.contracts.problems import AkfError, InvalidError, UsageError
from akf.contracts.schemas import validate
from akf.traffic.profiles import Options
from akf.traffic.torch_profile import ingest

OPTIONS = Options(id="x", title=None, data_class="internal")


def captured(folder: Path, *traces: str) -> dict[str, Any]:
    """The Capture of some traces, which is valid."""
    paths = [write(folder, text, f"{number}.json") for number, text in enumerate(traces)]
    capture = ingest(paths, OPTIONS)
    assert validate(parse(jcs(capture), "capture.json"), "Capture") == []
    for line in capture["breakdown"]:
        lines = ("computing_ns", "communication_ns", "waiting_ns", "host_gap_ns", "idle_ns")
        assert line["step_ns"] == sum(line["steps_ns"]) == sum(line[name] for name in lines)
    return capture


def test_a_capture_by_hand(tmp_path: Path) -> None:
    capture = captured(tmp_path, kineto(two_steps()))
    assert (capture["platform"], capture["clock"]) == ("cuda", "unknown")
    assert capture["breakdown"] == [
        {
            "rank": 0, "steps": 2, "steps_ns": [50_000, 35_000], "step_ns": 85_000, "bounds": "profiler",
            "launches": 6, "computing_ns": 19_000, "communication_ns": 15_000, "waiting_ns": 0, "overlapped_ns": 0,
            "host_gap_ns": 10_000, "idle_ns": 41_000,
            "steps_lines": {
                "computing_ns": [10_000, 9_000], "communication_ns": [15_000, 0], "waiting_ns": [0, 0],
                "host_gap_ns": [10_000, 0], "idle_ns": [15_000, 26_000],
            },
        }
    ]  # fmt: skip
    product = next(entry for entry in capture["entries"] if entry["calls"] == 2)
    assert (product["kernel"], product["op_type"]) == ("sm90_gemm_bf16", "aten::mm")
    assert (product["time_ns"], product["exposed_ns"], product["longest_ns"]) == (12_000, 8_000, 6_000)
    assert product["inputs"] == [
        {"shape": [64, 256], "dtype": "bfloat16"}, {"shape": [256, 512], "dtype": "bfloat16"},
    ]  # fmt: skip
    assert [entry["graph"] for entry in capture["entries"]].count("graph") == 2


def test_the_order_of_events_and_of_traces_does_not_matter(tmp_path: Path) -> None:
    events = two_steps()
    whole = captured(tmp_path / "whole", kineto(events), kineto(events, rank=1))
    shuffled = random.Random(7).sample(events, len(events))
    other = captured(tmp_path / "other", kineto(shuffled, rank=1), kineto(shuffled))
    assert jcs(other | {"sources": []}) == jcs(whole | {"sources": []})
    again = captured(tmp_path / "again", kineto(events, rank=1), kineto(events))
    assert jcs(again) == jcs(whole)


def test_a_rank_that_waits_in_a_collective(tmp_path: Path) -> None:
    others = [event for event in two_steps() if "nccl" not in str(event["name"])]
    late = [*others, collective(47_000, 3_000, 4, 13)]
    capture = captured(tmp_path, kineto(two_steps()), kineto(late, rank=1))
    assert [line["waiting_ns"] for line in capture["breakdown"]] == [12_000, 0]


def test_without_launches_every_gap_is_idle_and_the_capture_says_so(tmp_path: Path) -> None:
    blind = [event for event in two_steps() if event.get("cat") != "cuda_runtime" and "Step" not in str(event["name"])]
    (line,) = captured(tmp_path, kineto(blind))["breakdown"]
    assert (line["bounds"], line["launches"], line["host_gap_ns"]) == ("window", 0, 0)
    assert line["step_ns"] == 60_000  # 10 to 70
    assert line["idle_ns"] == 60_000 - 10_000 - 15_000 - 9_000


def test_two_traces_of_one_rank_add_up(tmp_path: Path) -> None:
    later = [event | {"ts": int(str(event["ts"]).split(".", maxsplit=1)[0]) + 1_000_000} for event in two_steps()]
    one, two = captured(tmp_path / "one", kineto(two_steps())), captured(tmp_path / "two", kineto(later))
    both = captured(tmp_path / "both", kineto(two_steps()), kineto(later))
    for name in ("step_ns", "computing_ns", "host_gap_ns", "idle_ns", "steps", "launches"):
        assert both["breakdown"][0][name] == one["breakdown"][0][name] + two["breakdown"][0][name]
    times = [sum(entry["time_ns"] for entry in capture["entries"]) for capture in (one, two, both)]
    assert times[2] == times[0] + times[1]


def test_one_trace_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        captured(tmp_path, kineto(two_steps()), kineto(two_steps()))
    assert caught.value.problems[0].code == "AKF-F129"


CPU = [step(0, 0, 20_000), operator(1, "aten::mm", 2_000, 10_000)]


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (two_steps(), CPU, "the platform is cuda in FOLDER/0.json and the platform is host in FOLDER/1.json"),
        (two_steps(), [kernel("k", 0, 5, 1), launch(1, 0)], "marked in FOLDER/0.json and steps are not marked in"),
    ],
)
def test_traces_that_do_not_belong_together(tmp_path: Path, one: list[Event], other: list[Event], says: str) -> None:
    with pytest.raises(InvalidError) as caught:
        captured(tmp_path, kineto(one), kineto(other, rank=1))
    (problem,) = caught.value.problems
    assert problem.code == "AKF-F156"
    assert says.replace("FOLDER", str(tmp_path)) in problem.message


def test_all_traces_are_looked_at_before_any_is_refused(tmp_path: Path) -> None:
    bad = [*two_steps(), kernel("k", 1, 1, 1) | {"dur": -1}]
    with pytest.raises(InvalidError) as caught:
        captured(tmp_path, kineto(bad), kineto(bad, rank=1))
    assert [problem.file for problem in caught.value.problems] == [str(tmp_path / "0.json"), str(tmp_path / "1.json")]


def test_the_cpu_is_a_platform_of_its_own(tmp_path: Path) -> None:
    capture = captured(tmp_path, kineto(CPU, rank=None))
    assert capture["platform"] == "host"
    (line,) = capture["breakdown"]
    assert (line["computing_ns"], line["host_gap_ns"], line["idle_ns"]) == (10_000, 2_000, 8_000)


def test_sources_are_named_by_rank(tmp_path: Path) -> None:
    capture = captured(tmp_path, kineto(two_steps(), rank=3))
    assert [source["name"] for source in capture["sources"]] == ["rank3/trace.json"]
    assert {setting["name"] for setting in capture["tool"]["settings"]} == {"device", "record_shapes"}


def test_traces_of_a_folder_are_found_by_name_or_beginning(tmp_path: Path) -> None:
    write(tmp_path, kineto(two_steps()), "worker0.1736.pt.trace.json.gz")
    write(tmp_path, kineto(two_steps(), rank=1), "deeper/rank1.json")
    write(tmp_path, '{"config": {"traceEvents": false}}', "config.json.txt")
    write(tmp_path, '{"model": 1}', "config.json")
    write(tmp_path, "[]", "other.json")
    assert [line["rank"] for line in ingest([tmp_path], OPTIONS)["breakdown"]] == [0, 1]


def test_a_damaged_packed_trace_is_not_overlooked(tmp_path: Path) -> None:
    write(tmp_path, kineto(two_steps()), "a.json")
    (tmp_path / "b.json.gz").write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(InvalidError) as caught:
        ingest([tmp_path], OPTIONS)
    (problem,) = caught.value.problems
    assert (problem.code, problem.file) == ("AKF-F151", str(tmp_path / "b.json.gz"))


def test_the_trace_of_torch_npu_is_told_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        ingest([write(tmp_path, array(layers()), "trace_view.json")], OPTIONS)
    (problem,) = caught.value.problems
    assert problem.code == "AKF-F157"
    assert problem.hint == "name the *_ascend_pt folder that it is in"


@pytest.mark.parametrize("options", [replace(OPTIONS, platform="ascend"), replace(OPTIONS, step_kernel="mm")])
def test_options_that_do_not_fit(tmp_path: Path, options: Options) -> None:
    path = write(tmp_path, kineto(two_steps()))
    with pytest.raises(UsageError):
        ingest([path], options)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AkfError) as caught:
        ingest([tmp_path / "gone.json"], OPTIONS)
    assert caught.value.problems[0].code == "AKF-F001"


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    ingest([write(tmp_path, kineto(two_steps()))], OPTIONS, lambda done, whole: seen.append((done, whole)))
    assert seen[-1][0] == seen[-1][1] == (tmp_path / "trace.json").stat().st_size
