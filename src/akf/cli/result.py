"""What a command answers, and how it is printed.

Invariants:
- Standard output is exactly one JSON document, also when the command refuses; `--human`, `--quiet` and `--format`
  change how it is shown, never what it says or the exit status.
- Text from files is escaped before a terminal sees it.
"""

from __future__ import annotations

import sys

from akf.contracts.problems import AkfError

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
    if settings.format == "json":
        import json  # noqa: PLC0415 - orjson takes five times as long to import, and documents are small

        data = f"{json.dumps(document, indent=2, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace")
    else:
        from akf.cli import formats  # noqa: PLC0415 - only the plain answer is worth starting fast

        data = formats.render(document, settings.format).encode("utf-8", "backslashreplace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
