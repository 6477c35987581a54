"""A Capture of tasks: figures by hand, bounds, and what must be the same whichever way tasks arrive."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akf.contracts.canonical import canonical_bytes, parse_canonical
from akf.contracts.problems import InvalidError
from akf.contracts.schemas import validate
from akf.traffic import entries as building
from akf.traffic.capture import WALLS, Facts, build
from akf.traffic.kernels import KEY, WINDOW, Tasks

TYPES: dict[str, Any] = {
    **dict.fromkeys(KEY, pl.String), "rank": pl.Int64, "graph": pl.Boolean, "blocks": pl.Int64, "step": pl.Int64,
    "start_ns": pl.Int64, "duration_ns": pl.Int64, "aiv_vec": pl.Int64,
}  # fmt: skip
FACTS = Facts(
    id="capture", title="A capture", platform="ascend", data_class="internal",
    tool={"name": "torch_npu.profiler", "version": "2.9.0", "settings": []},
    sources=[{"name": "rank0/kernel_details.csv", "digest": "sha256:" + "1" * 64}], bounds="profiler",
)  # fmt: skip


def task(kernel: str, start: int, duration: int, step: int | None = 1, rank: int = 0, **more: Any) -> dict[str, Any]:
    communication = kernel.startswith("hcom_")
    return dict.fromkeys(TYPES) | {
        "rank": rank, "kernel": kernel, "core_type": "HCCL" if communication else "AI_VECTOR_CORE", "step": step,
        "kind": "communication" if communication else "computing", "start_ns": start, "duration_ns": duration,
    } | more  # fmt: skip


def captured(*tasks: dict[str, Any], walls: list[dict[str, Any]] | None = None, **facts: Any) -> dict[str, Any]:
    held = Tasks()
    held.add(pl.DataFrame(tasks, TYPES), "kernels.csv")
    known = pl.DataFrame(walls or [], WALLS)
    found = build(held, known, Facts(**{**FACTS.__dict__, **facts}))
    document = parse_canonical(canonical_bytes(found), "capture.json")
    assert validate(document, "Capture") == []
    return found


def by_kernel(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["kernel"]: entry for entry in found["entries"]}


class TestByHand:
    """Two streams: a runs 0 to 100, b 60 to 160, a collective 150 to 250; the step took 300 ns."""

    FOUND = captured(
        task("a", 1000, 100, aiv_vec=70),
        task("b", 1060, 100),
        task("hcom_allReduce__1_0_1", 1150, 100),
        walls=[{"rank": 0, "step": 1, "step_ns": 300, "host_gap_ns": 20}],
    )

    def test_lines(self) -> None:
        assert self.FOUND["breakdown"] == [
            {
                "rank": 0, "steps": 1, "step_ns": 300, "steps_ns": [300], "bounds": "profiler", "computing_ns": 160,
                "communication_ns": 90, "waiting_ns": 0, "overlapped_ns": 10, "host_gap_ns": 20, "idle_ns": 30,
                "steps_lines": {
                    "computing_ns": [160], "communication_ns": [90], "waiting_ns": [0], "host_gap_ns": [20],
                    "idle_ns": [30],
                },
            }
        ]  # fmt: skip

    def test_entries(self) -> None:
        entries = by_kernel(self.FOUND)
        assert {name: (entry["time_ns"], entry["exposed_ns"]) for name, entry in entries.items()} == {
            "a": (100, 60),
            "b": (100, 50),
            "hcom_allReduce": (100, 90),
        }
        assert entries["a"]["counters"] == [{"name": "aiv_vec", "time_ns": 70}]
        assert entries["b"]["counters"] == []


class TestWaiting:
    def test_a_rank_that_waits_does_not_communicate(self) -> None:
        found = captured(
            task("hcom_allReduce__1_0_1", 0, 100),
            task("hcom_allReduce__1_0_1", 70, 30, rank=1),
            task("a", 10, 20),
        )
        first, second = found["breakdown"]
        assert (first["computing_ns"], first["communication_ns"], first["waiting_ns"]) == (20, 30, 50)
        assert (second["communication_ns"], second["waiting_ns"]) == (30, 0)
        collectives = [entry for entry in found["entries"] if entry["kernel"] == "hcom_allReduce"]
        assert [(entry["time_ns"], entry["exposed_ns"]) for entry in collectives] == [(100, 30), (30, 30)]
        assert by_kernel(found)["a"]["exposed_ns"] == 0


class TestSteps:
    def test_a_step_lasts_to_the_next_unless_the_importer_knows_better(self) -> None:
        tasks = [task("a", 0, 10), task("a", 50, 10, 2), task("a", 100, 10, 3)]
        assert captured(*tasks)["breakdown"][0]["steps_ns"] == [50, 50, 10]
        known = [{"rank": 0, "step": step, "step_ns": 40, "host_gap_ns": None} for step in (2, 3)]
        assert captured(*tasks, walls=known)["breakdown"][0]["steps_ns"] == [50, 40, 40]

    def test_a_step_in_which_nothing_ran_is_a_step(self) -> None:
        found = captured(task("a", 0, 10), walls=[{"rank": 0, "step": 2, "step_ns": 40, "host_gap_ns": 0}])
        assert found["breakdown"][0]["steps_ns"] == [10, 40]
        assert found["entries"][0]["steps_exposed_ns"] == [10, 0]

    def test_more_than_fits_is_said(self) -> None:
        found = captured(task("a", 0, 100), walls=[{"rank": 0, "step": 1, "step_ns": 40, "host_gap_ns": 0}])
        assert found["breakdown"][0]["step_ns"] == 100
        assert found["checks"] == [
            {"name": "tasks-fit-into-steps", "rank": 0, "expected_ns": 40, "found_ns": 100, "holds": False}
        ]

    def test_tasks_outside_count_for_nothing(self) -> None:
        found = captured(task("a", 0, 10), task("a", 90, 10, None, aiv_vec=5), task("b", 200, 10, None))
        assert [(entry["kernel"], entry["calls"]) for entry in found["entries"]] == [("a", 1)]
        with pytest.raises(InvalidError, match="AKF-F126"):
            captured(task("a", 0, 10, None))

    def test_many_steps_become_runs_of_neighbours(self) -> None:
        count = 1000
        found = captured(*(task("a", number * 10, 4, number) for number in range(count)))
        [line] = found["breakdown"]
        assert line["steps"] == count
        assert len(line["steps_ns"]) == len(found["entries"][0]["steps_exposed_ns"]) == 512
        assert sum(line["steps_ns"]) == line["step_ns"] == 10 * count - 6
        assert set(found["entries"][0]["steps_exposed_ns"]) == {4, 8}
        assert set(line["steps_lines"]["computing_ns"]) == {4, 8}
        assert set(line["steps_lines"]["idle_ns"]) == {6, 12, 0}

    def test_captures_of_one_rank_are_put_in_the_order_of_time(self) -> None:
        found = captured(task("a", 500, 20, 7), task("a", 100, 10, 7 + 3 * WINDOW))
        assert found["entries"][0]["steps_exposed_ns"] == [10, 20]
        with pytest.raises(InvalidError, match="AKF-F129"):
            captured(task("a", 100, 20, 7), task("a", 110, 10, 7 + 3 * WINDOW))

    def test_ranks_of_two_recordings_are_refused(self) -> None:
        """Clocks of hosts may differ by a minute, not by more; each capture is compared with its own of the others."""
        minute = 60 * 10**9
        captured(task("a", 100, 20), task("a", 120 + minute, 20, rank=1))
        with pytest.raises(InvalidError, match="the ranks 0, 1 were not recorded together: 60 s lie between them"):
            captured(task("a", 100, 20), task("a", 121 + minute, 20, rank=1))
        with pytest.raises(InvalidError, match="AKF-F133"):
            captured(task("a", 100, 20), task("a", 2 * minute, 20, 1 + WINDOW), task("a", 2 * minute, 20, rank=1))


class TestBounds:
    def test_times_that_cannot_be_are_refused(self) -> None:
        with pytest.raises(InvalidError, match="AKF-F125"):
            captured(task("a", 0, 10), task("a", 2**60, 10))
        with pytest.raises(InvalidError, match="AKF-F125"):
            captured(*[task("a", 0, 2**53 - 1)] * 2)

    def test_what_takes_least_time_is_one_entry_that_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(building, "MAX_ENTRIES", 4)
        tasks = [task(f"k{number}", number * 100, 10 + number) for number in range(9)]
        found = captured(*tasks, task("hcom_send__1_0", 1000, 1))
        entries = by_kernel(found)
        assert list(entries) == ["7 further kernels", "k8", "k7", "1 further kernels"]
        assert entries["7 further kernels"]["time_ns"] == sum(10 + number for number in range(7))
        assert sum(entry["exposed_ns"] for entry in entries.values()) == found["breakdown"][0]["computing_ns"] + 1


TASK = st.builds(
    task, st.sampled_from(["a", "b", "trans_c_1", "hcom_allReduce__1_0_1"]), st.integers(0, 60), st.integers(0, 20),
    st.integers(0, 3), st.integers(0, 1), op_type=st.sampled_from([None, "trans_c"]), aiv_vec=st.none() | st.just(3),
)  # fmt: skip
MANY = st.lists(TASK, min_size=1, max_size=10)


@settings(max_examples=25)
@given(MANY, st.randoms(use_true_random=False))
def test_the_order_of_tasks_is_no_matter(tasks: list[dict[str, Any]], random: Any) -> None:
    other = copy.copy(tasks)
    random.shuffle(other)
    assert canonical_bytes(captured(*tasks)) == canonical_bytes(captured(*other))


@settings(max_examples=25)
@given(MANY)
def test_shares_sum_to_one(tasks: list[dict[str, Any]]) -> None:
    for line in captured(*tasks)["breakdown"]:
        parts = ("computing_ns", "communication_ns", "waiting_ns", "host_gap_ns", "idle_ns")
        assert sum(line[part] for part in parts) == line["step_ns"] == sum(line["steps_ns"])
        split = line["steps_lines"]
        assert [sum(each) for each in zip(*split.values(), strict=True)] == line["steps_ns"]
        assert {name: sum(times) for name, times in split.items()} == {name: line[name] for name in split}


@settings(max_examples=25)
@given(MANY, TASK)
def test_a_further_task_lowers_no_total(tasks: list[dict[str, Any]], more: dict[str, Any]) -> None:
    def totals(found: dict[str, Any]) -> dict[Any, int]:
        held: dict[Any, int] = {
            (line["rank"], name): line[name] for line in found["breakdown"] for name in ("computing_ns", "step_ns")
        }
        for entry in found["entries"]:
            for name in ("calls", "time_ns"):
                key = (entry["rank"], entry["kernel"], entry.get("op_type"), name)
                held[key] = held.get(key, 0) + entry[name]
        return held

    before, after = totals(captured(*tasks)), totals(captured(*tasks, more))
    assert all(after[name] >= total for name, total in before.items())


def summed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two lines of one rank as one: times add up, times by step stand one behind the other."""
    return {
        name: value
        if name in {"rank", "bounds"}
        else summed(one[name], value)
        if isinstance(value, dict)
        else one[name] + value
        for name, value in other.items()
    }


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What the capture of both must be: sums, and steps one behind the other."""
    entries: dict[Any, dict[str, Any]] = {}
    steps = {line["rank"]: len(line["steps_ns"]) for line in one["breakdown"]}
    later = {line["rank"]: len(line["steps_ns"]) for line in other["breakdown"]}
    for found, is_first in ((one, True), (other, False)):
        for entry in found["entries"]:
            key = (entry["rank"], entry["kernel"], entry.get("op_type"))
            before = entries.get(key)
            rank = entry["rank"]
            if before is None:
                pad = [0] * (later if is_first else steps).get(rank, 0)
                times = entry["steps_exposed_ns"]
                entries[key] = entry | {"steps_exposed_ns": times + pad if is_first else pad + times}
            else:
                both = {name: before[name] + entry[name] for name in ("calls", "time_ns", "exposed_ns")}
                at = steps[rank]
                times = before["steps_exposed_ns"][:at] + entry["steps_exposed_ns"]
                longest = max(before["longest_ns"], entry["longest_ns"])
                names = {c["name"]: c["time_ns"] for c in before["counters"]}
                counters = [
                    c | {"time_ns": c["time_ns"] + names[c["name"]]} for c in entry["counters"] if c["name"] in names
                ]
                entries[key] = before | both | {"steps_exposed_ns": times, "longest_ns": longest, "counters": counters}
    lines: dict[int, dict[str, Any]] = {}
    for line in [*one["breakdown"], *other["breakdown"]]:
        before = lines.get(line["rank"])
        lines[line["rank"]] = line if before is None else summed(before, line)
    return {"entries": entries, "breakdown": [lines[rank] for rank in sorted(lines)]}


@settings(max_examples=25)
@given(MANY, MANY)
def test_two_captures_add_up_to_the_capture_of_both(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    one = [row | {"rank": 0} for row in one]  # ranks that wait for one another are another matter
    other = [row | {"rank": 0, "start_ns": row["start_ns"] + 1000, "step": row["step"] + WINDOW} for row in other]
    both = captured(*one, *other)
    keyed = {(entry["rank"], entry["kernel"], entry.get("op_type")): entry for entry in both["entries"]}
    assert {"entries": keyed, "breakdown": both["breakdown"]} == added(captured(*one), captured(*other))


@settings(max_examples=25)
@given(MANY, MANY)
def test_ranks_add_up_but_for_what_they_wait(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    one, other = ([row | {"rank": rank} for row in rows] for rank, rows in enumerate((one, other)))
    both, parts = captured(*one, *other), added(captured(*one), captured(*other))
    for line, expected in zip(both["breakdown"], parts["breakdown"], strict=True):
        shared = ("communication_ns", "waiting_ns")
        by_step, wanted = line.pop("steps_lines"), expected.pop("steps_lines")
        together = [
            [sum(each) for each in zip(*(split[name] for name in shared), strict=True)] for split in (by_step, wanted)
        ]
        assert together[0] == together[1]
        for found, alone in ((line, expected), (by_step, wanted)):
            assert {**found, **dict.fromkeys(shared)} == {**alone, **dict.fromkeys(shared)}
    for entry in both["entries"]:
        expected = parts["entries"][entry["rank"], entry["kernel"], entry.get("op_type")]
        assert all(entry[name] == expected[name] for name in ("calls", "time_ns", "longest_ns", "counters"))
        assert entry["exposed_ns"] <= expected["exposed_ns"]


def test_the_bytes_are_those_of_json() -> None:
    found = captured(task("a", 0, 10))
    assert orjson.loads(canonical_bytes(found)) == found
