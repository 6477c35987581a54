"""What profiled sessions say of a hypothesis: confirmed, falsified, or that they cannot say it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import captures, evidence, opprof
from tests.support.cli import inside
from tests.support.runs import Ready

from akf.evaluate.hypothesis import Sessions, observe
from akf.traffic.msprof_op import ingest
from akf.traffic.profiles import Options

Value = dict[str, Any]
TASK = {"callsite": "add-rms-norm"}
CAMPAIGN = evidence.evidence(platform="ascend").value("campaign.json")
SYMBOL = "my_kernel"


def session(name: str, time: int, callsite: str | None = None, **more: Any) -> Value:
    """One kernel, launched ten times, `time` nanoseconds each; what is per launch is given per launch."""
    entry = captures.kernel(0.5, callsite, name=name, counters=more.pop("counters", {}), **more.pop("entry", {}))
    for counter in entry["counters"]:
        counter["time_ns"] = int(counter["time_ns"] * 10 * time / entry["time_ns"])
    entry |= {"calls": 10, "time_ns": 10 * time, "exposed_ns": 10 * time, "symbols": {"T": 16}}
    value = captures.capture(entry)
    return value | {"breakdown": [], **more}


def asked(bound: str, before: Value, after: Value) -> tuple[str, str]:
    candidate = {"claim": {"hypothesis": {"active_bound": bound}}}
    return observe(TASK, candidate, SYMBOL, CAMPAIGN, Sessions(before, after, ("a", "b")))


def amounts(size: int) -> Value:
    return {"amounts": [{"name": "read_main_memory", "unit": "bytes", "value": size}]}


def blocks(mean: int, longest: int) -> Value:
    return {
        "balance": [
            {"unit": "aiv", "launches": 10, "blocks": 400, "mean_ns": mean, "longest_ns": longest, "last_ns": mean}
        ]
    }


def tiling(time: int) -> Value:
    return {
        "host": [{"rank": 0, "level": "acl", "api": "RmsNorm_Tiling", "calls": 10, "time_ns": 10 * time}],
        "entry": {"op_type": "RmsNorm", "graph": "eager"},
    }


MOVED: dict[str, tuple[Value, Value]] = {
    "compute": (
        session("RmsNorm", 1000, "add-rms-norm", counters={"aiv_vec": 0.9}),
        session(SYMBOL, 800, counters={"aiv_vec": 0.8}),
    ),
    "transfer": (
        session("RmsNorm", 1000, "add-rms-norm", counters={"aiv_mte2": 0.8}, entry=amounts(1000)),
        session(SYMBOL, 800, counters={"aiv_mte2": 0.8}, entry=amounts(500)),
    ),
    "balance": (
        session("RmsNorm", 1000, "add-rms-norm", entry=blocks(500, 1000)),
        session(SYMBOL, 800, entry=blocks(700, 800)),
    ),
    "launch_graph": (
        session("RmsNorm", 1000, "add-rms-norm", **tiling(2000)),
        session(SYMBOL, 800, **tiling(500)),
    ),
}


@pytest.mark.parametrize("bound", MOVED)
def test_a_bound_that_held_and_a_metric_that_moved_confirm(bound: str) -> None:
    said, why = asked(bound, *MOVED[bound])
    assert said == "confirmed", why


@pytest.mark.parametrize("bound", MOVED)
def test_launches_that_are_not_shorter_falsify(bound: str) -> None:
    before, after = MOVED[bound]
    entry = after["entries"][0] | {"time_ns": 9_900}  # 1 %
    assert asked(bound, before, after | {"entries": [entry]}) == ("falsified", "launches are not shorter by 2 %")


def test_a_metric_that_did_not_move_falsifies_whatever_the_speed() -> None:
    before, after = MOVED["balance"]
    still = after["entries"][0] | blocks(400, 800)
    said, why = asked("balance", before, after | {"entries": [still]})
    assert said == "falsified"
    assert why == "launches are shorter, but idle cores of aiv did not move by 2 %"


def test_a_baseline_that_another_bound_holds_falsifies() -> None:
    before, after = MOVED["transfer"]
    said, why = asked("compute", *({**each, "entries": [with_vec(each["entries"][0])]} for each in (before, after)))
    assert (said, why) == ("falsified", "the baseline is held by transfer, not by compute")


def with_vec(entry: Value) -> Value:
    return entry | {"counters": [*entry["counters"], {"name": "aiv_vec", "time_ns": entry["time_ns"] // 10}]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda _, after: after.update(platform="host"), "the candidate's session is of platform host"),
        (lambda before, _: before.update(clock="changed"), "the clock changed during the baseline's session"),
        (lambda before, _: before.update(clocks_mhz=[1000]), "the sessions ran at different clocks"),
        (
            lambda _, after: after["entries"][0].update(kernel="other"),
            "candidate's session holds none",
        ),
        (
            lambda before, _: before["entries"][0].update(callsite="x"),
            "baseline's session holds none",
        ),
        (lambda _, after: after["entries"][0].update(symbols={"T": 8}), "the sessions are of different sizes"),
        (lambda _, after: after["entries"][0].update(counters=[], amounts=[]), "no metric of the bound transfer"),
    ],
)
def test_what_the_sessions_cannot_say_is_unobserved(change: Callable[[Value, Value], object], why: str) -> None:
    before, after = json.loads(json.dumps(MOVED["transfer"]))
    change(before, after)
    said, found = asked("transfer", before, after)
    assert said == "unobserved"
    assert why in found


def test_without_sessions_it_is_unobserved() -> None:
    candidate = {"claim": {"hypothesis": {"active_bound": "compute"}}}
    assert observe(TASK, candidate, SYMBOL, CAMPAIGN, None).said == "unobserved"


def test_folders_of_msprof_op_answer(tmp_path: Path) -> None:
    """From the profiler's tables to the answer: the same kernel, then one that reads half as much in less time."""
    before = opprof.vector_launch(tmp_path / "before" / "launch")
    edit(before, "OpBasicInfo.csv", "26.060000", "12.060000")
    after = opprof.vector_launch(tmp_path / "after" / "launch")
    edit(after, "OpBasicInfo.csv", "add_custom,vector,26.060000", f"{SYMBOL}_aiv,vector,10.060000")
    edit(after, "Memory.csv", "1024.125", "512.0")
    both = [ingest([folder.parent], Options("session", None, "public")) for folder in (before, after)]
    assert asked("transfer", both[0], both[1])[0] == "confirmed"
    assert asked("compute", both[0], both[1])[0] == "falsified"
    assert asked("launch_graph", both[0], both[1])[0] == "unobserved"


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.usefixtures("measured")
def test_a_gate_carries_the_answer_and_is_no_other_for_it(measured_run: Path, ready: Ready, tmp_path: Path) -> None:
    symbol = json.loads((measured_run / "attempts" / "rmsnorm-naive" / "build.json").read_bytes())["launch"]["symbol"]
    before = session("rms_norm", 1000, "rms-norm", counters={"core_vec": 0.9}, platform="host")
    after = session(symbol, 800, counters={"core_vec": 0.8}, platform="host")
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    for path, value in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps(value), encoding="utf-8")
    words = ["evaluate", measured_run, "rmsnorm-naive", "--profiled", *paths, "--keys", ready.keys]
    answer = inside(*words).accepted()
    gate = json.loads((measured_run / "attempts" / "rmsnorm-naive" / "gates" / "operator.json").read_bytes())
    assert answer.document["gate_status"] == gate["status"]
    assert gate["hypothesis"] == "confirmed"
    assert "hypothesis" not in {check["name"] for check in gate["checks"]}
    last = json.loads((measured_run / "journal.jsonl").read_bytes().splitlines()[-1])
    assert last["hypothesis"]["said"] == "confirmed"
    assert len(last["hypothesis"]["captures"]) == 2
    inside("audit", measured_run).accepted()
