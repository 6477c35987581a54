"""A draft and a trace to a Workload: what is marked, what stays open, what is refused, what is written."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import inside
from tests.support.kill import kill_points
from tests.support.process import in_child, open_to_others
from tests.support.request_traces import (
    AZURE_HEADER,
    BURST_HEADER,
    EVERYTHING,
    Request,
    azure,
    bailian,
    burstgpt,
    draft,
    made,
    mooncake,
    stage,
    text,
    timed,
)

from akf.contracts.canonical import canonical_bytes
from akf.contracts.loader import Document, parse
from akf.contracts.problems import InvalidError, UsageError
from akf.contracts.rules.workload import meaning_problems
from akf.contracts.shipped import shipped
from akf.store.draft import render

ROWS = [Request(index * 700, 600 + 10 * index, 20 + index, chat=index, parent=index - 1) for index in range(12)]
DRAFT = shipped("suites") / "qwen3-8b-a3-bf16" / "workload.json"


def path_of(tmp_path: Path, layout: str) -> Path:
    if layout in {"azure", "burstgpt"}:
        header, line = (AZURE_HEADER, azure) if layout == "azure" else (BURST_HEADER, burstgpt)
        return text(tmp_path / "t.csv", [header, *map(line, ROWS)])
    return text(tmp_path / "t.jsonl", map(bailian if layout == "bailian" else mooncake, ROWS))


TIMED = ("--layout", "timed_trace", "--sec-multiplier", "1")


@pytest.mark.parametrize(
    ("layout", "served", "stated", "tokenizer", "matches"),
    [
        ("bailian", "Qwen3", None, "Qwen", True),
        ("bailian", "Llama-3", None, "Qwen", False),
        ("bailian", None, None, "Qwen", None),
        ("bailian", "Qwen3", "other", "other", False),
        ("mooncake", "Qwen3", None, None, False),
        ("mooncake", "Qwen3", "Qwen3", "Qwen3", True),
        ("azure", "Qwen3", None, None, False),
        ("burstgpt", None, None, None, False),
        ("timed_trace", "Qwen3", None, None, None),
        ("timed_trace", "Qwen3", "Qwen3", "Qwen3", True),
        ("timed_trace", None, "Qwen3", "Qwen3", None),
    ],
)
def test_tokens_of_another_tokenizer_are_marked(
    tmp_path: Path, layout: str, served: str | None, stated: str | None, tokenizer: str | None, matches: bool | None
) -> None:
    source = {"kind": "declared", "description": "declared", "files": []}
    onto = draft(EVERYTHING, source={**source, "tokenizer": served} if served else source)
    chosen = timed("0.001", 512) if layout == "timed_trace" else None
    workload = made(onto, path_of(tmp_path, layout), layout=chosen, tokenizer=stated).workload
    found = workload["source"]
    assert (found["layout"], found.get("tokenizer"), found.get("tokenizer_matches")) == (layout, tokenizer, matches)
    assert ("tokenizer_matches" in found) == (matches is not None)


def test_the_tokenizer_of_another_trace_is_not_that_of_the_model(tmp_path: Path) -> None:
    other = made(draft(EVERYTHING), path_of(tmp_path, "mooncake"), tokenizer="Kimi")
    assert other.workload["source"]["tokenizer_matches"] is False
    again = made(parse(other.data, "w.json"), path_of(tmp_path, "mooncake"), tokenizer="Kimi")
    assert "tokenizer_matches" not in again.workload["source"]
    same = made(draft(EVERYTHING), path_of(tmp_path, "mooncake"), tokenizer="Qwen3")
    again = made(parse(same.data, "w.json"), path_of(tmp_path, "mooncake"), tokenizer="Qwen3")
    assert again.workload["source"]["tokenizer_matches"] is True


@pytest.mark.parametrize(
    ("of_draft", "of_trace", "expected"),
    [
        ("public", "internal", "internal"),
        ("public", "public", "public"),
        ("confidential", "public", "confidential"),
        ("internal", "confidential", "confidential"),
    ],
)
def test_the_data_class_is_the_stricter_one(tmp_path: Path, of_draft: str, of_trace: str, expected: str) -> None:
    onto = draft(EVERYTHING, data_class=of_draft)
    assert made(onto, path_of(tmp_path, "azure"), data_class=of_trace).workload["data_class"] == expected


def test_the_draft_keeps_what_a_trace_cannot_say(tmp_path: Path) -> None:
    onto = draft()
    workload = made(onto, path_of(tmp_path, "bailian")).workload
    for name in ("kind", "id", "title", "model", "dtype", "callsites"):
        assert workload[name] == onto.value[name]
    kept = [before for before in onto.value["stages"] if before["id"] in {one["id"] for one in workload["stages"]}]
    for one, before in zip(workload["stages"], kept, strict=True):
        assert (one["bounds"], one["concurrency"], one["shapes"]) == (before["bounds"], before["concurrency"], None)
        assert one["concurrency_source"] == "declared"
    assert workload["source"]["files"][0]["name"] == "t.jsonl", "no folder"


def test_names_of_chats_and_times_of_day_get_into_neither_file(tmp_path: Path) -> None:
    rows = [BURST_HEADER.replace("Timestamp,", "Timestamp,Session ID,Elapsed time,")]
    rows += [f"194401{number}.5,secret-chat,1,GPT-4,90,40,130,API log" for number in range(10, 14)]
    found = made(draft(EVERYTHING), text(tmp_path / "t.csv", rows))
    written = found.data + b"".join(found.requests)
    for secret in (b"secret", b"19440110", str(tmp_path).encode()):
        assert secret not in written


def test_bounds_on_the_command_line_replace_a_stages_own(tmp_path: Path) -> None:
    path = path_of(tmp_path, "azure")
    found = made(draft(), path, bounds=["decode=1:2048,25:4096", "short_prefill=1:2048,1:24"])
    assert [one["requests"] for one in found.workload["stages"]] == [5, 7]
    assert found.left_out == ["long_prefill", "mixed"]


def test_a_stage_without_requests_stays_if_a_capture_gives_its_sizes(tmp_path: Path) -> None:
    seen = capture([entry(NORM, 16, 30)], "mixed")
    bounds = ["decode=1:2048,25:4096", "short_prefill=1:2048,1:24"]
    found = made(draft(), path_of(tmp_path, "azure"), bounds=bounds, captures=[seen])
    assert [one["id"] for one in found.workload["stages"]] == ["short_prefill", "decode", "mixed"]
    assert found.left_out == ["long_prefill"]
    mixed = found.workload["stages"][2]
    assert (mixed["weight_ratio"], mixed["arrivals"]) == (0, {"process": "trace"})


@pytest.mark.parametrize(
    "bounds", ["decode", "decode=1:2", "decode=1:2,3", "decode=-1:2,3:4", "=1:2,3:4", "decod=1:2,3:4"]
)
def test_bounds_that_are_none(tmp_path: Path, bounds: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(draft(), path_of(tmp_path, "azure"), bounds=[bounds])
    assert caught.value.problems[0].code == "AKF-F261"


@pytest.mark.parametrize(
    "stages",
    [
        [stage("short_prefill", (1, 100), (1, 10)), stage("long_prefill", (100, 200), (10, 20))],
        [stage("short_prefill", (1, 100), (1, 100)), stage("decode", (50, 60), (50, 60))],
        [stage("mixed", (10, 1), (1, 10))],
    ],
)
def test_bounds_that_meet_or_stand_upside_down_are_refused(tmp_path: Path, stages: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidError) as caught:
        made(draft(stages), path_of(tmp_path, "azure"))
    assert {problem.code for problem in caught.value.problems} == {"AKF-F258"}
    assert [problem.code for problem in meaning_problems(draft(stages))] == ["AKF-F258"], "and by validate-campaign"


def test_no_request_inside_a_stage(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        made(draft([stage("decode", (1, 10), (1, 10))]), path_of(tmp_path, "azure"))
    problem = caught.value.problems[0]
    assert problem.code == "AKF-F259"
    assert problem.found == {"input_tokens": [600, 710], "output_tokens": [20, 31]}


def test_figures_that_contradict_one_another_are_refused(tmp_path: Path) -> None:
    good = made(draft(EVERYTHING), path_of(tmp_path, "bailian"), subset=3).workload
    assert meaning_problems(parse(render(good), "w.json")) == []
    for pointer, value in [
        (("traffic", "requests"), 13),
        (("traffic", "outside_ratio"), 0.5),
        (("prefix", "reuse_ratio"), 0.99),
        (("sample", "requests"), 13),
    ]:
        bad = json.loads(json.dumps(good))
        bad[pointer[0]][pointer[1]] = value
        codes = {problem.code for problem in meaning_problems(parse(render(bad), "w.json"))}
        assert codes == {"AKF-F263"}, pointer


def capture(entries: list[dict[str, Any]], stage_name: str | None = "decode") -> Document:
    value: dict[str, Any] = {
        "kind": "Capture", "schema_version": 1, "id": "c", "title": "t", "platform": "ascend",
        "data_class": "internal", "tool": {"name": "msprof", "version": "1"}, "sources": [], "clock": "unknown",
        "entries": entries,
    }  # fmt: skip
    if stage_name is not None:
        value["stage"] = stage_name
    return parse(render(value), "capture.json")


def entry(callsite: str | None, tokens: int | None, calls: int, **more: Any) -> dict[str, Any]:
    symbols = {} if tokens is None else {"T": tokens}
    return {"callsite": callsite, "symbols": symbols, "core_type": "AIV", "calls": calls, "time_ns": 1, **more}


NORM, SWIGLU = "xllm.rms-norm", "xllm.swiglu"


def test_sizes_of_steps_come_from_a_capture_of_that_stage(tmp_path: Path) -> None:
    seen = capture([
        entry(NORM, 16, 30, rank=0, kernel="a"), entry(NORM, 16, 30, rank=1, kernel="a"),
        entry(NORM, 16, 60, kernel="b"), entry(NORM, 4, 20, kernel="a"),
        entry(SWIGLU, 16, 5), entry(None, None, 1000),
    ])  # fmt: skip
    workload = made(draft(), path_of(tmp_path, "bailian"), captures=[seen]).workload
    by_name = {one["id"]: one for one in workload["stages"]}
    assert by_name["decode"]["shapes"] == [
        {"callsite": NORM, "symbols": {"T": 4}, "calls": 20, "weight_ratio": 0.25},
        {"callsite": NORM, "symbols": {"T": 16}, "calls": 60, "weight_ratio": 0.75},
        {"callsite": SWIGLU, "symbols": {"T": 16}, "calls": 5, "weight_ratio": 1.0},
    ]
    others = [one["shapes"] for name, one in by_name.items() if name != "decode"]
    assert set(map(type, others)) <= {type(None)}, "a Capture of decode says nothing of them"


@pytest.mark.parametrize(
    "captures",
    [
        [capture([entry(NORM, 16, 1)], None)],
        [capture([entry(NORM, 16, 1)]), capture([entry(NORM, 4, 1)])],
        [capture([entry("other", 16, 1)])],
        [capture([entry(NORM, None, 1)])],
        [capture([entry(NORM, 16, 1) | {"symbols": {"Q": 1}}])],
        [capture([entry(None, None, 1)])],
    ],
    ids=["of no stage", "two of one stage", "another callsite", "no sizes", "another symbol", "no callsite"],
)
def test_a_capture_that_does_not_fit_is_refused(tmp_path: Path, captures: list[Document]) -> None:
    with pytest.raises(InvalidError) as caught:
        made(draft(), path_of(tmp_path, "bailian"), captures=captures)
    assert {problem.code for problem in caught.value.problems} == {"AKF-F262"}


def test_a_capture_of_no_stage_speaks_for_a_draft_of_one(tmp_path: Path) -> None:
    seen = capture([entry(NORM, 16, 1)], None)
    workload = made(draft(EVERYTHING), path_of(tmp_path, "bailian"), captures=[seen]).workload
    assert workload["stages"][0]["shapes"][0]["symbols"] == {"T": 16}


class TestCommand:
    def test_both_files_are_written_and_the_digest_is_of_the_list(self, tmp_path: Path) -> None:
        out, listed = tmp_path / "new" / "w.json", tmp_path / "r.jsonl"
        words = ["ingest", "trace", path_of(tmp_path, "bailian"), "--onto", DRAFT, "--out", out, "--requests", listed]
        answer = inside(*words).accepted().document
        data = listed.read_bytes()
        workload = json.loads(out.read_bytes())
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert workload["digest_of_requests"] == answer["digest_of_requests"] == digest
        lines = data.splitlines(keepends=True)
        assert len(lines) == len(ROWS)
        for line in lines:
            assert canonical_bytes(json.loads(line)) == line
        assert json.loads(lines[1]) == {
            "arrival_ns": 700_000_000, "block_ids": list(range(39)), "input_tokens": 610, "output_tokens": 21,
            "session": 0,
        }  # fmt: skip
        assert inside("validate", out).accepted().document["kind"] == "Workload"
        kept = range(len(workload["stages"]))
        assert {one["pointer"] for one in answer["blockers"]} == {f"/stages/{index}/shapes" for index in kept}
        named = {stage["id"] for stage in workload["stages"]}
        drafted = {stage["id"] for stage in json.loads(DRAFT.read_bytes())["stages"]}
        assert named | set(answer["stages_left_out"]) == drafted
        assert not named & set(answer["stages_left_out"])
        command = f"akf ingest trace TRACE --onto {out} --capture CAPTURE --out FILE"
        assert {one["command"] for one in answer["blockers"]} == {command}

    def test_killed_anywhere_nothing_is_half_written_and_the_same_command_ends_it(self, tmp_path: Path) -> None:
        source = path_of(tmp_path, "bailian")

        def work(folder: Path) -> None:
            inside("ingest", "trace", source, "--onto", DRAFT, "--out", folder / "w.json",
                   "--requests", folder / "r.jsonl").accepted()  # fmt: skip

        def files(folder: Path) -> dict[str, bytes]:
            return {name: (folder / name).read_bytes() for name in ("w.json", "r.jsonl") if (folder / name).exists()}

        numbers = itertools.count()

        def folder() -> Path:
            made = tmp_path / str(next(numbers))
            made.mkdir()
            return made

        done = folder()
        work(done)
        whole = files(done)
        seen: list[list[str]] = []

        def killed(left: Path) -> None:
            found = files(left)
            assert found.items() <= whole.items()
            seen.append(sorted(found))
            if found != whole:
                work(left)
            assert files(left) == whole

        report = kill_points(work, folder, killed)
        assert report.stopped == report.points > 0
        assert {tuple(each) for each in seen} == {(), ("r.jsonl",), ("r.jsonl", "w.json")}

    def test_a_list_of_other_requests_is_not_taken_for_this_one(self, tmp_path: Path) -> None:
        words = ["ingest", "trace", path_of(tmp_path, "bailian"), "--onto", DRAFT]
        inside(*words, "--out", tmp_path / "w.json", "--requests", tmp_path / "r.jsonl").accepted()
        (tmp_path / "r.jsonl").write_bytes((tmp_path / "r.jsonl").read_bytes()[:-2] + b" \n")
        refused = inside(*words, "--out", tmp_path / "x.json", "--requests", tmp_path / "r.jsonl").refused(5)
        assert refused.codes == {"AKF-C101"}
        assert not (tmp_path / "x.json").exists()

    @pytest.mark.parametrize("option", ["--out", "--requests"])
    def test_a_folder_that_may_not_be_written_to(self, tmp_path: Path, option: str) -> None:
        open_to_others(tmp_path)
        source = path_of(tmp_path, "azure")
        locked, mine = tmp_path / "locked", tmp_path / "mine"
        for folder, mode in ((locked, 0o755), (mine, 0o777)):
            folder.mkdir()
            folder.chmod(mode)
        places = {"--out": mine / "w.json", "--requests": mine / "r.jsonl"}
        places[option] = locked / "file"

        def attempt() -> list[object]:
            words = [word for pair in places.items() for word in pair]
            answer = inside("ingest", "trace", source, "--onto", DRAFT, *words)
            return [answer.status, sorted(answer.codes)]

        assert in_child(attempt, uid=65534 if os.geteuid() == 0 else None) == [7, ["AKF-F104"]]
        assert list(locked.iterdir()) == list(mine.iterdir()) == []

    def test_without_out_nothing_is_written(self, tmp_path: Path) -> None:
        path = path_of(tmp_path, "azure")
        answer = inside("ingest", "trace", path, "--onto", DRAFT).accepted().document
        assert answer["workload"] is None
        assert sum(one["weight_ratio"] for one in answer["stages"]) == 1
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("there", ["w.json", "r.jsonl"])
    def test_where_one_file_exists_neither_is_written(self, tmp_path: Path, there: str) -> None:
        (tmp_path / there).write_text("mine")
        words = ["--onto", DRAFT, "--out", tmp_path / "w.json", "--requests", tmp_path / "r.jsonl"]
        inside("ingest", "trace", path_of(tmp_path, "azure"), *words).refused(5)
        assert (tmp_path / there).read_text() == "mine"
        assert len(list(tmp_path.iterdir())) == 2

    def test_where_the_workload_cannot_be_written_the_list_is_taken_back(self, tmp_path: Path) -> None:
        path = path_of(tmp_path, "azure")
        words = ["--onto", DRAFT, "--out", tmp_path / ("w" * 300), "--requests", tmp_path / "r.jsonl"]
        inside("ingest", "trace", path, *words).refused(7)
        assert list(tmp_path.iterdir()) == [path]

    def test_a_damaged_trace_writes_nothing(self, tmp_path: Path) -> None:
        path = text(tmp_path / "t.csv", [AZURE_HEADER, azure(ROWS[0]), "2023-11-16"])
        words = ["--onto", DRAFT, "--out", tmp_path / "w.json", "--requests", tmp_path / "r.jsonl"]
        (problem,) = inside("ingest", "trace", path, *words).refused(1).problems
        assert (problem["code"], problem["file"], problem["line"]) == ("AKF-F252", str(path), 3)
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize(
        ("words", "status", "code"),
        [
            (["--layout", "mooncak"], 2, "AKF-F251"),
            (["--layout", "timed_trace"], 2, "AKF-F251"),
            (["--block-size", "16"], 2, "AKF-F261"),
            (["--layout", "azure", "--sec-multiplier", "1"], 2, "AKF-F261"),
            (["--layout", "timed_trace", "--sec-multiplier", "1", "--label", "x=y"], 2, "AKF-F261"),
            (["--layout", "timed_trace", "--sec-multiplier", "1", "--block-size", "0"], 2, "AKF-F261"),
            ([*TIMED, "--label", "input_length=output_length"], 2, "AKF-F261"),
            ([*TIMED, "--label", "timestamp=a", "--label", "timestamp=b"], 2, "AKF-F261"),
            (["--bounds", "decode=1:9,1:9", "--bounds", "decode=2:9,1:9"], 2, "AKF-F261"),
            (["--layout", "burstgpt"], 1, "AKF-F250"),
            (["--layout", "mooncake"], 1, "AKF-F252"),
            (["--data-class", "secret"], 2, "AKF-F261"),
            (["--tokenizer", "\udcff"], 2, "AKF-F261"),
            (["--tokenizer", ""], 2, "AKF-F261"),
            (["--tokenizer", "/srv/models/Qwen3-8B"], 2, "AKF-F261"),
            (["--subset", "13"], 2, "AKF-F260"),
            (["--subset", "0"], 2, "AKF-F260"),
            (["--requests", "same", "--out", "./same"], 2, "AKF-F261"),
            (["--capture", "nowhere.json"], 1, "AKF-F001"),
        ],
    )
    def test_options_that_do_not_fit(self, tmp_path: Path, words: list[str], status: int, code: str) -> None:
        answer = inside("ingest", "trace", path_of(tmp_path, "azure"), "--onto", DRAFT, *words)
        assert answer.refused(status).codes == {code}

    def test_rows_that_ran_back_in_time_are_said(self, tmp_path: Path) -> None:
        path = text(tmp_path / "t.csv", [AZURE_HEADER, *map(azure, [*ROWS[6:], *ROWS[:6]])])
        assert inside("ingest", "trace", path, "--onto", DRAFT).accepted().document["rows_out_of_order"] == 1
