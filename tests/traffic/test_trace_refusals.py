"""What a trace must not be: each damage is one problem with its line, beside an honest control."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.bad import BAD
from tests.support.request_traces import (
    AZURE_HEADER,
    BURST3_HEADER,
    BURST_HEADER,
    EVERYTHING,
    Request,
    azure,
    bailian,
    burstgpt,
    draft,
    made,
    mooncake,
    text,
    timed,
    trace,
)

from akf.contracts.problems import AkfError, InvalidError, Problem, UsageError
from akf.traffic.traces import lines
from akf.traffic.traces.recognise import confirm, named
from akf.traffic.trouble import LISTED

ONE = Request(0, 1000, 20)
TWO = Request(3000, 600, 30)


def problems(*files: Path, **more: Any) -> list[Problem]:
    with pytest.raises(AkfError) as caught:
        trace(*files, **more)
    return list(caught.value.problems)


def one(*files: Path, **more: Any) -> Problem:
    (problem,) = problems(*files, **more)
    return problem


def changed(line: str, **fields: Any) -> str:
    return json.dumps({**json.loads(line), **fields})


def raw(line: str, field: str, value: str) -> str:
    """The line with a field's value as it is written here."""
    return changed(line, **{field: "@"}).replace('"@"', value)


JSON_DAMAGE = [
    ("NaN tokens", raw(mooncake(TWO), "input_length", "NaN"), "AKF-F253"),
    ("infinite tokens", raw(mooncake(TWO), "input_length", "Infinity"), "AKF-F253"),
    ("negative tokens", changed(mooncake(TWO), output_length=-1), "AKF-F253"),
    ("half a token", raw(mooncake(TWO), "output_length", "30.5"), "AKF-F253"),
    ("a float that is whole", raw(mooncake(TWO), "output_length", "30.0"), "AKF-F253"),
    ("tokens as text", changed(mooncake(TWO), output_length="30"), "AKF-F253"),
    ("tokens as a truth value", changed(mooncake(TWO), output_length=True), "AKF-F253"),
    ("no tokens", changed(mooncake(TWO), output_length=None), "AKF-F253"),
    ("more tokens than any model takes", changed(mooncake(TWO), output_length=(1 << 24) + 1), "AKF-F253"),
    ("a number of ten thousand digits", raw(mooncake(TWO), "output_length", "9" * 10_000), "AKF-F252"),
    ("seconds among milliseconds", raw(mooncake(TWO), "timestamp", "3.0"), "AKF-F254"),
    ("an exponent", raw(mooncake(TWO), "timestamp", "1.69512E+15"), "AKF-F254"),
    ("a negative time", changed(mooncake(TWO), timestamp=-1), "AKF-F254"),
    ("a time as text", changed(mooncake(TWO), timestamp="3000"), "AKF-F254"),
    ("a time beyond any clock", changed(mooncake(TWO), timestamp=10**17), "AKF-F254"),
    ("blocks of 16 tokens", changed(mooncake(TWO), hash_ids=list(range(38))), "AKF-F255"),
    ("a block too few", changed(mooncake(TWO), hash_ids=[0]), "AKF-F255"),
    ("blocks that are no list", changed(mooncake(TWO), hash_ids="0 1"), "AKF-F255"),
    ("a block that is no number", changed(mooncake(TWO), hash_ids=[0, "1"]), "AKF-F255"),
    ("a negative block", changed(mooncake(TWO), hash_ids=[0, -1]), "AKF-F255"),
    ("a missing field", '{"timestamp": 3000, "input_length": 600, "output_length": 30}', "AKF-F252"),
    ("a field twice", '{"timestamp": 1, "timestamp": 2, "input_length": 1, "output_length": 1, "hash_ids": [0]}',
     "AKF-F252"),
    ("a line that ends early", mooncake(TWO)[:40], "AKF-F252"),
    ("two objects in a line", mooncake(TWO) * 2, "AKF-F252"),
    ("an array", "[1, 2]", "AKF-F252"),
    ("an empty line", "", "AKF-F252"),
    ("a thousand brackets", "[" * 100_000, "AKF-F252"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code"), [row[1:] for row in JSON_DAMAGE], ids=[row[0] for row in JSON_DAMAGE])
def test_a_damaged_line_of_json_is_refused_with_its_number(tmp_path: Path, line: str, code: str) -> None:
    path = text(tmp_path / "t.jsonl", [mooncake(ONE), line, mooncake(TWO)])
    problem = one(path)
    assert (problem.code, problem.file, problem.line) == (code, str(path), 2)
    assert len(trace(text(tmp_path / "honest.jsonl", [mooncake(ONE), mooncake(TWO)])).requests) == 2


CSV_DAMAGE = [
    ("a cell too few", "2023-11-16 18:15:47.6805900,374", "AKF-F252"),
    ("a cell too many", azure(TWO) + ",1", "AKF-F252"),
    ("an open quote", '"' + azure(TWO), "AKF-F252"),
    ("no UTF-8", azure(TWO).replace("600", "6\udcff0"), "AKF-F252"),
    ("a float", azure(TWO).replace("600", "600.0"), "AKF-F253"),
    ("a sign", azure(TWO).replace("600", "-600"), "AKF-F253"),
    ("a number in another script", azure(TWO).replace("600", "٦٠٠"), "AKF-F253"),
    ("NaN", azure(TWO).replace("600", "nan"), "AKF-F253"),
    ("nothing", azure(TWO).replace("600", ""), "AKF-F253"),
    ("a unit", azure(TWO).replace("600", "600 tok"), "AKF-F253"),
    ("a date of a spreadsheet", azure(TWO).replace("2023-11-16", "11/16/2023"), "AKF-F254"),
    ("seconds", "3.0,600,30", "AKF-F254"),
    ("a month that is none", azure(TWO).replace("-11-", "-13-"), "AKF-F254"),
    ("an hour that is none", azure(TWO).replace(" 15:", " 25:"), "AKF-F254"),
    ("a year after 64 bits", azure(TWO).replace("2023", "9023"), "AKF-F254"),
    ("a year before any clock", azure(TWO).replace("2023", "0023"), "AKF-F254"),
    ("a second that is none", azure(TWO).replace(":03.", ":61."), "AKF-F254"),
    ("ten decimals", azure(TWO).replace(".0000000", ".0000000000"), "AKF-F254"),
    ("a zone among none", azure(TWO).replace(".0000000", ".0000000+00:00"), "AKF-F254"),
]


@pytest.mark.parametrize(("line", "code"), [row[1:] for row in CSV_DAMAGE], ids=[row[0] for row in CSV_DAMAGE])
def test_a_damaged_row_is_refused_with_its_number(tmp_path: Path, line: str, code: str) -> None:
    path = tmp_path / "t.csv"
    rows = [AZURE_HEADER, azure(ONE), line, azure(TWO)]
    path.write_bytes("\r\n".join(rows).encode("utf-8", "surrogateescape"))
    problem = one(path)
    assert (problem.code, problem.file, problem.line) == (code, str(path), 3)
    honest = tmp_path / "honest.csv"
    honest.write_bytes("\r\n".join([AZURE_HEADER, azure(ONE), azure(TWO)]).encode())
    assert len(trace(honest).requests) == 2


def test_seconds_of_bailian_without_a_point_are_milliseconds_and_refused(tmp_path: Path) -> None:
    line = changed(bailian(TWO), timestamp=3000)
    problem = one(text(tmp_path / "t.jsonl", [bailian(ONE), line]))
    assert (problem.code, problem.line) == ("AKF-F254", 2)
    assert "--sec-multiplier 0.001" in (problem.hint or "")


def test_blocks_of_the_other_size_are_named(tmp_path: Path) -> None:
    line = changed(mooncake(ONE), hash_ids=list(range(63)))
    problem = one(text(tmp_path / "t.jsonl", [line]))
    assert problem.code == "AKF-F255"
    assert "1000 tokens are 2 blocks of 512, hash_ids holds 63; 63 would be blocks of 16" in problem.message


def test_tokens_of_burstgpt_must_add_up(tmp_path: Path) -> None:
    rows = [BURST_HEADER, burstgpt(ONE), burstgpt(TWO).replace(",630,", ",631,")]
    problem = one(text(tmp_path / "t.csv", rows))
    assert (problem.code, problem.line, problem.expected, problem.found) == ("AKF-F266", 3, 630, 631)


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (gzip.compress(b"x", mtime=0), "AKF-F265", "gunzip"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "AKF-F265", "git lfs pull"),
        (b"\xef\xbb\xbf" + AZURE_HEADER.encode(), "AKF-F265", "byte order mark"),
        ("TIMESTAMP".encode("utf-16"), "AKF-F265", "UTF-8"),
        (b"PAR1....", "AKF-F265", "export"),
        (b"", "AKF-F250", "one request a line"),
        (b"a,b,c\n1,2,3\n", "AKF-F250", "--layout"),
        (b'{"ts": 1}\n', "AKF-F250", "--layout"),
        (b"ContextTokens,GeneratedTokens\n1,2\n", "AKF-F250", "--layout"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens,Extra\n", "AKF-F250", "--layout"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_trace_says_what_it_is(tmp_path: Path, data: bytes, code: str, said: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(data)
    problem = one(path)
    assert problem.code == code
    assert said in (problem.hint or "")


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "device"])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    BAD[kind].put(tmp_path / "t.jsonl", b"")
    assert one(tmp_path / "t.jsonl").code in {"AKF-F001", "AKF-F002"}


def test_a_line_beyond_the_limit_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(lines, "BLOCK", 500)
    path = text(tmp_path / "t.jsonl", [mooncake(ONE), " " * 5000 + mooncake(TWO)])
    assert (one(path).code, one(path).line) == ("AKF-F252", 2)


def test_a_header_alone_is_no_trace(tmp_path: Path) -> None:
    assert one(text(tmp_path / "t.csv", [AZURE_HEADER])).code == "AKF-F259"


def test_all_damages_are_listed_up_to_a_number_and_the_rest_counted(tmp_path: Path) -> None:
    rows = [AZURE_HEADER, azure(ONE), *["short"] * (LISTED + 7)]
    found = problems(text(tmp_path / "t.csv", rows))
    assert len(found) == LISTED + 1
    assert [problem.line for problem in found[:LISTED]] == list(range(3, 3 + LISTED))
    assert (found[-1].code, found[-1].message.split()[0]) == ("AKF-F264", "7")


def test_files_of_two_layouts_and_one_file_twice_are_no_trace(tmp_path: Path) -> None:
    first = text(tmp_path / "a.jsonl", [mooncake(ONE)])
    second = text(tmp_path / "b.csv", [AZURE_HEADER, azure(ONE)])
    assert one(first, second).code == "AKF-F257"
    twin = text(tmp_path / "c.csv", [AZURE_HEADER, azure(ONE)])
    assert one(second, twin).code == "AKF-F257"


def test_parts_of_one_trace_have_the_same_columns(tmp_path: Path) -> None:
    plain = text(tmp_path / "a.csv", [BURST_HEADER, burstgpt(ONE)])
    session = text(tmp_path / "b.csv", [BURST3_HEADER, "3.0,7,1,ChatGPT,600,30,630,API log"])
    found = one(plain, session)
    assert (found.code, found.file, found.line) == ("AKF-F257", str(session), 1)
    assert [len(trace(alone).requests) for alone in (plain, session)] == [1, 1]


def test_parts_that_count_from_their_own_start_must_follow_one_another(tmp_path: Path) -> None:
    first = text(tmp_path / "a.jsonl", [mooncake(ONE), mooncake(TWO)])
    overlapping = text(tmp_path / "b.jsonl", [mooncake(Request(2999, 600, 30))])
    following = text(tmp_path / "c.jsonl", [mooncake(Request(3000, 700, 30))])
    problem = one(first, overlapping)
    assert (problem.code, problem.file) == ("AKF-F257", str(overlapping))
    assert len(trace(following, first).requests) == 3
    rows = [[AZURE_HEADER, azure(ONE), azure(TWO)], [AZURE_HEADER, azure(Request(1500, 10, 10))]]
    dated = [text(tmp_path / f"{number}.csv", each) for number, each in enumerate(rows)]
    assert len(trace(*dated).requests) == 3, "dates are one clock, and these files have no blocks"


@pytest.mark.parametrize(
    ("chats", "line"),
    [
        ([(1, 1)], 1),
        ([(1, -1), (-1, 1)], 2),
        ([(1, -1), (2, 1), (2, -1)], 3),
        ([(5, -1), (1, 3), (2, 1), (3, 2)], 2),
        ([(1, "x")], 1),
    ],
)
def test_chats_that_contradict_each_other(tmp_path: Path, chats: list[tuple[int, Any]], line: int) -> None:
    rows = [
        bailian(Request(index * 1000, 100, 10, chat=chat, parent=parent)) for index, (chat, parent) in enumerate(chats)
    ]
    problem = one(text(tmp_path / "t.jsonl", rows))
    assert (problem.code, problem.line) == ("AKF-F256", line)


@pytest.mark.parametrize("kind", ["1.5", "1", "null", "NaN", '""', '"' + "x" * 65 + '"'])
def test_a_kind_is_a_short_text(tmp_path: Path, kind: str) -> None:
    problem = one(text(tmp_path / "t.jsonl", [bailian(ONE), raw(bailian(TWO), "type", kind)]))
    assert (problem.code, problem.line) == ("AKF-F252", 2)


def test_too_many_kinds_are_another_column(tmp_path: Path) -> None:
    rows = [bailian(Request(index * 1000, 100, 10, chat=index, kind=f"kind {index}")) for index in range(66)]
    found = problems(text(tmp_path / "t.jsonl", rows))
    assert {problem.code for problem in found} == {"AKF-F252"}
    assert [problem.line for problem in found] == [65, 66]


def test_a_trace_that_any_block_size_fits_must_be_named() -> None:
    confirm(named("mooncake"), 513)
    confirm(named("bailian"), 5)
    with pytest.raises(UsageError) as caught:
        confirm(named("mooncake"), 512)
    assert caught.value.problems[0].code == "AKF-F251"


@pytest.mark.parametrize("multiplier", ["0", "-1", "1e-12", "x", "nan", "1/0", "1/3", "100000", "1" * 30])
def test_a_unit_must_be_whole_nanoseconds(multiplier: str) -> None:
    with pytest.raises(UsageError) as caught:
        timed(multiplier)
    assert caught.value.problems[0].code == "AKF-F261"


def test_a_trace_too_long_for_exact_numbers_is_refused(tmp_path: Path) -> None:
    rows = [BURST_HEADER, burstgpt(ONE), burstgpt(Request(105 * 86_400_000, 600, 30))]
    with pytest.raises(InvalidError) as caught:
        made(draft(EVERYTHING), text(tmp_path / "t.csv", rows))
    assert caught.value.problems[0].code == "AKF-F254"


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    turned = "ContextTokens,TIMESTAMP,GeneratedTokens"
    path = text(tmp_path / "t.csv", [turned, "7,2023-11-16 18:15:47.6805900,9"])
    requests = trace(path).requests
    assert (requests.inputs[0], requests.outputs[0]) == (7, 9)
    newer = text(tmp_path / "b.csv", [BURST3_HEADER, "19440110.0,s1,43,GPT-4,906,446,1352,Conversation log"])
    assert trace(newer).requests.sessions == ["s1"]
