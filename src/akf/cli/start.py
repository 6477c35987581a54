"""A thin start: what people and CI call most is answered before typer is imported.

Invariants:
- Only complete, well-formed command lines of the seed's four commands, a missing argument of theirs and an unknown
  command are taken here; everything else is typer's.
- A command of a later version is no slip of the pen: it is named as what it is, and no other is suggested.
- Both ways call the same functions; a test holds their answers, help and usage errors to be identical.
- `help.txt` is what `akf --help` prints, generated (`python -m akf.cli.start`) and held by the same test.
"""

from __future__ import annotations

import sys
from pathlib import Path

from akf.cli.result import FORMATS, Result, Settings
from akf.contracts.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HELP = Path(__file__).with_name("help.txt")

# name: positional arguments, flags, options with a value
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "validate-suite": (("SUITE",), ("--require-ready",), ()),
    "validate-campaign": (("CAMPAIGN",), ("--require-ready",), ()),
    "init-run": (("CAMPAIGN",), (), ("--runs-root", "--run-id", "--keys")),
    "judge": (("RUN", "GATES"), ("--recheck", "--dry-run"), ("--require", "--keys")),
}
USAGE = 2
LATER = frozenset({
    "arm", "bundle", "calibrate", "capture", "deploy", "diff", "doctor", "init",
    "judge-suite", "knowledge", "release", "rollback", "verify",
})  # fmt: skip


def fast(arguments: list[str], settings: Settings) -> Callable[[], Result | None] | None:
    """How to answer this command line without typer, or None.

    Args:
        arguments: the command line, output options first (as `hoisted` gives it).
        settings: filled from the output options.
    """
    rest = _after_options(arguments, settings)
    if rest is None:
        return None
    if rest in (["--help"], ["-h"]):
        return _help
    if rest == ["--version"]:
        return _version
    if not rest or rest[0].startswith("-"):
        return None
    if rest[0] not in COMMANDS:
        return _unknown(rest[0])
    parsed = _parse(rest[0], rest[1:])
    if parsed is None:
        return None
    wanted, places = COMMANDS[rest[0]][0], parsed[0]
    if len(places) < len(wanted):
        return lambda: usage(f"Missing argument '{wanted[len(places)]}'.", f"akf {rest[0]}")
    return lambda: _call(rest[0], *parsed)


def _after_options(arguments: list[str], settings: Settings) -> list[str] | None:
    """Fill the settings from the output options in front; the rest, or None when one of them is wrong."""
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
    return arguments[index:]


def usage(message: str, path: str) -> Result:
    """The answer to a command line that is wrong; `path` is the command whose help tells more."""
    return Result({"problems": [Problem("AKF-U001", message, hint=f"see: {path} --help").to_json()]}, USAGE)


def not_yet(name: str) -> str:
    """What is said of a command that a later version will have."""
    return f"this version does not have `akf {name}` yet"


def _unknown(name: str) -> Callable[[], Result] | None:
    """An unknown command that resembles none; a near miss is typer's to answer."""
    from difflib import get_close_matches  # noqa: PLC0415

    listed = HELP.read_text(encoding="utf-8").partition("Commands:")[2]
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2:3].strip()]
    if name in names:
        return None
    if name in LATER:
        return lambda: usage(not_yet(name), "akf")
    if get_close_matches(name, names):
        return None
    return lambda: usage(f"No such command '{name}'.", "akf")


def _parse(name: str, words: list[str]) -> tuple[list[str], dict[str, Any]] | None:
    """Positional arguments and options, or None for anything that is not plain."""
    wanted, flags, options = COMMANDS[name]
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
    return (places, given) if len(places) <= len(wanted) else None


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
