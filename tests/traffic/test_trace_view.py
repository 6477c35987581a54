"""What torch_npu's trace adds: launches, clocks and sums, from events in any order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.support.traces import (
    CANN,
    EPOCH_NS,
    HARDWARE,
    PYTHON,
    Event,
    Number,
    array,
    clock,
    flow,
    kineto,
    layers,
    npu_task,
    overlap,
    two_steps,
    us,
    write,
)

from akf.contracts.problems import InvalidError, Problem
from akf.traffic.ascend_trace import Seen, read
from akf.traffic.events import Trace


def events() -> list[Event]:
    """Three tasks of one stream, the first two with a launch; two clocks; the overlap layer."""
    return [
        *layers(),
        npu_task("trans_TransData_0", 4_643_212, "53.7410625"),
        npu_task("aclnnMatmul_MatMulV3Common_MatMulV3", 4_801_156, "6.54015625"),
        npu_task("MEMCPY_ASYNC", 4_900_000, "2.30003125"),
        *flow(1, 4_500_000, 4_643_212),
        *flow(2, 4_700_000, 4_801_156),
        {"ph": "s", "bp": "e", "name": "enqueue_to_dequeue", "id": 8226, "pid": PYTHON, "tid": PYTHON,
         "ts": us(EPOCH_NS), "cat": "async_task_queue"},
        {"name": "ProfilerStep#50", "pid": PYTHON, "tid": PYTHON, "ts": us(EPOCH_NS), "dur": Number("9000.0"),
         "args": {}, "ph": "X"},
        {"name": "AscendCL@aclnnMatmul", "pid": CANN, "tid": 3105075, "ts": us(EPOCH_NS), "dur": Number("3.0"),
         "ph": "X"},
        clock(0, 1800),
        clock(4_700_000, Number("1650.0")),
        overlap("Computing", 4_643_212, "53.742"),
        overlap("Free", 4_696_954, "104.202"),
        overlap("Computing", 4_801_156, "6.54"),
        overlap("Communication(Not Overlapped)", 4_900_000, "1.000"),
    ]  # fmt: skip


def reading(folder: Path, listed: list[Event], name: str = "trace_view.json") -> Seen:
    return read(Trace(write(folder, array(listed), name)))


def refused(folder: Path, listed: list[Event]) -> Problem:
    with pytest.raises(InvalidError) as caught:
        reading(folder, listed)
    (problem,) = caught.value.problems
    return problem


def test_launches_by_stream_and_start(tmp_path: Path) -> None:
    found = reading(tmp_path, events())
    assert found.launches.rows() == [
        (2, EPOCH_NS + 4_643_212, EPOCH_NS + 4_500_000),
        (2, EPOCH_NS + 4_801_156, EPOCH_NS + 4_700_000),
    ]
    assert [start for _, start in found.tasks.rows()] == [
        EPOCH_NS + 4_643_212,
        EPOCH_NS + 4_801_156,
        EPOCH_NS + 4_900_000,
    ]


def test_clocks_sums_and_steps(tmp_path: Path) -> None:
    found = reading(tmp_path, events())
    assert found.clocks_mhz == (1650, 1800)
    assert found.overlap_ns == {"Communication(Not Overlapped)": 1_000, "Computing": 60_282, "Free": 104_202}
    assert (found.overlap_rows, found.steps) == (4, (50,))


def test_the_order_of_events_does_not_matter(tmp_path: Path) -> None:
    whole = reading(tmp_path, events())
    for seed in range(5):
        other = reading(tmp_path, random.Random(seed).sample(events(), len(events())), f"{seed}.json")
        assert other.launches.rows() == whole.launches.rows()
        assert other.tasks.rows() == whole.tasks.rows()
        assert (other.clocks_mhz, other.overlap_ns) == (whole.clocks_mhz, whole.overlap_ns)


def test_times_with_and_without_decimals(tmp_path: Path) -> None:
    whole = npu_task("k", 0, "1.0") | {"ts": "1736408883700000"}
    number = npu_task("l", 0, "1.0") | {"ts": 1736408883700001}
    found = reading(tmp_path, [*layers(), whole, number])
    assert [start for _, start in found.tasks.rows()] == [1736408883700000000, 1736408883700001000]


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (flow(9, 4_600_000, 4_643_212), "two flows end there"),
        (flow(1, 4_400_000, 0), "one flow begins twice"),
    ],
)
def test_a_flow_that_is_not_clear_is_no_launch(tmp_path: Path, extra: list[Event], why: str) -> None:
    del why
    found = reading(tmp_path, [*events(), *extra])
    assert [start for _, start, _ in found.launches.rows()] == [EPOCH_NS + 4_801_156]


def test_a_launch_after_its_task_is_none(tmp_path: Path) -> None:
    found = reading(tmp_path, [*layers(), npu_task("k", 100, "1.0"), *flow(1, 101, 100)])
    assert found.launches.is_empty()


def test_only_the_layers_by_name_count(tmp_path: Path) -> None:
    listed = [
        *layers(),
        overlap("Free", 0, "5.0"),
        overlap("Free", 0, "7.0") | {"pid": PYTHON},  # a function that is called so
        npu_task("k", 0, "1.0") | {"pid": PYTHON},
    ]
    found = reading(tmp_path, listed)
    assert found.overlap_ns == {"Free": 5_000}
    assert found.tasks.is_empty()


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (npu_task("k", 0, "1.0") | {"ts": "1.7364E+15"}, "exponent"),
        (npu_task("k", 0, "-1.0"), "its dur is negative"),
        (npu_task("k", 0, "1.0") | {"tid": "stream 2"}, "not the number of a stream"),
        ({k: v for k, v in npu_task("k", 0, "1.0").items() if k != "dur"}, "does not end"),
        (npu_task("k", 0, "1.0") | {"ph": "B"}, "does not end"),
        (clock(0, "fast"), "its MHz is"),
        (clock(0, -1), "its MHz is negative"),
        (flow(1, 0, 0)[0] | {"id": None}, "its id is null"),
        (overlap("Computing", 0, "1.0") | {"dur": "x"}, "its dur is"),
        ({"name": "process_name", "pid": HARDWARE, "ph": "M", "args": {"name": "CANN"}}, "two layers"),
        ({"name": "process_name", "pid": 1, "ph": "M", "args": {}}, "names no layer"),
        ({"name": "ProfilerStep#x", "pid": 1, "ph": "X", "ts": 1, "dur": 1}, "is no number"),
    ],
)
def test_refused(tmp_path: Path, event: Event, says: str) -> None:
    problem = refused(tmp_path, [*events(), event])
    assert (problem.code, problem.line) == ("AKF-F153", 1)
    assert says in problem.message
    assert problem.column is not None
    assert problem.column > len(array(events())) - 10


def test_a_trace_of_torch_is_no_trace_of_torch_npu(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        read(Trace(write(tmp_path, kineto(two_steps()))))
    assert caught.value.problems[0].code == "AKF-F152"
