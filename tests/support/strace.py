"""Watch the system calls of a Python program, or let the kernel refuse some of them."""

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_CALL = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)")


@dataclass(frozen=True)
class Call:
    """One system call as strace writes it, with descriptors shown as ``3</path>``."""

    name: str
    text: str
    failed: bool


@functools.cache
def _why_not() -> str | None:
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    return f"strace is not permitted: {done.stderr.strip()}" if done.returncode else None


def need_strace() -> None:
    """Skip the test, naming the reason, where strace cannot run."""
    reason = _why_not()
    if reason:
        pytest.skip(reason)


def run(
    code: str, arguments: Sequence[str], folder: Path, *, names: str, inject: Sequence[str] = ()
) -> tuple[list[Call], str]:
    """Run Python code under strace; return its calls in order and its standard output.

    Args:
        code: The program; its ``sys.argv[1:]`` are `arguments`.
        arguments: Its arguments.
        folder: Where the trace is written, outside what the program looks at.
        names: Which calls to trace, as strace's ``-e trace=`` takes them.
        inject: What to inject, as strace's ``-e inject=`` takes it.
    """
    need_strace()
    log = folder / "strace.log"
    options = [f"--trace={names}", *(f"--inject={item}" for item in inject)]
    done = subprocess.run(
        ["strace", "-f", "-y", "-s", "64", "-o", str(log), *options, sys.executable, "-B", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return parse(log.read_text()), done.stdout


def parse(log: str) -> list[Call]:
    """Return the calls of a trace in the order in which they began."""
    calls: list[Call] = []
    unfinished: dict[str, tuple[int, str, str]] = {}
    for line in log.splitlines():
        resumed = re.fullmatch(r"(\d+) +<\.\.\. (\w+) resumed>(.*)", line)
        if resumed and resumed[1] in unfinished:
            index, name, text = unfinished.pop(resumed[1])
            calls[index] = _call(name, text + resumed[3])
            continue
        match = _CALL.fullmatch(line)
        if match is None:
            continue
        text = match["rest"]
        if text.endswith("<unfinished ...>"):
            text = text.removesuffix("<unfinished ...>")
            unfinished[match["pid"]] = (len(calls), match["name"], text)
        calls.append(_call(match["name"], text))
    return calls


def _call(name: str, text: str) -> Call:
    return Call(name, text, failed=re.search(r"\) += -1 ", text) is not None)
