"""The ledger is a chain: whatever was changed, moved, added or taken out is found and named."""

import os
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.mounts import mounted
from tests.support.process import together

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.problems import IntegrityError, StorageError
from akf.store.ledger import EVENTS, Line, append, complete, head, opening, read, render, repair
from akf.store.lock import RunLock

RUN = digest(b"run")
ARTIFACT = digest(b"artifact")


def ledger_of(length: int) -> bytes:
    data = opening(RUN)
    prev = digest(data)
    for seq in range(1, length):
        line = render(seq, prev, "task", path=f"tasks/t{seq}.json", artifact=ARTIFACT, facts={"n": seq, "who": "a"})
        data += line
        prev = digest(line)
    return data


@pytest.fixture
def run(tmp_path: Path) -> Path:
    append(tmp_path, "run", "run.json", RUN)
    return tmp_path


def content(run: Path) -> bytes:
    return (run / "ledger.jsonl").read_bytes()


def test_what_is_appended_is_read(run: Path) -> None:
    facts: dict[str, str | int] = {"candidate": "c1", "gate": "operator", "secret_sha256": "0" * 64, "n": 3}
    written = append(run, "plan", "attempts/c1/plan/operator.json", ARTIFACT, facts)
    lines = read(content(run), RUN)
    assert lines[1] == written == Line(1, lines[0].chain, "plan", written.path, ARTIFACT, facts, written.chain)
    assert head(lines) == written.chain == digest(content(run).splitlines(keepends=True)[1])
    assert content(run).startswith(opening(RUN))


def test_appending_ten_lines_gives_the_bytes_of_ten_lines(run: Path) -> None:
    for seq in range(1, 10):
        append(run, "task", f"tasks/t{seq}.json", ARTIFACT, {"n": seq, "who": "a"})
    assert content(run) == ledger_of(10)
    assert [line.seq for line in read(content(run), RUN)] == list(range(10))


def refused(data: bytes, run_digest: str = RUN) -> tuple[str, int]:
    with pytest.raises(IntegrityError) as error:
        read(data, run_digest)
    problem = error.value.problems[0]
    assert problem.file == "ledger.jsonl"
    assert problem.line is not None
    assert f"line {problem.line} of the ledger" in problem.message
    return problem.code, problem.line


def test_every_changed_byte_is_found_at_its_line_or_the_next() -> None:
    data = ledger_of(4)
    bound = data.rindex(b"\n", 0, -1) + 1  # the last line is bound by what comes after it
    for position in range(bound):
        for other in (data[position] ^ 1, ord("x"), ord("\n")):
            if other == data[position]:
                continue
            changed = data[:position] + bytes([other]) + data[position + 1 :]
            number = data[:position].count(b"\n") + 1
            assert refused(changed)[1] in (number, number + 1), changed


def test_lines_cannot_be_moved_added_or_taken_out() -> None:
    lines = ledger_of(5).splitlines(keepends=True)
    for at in range(4):
        assert refused(b"".join(lines[:at] + lines[at + 1 :]))[1] == at + 1
        assert refused(b"".join([*lines[:at], lines[at], *lines[at:]]))[1] == at + 2
        swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
        assert refused(b"".join(swapped))[1] == at + 1


def test_the_message_names_expected_and_found() -> None:
    lines = ledger_of(3).splitlines(keepends=True)
    with pytest.raises(IntegrityError) as error:
        read(lines[0] + lines[1].replace(b"tasks/t1", b"tasks/t7") + lines[2], RUN)
    problem = error.value.problems[0]
    assert (problem.code, problem.line) == ("AKF-I102", 3)
    assert problem.expected == digest(lines[1].replace(b"tasks/t1", b"tasks/t7"))
    assert problem.found == digest(lines[1])


def test_a_ledger_belongs_to_one_run() -> None:
    assert refused(ledger_of(2), digest(b"another run")) == ("AKF-I102", 1)
    assert refused(b"") == ("AKF-I103", 1)
    other = render(0, RUN, "task", path="tasks/a.json", artifact=ARTIFACT, facts={})
    assert refused(other) == ("AKF-I103", 1)
    again = render(1, digest(opening(RUN)), "run", path="run.json", artifact=RUN, facts={})
    assert refused(opening(RUN) + again) == ("AKF-I103", 2)


@pytest.mark.parametrize(
    "change",
    [
        {"seq": True}, {"seq": 1.5}, {"seq": -1}, {"seq": "1"}, {"prev": "sha256:00"}, {"prev": None},
        {"event": "other"}, {"event": ["task"]}, {"path": "/etc/passwd"}, {"path": "../x"}, {"path": "a//b"},
        {"path": ""}, {"path": "a\nb"}, {"path": 1}, {"digest": "md5:0"}, {"facts": []}, {"facts": {"a": None}},
        {"facts": {"a": True}}, {"facts": {"a": 1.5}}, {"facts": {"a": {}}}, {"extra": 1},
    ],
)  # fmt: skip
def test_a_line_holds_nothing_else(change: dict[str, object]) -> None:
    first = opening(RUN)
    line = {"seq": 1, "prev": digest(first), "event": "task", "path": "a.json", "digest": ARTIFACT, "facts": {}}
    read(first + canonical_bytes(line), RUN)
    assert refused(first + canonical_bytes(line | change)) == ("AKF-I101", 2)
    if change not in ({"extra": 1}, {"facts": []}):
        given = line | change
        with pytest.raises(ValueError, match="not a ledger line"):
            render(
                given["seq"], given["prev"], given["event"],  # type: ignore[arg-type]
                path=given["path"], artifact=given["digest"], facts=given["facts"],  # type: ignore[arg-type]
            )  # fmt: skip


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\n", b'{"a":1,"a":1}\n', b" \n", b"\r\n"])
def test_a_line_that_is_no_line_is_named(line: bytes) -> None:
    assert refused(opening(RUN) + line) == ("AKF-I101", 2)


def test_one_spelling_only() -> None:
    first = opening(RUN)
    for spaced in (first.replace(b":", b": ", 1), first.replace(b"\n", b"\r\n"), first.replace(b"run", b"\\u0072un")):
        assert refused(spaced) == ("AKF-I101", 1)


def test_an_unfinished_last_line_is_cut_at_every_length(run: Path) -> None:
    append(run, "task", "tasks/t1.json", ARTIFACT, {"n": 1, "who": "a"})
    whole, keep = content(run), len(opening(RUN))
    for length in range(keep + 1, len(whole)):
        torn = whole[:length]
        assert refused(torn) == ("AKF-I104", 2)
        assert complete(torn) == whole[:keep]
        (run / "ledger.jsonl").write_bytes(torn)
        assert repair(run) == length - keep
        assert repair(run) == 0
        (run / "ledger.jsonl").write_bytes(torn)
        append(run, "task", "tasks/t1.json", ARTIFACT, {"n": 1, "who": "a"})
        assert content(run) == whole


def test_a_torn_opening_is_opened_again(run: Path) -> None:
    for length in range(len(opening(RUN))):
        (run / "ledger.jsonl").write_bytes(opening(RUN)[:length])
        append(run, "run", "run.json", RUN)
        assert content(run) == opening(RUN)


def test_lines_longer_than_a_block_are_found(run: Path) -> None:
    facts = {str(number): "x" * 1000 for number in range(300)}
    for number in range(3):
        append(run, "task", f"tasks/t{number}.json", ARTIFACT, facts)
        (run / "ledger.jsonl").write_bytes(content(run) + b"x" * 100_000)
    repair(run)
    assert len(read(content(run), RUN)) == 4


def test_nothing_is_appended_to_what_does_not_hold(run: Path) -> None:
    before = content(run)
    with pytest.raises(ValueError, match="stands first"):
        append(run, "run", "run.json", RUN)
    with pytest.raises(ValueError, match="not a ledger line: event"):
        append(run, "holiday", "a.json", ARTIFACT)
    assert content(run) == before
    (run / "ledger.jsonl").write_bytes(before + b"{}\n")
    with pytest.raises(IntegrityError, match="the last line of the ledger"):
        append(run, "task", "tasks/t1.json", ARTIFACT)
    (run / "ledger.jsonl").write_bytes(b"")
    with pytest.raises(IntegrityError, match="the ledger is empty"):
        append(run, "task", "tasks/t1.json", ARTIFACT)
    assert content(run) == b""


def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=16k") as small:
        append(small, "run", "run.json", RUN)
        before = b""
        with pytest.raises(StorageError) as full:  # noqa: PT012 - which append fails depends on the page size
            while True:
                before = content(small)
                append(small, "task", "tasks/t.json", ARTIFACT, {"text": "x" * 3000})
        assert full.value.problems[0].code == "AKF-F101"
        assert content(small) == before
        assert len(read(before, RUN)) > 2


def test_a_ledger_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"data")
    (tmp_path / "ledger.jsonl").symlink_to("precious")
    for action in (lambda: append(tmp_path, "run", "run.json", RUN), lambda: repair(tmp_path)):
        with pytest.raises(StorageError):
            action()
    assert (tmp_path / "precious").read_bytes() == b"data"


def test_under_the_lock_many_processes_make_one_chain(run: Path) -> None:
    def write(who: int) -> None:
        for number in range(5):
            with RunLock(run, wait_s=30):
                append(run, "task", f"tasks/{who}-{number}.json", ARTIFACT, {"pid": os.getpid()})

    together([partial(write, who) for who in range(4)])
    lines = read(content(run), RUN)
    assert len(lines) == 21
    assert sorted(re.findall(r"\d-\d", " ".join(line.path for line in lines))) == [
        f"{who}-{number}" for who in range(4) for number in range(5)
    ]


text = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(EVENTS - {"run"})),
            st.dictionaries(text, text | st.integers(-(2**53) + 1, 2**53 - 1), max_size=4),
        ),
        max_size=6,
    )
)
def test_whatever_facts_are_bound_come_back(entries: list[tuple[str, dict[str, str | int]]]) -> None:
    data = opening(RUN)
    prev = digest(data)
    for seq, (event, facts) in enumerate(entries, 1):
        line = render(seq, prev, event, path="a/b.json", artifact=ARTIFACT, facts=facts)
        data, prev = data + line, digest(line)
    assert [(line.event, line.facts) for line in read(data, RUN)[1:]] == entries


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        read(opening(RUN) + data + b"x", RUN)
