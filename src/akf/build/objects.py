"""What a build of one subject gives a Build record: outputs with role and trust class, its log, its errors.

Invariants:
- An output's role and trust class are the route's declaration, never the file's name or the candidate's word.
- A shared object that does not export the launch spec's symbol is no success.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.build.engine import Bench, Made, make
from akf.contracts.canonical import digest
from akf.contracts.problems import BlockedError
from akf.contracts.text import printable
from akf.routes import host_cpp, outcomes
from akf.routes.outcomes import Outcome
from akf.routes.route import Job
from akf.routes.tools import ToolMissing
from akf.store.untrusted import TreeFile

REASON_LINES = 8
_REASON_CHARACTERS = 1000
_LAUNCHER = "launcher"


class Product(NamedTuple):
    """One subject's build."""

    subject: str
    made: Made
    outputs: tuple[dict[str, Any], ...]
    files: Mapping[str, bytes]

    @property
    def built(self) -> bool:
        """Whether it may be used."""
        return self.made.built


def build_subject(
    tools: Bench, job: Job, files: Sequence[TreeFile], folder: Path, subject: str, symbol: str | None = None
) -> Product:
    """Build one subject.

    Args:
        tools: the route and its tools.
        job: what is built.
        files: sources; other files stand beside them.
        folder: a new folder to work in.
        subject: whose object it is.
        symbol: a function that a shared object must export; without it the build failed.

    Raises:
        BlockedError: a tool is missing that looks at the object.
    """
    made = make(tools, job, files, folder)
    if symbol is not None and made.built and not _exports(made, symbol):
        message = f'error: the object exports no function {symbol!r}; declare it extern "C"'
        outcome = Outcome(outcomes.REJECTED, message)
        made = made._replace(outcome=outcome, log=f"{made.log}{message}\n", errors=(message,))
    log_path, log = f"logs/{subject}.txt", made.log.encode()
    kept = {log_path: log}
    outputs = [_output(log_path, subject, "log", "data", log)]
    declared = tools.route.collect(sorted(made.files))
    for name, data in made.files.items() if made.built else ():
        role: str = declared[name].role
        path, trust = f"{subject}/{name}", declared[name].trust
        if subject == _LAUNCHER:
            role, path = _LAUNCHER, f"{subject}/{_LAUNCHER}{Path(name).suffix}"
        kept[path] = data
        outputs.append(_output(path, subject, role, trust, data))
    return Product(subject, made, tuple(outputs), kept)


def _exports(made: Made, symbol: str) -> bool:
    data = made.files.get(host_cpp.PRODUCT)
    if data is None:
        return True  # another kind of object: its own reader looks at it
    with tempfile.NamedTemporaryFile(suffix=".so") as object_file:
        object_file.write(data)
        object_file.flush()
        try:
            return host_cpp.exports(Path(object_file.name), symbol)
        except ToolMissing as error:
            raise BlockedError([error.problem()]) from error


def failed_reasons(products: Sequence[Product]) -> list[str]:
    """The tools' own error lines, printable and bounded."""
    lines = [f"{product.subject}: {line}" for product in products if not product.built for line in product.made.errors]
    return [printable(line)[:_REASON_CHARACTERS] for line in lines[:REASON_LINES]]


def reproduction(first: Made, second: Made) -> dict[str, Any]:
    """Whether two builds in two folders agree, raw and in the normal form of the deepest stage."""
    a, b = first.deepest, second.deepest
    value: dict[str, Any] = {
        "reproducible": first.stage == second.stage and a == b,
        "first": digest(a),
        "second": digest(b),
        "address_randomisation": first.randomised or second.randomised,
    }
    if first.stage in first.normal and second.stage in second.normal:
        value["normalised_first"] = digest(first.normal[first.stage])
        value["normalised_second"] = digest(second.normal[second.stage])
    return value


def _output(path: str, subject: str, role: str, trust: str, data: bytes) -> dict[str, Any]:
    return {
        "path": path, "subject": subject, "role": role, "trust": trust, "digest": digest(data), "bytes": len(data),
    }  # fmt: skip
