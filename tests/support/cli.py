"""The command line, as a process of its own (`akf`) or inside this one (`inside`), with what every answer must be."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from akf.cli.main import main
from akf.contracts.text import printable

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # typer imports what click is about to rename
    importlib.import_module("typer")

STATUSES = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 10, 70, 130})


class Answer(NamedTuple):
    """What one command said, and its exit status."""

    status: int
    out: bytes
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output; nothing in it may paint a terminal."""
        text = self.text
        found, end = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text)
        assert text[end:] == "\n", f"more than one document: {text[end:]!r}"
        assert isinstance(found, dict)
        assert found["status"] == self.status
        assert isinstance(found["command"], str)
        return found

    @property
    def text(self) -> str:
        """Standard output, no character of which paints a terminal."""
        text = self.out.decode("utf-8")
        for line in text.split("\n"):
            assert printable(line) == line, f"raw control characters in {line!r}"
        return text

    @property
    def problems(self) -> list[dict[str, Any]]:
        """The problems; each has all nine fields and a code."""
        found: list[dict[str, Any]] = self.document.get("problems", [])
        for problem in found:
            assert list(problem) == list(FIELDS), problem
            assert problem["code"].startswith("AKF-")
            assert problem["message"]
        return found

    @property
    def codes(self) -> set[str]:
        """The codes of the problems."""
        return {problem["code"] for problem in self.problems}

    def refused(self, status: int) -> Answer:
        """This answer, which must be a refusal of that status without a traceback."""
        assert self.status == status, f"{self.status} instead of {status}: {self.out.decode()}{self.err}"
        assert self.problems
        self.quiet_on_stderr()
        return self

    def accepted(self) -> Answer:
        """This answer, which must not be a refusal."""
        assert self.status == 0, self.out.decode() + self.err
        self.quiet_on_stderr()
        return self

    def quiet_on_stderr(self) -> None:
        """Nothing went wrong on the way that the document does not say."""
        assert "Traceback" not in self.err
        assert "Exception ignored" not in self.err
        for line in self.err.split("\n"):
            assert printable(line) == line


FIELDS = ("code", "message", "file", "pointer", "line", "column", "expected", "found", "hint")


def akf(*words: object, cwd: Path | None = None, env: dict[str, str] | None = None, umask: int = -1) -> Answer:
    """Run one command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "akf", *(os.fsencode(str(word)) for word in words)],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        timeout=120,
        umask=umask,
    )
    assert done.returncode in STATUSES, done
    return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))


def inside(*words: object) -> Answer:
    """Run one command in this process."""
    raw = io.BytesIO()
    out, err = io.TextIOWrapper(raw, encoding="utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(word) for word in words])
        out.flush()
    assert status in STATUSES
    return Answer(status, raw.getvalue(), err.getvalue())


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a key twice in one object"
    return found
