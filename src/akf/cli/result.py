"""What a command answers, and how it is printed.

Invariants:
- Standard output is exactly one JSON document, also when the command refuses; `--human`, `--quiet` and `--format`
  change how it is shown, never what it says or the exit status.
- Text from files is escaped before a terminal sees it, in every format; so are bytes that are no text.
"""

from __future__ import annotations

import sys

from akf.contracts.problems import AkfError
from akf.contracts.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMATS = ("json", "human", "github", "sarif")
NOT_MET = 10


class Result:
    """A command's document and exit status."""

    __slots__ = ("document", "status")

    def __init__(self, document: dict[str, Any], status: int = 0) -> None:
        self.document = document
        self.status = status


class Settings:
    """Options that hold for every command."""

    def __init__(self) -> None:
        self.format = "json"
        self.quiet = False


def refusal(error: AkfError) -> Result:
    """The document of a refusal."""
    return Result({"problems": [problem.to_json() for problem in error.problems]}, error.exit_code)


def emit(command: str, result: Result, settings: Settings) -> None:
    """Print a result to standard output in the format that was asked for."""
    if settings.quiet:
        return
    document = {"command": command, "status": result.status, **result.document}
    try:
        data = render(document, settings.format).encode()
    except (UnicodeEncodeError, TypeError):  # bytes that are no text, as a path may hold them
        data = render(_encodable(document), settings.format).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def render(document: dict[str, Any], form: str) -> str:
    """The document in one of the formats; nothing in it can paint a terminal."""
    if form == "json":
        import json  # noqa: PLC0415 - orjson takes five times as long to import, and documents are small

        return inert(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
    from akf.cli import formats  # noqa: PLC0415 - only the plain answer is worth starting fast

    return formats.render(document, form)


def inert(text: str) -> str:
    """The same JSON with everything escaped that a terminal could act on or hide."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if char == "\n" or printable(char) == char else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be")  # fails on half a character, which `emit` then writes as an escape of its own
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _encodable(value: Any) -> Any:
    """Write bytes that are no text as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    return value
