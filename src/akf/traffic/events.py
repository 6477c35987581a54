"""The events of a trace: JSON that may be larger than memory, read strictly.

Invariants:
1. Held at a time are a piece of the file and one value; neither grows beyond `MAX_EVENT_CHARS`, and a file is
   read no further than `MAX_TRACE_BYTES` of text, packed or not.
2. A trace is an array of events, or an object whose `traceEvents` is one; its other fields are `head`. An event is
   an object.
3. Refused with line and column: a byte order mark, bytes that are not UTF-8, a syntax error, a file that is cut
   off or goes on after its end, a key twice in one object, NaN and Infinity, nesting that the parser cannot follow.
4. A number with a fraction or an exponent stays the text that was written; nothing passes through a float.
5. The digest is of the very bytes that were parsed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from akf.contracts.files import open_regular
from akf.contracts.limits import MAX_EVENT_CHARS
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import show
from akf.traffic.unpacked import HashedFile, texts

Event = dict[str, Any]
_NEXT = re.compile(r"[^ \t\r\n]")
_ENDED = re.compile(r"[^,:{}\[\]\"]*")
_EVENTS = "traceEvents"


class Trace:
    """A trace file to be read once, from front to back: ``for event in trace``.

    Attributes:
        name: What problems call the file.
        layout: `array` or `object`; known once the first event is.
        head: The fields beside the events; complete once the events are read.
        digest: SHA-256 of the file, packed as it is; known once the events are read.
    """

    layout: Literal["array", "object"]

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        progress: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._path = path
        self._progress = progress
        self.name = os.fspath(path) if name is None else name
        self.head: dict[str, Any] = {}
        self.digest = ""
        self._text = _Text(self.name, iter(()))
        self._start = 0

    def __iter__(self) -> Iterator[Event]:
        """Read the events.

        Raises:
            InvalidError: The file is missing, no trace, or malformed; with the place.
            StorageError: It cannot be read.
        """
        with HashedFile(open_regular(self._path), self._progress) as file:
            self._text = text = _Text(self.name, texts(file, self.name))
            first = text.peek()
            if first == "[":
                self.layout = "array"
                yield from self._events()
            elif first == "{":
                self.layout = "object"
                yield from self._fields()
            else:
                raise self._no_trace(f"it starts with {show(first)}" if first else "it is empty")
            if text.peek():
                raise text.malformed("the file goes on after its end")
            self.digest = f"sha256:{file.hashed.hexdigest()}"

    def problem(self, code: str, message: str, hint: str | None = None) -> Problem:
        """Return a problem at the event that was read last."""
        line, column = self._text.place(self._start)
        return Problem(code, message, self.name, line=line, column=column, hint=hint)

    def _events(self) -> Iterator[Event]:
        text = self._text
        text.take("[")
        if text.take("]"):
            return
        while True:
            text.peek()
            event = text.value()
            self._start = text.start
            if not isinstance(event, dict):
                raise InvalidError([self.problem("AKF-F152", f"an event is {show(event)}, not an object")])
            yield event
            if text.take("]"):
                return
            text.expect(",", "a comma or the end of the events")

    def _fields(self) -> Iterator[Event]:
        text, found = self._text, False
        text.take("{")
        while not text.take("}"):
            if self.head or found:
                text.expect(",", "a comma or the end of the object")
            text.peek()
            key = text.value()
            if not isinstance(key, str):
                raise text.malformed("a field has no name", text.start)
            if key in self.head or (key == _EVENTS and found):
                raise text.malformed(f"the key {show(key)} stands twice", text.start)
            text.expect(":", "a colon")
            if key == _EVENTS:
                found = True
                if text.peek() != "[":
                    raise self._no_trace(f"its {_EVENTS} are no array")
                yield from self._events()
            else:
                text.peek()
                self.head[key] = text.value()
        if not found:
            raise self._no_trace(f"the object has no {_EVENTS}")

    def _no_trace(self, why: str) -> InvalidError:
        line, column = self._text.place()
        return InvalidError.of(
            "AKF-F152",
            f"this is no trace: {why}",
            file=self.name,
            line=line,
            column=column,
            expected=f"an array of events, or an object with {_EVENTS}",
        )


class _Text:
    """A window on the text that moves forward only."""

    def __init__(self, name: str, pieces: Iterator[str]) -> None:
        self._name = name
        self._pieces = pieces
        self._text = ""
        self._at = 0
        self._line = 1
        self._column = 1
        self.start = 0
        """Where the last value starts in the window; good until the next one is read."""

    def peek(self) -> str:
        """Skip white space and return the next character, or nothing at the end of the file."""
        while True:
            found = _NEXT.search(self._text, self._at)
            if found:
                self._at = found.start()
                return found[0]
            self._at = len(self._text)
            if not self._more():
                return ""

    def take(self, char: str) -> bool:
        """Take the next character if it is this one."""
        if self.peek() != char:
            return False
        self._at += 1
        return True

    def expect(self, char: str, what: str) -> None:
        """Take this character, or refuse."""
        if not self.take(char):
            found = self._text[self._at : self._at + 1]
            raise self.malformed(f"{what} is missing before {show(found)}" if found else "the file is cut off here")

    def value(self) -> Any:
        """Read one value."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or _ENDED.fullmatch(self._text, error.pos)
                if cut and self._grow():
                    continue
                raise self.malformed(f"the file is cut off ({error.msg})" if cut else error.msg, error.pos) from None
            except _RefusedError as error:
                raise self.malformed(f"{error}, in the value that starts here") from None
            except RecursionError:
                raise self.malformed("the value that starts here nests too deep") from None
            except ValueError:
                raise self.malformed("the value that starts here holds a number that is too long") from None
            if end < len(self._text) or not self._grow():
                self.start, self._at = self._at, end
                return value

    def malformed(self, message: str, at: int | None = None) -> InvalidError:
        """Return the refusal of the text at a place in the window."""
        line, column = self.place(at)
        hint = "export the profile again, or copy the file again if it was cut off"
        return InvalidError.of("AKF-F150", message, file=self._name, line=line, column=column, hint=hint)

    def place(self, at: int | None = None) -> tuple[int, int]:
        """Return line and column of a place in the window."""
        at = self._at if at is None else at
        lines = self._text.count("\n", 0, at)
        if not lines:
            return self._line, self._column + at
        return self._line + lines, at - self._text.rfind("\n", 0, at)

    def _grow(self) -> bool:
        """Read on, because a value may go on; false at the end of the file."""
        held = len(self._text) - self._at
        if held > MAX_EVENT_CHARS:
            raise self._too_large(f"one value of the trace has more than {MAX_EVENT_CHARS} characters")
        more = self._more()
        while more and len(self._text) - self._at < 2 * held:  # so that a long value is not tried too often
            if not self._more():
                break
        return more

    def _more(self) -> bool:
        piece = next(self._pieces, "")
        if not piece:
            return False
        self._line, self._column = self.place()
        self._text = self._text[self._at :] + piece
        self._at = 0
        return True

    def _too_large(self, message: str) -> InvalidError:
        line, column = self.place()
        return InvalidError.of("AKF-F154", message, file=self._name, line=line, column=column, expected=MAX_EVENT_CHARS)


class _RefusedError(Exception):
    """JSON that the parser would take and we do not."""


def _object(pairs: list[tuple[str, Any]]) -> Event:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _RefusedError(f"the key {show(twice)} stands twice")
    return value


def _constant(word: str) -> None:
    raise _RefusedError(f"{word} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=str, parse_constant=_constant)
