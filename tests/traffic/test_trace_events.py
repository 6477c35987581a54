"""The events of a trace are read strictly, exactly and in pieces; what is wrong has a line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from akf.contracts.problems import InvalidError, Problem
from akf.traffic import events, unpacked
from akf.traffic.events import Trace
from akf.traffic.exact import nanoseconds


def written(folder: Path, text: str | bytes, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(path: Path) -> Problem:
    with pytest.raises(InvalidError) as caught:
        list(Trace(path))
    (problem,) = caught.value.problems
    return problem


def test_an_array_of_events(tmp_path: Path) -> None:
    path = written(tmp_path, '[{"ts": "1736408883704643.212", "dur": 53.7410625},\n {"ts": 5}]\n')
    trace = Trace(path)
    assert list(trace) == [{"ts": "1736408883704643.212", "dur": "53.7410625"}, {"ts": 5}]
    assert (trace.layout, trace.head) == ("array", {})


def test_an_object_with_fields_on_both_sides_of_the_events(tmp_path: Path) -> None:
    path = written(tmp_path, '{"schemaVersion": 1, "traceEvents": [{"ts": 1.50}], "traceName": "x"}')
    trace = Trace(path)
    assert list(trace) == [{"ts": "1.50"}]
    assert (trace.layout, trace.head) == ("object", {"schemaVersion": 1, "traceName": "x"})


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', ' { "traceEvents" : [ ] , "a" : 1 } '])
def test_a_trace_may_hold_no_events(tmp_path: Path, text: str) -> None:
    assert list(Trace(written(tmp_path, text))) == []


def test_a_packed_trace_is_known_by_its_bytes(tmp_path: Path) -> None:
    packed = gzip.compress(b'[{"ts": 1.25}]', mtime=0)
    assert list(Trace(written(tmp_path, packed, "trace.json"))) == [{"ts": "1.25"}]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_events_are_the_same_however_the_file_comes_in(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [{"name": "größe \u20ac 😀", "n": 123456, "deep": [{"a": [1, 2]}], "t": True}, {"x": None}]
    path = written(tmp_path, json.dumps({"head": 12345, "traceEvents": whole, "tail": 99}, ensure_ascii=False))
    monkeypatch.setattr(unpacked, "PIECE", size)
    trace = Trace(path)
    assert list(trace) == whole
    assert trace.head == {"head": 12345, "tail": 99}


@pytest.mark.parametrize(
    ("text", "code", "line", "says"),
    [
        ("", "AKF-F152", 1, "it is empty"),
        ("3", "AKF-F152", 1, "it starts with"),
        ('{"a": 1}', "AKF-F152", 1, "has no traceEvents"),
        ('{"traceEvents": {}}', "AKF-F152", 1, "no array"),
        ("[{},\n3]", "AKF-F152", 2, "an event is 3"),
        ('[{},\n\n{"a": 1]', "AKF-F150", 3, "Expecting"),
        ('[{},\n{"a": "x', "AKF-F150", 2, "cut off"),
        ("[{},\n", "AKF-F150", 2, "cut off"),
        ("[{}\n", "AKF-F150", 2, "cut off"),
        ('{"traceEvents": [{}]\n', "AKF-F150", 2, "cut off"),
        ('[{"a": tru', "AKF-F150", 1, "cut off"),
        ("[{}]\n[]", "AKF-F150", 2, "goes on after its end"),
        ("[{} {}]", "AKF-F150", 1, "comma"),
        ('[{},\n{"a": 1, "a": 2}]', "AKF-F150", 2, 'the key "a" stands twice'),
        ('[{"args": {"b": 1,\n "b": 2}}]', "AKF-F150", 1, 'the key "b" stands twice'),
        ('{"a": 1,\n"a": 2, "traceEvents": []}', "AKF-F150", 2, 'the key "a" stands twice'),
        ('{"traceEvents": [],\n"traceEvents": []}', "AKF-F150", 2, "stands twice"),
        ('[\n{"dur": NaN}]', "AKF-F150", 2, "NaN is no number"),
        ('[\n{"dur": -Infinity}]', "AKF-F150", 2, "-Infinity is no number"),
        ('[\n{"memory bandwidth (GB/s)": inf}]', "AKF-F150", 2, "Expecting value"),
        ('[{"a": "\x01"}]', "AKF-F150", 1, "control character"),
        ("\ufeff[]", "AKF-F150", 1, "byte order mark"),
        (b'[\n{"a": "\xff"}]', "AKF-F150", 2, "0xff is not valid UTF-8"),
        (b"\x1f\x8bgarbage", "AKF-F151", 1, "damaged"),
        (gzip.compress(b"[" + b'{"a": 1},\n' * 999 + b"{}]", mtime=0)[:-20], "AKF-F151", None, "damaged or cut off"),
        ("[" * 100_000, "AKF-F150", 1, "nests too deep"),
        ('[{"a": ' + "[" * 100_000, "AKF-F150", 1, "nests too deep"),
        ('[{"a": ' + "9" * 5_000 + "}]", "AKF-F150", 1, "too long"),
    ],
)
def test_malformed(tmp_path: Path, text: str | bytes, code: str, line: int | None, says: str) -> None:
    problem = refused(written(tmp_path, text))
    assert problem.code == code
    assert says in problem.message
    if line is not None:
        assert problem.line == line


def test_a_place_is_right_far_into_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "PIECE", 100)
    lines = ["[" + '{"a": 1},'] + ['{"a": "zeile"},'] * 500 + ['{"a": 1,, "b": 2}]']
    problem = refused(written(tmp_path, "\n".join(lines)))
    assert (problem.line, problem.column) == (502, 9)


def test_the_place_of_an_event_is_known_while_it_is_looked_at(tmp_path: Path) -> None:
    trace = Trace(written(tmp_path, '[{},\n   {"b": 1},\n{}]'))
    places = [(trace.problem("AKF-F153", "x").line, trace.problem("AKF-F153", "x").column) for _ in trace]
    assert places == [(1, 2), (2, 4), (3, 1)]


def test_a_value_without_an_end_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "PIECE", 1000)
    monkeypatch.setattr(events, "MAX_EVENT_CHARS", 5000)
    problem = refused(written(tmp_path, '[{"a": "' + "x" * 100_000))
    assert problem.code == "AKF-F154"
    honest = written(tmp_path, json.dumps([{"a": "x" * 4000}, {"a": "x" * 4000}]), "honest.json")
    assert len(list(Trace(honest))) == 2


def test_a_packed_file_is_not_unpacked_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "MAX_TRACE_BYTES", 1_000_000)
    bomb = gzip.compress(b"[" + b" " * 5_000_000 + b"]", mtime=0)
    assert refused(written(tmp_path, bomb)).code == "AKF-F154"


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("1736408883704643.212", 1736408883704643212),
        ("1736408883704643.212\t", 1736408883704643212),
        ("5211632495319.45", 5211632495319450),
        (1736408883704643, 1736408883704643000),
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.00051", 1),
        ("53.7410625", 53741),
        ("0", 0),
        ("-0.0", 0),
    ],
)
def test_times_are_exact(value: object, time: int) -> None:
    assert nanoseconds(value) == time


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("1.69512E+15", "exponent"),
        ("2e3", "exponent"),
        (-1, "negative"),
        ("-0.001", "negative"),
        ("", "not a number"),
        ("N/A", "not a number"),
        (None, "not a number"),
        (True, "not a number"),
        ("1,5", "not a number"),
        ("٣", "not a number"),
    ],
)
def test_what_is_no_time(value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        nanoseconds(value)
