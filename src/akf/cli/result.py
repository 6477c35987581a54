"""What a command answers, and how it is printed.

Invariants:
- Standard output is exactly one JSON document, also when the command refuses; `--human`, `--quiet` and `--format`
  change how it is shown, never what it says or the exit status.
- Text from files is escaped before a terminal sees it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import orjson

from akf.contracts.problems import AkfError

FORMATS = ("json", "human", "github", "sarif")
NOT_MET = 10


class Result(NamedTuple):
    """A command's document and exit status."""

    document: dict[str, Any]
    status: int = 0


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
    if settings.format == "json":
        data = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    else:
        from akf.cli import formats  # noqa: PLC0415 - only the plain answer is worth starting fast

        data = formats.render(document, settings.format).encode("utf-8", "backslashreplace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
