r"""The slow JSON reader: every problem of a text at once, and the position of every value.

Invariants:
1. It accepts exactly what the fast path of `akf.contracts.loader` accepts (held by a property test).
2. It never recurses: depth is bounded by `MAX_DEPTH`, not by the interpreter's stack.
3. Faults that leave the structure readable (a key twice, NaN, a number too large, a lone surrogate) are all
   listed; the first syntax error ends the list, because what follows it is a guess.
4. A position is an offset into the text; lines end at "\n", lines and columns start at 1.
"""

from __future__ import annotations

import re

from akf.contracts.limits import MAX_DEPTH, MAX_PROBLEMS, MAX_SAFE_INTEGER
from akf.contracts.places import Lines, Place
from akf.contracts.pointer import pointer_to
from akf.contracts.problems import Problem
from akf.contracts.syntax import BODY, Fault, broken_number, broken_string, unexpected
from akf.contracts.text import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(f'"({BODY})"')
_ESCAPE = re.compile(r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LONE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_WORD = re.compile(r"true|false|null|-?(?:NaN|Infinity)")
_GOES_ON = re.compile(r"[0-9A-Za-z_.+-]")
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST_INTEGER = len(str(-MAX_SAFE_INTEGER))


class Stop(Exception):  # noqa: N818 - control flow inside this package: the list of problems is complete
    """Ends a scan."""


class Scanner:
    """Reads one text, collects its problems, and where its values are if `places`, the root of a tree, is given."""

    def __init__(
        self,
        text: str,
        file: str | None = None,
        *,
        places: Place | None = None,
    ) -> None:
        self.text = text
        self.file = file
        self.problems: list[Problem] = []
        self.lines = Lines(text)
        self._here = places  # of the value that comes next or came last
        self._places: list[Place] = []  # of the open containers
        self._stack: list[Any] = []
        self._opened: list[int] = []
        self._seen: list[dict[str, int]] = []
        self._path: list[str] = []

    def scan(self) -> Any:
        """Return the value; raise `Stop` where nothing sensible can follow."""
        pos = self._skip(0)
        if pos == len(self.text):
            self.report("AKF-S001", pos, "the file is empty", hint="an artifact is a JSON object: {…}")
            raise Stop
        start = pos
        value, pos = self._document(pos)
        pos = self._skip(pos)
        if pos < len(self.text):
            self.report(
                "AKF-S005",
                pos,
                f"{show(self.text[pos : pos + 20])} follows the end of the document",
                hint="one file holds one JSON object",
            )
        if not isinstance(value, dict):
            self.report(
                "AKF-S012",
                start,
                f"the document is {show(value)}, not an object",
                expected="object",
                pointer="",
            )
        return value

    def report(self, code: str, offset: int, message: str, *, pointer: str | None = None, **fields: Any) -> None:
        """Add a problem at `offset`; the list is cut at `MAX_PROBLEMS`."""
        line, column = self.lines.at(offset)
        where = pointer_to(self._path) if pointer is None else pointer
        if len(self.problems) >= MAX_PROBLEMS:
            text = f"only the first {MAX_PROBLEMS} problems are listed"
            self.problems.append(Problem("AKF-S013", text, self.file, where, line, column))
            raise Stop
        self.problems.append(Problem(code, message, self.file, where, line, column, **fields))

    def _document(self, pos: int) -> tuple[Any, int]:
        """Read values and what stands between them until the outermost one is closed."""
        text, stack = self.text, self._stack
        while True:
            opener = text[pos : pos + 1]
            if opener in {"{", "["} and opener:
                pos, closed = self._open(pos, opener)
                if not closed:
                    continue
                value = self._close()
            else:
                value, pos = self._scalar(pos)
            while stack:
                self._attach(value)
                pos = self._skip(pos)
                mark = text[pos : pos + 1]
                inside_object = isinstance(stack[-1], dict)
                if mark == ",":
                    pos = self._skip(pos + 1)
                    if inside_object:
                        pos = self._key(pos, after_comma=True)
                    else:
                        self._path[-1] = str(len(stack[-1]))
                        if text[pos : pos + 1] == "]":
                            self._fail(pos, "a value", after_comma=True)
                    break
                if mark != ("}" if inside_object else "]"):
                    self._fail(pos, "a comma or " + ("}" if inside_object else "]"))
                pos += 1
                value = self._close()
            else:
                return value, pos

    def _open(self, pos: int, opener: str) -> tuple[int, bool]:
        if len(self._stack) == MAX_DEPTH:
            self.report(
                "AKF-S011",
                pos,
                f"arrays and objects are nested more than {MAX_DEPTH} deep",
                expected=MAX_DEPTH,
            )
            raise Stop
        if self._in_array():
            self._note(pos)
        self._opened.append(pos)
        if self._here is not None:
            self._places.append(self._here)
        self._seen.append({})
        self._stack.append({} if opener == "{" else [])
        after = self._skip(pos + 1)
        if self.text[after : after + 1] == ("}" if opener == "{" else "]"):
            self._path.append("")
            return after + 1, True
        if opener == "[":
            self._path.append("0")
            return after, False
        self._path.append("")
        return self._key(after, after_comma=False), False

    def _close(self) -> Any:
        self._opened.pop()
        if self._here is not None:
            self._places.pop()
        self._seen.pop()
        self._path.pop()
        return self._stack.pop()

    def _attach(self, value: Any) -> None:
        container = self._stack[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            container[self._path[-1]] = value

    def _key(self, pos: int, *, after_comma: bool) -> int:
        if self.text[pos : pos + 1] != '"':
            self._path[-1:] = []
            self._fail(pos, "a key in double quotes" + ("" if after_comma else " or }"), after_comma=after_comma)
        key, after = self._string(pos)
        self._path[-1] = key
        seen = self._seen[-1]
        if key in seen:
            line, column = self.lines.at(seen[key])
            self.report(
                "AKF-S006",
                pos,
                f"the key {show(key)} appears twice in one object",
                found=key,
                hint=f"it is first at line {line}, column {column}; keep one of them",
            )
        else:
            seen[key] = pos
        after = self._skip(after)
        if self.text[after : after + 1] != ":":
            self._fail(after, f"a colon after the key {show(key)}")
        after = self._skip(after + 1)
        self._note(after, pos)
        return after

    def _scalar(self, pos: int) -> tuple[Any, int]:
        if self._in_array():
            self._note(pos)
        if self.text[pos : pos + 1] == '"':
            return self._string(pos)
        if word := _WORD.match(self.text, pos):
            if word[0] in _WORDS:
                return _WORDS[word[0]], word.end()
            self.report(
                "AKF-S007",
                pos,
                f"{word[0]} is not a JSON value",
                found=word[0],
                hint="leave the field out, or give null where the schema allows it",
            )
            return None, word.end()
        number = _NUMBER.match(self.text, pos)
        if number is None:
            self._fail(pos, "a value")
        end = number.end()
        if _GOES_ON.match(self.text, end):
            self._stop(broken_number(self.text, pos))
        return self._number(number, pos), end

    def _number(self, match: re.Match[str], pos: int) -> float:
        digits = match[0]
        whole = match[1] is None and match[2] is None
        if whole and len(digits) <= _LONGEST_INTEGER and abs(int(digits)) <= MAX_SAFE_INTEGER:
            return int(digits)
        value = 0.0 if whole else float(digits)
        if value in {float("inf"), float("-inf")}:
            self.report("AKF-S009", pos, f"{_short(digits)} is larger than any double", found=_short(digits))
        elif whole or abs(value) > MAX_SAFE_INTEGER:
            self.report(
                "AKF-S008",
                pos,
                f"{_short(digits)} is beyond ±(2^53-1), where doubles skip whole numbers",
                expected=f"at most {MAX_SAFE_INTEGER}",
                found=_short(digits),
                hint="use a larger unit, or write it as a string",
            )
        return value

    def _string(self, pos: int) -> tuple[str, int]:
        match = _STRING.match(self.text, pos)
        if match is None:
            self._stop(broken_string(self.text, pos))
        raw: str = match[1]
        if "\\" not in raw:
            return raw, match.end()
        decoded = _ESCAPE.sub(_decode, raw)
        if _LONE.search(decoded):
            for part in _ESCAPE.finditer(raw):
                if _LONE.search(_decode(part)):
                    self.report(
                        "AKF-S010",
                        match.start(1) + part.start(),
                        f"{part[0]} is half of a surrogate pair",
                        found=part[0],
                        hint="a character beyond U+FFFF needs both halves, or the character itself",
                    )
        return decoded, match.end()

    def _in_array(self) -> bool:
        """Say whether the value that follows has no key (a key notes its value itself)."""
        return not self._stack or isinstance(self._stack[-1], list)

    def _note(self, pos: int, key: int | None = None) -> None:
        """Keep where the value at `pos` is, if somebody wants to know."""
        if self._here is None:
            return
        if self._stack:
            self._here = self._places[-1].inside.setdefault(self._path[-1], Place())
        self._here.key, self._here.value = (pos if key is None else key), pos

    def _skip(self, pos: int) -> int:
        match = _SPACE.match(self.text, pos)
        return pos if match is None else match.end()

    def _fail(self, pos: int, wanted: str, *, after_comma: bool = False) -> NoReturn:
        opened = self.lines.at(self._opened[-1]) if self._opened else None
        self._stop(unexpected(self.text, pos, wanted, opened, after_comma=after_comma))

    def _stop(self, fault: Fault) -> NoReturn:
        self.report("AKF-S004", fault.offset, fault.message, hint=fault.hint)
        raise Stop
        raise Stop


def _decode(match: re.Match[str]) -> str:
    body: str = match[1]
    if body[0] != "u":
        return _SIMPLE.get(body, body)
    first = int(body[1:5], 16)
    if len(body) == len("uXXXX"):
        return chr(first)
    return chr(0x10000 + ((first - 0xD800) << 10) + int(body[7:11], 16) - 0xDC00)


def _short(digits: str) -> str:
    return digits if len(digits) <= 40 else f"{digits[:20]}… ({len(digits)} characters)"  # noqa: PLR2004
