"""Bad input of any kind, by name: what stands where a JSON file is expected, and the exit status that says so."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from akf.contracts.limits import MAX_FILE_BYTES

INVALID, STORAGE = 1, 7


class Bad(NamedTuple):
    """One kind of bad input: `put` makes it at a path, from the bytes of a good file."""

    put: Callable[[Path, bytes], object]
    is_file: bool = True


def _write(change: Callable[[bytes], bytes]) -> Bad:
    return Bad(lambda path, good: path.write_bytes(change(good)))


def _socket(path: Path, _: bytes) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    here = Path.cwd()
    try:
        os.fchdir(folder)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)
        os.close(folder)


def _field(name: str, text: str) -> Bad:
    """The good file with one top-level field written anew."""

    def change(good: bytes) -> bytes:
        value = json.loads(good)
        value[name] = "MARK"
        return json.dumps(value).replace('"MARK"', text).encode()

    return _write(change)


def _twice(good: bytes) -> bytes:
    return good.rstrip().removesuffix(b"}") + b', "kind": "Campaign", "\\u006bind": "Campaign"}'


BAD: dict[str, Bad] = {
    "missing": Bad(lambda *_: None, is_file=False),
    "directory": Bad(lambda path, _: path.mkdir(), is_file=False),
    "fifo": Bad(lambda path, _: os.mkfifo(path), is_file=False),
    "socket": Bad(_socket, is_file=False),
    "symlink loop": Bad(lambda path, _: path.symlink_to(path.name), is_file=False),
    "dangling link": Bad(lambda path, _: path.symlink_to("nowhere"), is_file=False),
    "device": Bad(lambda path, _: path.symlink_to("/dev/zero"), is_file=False),
    "empty": _write(lambda _: b""),
    "spaces": _write(lambda _: b" \n"),
    "brackets": _write(lambda _: b"[" * 200_000),
    "deep objects": _write(lambda _: b'{"a":' * 200_000),
    "deep value": _field("title", "[" * 65 + "]" * 65),
    "too large": _write(lambda good: good + b" " * (MAX_FILE_BYTES + 1 - len(good))),
    "one long string": _write(lambda _: b'{"kind": "' + b"a" * (1 << 20) + b'"}'),
    "invalid utf-8": _write(lambda good: good.rstrip().removesuffix(b"}") + b', "title": "\xff\xfe"}'),
    "bom": _write(lambda good: b"\xef\xbb\xbf" + good),
    "utf-16": _write(lambda good: good.decode().encode("utf-16")),
    "duplicate keys": _write(_twice),
    "nan": _field("schema_version", "NaN"),
    "infinity": _field("schema_version", "-Infinity"),
    "huge number": _field("schema_version", "1e999"),
    "beyond safe": _field("schema_version", "9007199254740993"),
    "lone surrogate": _field("title", '"\\ud800"'),
    "trailing data": _write(lambda good: good + b"{}"),
    "comment": _write(lambda good: b"// json5\n" + good),
    "truncated": _write(lambda good: good[: len(good) // 2]),
    "array": _write(lambda good: b"[" + good + b"]"),
    "number": _write(lambda _: b"1"),
    "null": _write(lambda _: b"null"),
    "no kind": _write(lambda _: b"{}"),
    "unknown kind": _field("kind", '"Campain"'),
    "kind of a list": _field("kind", '["Campaign"]'),
    "another kind": _field("kind", '"Deployment"'),
    "unknown version": _field("schema_version", "2"),
    "version as text": _field("schema_version", '"1"'),
    "version as true": _field("schema_version", "true"),
    "unknown field": _field("titel", '"x"'),
    "look-alike id": _field("id", '"h\\u043est-demo"'),
    "id with a newline": _field("id", '"host-demo\\n"'),
    "id as a path": _field("id", '"../../etc/passwd"'),
    "long id": _field("id", json.dumps("a" * 64)),
    "terminal escapes": _field("id", '"\\u001b[2J\\u009b31m\\u202e"'),
}

HEAVY = ("too large", "one long string", "brackets", "deep objects")
FEW = (
    "missing", "directory", "fifo", "symlink loop", "empty", "brackets", "invalid utf-8", "bom", "duplicate keys",
    "nan", "unknown kind", "unknown version", "unknown field", "terminal escapes",
)  # fmt: skip
