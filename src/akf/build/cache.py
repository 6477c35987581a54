"""The frozen cache of a kernel that is compiled just in time: laid out, and held against what a launch asked for.

Invariants:
- A key is the arm's compiler's own, never made here; the manifest binds every file of its entry by digest.
- The cache is served read-only. A key that it does not hold is a failed check, whatever the compiler did about it; so
  is an entry that appeared, and a file that changed.
- One file of an entry says where the entry lies. It follows from the place and from the manifest, and is compared too.

Source of the form: `triton.runtime.cache.FileCacheManager` of triton-ascend 3.2.0. An entry is a folder named by its
key; `__grp__NAME.json` in it gives the absolute path of every file, and an entry without it is a miss.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.build.inspect import read_object
from akf.contracts.canonical import canonical_bytes, digest, digest_file
from akf.contracts.loader import parse
from akf.contracts.problems import AkfError, InvalidError
from akf.contracts.text import printable, show

MANIFEST = "cache.json"
MISS, CHANGED = "CACHE_MISS", "CACHE_CHANGED"
_GROUP = "__grp__"
_SHOWN = 16

Manifest = dict[str, Any]


class Finding(NamedTuple):
    """Why a cache does not hold, by reason code."""

    code: str
    message: str


def manifest(entries: Mapping[str, Mapping[str, tuple[str, bytes]]]) -> bytes:
    """The manifest of entries.

    Args:
        entries: by key, the entry's files: their name there, their path among the Build's outputs, their bytes.
    """
    rows = [
        {
            "key": key,
            "files": [
                {"name": name, "path": path, "digest": digest(data), "bytes": len(data)}
                for name, (path, data) in sorted(files.items())
            ],
        }
        for key, files in sorted(entries.items())
    ]
    return canonical_bytes({"entries": rows})


def lay_out(frozen: Manifest, build: Path, folder: Path) -> None:
    """Write the cache where it will be served from, read-only.

    Args:
        frozen: the manifest.
        build: the folder of the Build's outputs.
        folder: an empty folder; the compiler's cache variable will name it by this very path.
    """
    for entry in frozen["entries"]:
        place = folder / entry["key"]
        place.mkdir(parents=True)
        files = {each["name"]: read_object(build / each["path"]) for each in entry["files"]}
        for name, data in [*files.items(), *_group(entry, place).items()]:
            (place / name).write_bytes(data)
            (place / name).chmod(0o444)
        place.chmod(0o555)
    folder.chmod(0o555)


def check_folder(frozen: Manifest, folder: Path) -> list[Finding]:
    """What of a served cache is not what was frozen."""
    found = []
    wanted = {entry["key"]: entry for entry in frozen["entries"]}
    for name in sorted({each.name for each in folder.iterdir()} - set(wanted), key=os.fsencode):
        message = f"{printable(name)} appeared while serving: a launch was not answered from the cache"
        found.append(Finding(MISS, message))
    for key, entry in sorted(wanted.items()):
        place = folder / key
        if not place.is_dir() or place.is_symlink():
            found.append(Finding(CHANGED, f"the entry {key} is gone"))
            continue
        digests = {each["name"]: each["digest"] for each in entry["files"]}
        digests |= {name: digest(data) for name, data in _group(entry, place).items()}
        if _present(place) != digests:
            found.append(Finding(CHANGED, f"the entry {key} is not what was frozen"))
    return found


def check_keys(frozen: Manifest, asked: Iterable[str]) -> list[Finding]:
    """The keys that launches asked for and the cache does not hold."""
    held = {entry["key"] for entry in frozen["entries"]}
    missed = sorted(set(asked) - held)
    found = [Finding(MISS, f"a launch asked for {show(key)}, which is not frozen") for key in missed[:_SHOWN]]
    if len(missed) > _SHOWN:
        found.append(Finding(MISS, f"{len(missed) - _SHOWN} further keys are not frozen"))
    return found


def verify(frozen: Manifest, folder: Path, log: bytes, name: str) -> dict[str, Any]:
    """A check of a served cache: its folder, and the log of what launches asked for.

    Args:
        frozen: the manifest.
        folder: the cache that was served from.
        log: one JSON object a line, with the key that a launch asked for as `key`.
        name: how problems name the log.

    Returns:
        The check: outcome `pass` or `fail`, with reasons. A log without a launch passes nothing: it is `not_run`.
    """
    keys = read_log(log, name)
    findings = [*check_keys(frozen, keys), *check_folder(frozen, folder)]
    outcome = "fail" if findings else "pass" if keys else "not_run"
    value: dict[str, Any] = {"name": "frozen_cache", "outcome": outcome}
    if findings:
        value["reasons"] = list(dict.fromkeys(each.code for each in findings))
        value["note"] = "; ".join(each.message for each in findings)[:1000]
    return value


def read_log(log: bytes, name: str) -> list[str]:
    """The keys of a log.

    Raises:
        InvalidError: a line is no object with a key.
    """
    keys = []
    for number, line in enumerate(log.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = parse(line, name).value
        except AkfError:
            value = None
        key = value.get("key") if isinstance(value, dict) else None
        if not isinstance(key, str) or not key:
            message = f"line {number} of the launch log is no object with a `key`"
            raise InvalidError.of("AKF-S451", message, file=name, line=number, hint='{"key": "sSfXJ-PcDqR5KYl"}')
        keys.append(key)
    return keys


def _present(place: Path) -> dict[str, str]:
    """Digests of the plain files of a folder, by name; what else is there has none."""
    found = {}
    for each in place.iterdir():
        plain = stat.S_ISREG(each.lstat().st_mode)
        found[each.name] = digest_file(each) if plain else ""
    return found


def _group(entry: Manifest, place: Path) -> dict[str, bytes]:
    """The file that names where an entry's files lie, as the compiler writes it."""
    names = [each["name"] for each in entry["files"]]
    title = next(name for name in names if name.endswith(".json"))
    return {f"{_GROUP}{title}": orjson.dumps({"child_paths": {name: str(place / name) for name in names}})}
