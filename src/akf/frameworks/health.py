"""The baseline's health, as far as a framework's log tells it.

Invariants:
1. Which lines tell what is the arm's data (`[[log]]` in `arms/*.toml`). What no line tells is not stated: it is neither
   healthy nor unhealthy.
2. A log is read as a stream of bounded lines; what is not text, or does not fit, is cut and never an error of its own.
3. A remark begins where its pattern matches, so that neither time, process nor host of the line enters; paths,
   addresses and accounts in what follows are replaced. Remarks are few, short, each kept once, in their order.
4. The eager share counts what a graph should have answered: steps that a captured size covers, or decode batches where
   the log names them. Steps beyond every captured size are a remark, because the log does not say what they were.
5. Several logs tell what one log of all their lines would.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from akf.contracts.digests import digest_file
from akf.contracts.files import open_regular
from akf.contracts.problems import InvalidError
from akf.contracts.text import printable
from akf.frameworks.arms import arm as arm_data

MAX_LINE_BYTES = 16 * 1024
MAX_REMARKS = 32
MAX_SEARCHED = 20_000
MAX_REMARK = 300
_LOOKED_AT = 4 * MAX_REMARK
_MAX_SIZES = 4096
_SIZE = re.compile(r" *\d{1,9} *")
_PAINT = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_REDACTED = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<![\w.])(?:~|\.{1,2})?/[^\s'\"<>:,;)\]]+"), "<path>"),
    (re.compile(r"\b[A-Za-z]:\\[^\s'\"<>]+"), "<path>"),
    (re.compile(r"\b[\w.-]+@[\w.-]+"), "<account>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<address>"),
    (re.compile(r"\b(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}\b", re.IGNORECASE), "<address>"),
    (re.compile(r"\b(?:host(?:name)?|user(?:name)?|node)[=:]\s*[\w.-]+", re.IGNORECASE), "<account>"),
)


class Evidence:
    """What the logs of one service tell.

    Args:
        arm: whose logs they are.
    """

    def __init__(self, arm: str) -> None:
        self.lines = 0
        self.told = 0
        self.replay_seen = False
        self.settings: dict[str, Any] = {}
        self._rules = _rules(arm)
        self._remarks: dict[str, None] = {}
        self._recompiles: int | None = None
        self._buckets: dict[int, list[int]] = {}
        self._eager: dict[int, int] = {}
        self._captured: set[int] = set()
        self._steps = [0, 0]
        self._numbers: dict[str, tuple[int, Mapping[str, Any], str]] = {}

    def read(self, path: str | os.PathLike[str]) -> None:
        """Take in one more log.

        Raises:
            InvalidError: it is missing, no plain file, or holds no text.
            StorageError: the system refuses or fails.
        """
        for line in _lines(path):
            self.lines += 1
            for pattern, rule in self._rules:
                match = pattern.search(line)
                if match is not None:
                    self.told += 1
                    self._take(rule, match)

    def health(self) -> dict[str, Any]:
        """Return a Capture's `health`; empty when nothing was told."""
        found: dict[str, Any] = {}
        share = self._eager_share()
        if share is not None:
            found["eager_share_ratio"] = share
        if self._buckets:
            found["buckets"] = [
                {"size_tokens": size, "replays": replays, "padded_tokens": padded}
                for size, (replays, padded) in sorted(self._buckets.items())
            ]
        if self._recompiles is not None:
            found["recompiles"] = self._recompiles
        if "custom_operators" in self.facts():
            found["custom_operators"] = self.facts()["custom_operators"]
        remarks = [*self._remarks, *self._late_remarks()]
        if remarks:
            found["remarks"] = remarks[:MAX_REMARKS]
        return found

    def facts(self) -> dict[str, Any]:
        """Return the settings that the logs show to be in force."""
        zero = {
            rule["zero"]["setting"]: rule["zero"]["value"] for total, rule, _ in self._numbers.values() if not total
        }
        return {**self.settings, **zero}

    def _take(self, rule: Mapping[str, Any], match: re.Match[str]) -> None:
        tells = {"bucket": self._bucket, "captured": self._sizes, "number": self._number, "setting": self._setting}
        if rule["tells"] in tells:
            tells[rule["tells"]](rule, match)
        elif rule["tells"] == "step":
            self._steps[match["graph"] == "True"] += 1
        elif rule["tells"] == "recompile":
            self._recompiles = (self._recompiles or 0) + 1
        elif rule["tells"] == "replay":
            self.replay_seen = True
        if rule.get("remark") and len(self._remarks) < MAX_REMARKS:
            self._remarks.setdefault(_redacted(match))

    def _bucket(self, _rule: Mapping[str, Any], match: re.Match[str]) -> None:
        unpadded, size, padded, count = (int(match[name]) for name in ("unpadded", "padded", "paddings", "count"))
        if match["mode"] == "NONE":
            self._eager[unpadded] = self._eager.get(unpadded, 0) + count
        elif size and (size in self._buckets or len(self._buckets) < _MAX_SIZES):
            bucket = self._buckets.setdefault(size, [0, 0])
            bucket[0] += count
            bucket[1] += padded * count

    def _sizes(self, _rule: Mapping[str, Any], match: re.Match[str]) -> None:
        self._captured.update(int(size) for size in match["sizes"].split(",") if _SIZE.fullmatch(size))

    def _number(self, rule: Mapping[str, Any], match: re.Match[str]) -> None:
        total, _, text = self._numbers.get(rule["pattern"], (0, rule, _redacted(match)))
        self._numbers[rule["pattern"]] = (total + int(match["number"]), rule, text)

    def _setting(self, rule: Mapping[str, Any], match: re.Match[str]) -> None:
        self.settings[rule["setting"]] = rule["value"] if "value" in rule else match["value"]

    def _eager_share(self) -> float | None:
        replays = sum(replays for replays, _ in self._buckets.values())
        graph, eager = self._steps[1] + replays, self._steps[0] + sum(count for _, count in self._covered())
        return eager / (graph + eager) if graph + eager else None

    def _covered(self) -> list[tuple[int, int]]:
        largest = max((*self._buckets, *self._captured), default=0)
        return [(tokens, count) for tokens, count in self._eager.items() if tokens <= largest]

    def _late_remarks(self) -> Iterator[str]:
        beyond = sum(self._eager.values()) - sum(count for _, count in self._covered())
        if beyond:
            yield f"{beyond} steps of more tokens than every captured size ran without a graph"
        yield from (text for total, _, text in self._numbers.values() if not total)


def read_logs(paths: Iterable[str | os.PathLike[str]], arm: str) -> tuple[Evidence, list[dict[str, str]]]:
    """Return what the logs of an arm tell together, and their digests as sources of an artifact.

    They are read in the order of their digests, so that neither their names nor the order in which they were named
    counts for anything; the same log named twice counts once.
    """
    evidence = Evidence(arm)
    sources = []
    logs = {digest_file(path): path for path in paths}
    for number, (found, path) in enumerate(sorted(logs.items())):
        evidence.read(path)
        sources.append({"name": "framework.log" if not number else f"framework.{number + 1}.log", "digest": found})
    return evidence, sources


def with_health(capture: Mapping[str, Any], paths: Iterable[str | os.PathLike[str]], arm: str | None) -> dict[str, Any]:
    """Return a Capture with what the framework's logs tell; without logs it stays as it is."""
    listed = list(paths)
    if not listed or arm is None:
        return dict(capture)
    evidence, sources = read_logs(listed, arm)
    told = {**capture.get("health", {}), **evidence.health()}
    return {**capture, "sources": [*capture["sources"], *sources], **({"health": told} if told else {})}


def told_by(path: str | os.PathLike[str], arm: str) -> bool:
    """Whether one of the first `MAX_SEARCHED` lines of a file tells something of this arm."""
    rules = _rules(arm)
    lines = islice(_lines(path), MAX_SEARCHED)
    return any(pattern.search(line) is not None for line in lines for pattern, _ in rules)


@cache
def _rules(arm: str) -> list[tuple[re.Pattern[str], Mapping[str, Any]]]:
    return [(re.compile(rule["pattern"]), rule) for rule in arm_data(arm).get("log", ())]


def _lines(path: str | os.PathLike[str]) -> Iterator[str]:
    with os.fdopen(open_regular(path), "rb") as stream:
        first = True
        whole = True
        while line := stream.readline(MAX_LINE_BYTES):
            if first and b"\0" in line:
                hint = "a packed log has to be unpacked first"
                raise InvalidError.of("AKF-F310", "the log holds no text", file=os.fspath(path), hint=hint)
            first = False
            if whole:  # what follows in a line that does not fit belongs to a line that was looked at
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                yield _PAINT.sub("", text) if "\x1b" in text else text
            whole = line.endswith(b"\n")


def _redacted(match: re.Match[str]) -> str:
    text = match.string[match.start() :]
    if len(text) > _LOOKED_AT:  # a word that is cut could lose what makes it an address
        text = text[:_LOOKED_AT].rpartition(" ")[0]
    for pattern, instead in _REDACTED:
        text = pattern.sub(instead, text)
    text = printable(text.strip())
    return text if len(text) <= MAX_REMARK else text[: MAX_REMARK - 1] + "…"
