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
from akf.contracts.canonical import canonical_bytes, digest
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
    tools: Bench,
    job: Job,
    files: Sequence[TreeFile],
    folder: Path,
    subject: str,
    symbol: str | None = None,
    variant: str = "",
) -> Product:
    """Build one subject.

    Args:
        tools: the route and its tools.
        job: what is built.
        files: sources; other files stand beside them.
        folder: a new folder to work in.
        subject: whose object it is.
        symbol: a function that a kernel's object must offer; without it the build failed.
        variant: which specialisation it is; its files lie in a folder of this name.

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
    log, said = log_of(made, subject, variant)
    kept = {log["path"]: said}
    outputs = [log]
    for name, data in made.files.items() if made.built else ():
        role: str = declared[name].role
        path, trust = "/".join(filter(None, (subject, variant, name))), declared[name].trust
        if subject == _LAUNCHER:
            role, path = _LAUNCHER, f"{subject}/{_LAUNCHER}{Path(name).suffix}"
        kept[path] = data
        outputs.append(output(path, subject, role, trust, data) | facts.get(name, {}))
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


def reproduction(firsts: Sequence[Made], seconds: Sequence[Made]) -> dict[str, Any]:
    """Whether builds in two folders agree, raw and in the normal form of the deepest stage."""
    pairs = list(zip(firsts, seconds, strict=True))
    value: dict[str, Any] = {
        "reproducible": all(a.stage == b.stage and a.deepest == b.deepest for a, b in pairs),
        "first": together([digest(each.deepest) for each in firsts]),
        "second": together([digest(each.deepest) for each in seconds]),
        "address_randomisation": any(each.randomised for each in (*firsts, *seconds)),
    }
    if all(each.stage in each.normal for each in (*firsts, *seconds)):
        value["normalised_first"] = together([digest(each.normal[each.stage]) for each in firsts])
        value["normalised_second"] = together([digest(each.normal[each.stage]) for each in seconds])
    return value


def together(digests: Sequence[str]) -> str:
    """One digest for one, and a digest over the list for several."""
    return digests[0] if len(digests) == 1 else digest(canonical_bytes({"digests": list(digests)}))


def log_of(made: Made, subject: str, variant: str = "") -> tuple[dict[str, Any], bytes]:
    """What the tools said, as an output."""
    log = made.log.encode()
    return output(f"logs/{subject}{variant and f'-{variant}'}.txt", subject, "log", "data", log), log


def output(path: str, subject: str, role: str, trust: str, data: bytes) -> dict[str, Any]:
    """A file that the build produced."""
    return {
        "path": path, "subject": subject, "role": role, "trust": trust, "digest": digest(data), "bytes": len(data),
    }  # fmt: skip
