"""The entry: arguments in, one document out, the exit status back.

Invariants:
- Every way out prints one document: an answer, a refusal, a usage error (2), a defect of AKF (70), an interrupt (130).
- Options for the output may stand anywhere on the command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from akf.cli.result import Result, Settings, emit, refusal
from akf.cli.start import fast, usage
from akf.contracts.problems import AkfError, Problem, StorageError

INTERRUPTED = 130
DEFECT = 70
_ANYWHERE = {"--human": 0, "--quiet": 0, "--format": 1}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    front, rest = hoisted(list(sys.argv[1:] if argv is None else argv))
    settings = Settings()
    result = _answer([*front, *rest], settings)
    if result is None:
        return 0
    try:
        emit(_named(rest), result, settings)
    except BrokenPipeError:
        _let_go()
    except (OSError, AttributeError) as error:  # AttributeError: standard output was closed before the start
        if sys.stderr is not None:
            why = getattr(error, "strerror", None) or "standard output is closed"
            print(f"akf: the answer could not be printed: {why}", file=sys.stderr)
        _let_go()
        return StorageError.exit_code
    return result.status


def _named(words: list[str]) -> str:
    """The command that was meant, with its group: `ingest profile`."""
    name, *more = [word for word in words if not word.startswith("-")] or ["akf"]
    app = sys.modules.get("akf.cli.app")  # not loaded by the thin start, which takes no command of a group
    known = app.COMMANDS[name] if app is not None and name in app.GROUPS else ()
    return f"{name} {more[0]}" if more and more[0] in known else name


def _let_go() -> None:
    """Send what standard output still holds nowhere, so that the interpreter does not fail on it at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def hoisted(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The options for the output, which the top level takes in front; and everything else."""
    front: list[str] = []
    rest: list[str] = []
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if word == "--":
            rest += arguments[index:]
            break
        wanted = _ANYWHERE.get(word)
        if word.startswith("--format="):
            front += ["--format", word.removeprefix("--format=")]
        elif wanted is None:
            rest.append(word)
        else:
            front += [word, *(arguments[index + 1 : index + 2] or [""])] if wanted else [word]
            index += wanted
        index += 1
    return front, rest


def _answer(arguments: list[str], settings: Settings) -> Result | None:
    """The command's result; None when help or version was printed."""
    try:
        quick = fast(arguments, settings)
        result = quick() if quick is not None else _typer(arguments, settings)
    except KeyboardInterrupt:
        return _single("AKF-U003", "interrupted; nothing partial was left", INTERRUPTED)
    except AkfError as error:
        return refusal(_advised(error))
    except RecursionError as error:
        return _defect(error)
    except OSError as error:
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
        text = f"the system refused: {error.strerror or error}"
        return refusal(StorageError.of("AKF-F100", text, file=place, hint="check space and permissions"))
    except Exception as error:  # noqa: BLE001 - whatever it is, the answer is a document
        return _defect(error)
    return result if isinstance(result, Result) else None


def _advised(error: AkfError) -> AkfError:
    """The refusal, with what only the command line knows: which run was probably meant."""
    if all(problem.code != "AKF-S101" for problem in error.problems):
        return error
    from akf.cli.advice import advised  # noqa: PLC0415 - only on trouble

    return type(error)(map(advised, error.problems))


def _typer(arguments: list[str], settings: Settings) -> object:
    """Everything that the thin start does not take."""
    import click  # noqa: PLC0415 - slow to import

    from akf.cli.app import command  # noqa: PLC0415

    try:
        # Not `main`: it would turn an interrupt into a number, and a reader that left into an exit of its own.
        group = command()
        with group.make_context("akf", arguments, obj=settings) as opened:
            return group.invoke(opened)
    except click.exceptions.Exit:  # help or version was printed
        return None
    except click.exceptions.Abort:
        return _single("AKF-U003", "interrupted; nothing partial was left", INTERRUPTED)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "akf"
        return usage(error.format_message().replace("\n", " "), path)


def _single(code: str, message: str, status: int) -> Result:
    return Result({"problems": [Problem(code, message).to_json()]}, status)


def _defect(error: BaseException) -> Result:
    """A defect of AKF: the document says where, so that it can be reported."""
    import traceback  # noqa: PLC0415 - only for defects

    frames = [
        f"{frame.filename.rsplit('/akf/', 1)[-1]}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    problem = Problem(
        "AKF-X070",
        f"a defect in AKF itself: {type(error).__name__}: {error}",
        found=frames[-6:],
        hint="please report this document with the command that caused it; nothing partial was published",
    )
    return Result({"problems": [problem.to_json()]}, DEFECT)
