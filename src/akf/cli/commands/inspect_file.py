"""`inspect`."""

from __future__ import annotations

from pathlib import Path

from akf.cli.result import Result


def inspect(file: Path) -> Result:
    """What a built file says; what is wrong beside it is added, and decides the exit status."""
    from akf.build.inspect import inspect as look  # noqa: PLC0415

    found = look(file)
    if found.error is None:
        return Result(found.document)
    problems = [each.to_json() for each in found.error.problems]
    return Result(found.document | {"problems": problems}, found.error.exit_code)
