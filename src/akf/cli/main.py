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
from akf.cli.start import fast
from akf.contracts.problems import AkfError, Problem, StorageError

INTERRUPTED = 130
DEFECT = 70
USAGE = 2
_ANYWHERE = {"--human": 0, "--quiet": 0, "--format": 1}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    arguments = hoisted(list(sys.argv[1:] if argv is None else argv))
    settings = Settings()
    name, result = _answer(arguments, settings)
    if result is None:
        return 0
    try:
        emit(name, result, settings)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"akf: the answer could not be printed: {error.strerror}", file=sys.stderr)
        return StorageError.exit_code
    return result.status


def hoisted(arguments: list[str]) -> list[str]:
    """The same arguments with the options for the output in front, where the top level takes them."""
    front: list[str] = []
    rest: list[str] = []
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if word == "--":
            rest += arguments[index:]
            break
        wanted = _ANYWHERE.get(word, 1 if word.startswith("--format=") else None)
        if wanted is None:
            rest.append(word)
        elif word.startswith("--format="):
            front.append(word)
        else:
            front += arguments[index : index + 1 + wanted]
            index += wanted
        index += 1
    return [*front, *rest]


def _answer(arguments: list[str], settings: Settings) -> tuple[str, Result | None]:
    """The command's name and its result; None when help or version was printed."""
    name = next((word for word in arguments if not word.startswith("-")), "akf")
    try:
        quick = fast(arguments, settings)
        result = quick() if quick is not None else _typer(arguments, settings)
    except KeyboardInterrupt:
        return name, _single("AKF-U003", "interrupted; nothing partial was left", INTERRUPTED)
    except AkfError as error:
        return name, refusal(error)
    except RecursionError as error:
        return name, _defect(error)
    except OSError as error:
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
        text = f"the system refused: {error.strerror or error}"
        return name, refusal(StorageError.of("AKF-F100", text, file=place, hint="check space and permissions"))
    except Exception as error:  # noqa: BLE001 - whatever it is, the answer is a document
        return name, _defect(error)
    return name, result if isinstance(result, Result) else None


def _typer(arguments: list[str], settings: Settings) -> object:
    """Everything that the thin start does not take."""
    import click  # noqa: PLC0415 - slow to import

    from akf.cli.app import command  # noqa: PLC0415

    try:
        return command().main(arguments, prog_name="akf", standalone_mode=False, obj=settings)
    except click.exceptions.Abort:
        return _single("AKF-U003", "interrupted; nothing partial was left", INTERRUPTED)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "akf"
        problem = Problem("AKF-U001", error.format_message().replace("\n", " "), hint=f"see: {path} --help")
        return Result({"problems": [problem.to_json()]}, USAGE)


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
