"""The bytes that a judgement or an audit reads, by run-relative path.

Invariants:
- Links are not followed; what is no plain file in the attempt is reported, not skipped.
- Of another attempt only those sample files are read that a gate of this one names, with the gate behind them.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import orjson

from akf.contracts.problems import IntegrityError, StorageError
from akf.store import layout
from akf.store.leftovers import is_temporary
from akf.store.verify import signature_path

_LOOKS = 8
_SAMPLE_PARTS = 5  # attempts/ID/samples/GATE/FILE
MAX_SAMPLES_BYTES = 1024 * 1024 * 1024


def attempt_files(run: Path, candidate: str) -> dict[str, bytes]:
    """Everything that is evidence for one attempt; a run that grows meanwhile is read again.

    Raises:
        IntegrityError: something in the attempt is no plain file.
        StorageError: a file cannot be read.
    """
    for _ in range(_LOOKS):
        files = _attempt_files(run, candidate)
        if files.get(layout.LEDGER) == _ledger(run):
            break
    return files


def _ledger(run: Path) -> bytes | None:
    return read_plain(run, layout.LEDGER) if os.path.lexists(run / layout.LEDGER) else None


def _attempt_files(run: Path, candidate: str) -> dict[str, bytes]:
    for folder in (layout.TRIAGE, layout.TASKS, layout.ATTEMPTS, f"{layout.ATTEMPTS}/{candidate}"):
        if (run / folder).is_symlink():
            raise IntegrityError.of("AKF-I221", f"{folder} is a symbolic link", file=folder)
    wanted = [slot.template for slot in layout.ARTIFACTS if "<" not in slot.template]
    wanted += [signature_path(path) for path in wanted] + [layout.LEDGER]
    for folder in (layout.TRIAGE, layout.TASKS):
        wanted += [layout.relative(run, path) for path in sorted((run / folder).glob("*.json"))]
    files = {path: read_plain(run, path) for path in wanted if os.path.lexists(run / path)}
    attempt = layout.attempt(run, candidate)
    for relative in plain_files(run, attempt):
        files[relative] = read_plain(run, relative)
    for relative in _shared(files, f"attempts/{candidate}/gates/"):
        if relative not in files and os.path.lexists(run / relative):
            files[relative] = read_plain(run, relative)
    return files


def plain_files(run: Path, folder: Path) -> list[str]:
    """Run-relative paths of all files below a folder, in order; leftovers of interrupted commands are not listed."""
    found: list[str] = []
    for base, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not is_temporary(name))
        links = [name for name in folders if (Path(base) / name).is_symlink()]
        found += [layout.relative(run, Path(base) / name) for name in [*names, *links] if not is_temporary(name)]
    return sorted(found)


def _unreadable(error: OSError) -> None:
    """A folder that cannot be listed must not pass for an empty one."""
    if not isinstance(error, FileNotFoundError):
        name = os.fsdecode(error.filename)
        raise StorageError.of("AKF-F110", f"{name} cannot be read: {error.strerror}", file=name) from error


def read_plain(run: Path, relative: str, most: int = MAX_SAMPLES_BYTES) -> bytes:
    """Bytes of a regular file of the run, at most `most` of them, no link followed.

    Raises:
        IntegrityError: it is missing, no regular file, or too large.
        StorageError: it cannot be read.
    """
    path = run / relative
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            what = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
            raise IntegrityError.of("AKF-I221", f"{relative} is {what}", file=relative)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IntegrityError.of("AKF-I202", f"{relative} is missing", file=relative) from error
    except OSError as error:
        raise StorageError.of("AKF-F110", f"{relative} cannot be read: {error.strerror}", file=relative) from error
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise IntegrityError.of("AKF-I221", f"{relative} is no regular file", file=relative)
        if status.st_size > most:
            raise IntegrityError.of("AKF-I224", f"{relative} has {status.st_size} bytes", file=relative)
        return stream.read()


def _shared(files: dict[str, bytes], gates: str) -> list[str]:
    """Sample files of other attempts that gates name; the paths are data until they are verified."""
    found: set[str] = set()
    for path, data in files.items():
        if not path.startswith(gates) or path.endswith(".sig.json"):
            continue
        try:
            entries = orjson.loads(data).get("samples", ())
            names = {str(entry["path"]) for entry in entries}
        except (ValueError, AttributeError, TypeError, KeyError):
            continue  # a gate that cannot be read is refused by `verify`
        for name in names:
            found |= set(_behind(name))
    return sorted(found)


def _behind(path: str) -> list[str]:
    """A sample file of an attempt, and the artifacts behind it; nothing for any other path."""
    parts = path.split("/")
    if (
        len(parts) != _SAMPLE_PARTS
        or parts[0] != layout.ATTEMPTS
        or parts[2] != "samples"
        or {"", ".", ".."} & set(parts)
    ):
        return []
    base, gate = f"{layout.ATTEMPTS}/{parts[1]}", parts[3]
    artifacts = [
        f"{base}/candidate.json",
        f"{base}/build.json",
        f"{base}/plan/{gate}.json",
        f"{base}/gates/{gate}.json",
    ]
    return [path, *artifacts, *map(signature_path, artifacts)]
