"""What a build of one subject gives a Build record: outputs with role and trust class, its log, its errors.

Invariants:
- An output's role and trust class are the route's declaration, never the file's name or the candidate's word.
- An object that does not offer the launch spec's symbol, or whose headers lie, is no success.
- What an object offers is read from its bytes by the inspector; no tool is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.build.engine import Bench, Made, make
from akf.build.inspect import offers
from akf.contracts.canonical import digest
from akf.contracts.problems import InvalidError
from akf.contracts.text import printable
from akf.routes import outcomes
from akf.routes.outcomes import Outcome
from akf.routes.route import Job
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
        symbol: a function that a kernel's object must offer; without it the build failed.

    Raises:
        BlockedError: what reads the object is not installed.
    """
    made = make(tools, job, files, folder)
    declared = tools.route.collect(sorted(made.files))
    objects = [name for name in declared if declared[name].role == "kernel_object"] if made.built else []
    facts, wrong = _look(made, objects, symbol)
    if wrong is not None:
        message = f"error: {wrong}"
        made = made._replace(
            outcome=Outcome(outcomes.REJECTED, message), log=f"{made.log}{message}\n", errors=(message,)
        )
    log_path, log = f"logs/{subject}.txt", made.log.encode()
    kept = {log_path: log}
    outputs = [_output(log_path, subject, "log", "data", log)]
    for name, data in made.files.items() if made.built else ():
        role: str = declared[name].role
        path, trust = f"{subject}/{name}", declared[name].trust
        if subject == _LAUNCHER:
            role, path = _LAUNCHER, f"{subject}/{_LAUNCHER}{Path(name).suffix}"
        kept[path] = data
        outputs.append(_output(path, subject, role, trust, data) | facts.get(name, {}))
    return Product(subject, made, tuple(outputs), kept)


def _look(made: Made, objects: Sequence[str], symbol: str | None) -> tuple[dict[str, dict[str, Any]], str | None]:
    """What each object offers, and what is wrong with one of them."""
    facts: dict[str, dict[str, Any]] = {}
    for name in objects:
        try:
            facts[name], there = offers(made.files[name], name, symbol)
        except InvalidError as error:
            return facts, f"the object cannot be read: {error.problems[0].message}"
        if not there:
            return facts, f'the object exports no function {symbol!r}; declare it extern "C"'
    return facts, None


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
