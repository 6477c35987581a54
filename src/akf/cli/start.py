"""A thin start: what people and CI call most is answered before typer is imported.

Invariants:
- Only complete, well-formed command lines of the seed's four commands are taken here; everything else is typer's.
- Both ways call the same functions; a test holds their answers, help and usage errors to be identical.
- `help.txt` is what `akf --help` prints, generated (`python -m akf.cli.start`) and held by the same test.
"""

from __future__ import annotations

import sys
from pathlib import Path

from akf.cli.result import FORMATS, Result, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HELP = Path(__file__).with_name("help.txt")

# name: positional arguments, flags, options with a value
COMMANDS: dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]] = {
    "validate-suite": (1, ("--require-ready",), ()),
    "validate-campaign": (1, ("--require-ready",), ()),
    "init-run": (1, (), ("--runs-root", "--run-id", "--keys")),
    "judge": (2, ("--recheck", "--dry-run"), ("--require", "--keys")),
}


def fast(arguments: list[str], settings: Settings) -> Callable[[], Result | None] | None:
    """How to answer this command line without typer, or None.

    Args:
        arguments: the command line, output options first (as `hoisted` gives it).
        settings: filled from the output options.
    """
    index = 0
    while index < len(arguments) and arguments[index] in {"--human", "--quiet", "--format"}:
        word = arguments[index]
        if word == "--format":
            if index + 1 >= len(arguments) or arguments[index + 1] not in FORMATS:
                return None
            index += 1
            settings.format = "human" if settings.format == "human" else arguments[index]
        elif word == "--human":
            settings.format = "human"
        else:
            settings.quiet = True
        index += 1
    rest = arguments[index:]
    if rest == ["--help"]:
        return _help
    if rest == ["--version"]:
        return _version
    if not rest or rest[0] not in COMMANDS:
        return None
    parsed = _parse(rest[0], rest[1:])
    return None if parsed is None else lambda: _call(rest[0], *parsed)


def _parse(name: str, words: list[str]) -> tuple[list[str], dict[str, Any]] | None:
    """Positional arguments and options, or None for anything that is not complete and plain."""
    count, flags, options = COMMANDS[name]
    places: list[str] = []
    given: dict[str, Any] = {}
    index = 0
    while index < len(words):
        word = words[index]
        if word in flags:
            given[word] = True
        elif word in options and index + 1 < len(words):
            index += 1
            given[word] = words[index]
        elif word.startswith("-"):
            return None
        else:
            places.append(word)
        index += 1
    return (places, given) if len(places) == count else None


def _call(name: str, places: list[str], given: dict[str, Any]) -> Result:
    paths = [Path(place) for place in places]
    keys = Path(given["--keys"]) if "--keys" in given else None
    if name == "judge":
        from akf.cli.commands.judge import judge  # noqa: PLC0415

        return judge(paths[0], paths[1], "--recheck" in given, "--dry-run" in given, given.get("--require"), keys)
    if name == "init-run":
        from akf.cli.commands.run import init  # noqa: PLC0415

        return init(paths[0], Path(given.get("--runs-root", "runs")), given.get("--run-id"), keys)
    from akf.cli.commands import validate  # noqa: PLC0415

    check = validate.suite if name == "validate-suite" else validate.campaign
    return check(paths[0], "--require-ready" in given)


def _help() -> None:
    sys.stdout.write(HELP.read_text(encoding="utf-8"))


def _version() -> None:
    from akf import __version__  # noqa: PLC0415

    sys.stdout.write(f"akf {__version__}\n")


def main() -> None:
    """Write `help.txt` anew."""
    from akf.cli.app import command  # noqa: PLC0415

    group = command()
    with group.make_context("akf", [], resilient_parsing=True) as context:
        HELP.write_text(group.get_help(context) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
