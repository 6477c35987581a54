"""Traces of torch's own profiler become device tasks, steps and launches, or one problem with a line."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from tests.support.traces import (
    EPOCH_NS,
    Event,
    Number,
    kernel,
    kineto,
    launch,
    operator,
    spanned,
    step,
    two_steps,
    us,
    write,
)

from akf.contracts.problems import InvalidError, Problem
from akf.traffic.events import Trace
from akf.traffic.gaps import host_gaps
from akf.traffic.intervals import COMMUNICATION, COMPUTING, sweep
from akf.traffic.kineto import Read, read
from akf.traffic.steps import cut
from akf.traffic.trouble import LISTED


def reading(folder: Path, events: list[Event], name: str = "trace.json", **head: object) -> Read:
    return read(Trace(write(folder, kineto(events, **head), name)))  # type: ignore[arg-type]


def problems(folder: Path, events: list[Event]) -> tuple[Problem, ...]:
    with pytest.raises(InvalidError) as caught:
        reading(folder, events)
    return caught.value.problems


def tasks(found: Read) -> list[dict[str, object]]:
    return found.tasks.drop("task").sort("start_ns", "kernel").to_dicts()


def test_tasks_with_their_operators_and_launches(tmp_path: Path) -> None:
    found = reading(tmp_path, two_steps())
    assert (found.platform, found.rank) == ("cuda", 0)
    copy, one, two, reduce, graph, last = tasks(found)
    assert (copy["core_type"], copy["op_type"], copy["kind"], copy["blocks"]) == (
        "MEMCPY", "aten::copy_", "computing", None,
    )  # fmt: skip
    assert (copy["input_shapes"], copy["input_dtypes"]) == ("64,256;", "float32;")
    assert one["kernel"] == two["kernel"] == "sm90_gemm_bf16"
    assert (one["core_type"], one["blocks"], one["op_type"]) == ("SM", 32, "aten::mm")
    assert (one["input_shapes"], one["input_dtypes"]) == ("64,256;256,512", "bfloat16;bfloat16")
    assert (one["start_ns"], one["duration_ns"], one["launch_ns"]) == (EPOCH_NS + 12_000, 6_000, EPOCH_NS + 8_000)
    assert (reduce["kind"], reduce["op_type"], reduce["input_shapes"], reduce["input_dtypes"]) == (
        "communication", "allreduce", "16384", "bfloat16",
    )  # fmt: skip
    assert (one["graph"], graph["graph"], last["graph"]) == (False, True, True)
    assert (graph["op_type"], graph["input_shapes"], last["launch_ns"]) == (None, None, EPOCH_NS + 50_000)


def test_steps_on_the_device_follow_the_launches(tmp_path: Path) -> None:
    found = reading(tmp_path, two_steps())
    assert found.steps.rows() == [
        (2, EPOCH_NS + 10_000, EPOCH_NS + 60_000),  # to the first task that was launched in step 3
        (3, EPOCH_NS + 60_000, EPOCH_NS + 95_000),  # to the end of the host's span, which is later than its tasks'
    ]


def test_the_lines_of_a_step_by_hand(tmp_path: Path) -> None:
    """Step 2: 10..20 computing (two streams overlap), 20..30 the host, 30..35 unknown, 35..50 NCCL, 50..60 unknown."""
    found = reading(tmp_path, two_steps())
    one_rank = pl.lit(0, pl.Int64).alias("rank")
    parts = cut(found.tasks, found.steps).with_columns(one_rank)
    kinds = {"computing": COMPUTING, "communication": COMMUNICATION}
    lines = sweep(
        parts.select(
            pl.col("step").alias("group"),
            pl.lit(0, pl.Int64).alias("key"),
            pl.col("kind").replace_strict(kinds, return_dtype=pl.Int64),
            "start_ns",
            end_ns=pl.col("start_ns") + pl.col("duration_ns"),
        )
    ).lines
    assert lines.select("group", "computing_ns", "communication_ns").rows() == [(2, 10_000, 15_000), (3, 9_000, 0)]
    gaps = host_gaps(parts, found.steps.with_columns(one_rank))
    # step 2: 20..30 before the collective's launch; 50..60 ends with a graph launched at 50, so nothing of it
    assert gaps.rows() == [(0, 2, 10_000), (0, 3, 0)]


def test_a_trace_without_marked_steps_has_none(tmp_path: Path) -> None:
    found = reading(tmp_path, [event for event in two_steps() if "ProfilerStep" not in str(event["name"])])
    assert found.steps.is_empty()
    assert len(found.tasks) == 6


def test_the_order_of_events_does_not_matter(tmp_path: Path) -> None:
    events = two_steps()
    whole = reading(tmp_path, events)
    for seed in range(5):
        shuffled = random.Random(seed).sample(events, len(events))
        other = reading(tmp_path, shuffled, f"{seed}.json.gz")
        assert tasks(other) == tasks(whole)
        assert other.steps.rows() == whole.steps.rows()


def test_capitalised_categories_of_old_torch(tmp_path: Path) -> None:
    new = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "cuda_runtime": "Runtime", "cpu_op": "Operator",
           "user_annotation": "Operator"}  # fmt: skip
    old = [event | {"cat": new[event["cat"]]} if event.get("cat") in new else event for event in two_steps()]
    before, after = reading(tmp_path, two_steps()), reading(tmp_path, old, "old.json")
    assert tasks(after) == tasks(before)
    assert after.steps.rows() == before.steps.rows()


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ([], "no call has its correlation"),
        ([launch(7, 1_000), launch(7, 2_000)], "two calls have it"),
        ([launch(7, 25_000)], "the call is later than its task"),
    ],
)
def test_a_launch_that_is_not_clear_is_unknown(tmp_path: Path, extra: list[Event], why: str) -> None:
    del why
    (task,) = tasks(reading(tmp_path, [kernel("k", 20_000, 1_000, 7), *extra]))
    assert (task["launch_ns"], task["graph"]) == (None, None)


def test_two_operators_with_one_id_are_no_evidence(tmp_path: Path) -> None:
    events = [
        kernel("k", 20_000, 1_000, 7, 5),
        operator(5, "aten::mm", 0, 10, [[1]], ["float"]),
        operator(5, "aten::add", 0, 10, [[1]], ["float"]),
    ]
    (task,) = tasks(reading(tmp_path, events))
    assert (task["op_type"], task["input_shapes"]) == (None, None)


def test_lists_of_tensors_and_what_is_no_tensor(tmp_path: Path) -> None:
    dims = [[[4, 8], [2]], [], [3, 1], []]
    kinds = ["TensorList", "ScalarList", "c10::Half", ""]
    events = [kernel("k", 20_000, 1_000, 7, 5), operator(5, "aten::cat", 0, 10, dims, kinds)]
    (task,) = tasks(reading(tmp_path, events))
    assert (task["input_shapes"], task["input_dtypes"]) == ("4,8;2;;3,1;", ";;;float16;")


def test_a_trace_of_the_cpu_counts_what_each_operator_did_itself(tmp_path: Path) -> None:
    events = [
        step(0, 0, 20_000),
        operator(1, "aten::linear", 2_000, 10_000, [[8, 256]], ["float"]),
        operator(2, "aten::addmm", 3_000, 8_000),
        operator(3, "aten::empty", 5_000, 1_000),
    ]
    found = reading(tmp_path, events, rank=None)
    assert (found.platform, found.rank) == ("host", None)
    assert found.steps.rows() == [(0, EPOCH_NS, EPOCH_NS + 20_000)]
    times = {
        name: (time, calls)
        for name, time, calls in cut(found.tasks, found.steps)
        .group_by("kernel")
        .agg(pl.col("duration_ns", "calls").sum())
        .rows()
    }
    assert times == {"aten::linear": (2_000, 1), "aten::addmm": (7_000, 1), "aten::empty": (1_000, 1)}
    assert set(found.tasks["core_type"]) == {"CPU"}
    gaps = host_gaps(
        cut(found.tasks, found.steps).with_columns(rank=pl.lit(0, pl.Int64)),
        found.steps.with_columns(rank=pl.lit(0, pl.Int64)),
    )
    assert gaps["host_gap_ns"].to_list() == [2_000]  # before the first operator; nothing is known of the time after


def test_nothing_of_the_machine_leaves_the_reader(tmp_path: Path) -> None:
    found = reading(tmp_path, two_steps(), hostname="worker-17")
    text = str(found.tasks.to_dicts()) + str(found.settings)
    assert dict(found.settings) == {"record_shapes": "1", "schemaVersion": "1", "device": "NVIDIA H200"}
    assert not any(word in text for word in ("/srv", "/tmp", "worker-17", "python3", "5940778F"))  # noqa: S108


@pytest.mark.parametrize(
    ("event", "code", "says"),
    [
        (kernel("k", 1, 1, 1) | {"dur": Number("-0.5")}, "AKF-F153", "its dur is negative"),
        (kernel("k", 1, 1, 1) | {"ts": Number("1.7364E+15")}, "AKF-F153", "its ts is written with an exponent"),
        (kernel("k", 1, 1, 1) | {"ts": "soon"}, "AKF-F153", "not a number"),
        (kernel("k", 1, 1, 1) | {"dur": 2**63}, "AKF-F153", "out of the range"),
        ({k: v for k, v in kernel("k", 1, 1, 1).items() if k != "dur"}, "AKF-F153", "does not end"),
        (kernel("k", 1, 1, 1) | {"ph": "B"}, "AKF-F153", "does not end"),
        ({k: v for k, v in kernel("k", 1, 1, 1).items() if k != "ts"}, "AKF-F153", "has no ts"),
        (kernel("k", 1, 1, 1) | {"name": 5}, "AKF-F153", "its name is 5"),
        (kernel("k", 1, 1, 1) | {"args": []}, "AKF-F153", "its args are an array"),
        (kernel("k", 1, 1, 1, device=1), "AKF-F157", "2 devices (0, 1)"),
        (kernel("k", 1, 1, 1, device="x"), "AKF-F153", "its device"),
        (launch(1, 1, "hipLaunchKernel"), "AKF-F157", "does not know"),
        (spanned("xpu_runtime", "zeLaunch", 1, 1), "AKF-F157", "does not know"),
        (step(2, 500_000, 1_000), "AKF-F156", "stands twice"),
        (step(9, 30_000, 20_000), "AKF-F156", "overlap"),
    ],
)
def test_refused(tmp_path: Path, event: Event, code: str, says: str) -> None:
    (problem, *more) = problems(tmp_path, [*two_steps(), event])
    assert not more or code == "AKF-F156"
    assert problem.code == code
    assert says in problem.message
    if code == "AKF-F153":
        assert problem.line == 2 + len(two_steps()) + 1


def test_a_phase_that_is_no_text_is_none_that_counts(tmp_path: Path) -> None:
    found = reading(tmp_path, [*two_steps(), kernel("k", 1, 1, 1) | {"ph": ["X"]}])
    assert "k" not in found.tasks["kernel"].to_list()


def test_all_that_is_wrong_is_listed_up_to_a_number(tmp_path: Path) -> None:
    bad = [kernel(f"k{number}", 1, 1, number) | {"dur": Number("-1.0")} for number in range(LISTED + 10)]
    found = problems(tmp_path, bad)
    assert len(found) == LISTED + 1
    assert [problem.message for problem in found if problem.code == "AKF-F121"] == ["10 more problems are not listed"]


@pytest.mark.parametrize("events", [[], [step(1, 0, 10)], [launch(1, 5)]])
def test_a_trace_without_work_is_refused(tmp_path: Path, events: list[Event]) -> None:
    (problem,) = problems(tmp_path, events)
    assert problem.code == "AKF-F155"


def test_a_time_that_no_float_holds(tmp_path: Path) -> None:
    odd = kernel("k", 1_234_567_891, 3, 1)
    assert us(EPOCH_NS + 1_234_567_891) == "1736408884934567.891"
    (task,) = tasks(reading(tmp_path, [odd]))
    assert task["start_ns"] == 1_736_408_884_934_567_891
