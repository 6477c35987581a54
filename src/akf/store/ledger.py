"""The ledger: what was published in a run, in order, each line chained to the one before.

Invariants:
- A line is a canonical JSON object and its newline; ``prev`` is the digest of the line before, newline
  included. The first line is the run's own: its ``prev`` and ``digest`` are the digest of ``run.json``.
- Lines are only ever added. A last line without its newline was never confirmed; `repair` cuts it.
- `read` is pure and verifies the whole chain: it returns every line or names the first one that does not
  hold.
- Writing happens under the run's lock: cut, write, flush; on a refusal the file is as long as before.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import canonical_bytes, digest, parse_canonical
from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.problems import AkfError, IntegrityError
from akf.store._system import DIRECTORY, storage
from akf.store.layout import LEDGER

EVENTS = frozenset({"run", "capture", "triage", "task", "candidate", "build", "plan", "resume", "gate", "decision"})

Facts = Mapping[str, str | int]

_FIELDS = frozenset({"seq", "prev", "event", "path", "digest", "facts"})
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAIL_BYTES = 65_536


class Line(NamedTuple):
    """One line of the ledger; `chain` is the digest of its bytes, the next line's ``prev``."""

    seq: int
    prev: str
    event: str
    path: str
    digest: str
    facts: Facts
    chain: str


def render(seq: int, prev: str, event: str, *, path: str, artifact: str, facts: Facts) -> bytes:
    """Return the bytes of one line, newline included.

    Raises:
        ValueError: A field is not what a ledger may hold.
    """
    value = {
        "digest": artifact, "event": event, "facts": dict(facts), "path": path, "prev": prev, "seq": seq,
    }  # fmt: skip
    wrong = _wrong(value)
    if wrong:
        raise ValueError(f"not a ledger line: {wrong[0]} must be {wrong[1]}")
    return canonical_bytes(value)


def opening(run_digest: str) -> bytes:
    """Return the first line of a new run's ledger."""
    return render(0, run_digest, "run", path="run.json", artifact=run_digest, facts={})


def complete(data: bytes) -> bytes:
    """Return the ledger's bytes without a last line that lacks its newline."""
    return data[: data.rfind(b"\n") + 1]


@lru_cache(maxsize=2)  # an audit reads one ledger once for every attempt
def read(data: bytes, run_digest: str) -> tuple[Line, ...]:
    """Verify a ledger from its first byte to its last and return its lines.

    Raises:
        IntegrityError: Names the first line that does not hold, what was expected and what was found.
    """
    if not data:
        raise _broken("AKF-I103", 1, "the ledger is empty", expected="the line of event run", found="no line")
    whole = complete(data)
    lines: list[Line] = []
    prev = run_digest
    for number, raw in enumerate(whole.split(b"\n")[:-1], 1):
        line = _parse(raw + b"\n", number)
        if line.seq != number - 1:
            raise _broken("AKF-I102", number, "its seq is out of order", expected=number - 1, found=line.seq)
        if line.prev != prev:
            raise _broken("AKF-I102", number, "it is not chained to the line before", expected=prev, found=line.prev)
        opens = (line.event, line.path, line.digest) == ("run", "run.json", run_digest)
        if opens is not (number == 1) or (line.event == "run" and number > 1):
            raise _broken(
                "AKF-I103",
                number,
                "the line of event run stands first, once, and names run.json",
                expected=f"run run.json {run_digest}" if number == 1 else "another event",
                found=f"{line.event} {line.path} {line.digest}",
            )
        lines.append(line)
        prev = line.chain
    if len(whole) < len(data):
        raise _broken("AKF-I104", len(lines) + 1, "it has no newline", expected="a newline", found="the end")
    return tuple(lines)


def head(lines: Sequence[Line]) -> str:
    """Return the digest that the next line names as its ``prev``."""
    return lines[-1].chain


def repair(run: Path) -> int:
    """Cut a last line without its newline, under the run's lock; return how many bytes went."""
    path = run / LEDGER
    with storage(path, "repair"):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return _cut(descriptor, _last_line(descriptor)[1])
        finally:
            os.close(descriptor)


def append(run: Path, event: str, path: str, artifact: str, facts: Facts | None = None) -> Line:
    """Add one durable line under the run's lock, after cutting what a crash left of a line.

    Args:
        run: The run's folder.
        event: One of `EVENTS`; ``run`` opens a ledger and stands nowhere else.
        path: The artifact's path relative to the run.
        artifact: The artifact's digest.
        facts: What the line binds besides, text and whole numbers.

    Raises:
        IntegrityError: The last line of the ledger is no line, or the ledger is empty and this is not its
            opening.
        StorageError: The file system refused; the ledger is as it was.
    """
    file = run / LEDGER
    with storage(file, "append to"):
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            raw, size = _last_line(descriptor)
            seq, prev = _successor(raw, event, artifact)
            data = render(seq, prev, event, path=path, artifact=artifact, facts=facts or {})
            _cut(descriptor, size)
            try:
                _write_and_flush(descriptor, data)
                if seq == 0:
                    _flush_folder(run)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
    return Line(seq, prev, event, path, artifact, dict(facts or {}), digest(data))


def _successor(raw: bytes, event: str, artifact: str) -> tuple[int, str]:
    if not raw:
        if event != "run":
            raise _broken("AKF-I103", 1, "the ledger is empty", expected="the line of event run", found="no line")
        return 0, artifact
    if event == "run":
        raise ValueError("the line of event run stands first")
    last = _parse(raw, None)
    return last.seq + 1, digest(raw)


def _last_line(descriptor: int) -> tuple[bytes, int]:
    """Return the last line with a newline, and where it ends."""
    size = os.fstat(descriptor).st_size
    start, tail = size, b""
    while start > 0:
        step = min(start, _TAIL_BYTES)
        start -= step
        tail = os.pread(descriptor, step, start) + tail
        end = tail.rfind(b"\n")
        if end >= 0:
            before = tail.rfind(b"\n", 0, end)
            if before >= 0 or start == 0:
                return tail[before + 1 : end + 1], start + end + 1
    return b"", 0


def _cut(descriptor: int, size: int) -> int:
    surplus = os.fstat(descriptor).st_size - size
    if surplus:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    return surplus


def _write_and_flush(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def _flush_folder(run: Path) -> None:
    folder = os.open(run, DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _parse(raw: bytes, number: int | None) -> Line:
    try:
        value = parse_canonical(raw, LEDGER).value
    except AkfError as error:
        raise _broken("AKF-I101", number, error.problems[0].message) from error
    wrong = _wrong(value)
    if wrong:
        field, rule = wrong
        raise _broken("AKF-I101", number, f"its {field} is not {rule}", expected=rule, found=_found(value, field))
    return Line(
        value["seq"],
        value["prev"],
        value["event"],
        value["path"],
        value["digest"],
        value["facts"],
        digest(raw),
    )


def _wrong(value: Any) -> tuple[str, str] | None:
    """Return the first field that is not what a line holds, and its rule."""
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        return "shape", f"an object of {', '.join(sorted(_FIELDS))}"
    rules = (
        ("seq", "a whole number from 0", _is_count(value["seq"])),
        ("prev", "a sha256 digest", _is_digest(value["prev"])),
        (
            "event",
            f"one of {', '.join(sorted(EVENTS))}",
            isinstance(value["event"], str) and value["event"] in EVENTS,
        ),
        ("path", "a relative path inside the run", _is_relative(value["path"])),
        ("digest", "a sha256 digest", _is_digest(value["digest"])),
        ("facts", "an object of text and whole numbers", _are_facts(value["facts"])),
    )
    return next(((field, rule) for field, rule, holds in rules if not holds), None)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_SAFE_INTEGER


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _is_relative(value: Any) -> bool:
    return (
        isinstance(value, str) and value.isprintable() and not any(part in ("", ".", "..") for part in value.split("/"))
    )


def _are_facts(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and (isinstance(item, str) or (type(item) is int and abs(item) <= MAX_SAFE_INTEGER))
        for key, item in value.items()
    )


def _found(value: Any, field: str) -> Any:
    return value.get(field) if isinstance(value, dict) and field in value else None


def _broken(code: str, number: int | None, reason: str, *, expected: Any = None, found: Any = None) -> IntegrityError:
    where = "the last line of the ledger" if number is None else f"line {number} of the ledger"
    return IntegrityError.of(
        code,
        f"{where} does not hold: {reason}",
        file=LEDGER,
        line=number,
        expected=expected,
        found=found,
        hint="restore the run from a copy: a ledger is never edited",
    )
