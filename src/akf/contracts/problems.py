"""Problems, and the errors that carry them.

Invariants:
1. A refusal is a list of problems, all of them at once, in one order: file, pointer, line, column, code.
2. A problem's `code` is stable and explained by the catalogue (`akf.contracts.codes`).
3. An error's class decides the exit status, never its text.
4. What `to_json` returns can be encoded as UTF-8, whatever bytes the input held.

`Problem` is written out by hand because importing `dataclasses` costs as much as starting Python.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar, Self

_FIELDS = ("code", "message", "file", "pointer", "line", "column", "expected", "found", "hint")


class Problem:
    """One thing that is wrong, where it is, and what to do about it.

    `expected` and `found` are JSON values; `pointer` is an RFC 6901 JSON pointer ("" is the whole document);
    `line` and `column` start at 1 and count characters.
    """

    __slots__ = _FIELDS

    code: str
    message: str
    file: str | None
    pointer: str | None
    line: int | None
    column: int | None
    expected: Any
    found: Any
    hint: str | None

    def __init__(
        self,
        code: str,
        message: str,
        file: str | None = None,
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
        expected: Any = None,
        found: Any = None,
        hint: str | None = None,
    ) -> None:
        values = (code, message, file, pointer, line, column, expected, found, hint)
        for name, value in zip(_FIELDS, values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Problem is frozen: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Problem is frozen: cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.code, self.message, self.file, self.pointer, self.line, self.column))

    def __repr__(self) -> str:
        given = (f"{n}={v!r}" for n, v in zip(_FIELDS, self._values(), strict=True) if v is not None)
        return f"Problem({', '.join(given)})"

    def __str__(self) -> str:
        from akf.contracts.text import printable  # noqa: PLC0415 - only needed to show a problem

        place = [printable(str(p)) for p in (self.file, self.line, self.column) if p is not None]
        if self.pointer:
            place.append(printable(self.pointer))
        where = ":".join(place)
        line = f"{where}: {self.code} {self.message}" if where else f"{self.code} {self.message}"
        return f"{line} ({self.hint})" if self.hint else line

    def __reduce__(self) -> tuple[type[Problem], tuple[Any, ...]]:
        return (Problem, self._values())

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with some fields changed."""
        return Problem(**dict(zip(_FIELDS, self._values(), strict=True)) | changes)

    def sort_key(self) -> tuple[Any, ...]:
        """Order by file, pointer, line, column, code, message; what is absent comes first."""
        return (
            self.file is not None,
            self.file or "",
            self.pointer is not None,
            self.pointer or "",
            self.line or 0,
            self.column or 0,
            self.code,
            self.message,
        )

    def to_json(self) -> dict[str, Any]:
        """Return all nine fields as a JSON object, absent ones as null."""
        return {name: _encodable(value) for name, value in zip(_FIELDS, self._values(), strict=True)}

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _FIELDS)


def _encodable(value: Any) -> Any:
    """Write lone surrogates (from file names that are not UTF-8, or from escapes) as escapes."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


def unlisted(code: str, number: int, last: Problem) -> Problem:
    """What stands for the problems beyond the end of a list, at the place of the last one that is listed."""
    message = f"{number} more problems are not listed"
    hint = "mend the ones that are listed first; most have one cause"
    return Problem(code, message, last.file, last.pointer, last.line, last.column, hint=hint)


class AkfError(Exception):
    """A refusal or a failure; its class is the exit status and its problems say why."""

    exit_code: ClassVar[int] = 70
    problems: tuple[Problem, ...]

    def __init__(self, problems: Iterable[Problem]) -> None:
        listed = tuple(sorted(problems, key=Problem.sort_key))
        if not listed:
            raise ValueError("an error without a problem says nothing")
        super().__init__(listed)
        self.problems = listed

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        *,
        file: str | None = None,
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
        expected: Any = None,
        found: Any = None,
        hint: str | None = None,
    ) -> Self:
        """Make an error of one problem."""
        return cls([Problem(code, message, file, pointer, line, column, expected, found, hint)])


class InvalidError(AkfError):
    """An artifact or an input is invalid."""

    exit_code = 1


class UsageError(AkfError):
    """The command line is wrong."""

    exit_code = 2


class IntegrityError(AkfError):
    """A digest, parent, signature or ledger link does not hold."""

    exit_code = 3


class PreconditionError(AkfError):
    """Not ready, wrong order, budget spent, write path not allowed."""

    exit_code = 4


class ConflictError(AkfError):
    """It exists already, or another process holds it."""

    exit_code = 5


class BlockedError(AkfError):
    """The environment lacks something: a device, a toolchain, a framework, the network."""

    exit_code = 6


class StorageError(AkfError):
    """Input or output failed: disk full, permission, a broken installation."""

    exit_code = 7


class DefectError(AkfError):
    """AKF itself is wrong."""

    exit_code = 70
