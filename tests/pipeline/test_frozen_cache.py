"""The frozen cache, held against what a launch asked for: what is not exactly what was frozen fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from akf.build import cache
from akf.contracts.problems import InvalidError

KEYS = ("AAAAAAAA", "BBBBBBBB")


class Served:
    def __init__(self, folder: Path) -> None:
        entries: dict[str, dict[str, tuple[str, bytes]]] = {}
        for number, key in enumerate(KEYS):
            base = folder / "build" / f"s{number:02}"
            base.mkdir(parents=True)
            files = {"k.json": f"{number}".encode(), "k.npubin": b"binary" * (number + 1)}
            for name, data in files.items():
                (base / name).write_bytes(data)
            entries[key] = {name: (f"s{number:02}/{name}", data) for name, data in files.items()}
        self.manifest: dict[str, Any] = orjson.loads(cache.manifest(entries))
        self.folder = folder / "served"
        self.folder.mkdir()
        cache.lay_out(self.manifest, folder / "build", self.folder)

    def check(self, *asked: str) -> dict[str, Any]:
        log = "".join(json.dumps({"key": key, "kernel": "k"}) + "\n" for key in asked)
        return cache.verify(self.manifest, self.folder, log.encode(), "launches.jsonl")


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


def test_what_is_served_as_it_was_frozen_passes(served: Served) -> None:
    assert served.check(*KEYS, KEYS[0]) == {"name": "frozen_cache", "outcome": "pass"}
    group = json.loads((served.folder / KEYS[0] / "__grp__k.json").read_bytes())["child_paths"]
    assert {name: Path(path).read_bytes() for name, path in group.items()} == {"k.json": b"0", "k.npubin": b"binary"}
    assert not [path for path in served.folder.rglob("*") if path.stat().st_mode & 0o222]


def test_a_key_that_is_not_frozen_is_a_miss(served: Served) -> None:
    check = served.check(KEYS[0], "CCCCCCCC")
    assert (check["outcome"], check["reasons"]) == ("fail", ["CACHE_MISS"])
    assert "CCCCCCCC" in check["note"]


def test_a_log_without_a_launch_shows_nothing(served: Served) -> None:
    assert served.check()["outcome"] == "not_run"


@pytest.mark.parametrize("line", [b"softmax", b"[]", b"{}", b'{"key": 1}', b'{"key": ""}', b'{"key": "A", "key": "B"}'])
def test_a_line_that_cannot_be_read_is_not_skipped(served: Served, line: bytes) -> None:
    log = b'{"key": "AAAAAAAA"}\n' + line + b"\n"
    with pytest.raises(InvalidError, match="line 2"):
        cache.verify(served.manifest, served.folder, log, "launches.jsonl")


def _swap(folder: Path) -> None:
    for name in ("k.json", "k.npubin", "__grp__k.json"):
        one, other = (folder / key / name for key in KEYS)
        first, second = one.read_bytes(), other.read_bytes()
        for path, data in ((one, second), (other, first)):
            path.chmod(0o644)
            path.write_bytes(data)


def _write(path: Path, data: bytes) -> None:
    path.parent.chmod(0o755)
    if path.exists():
        path.chmod(0o644)
    path.write_bytes(data)


def _gone(path: Path) -> None:
    path.parent.chmod(0o755)
    path.unlink()


def _link(path: Path) -> None:
    data = path.read_bytes()
    _gone(path)
    path.with_name("other").write_bytes(data)
    path.symlink_to("other")


@pytest.mark.parametrize(
    ("tamper", "code"),
    [
        (lambda folder: _write(folder / KEYS[0] / "k.npubin", b"another"), "CACHE_CHANGED"),
        (lambda folder: _write(folder / KEYS[0] / "more", b""), "CACHE_CHANGED"),
        (lambda folder: _gone(folder / KEYS[1] / "k.json"), "CACHE_CHANGED"),
        (lambda folder: _gone(folder / KEYS[1] / "__grp__k.json"), "CACHE_CHANGED"),
        (lambda folder: _link(folder / KEYS[1] / "k.json"), "CACHE_CHANGED"),
        (_swap, "CACHE_CHANGED"),
        (lambda folder: (folder.chmod(0o755), (folder / "CCCCCCCC").mkdir()), "CACHE_MISS"),
    ],
    ids=["edited", "added", "deleted", "not found by its compiler", "a link", "swapped", "compiled while serving"],
)
def test_what_changed_is_found(served: Served, tamper: Callable[[Path], object], code: str) -> None:
    tamper(served.folder)
    check = served.check(*KEYS)
    assert (check["outcome"], check["reasons"]) == ("fail", [code])
