"""The Build record: what was compiled, by what, for what, and whether it reproduces.

Invariants:
- Tools, commands and environment are recorded as used; places of this machine stand under their roots' names.
- The stage is the deepest one that is really there; of several specialisations the one that reached least says it. Why
  it goes no deeper is said by code.
- A program that only stood in for a tool is named as such.
- Silent changes that a compiler reported are facts of the Build.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from akf.build.engine import Bench
from akf.build.objects import Product, failed_reasons, reproduction, together


def record(
    tools: Bench,
    soc: str,
    build_id: str,
    parents: Sequence[dict[str, str]],
    launch: dict[str, Any] | None,
    products: Sequence[Product],
    seconds: Sequence[Product],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The Build and its files.

    Args:
        tools: the route and its tools.
        soc: SoC that was compiled for, by AKF's name.
        build_id: the Build's id.
        parents: its parents, none for a diagnostic Build.
        launch: the launch spec as it was given.
        products: what was built, the candidate's first.
        seconds: the candidate's second build, in the same order.
    """
    first = products[0]
    firsts = [product for product in products if product.subject == first.subject]
    levels = {product.made.isolation for product in (*products, *seconds)}
    value: dict[str, Any] = {
        "kind": "Build",
        "schema_version": 1,
        "id": build_id,
        "parents": list(parents),
        "outcome": "built" if all(product.built for product in products) else "failed",
        "reasons": failed_reasons(products),
        "route": tools.route.name,
        "soc": soc,
        "toolkit": tools.toolkit,
        "stage": _least(tools, firsts),
        "tools": [*(each.record for each in tools.found), *first.made.stand_ins],
        "commands": [command for product in products for command in product.made.commands],
        "variables": [{"name": name, "value": item} for name, item in sorted(first.made.variables.items())],
        "inputs_digest": together([product.made.inputs for product in firsts]),
        "isolation": levels.pop() if len(levels) == 1 else "none",
        "sandbox": dict(first.made.sandbox),
        "outputs": [output for product in products for output in product.outputs],
    }
    if launch is not None:
        value["launch"] = launch
    outcome = next((product.made.outcome for product in products if product.made.outcome is not None), None)
    if outcome is not None:
        value["stopped"] = {"code": outcome.code, "message": outcome.message[:1000]}
        if outcome.tool is not None:
            value["stopped"]["tool"] = outcome.tool
    if seconds and all(product.built for product in (*firsts, *seconds)):
        value["reproduction"] = reproduction([each.made for each in firsts], [each.made for each in seconds])
    notes = tuple(dict.fromkeys(note for product in products for note in product.made.notes))
    if notes:
        value["notes"] = list(notes)
    return value, {path: data for product in products for path, data in product.files.items()}


def _least(tools: Bench, products: Sequence[Product]) -> str:
    """The stage of the product that reached least."""
    order: list[str] = ["source", "host_parts", *(str(stage.name) for stage in tools.route.data.stages)]
    return order[min(order.index(str(product.made.stage)) for product in products)]
