"""All specialisations of one kernel, built; and the frozen cache that they make together.

Invariants:
- The arm's compiler is asked for the key of every specialisation, and of every row and case of the Task. Equal keys are
  one; a row or case whose key is none of them ends the build.
- Each specialisation is a build of its own, in a folder of its own; the first that fails ends the rest.
- A cache is frozen only where every specialisation has its whole entry.
- What a process with the source's code says of a key is taken as a name and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.build import cache
from akf.build.engine import Bench, Made, make
from akf.build.objects import Product, build_subject, log_of, output
from akf.contracts.problems import InvalidError
from akf.routes import outcomes
from akf.routes.outcomes import Outcome
from akf.routes.route import CACHED, KEYS, Job, SourceRefused
from akf.routes.specialisation import MOST, Specialisation
from akf.store.untrusted import TreeFile

_KEY = re.compile(r"[A-Za-z0-9_-]{8,128}")


class Variant(NamedTuple):
    """One specialisation, as it is asked for; a kernel compiled ahead of time has a single one without a name."""

    name: str
    job: Job
    needed: Specialisation | None = None
    key: str | None = None


class Kernel(NamedTuple):
    """A kernel whose specialisations are known, or why they are not."""

    subject: str
    files: Sequence[TreeFile]
    variants: tuple[Variant, ...]
    refused: Product | None = None


def kernel(
    tools: Bench,
    job: Job,
    files: Sequence[TreeFile],
    subject: str,
    needed: Sequence[Specialisation],
    calls: Mapping[str, Mapping[str, str]],
    folder: Path,
) -> Kernel:
    """Find the specialisations of a kernel.

    Args:
        tools: the route and its tools.
        job: what is built.
        files: the sources.
        subject: whose kernel it is.
        needed: what has to be compiled; nothing for a kernel that is compiled ahead of time.
        calls: options of each row and case, by its name.
        folder: a new folder to work in.

    Raises:
        InvalidError: more are needed than are built.
    """
    if not needed:
        return Kernel(subject, files, (Variant("", job),))
    base = job._replace(frozen=True)
    try:
        plan = tools.route.ask(base, [*(each.options for each in needed), *calls.values()])
    except SourceRefused:
        return Kernel(subject, files, _named(base, needed[:1], [None]))  # the build itself says why
    if plan is None:
        return Kernel(subject, files, _named(base, needed, [None] * len(needed)))
    made = make(tools, base, files, folder, plan)
    keys = _keys(made, len(needed) + len(calls))
    if made.outcome is None and keys is None:
        made = _ended(made, Outcome(outcomes.REJECTED, "error: the source changed what the compiler was asked"))
    if keys is None:
        return Kernel(subject, files, (), _failed(subject, made))
    distinct: dict[str, Specialisation] = {}
    for key, each in zip(keys, needed, strict=False):
        before = distinct.get(key)
        distinct[key] = each if before is None else before._replace(points=before.points + each.points)
    missed = [name for name, key in zip(calls, keys[len(needed) :], strict=True) if key not in distinct]
    if missed:
        message = f"error: the call of {missed[0]} is none of the specialisations that were enumerated"
        return Kernel(subject, files, (), _failed(subject, _ended(made, Outcome(cache.MISS, message))))
    if len(distinct) > MOST:
        message = f"{subject}: {len(distinct)} specialisations are needed, and at most {MOST} are built"
        hint = "narrow `domain` in candidate.json, or keep arguments from being specialised (do_not_specialize)"
        raise InvalidError.of("AKF-M049", message, expected=MOST, found=len(distinct), hint=hint)
    return Kernel(subject, files, _named(base, list(distinct.values()), list(distinct)))


def build_kernel(tools: Bench, what: Kernel, folder: Path, symbol: str | None) -> list[Product]:
    """Build every specialisation once.

    Args:
        tools: the route and its tools.
        what: the kernel.
        folder: a folder to work in.
        symbol: what its objects must offer.
    """
    if what.refused is not None:
        return [what.refused]
    products = []
    for each in what.variants:
        place = folder / f"{what.subject}-{each.name}"
        product = build_subject(tools, each.job, what.files, place, what.subject, symbol, each.name)
        if product.built and each.key is not None and _key_of(product.made) != each.key:
            ended = _ended(product.made, Outcome(cache.MISS, "error: the compiler asked for another key than before"))
            product = product._replace(made=ended)
        products.append(product)
        if not product.built:
            break
    return products


def described(what: Kernel, products: Sequence[Product]) -> list[dict[str, Any]]:
    """The specialisations as a Build names them."""
    rows = []
    for each, product in zip(what.variants, products, strict=False):
        if each.needed is None:
            continue
        constexprs = [(name, value) for name, value in each.needed.options.items() if name.startswith("constexpr.")]
        row: dict[str, Any] = {
            "id": each.name,
            "subject": what.subject,
            "stage": product.made.stage,
            "points": each.needed.points,
            "symbols": {name: each.needed.example[name] for name in each.needed.sizes},
            "attributes": {name: value for name, value in each.needed.example.items() if name not in each.needed.sizes},
            "arguments": [{"name": name, "value": value} for name, value in each.needed.classes.items()],
            "constexprs": [{"name": name.partition(".")[2], "value": value} for name, value in constexprs],
        }
        rows.append(row if each.key is None else {**row, "key": each.key})
    return rows


def frozen(what: Kernel, products: Sequence[Product]) -> tuple[dict[str, Any], bytes] | None:
    """The manifest of the kernel's cache, as one more output; None where an entry is not whole."""
    entries: dict[str, dict[str, tuple[str, bytes]]] = {}
    for each, product in zip(what.variants, products, strict=False):
        mine = {name: data for name, data in product.made.files.items() if name.startswith(CACHED)}
        if each.key is None or not product.built or not mine:
            return None
        base = f"{what.subject}/{each.name}"
        entries[each.key] = {name.removeprefix(CACHED): (f"{base}/{name}", data) for name, data in mine.items()}
    if not entries or len(entries) < len(what.variants):
        return None
    path, data = f"{what.subject}/{cache.MANIFEST}", cache.manifest(entries)
    return output(path, what.subject, "meta", "data", data), data


def _named(job: Job, needed: Sequence[Specialisation], keys: Sequence[str | None]) -> tuple[Variant, ...]:
    pairs = enumerate(zip(needed, keys, strict=True))
    return tuple(
        Variant(f"s{number:02}", job._replace(options={**job.options, **each.options}), each, key)
        for number, (each, key) in pairs
    )


def _keys(made: Made, count: int) -> list[str] | None:
    """The keys that the front end wrote, where it wrote as many names as it was asked for."""
    try:
        found = orjson.loads(made.files.get(KEYS, b"null"))
    except orjson.JSONDecodeError:
        return None
    whole = isinstance(found, list) and len(found) == count
    return found if whole and all(isinstance(key, str) and _KEY.fullmatch(key) for key in found) else None


def _key_of(made: Made) -> str | None:
    try:
        found = orjson.loads(made.files.get("kernel.key.json", b"null"))
    except orjson.JSONDecodeError:
        return None
    key = found.get("key") if isinstance(found, dict) else None
    return key if isinstance(key, str) else None


def _ended(made: Made, outcome: Outcome) -> Made:
    return made._replace(outcome=outcome, log=f"{made.log}{outcome.message}\n", errors=(outcome.message,))


def _failed(subject: str, made: Made) -> Product:
    log, said = log_of(made, subject)
    return Product(subject, made, (log,), {log["path"]: said})
