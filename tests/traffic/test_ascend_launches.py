"""torch_npu's trace beside its tables: gaps of the host, clocks, a second opinion; and what it must not change."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.profiles import Ran, torch_npu
from tests.support.traces import EPOCH_NS, Event, array, clock, flow, layers, npu_task, overlap, write

from akf.contracts.canonical import jcs
from akf.contracts.loader import parse
from akf.contracts.problems import InvalidError
from akf.contracts.schemas import validate
from akf.traffic.ascend.profile import ingest
from akf.traffic.profiles import Options

OPTIONS = Options(id="x", title=None, data_class="internal")
STAGES = {1: 60_000, 2: 70_000}


def ran(name: str, start_ns: int, duration_ns: int, step: int, **more: Any) -> Ran:
    return Ran(name, name, "AI_VECTOR_CORE", EPOCH_NS + start_ns, duration_ns, step, **more)


ROWS = [
    ran("Mul", 10_000, 10_000, 1),
    ran("Add", 30_000, 10_000, 1),
    ran("Mul", 80_000, 10_000, 2),
    ran("Add", 85_000, 10_000, 2, stream=3),  # overlaps
    ran("Sub", 110_000, 5_000, 2),
]


def events() -> list[Event]:
    """Every task; the launch of all but the last; two rows of the overlap layer per gap."""
    return [
        *layers(),
        npu_task("Mul", 10_000, "10.00025"),
        npu_task("Add", 30_000, "10.0"),
        npu_task("Mul", 80_000, "10.0"),
        npu_task("Add", 85_000, "10.0", stream=3),
        npu_task("Sub", 110_000, "5.0"),
        *flow(1, 5_000, 10_000),
        *flow(2, 27_000, 30_000),
        *flow(3, 60_000, 80_000),
        *flow(4, 61_000, 85_000, stream=3),
        overlap("Computing", 10_000, "10.0"),
        overlap("Computing", 30_000, "10.0"),
        overlap("Computing", 80_000, "15.0"),
        overlap("Computing", 110_000, "5.001"),
        clock(0, 1800),
    ]


def profile(folder: Path, listed: Sequence[Event] | None = None, rows: Sequence[Ran] = ROWS, **more: Any) -> Path:
    own = torch_npu(folder, rows, stages=STAGES, **more)
    if listed is not None:
        write(own / "ASCEND_PROFILER_OUTPUT", array(list(listed)), "trace_view.json")
    return own


def captured(*paths: Path) -> dict[str, Any]:
    capture = ingest(paths, OPTIONS)
    assert validate(parse(jcs(capture), "capture.json"), "Capture") == []
    for line in capture["breakdown"]:
        names = ("computing_ns", "communication_ns", "waiting_ns", "host_gap_ns", "idle_ns")
        assert line["step_ns"] == sum(line[name] for name in names)
    return capture


def test_gaps_by_hand(tmp_path: Path) -> None:
    """Of 20..30 the launch at 27 leaves 7 to the host; the last gap's launch is not known; the rest is idle."""
    (line,) = captured(profile(tmp_path, events()))["breakdown"]
    assert (line["step_ns"], line["computing_ns"], line["launches"]) == (130_000, 40_000, 4)
    assert (line["host_gap_ns"], line["idle_ns"]) == (7_000, 83_000)


def test_a_launch_before_the_gap_leaves_nothing_to_the_host(tmp_path: Path) -> None:
    early = [event for event in events() if event.get("id") != "2"] + flow(2, 15_000, 30_000)
    (line,) = captured(profile(tmp_path, early))["breakdown"]
    assert (line["launches"], line["host_gap_ns"]) == (4, 0)


def test_without_the_trace_nothing_is_known_of_launches(tmp_path: Path) -> None:
    capture = captured(profile(tmp_path))
    (line,) = capture["breakdown"]
    assert "launches" not in line
    assert (line["host_gap_ns"], line["idle_ns"], capture["clock"]) == (0, 90_000, "unknown")


def test_a_trace_without_flows_says_that_no_launch_is_known(tmp_path: Path) -> None:
    blind = [event for event in events() if event.get("cat") != "HostToDevice"]
    (line,) = captured(profile(tmp_path, blind))["breakdown"]
    assert (line["launches"], line["host_gap_ns"], line["idle_ns"]) == (0, 0, 90_000)


@pytest.mark.parametrize(
    ("more", "said", "seen"),
    [
        ([], "steady", [1800]),
        ([clock(1, 1650)], "changed", [1650, 1800]),
        ([clock(1, 0)], "steady", [1800]),  # a core that slept
    ],
)
def test_clocks(tmp_path: Path, more: list[Event], said: str, seen: list[int]) -> None:
    capture = captured(profile(tmp_path, [*events(), *more]))
    assert (capture["clock"], capture["clocks_mhz"]) == (said, seen)


def test_the_trace_changes_nothing_but_what_it_knows(tmp_path: Path) -> None:
    without, with_trace = captured(profile(tmp_path / "a")), captured(profile(tmp_path / "b", events()))
    assert with_trace["entries"] == without["entries"]  # the kind of core stays that of the tables
    names = {source["name"] for source in with_trace["sources"]} - {source["name"] for source in without["sources"]}
    assert names == {"rank0/trace_view.json"}


@pytest.mark.parametrize(("computing", "holds"), [("5.001", True), ("9.0", False)])
def test_the_overlap_layer_is_a_second_opinion(tmp_path: Path, computing: str, holds: bool) -> None:
    listed = [*events()[:-2], overlap("Computing", 110_000, computing)]
    checks = {check["name"]: check for check in captured(profile(tmp_path, listed))["checks"]}
    check = checks["trace-computing-against-kernels"]
    assert (check["found_ns"], check["holds"]) == (40_000, holds)


def test_no_second_opinion_where_tasks_lie_outside_steps(tmp_path: Path) -> None:
    rows = [*ROWS, ran("Late", 200_000, 1_000, 2)._replace(step=None)]
    names = {check["name"] for check in captured(profile(tmp_path, events(), rows))["checks"]}
    assert "trace-computing-against-kernels" not in names


def test_the_order_of_events_does_not_matter(tmp_path: Path) -> None:
    whole = captured(profile(tmp_path / "whole", events()))
    shuffled = random.Random(3).sample(events(), len(events()))
    other = captured(profile(tmp_path / "other", shuffled))
    assert jcs(other | {"sources": []}) == jcs(whole | {"sources": []})


def test_ranks_of_which_one_has_a_trace(tmp_path: Path) -> None:
    one = profile(tmp_path / "0", events(), info=None)
    two = profile(tmp_path / "1", None, rank=1)
    lines = captured(one, two)["breakdown"]
    assert [line.get("launches") for line in lines] == [4, None]


def test_a_trace_of_another_run_is_refused(tmp_path: Path) -> None:
    other = [npu_task("Mul", 999, "1.0"), *layers()]
    with pytest.raises(InvalidError) as caught:
        captured(profile(tmp_path, other))
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("AKF-F158", 1)


def test_a_damaged_trace_is_told_with_the_damage_of_the_tables(tmp_path: Path) -> None:
    own = profile(tmp_path, [*events(), npu_task("k", 0, "-1.0")])
    table = own / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    table.write_text(table.read_text().replace("10.000", "1e4", 1))
    with pytest.raises(InvalidError) as caught:
        captured(own)
    assert {problem.code for problem in caught.value.problems} >= {"AKF-F153", "AKF-F114"}
