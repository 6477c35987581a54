"""What the hit proof saw, as figures of its check: one by one, so that a reader need not believe the outcome.

Invariants:
- Figures are the harness's facts; none is computed here.
- Names are `CONTROL_FACT`: the positive, the negative and the perturbation control.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = {
    "object_digest": "positive_object_digest",
    "mapped": "positive_mapped",
    "function_inside": "positive_function_inside",
    "files": "positive_files",
    "mapped_in_baseline": "negative_mapped_in_baseline",
    "files_in_baseline": "negative_files_in_baseline",
}
PERTURBED = ("object_digest", "cases", "differs", "rejected")


def figures(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The facts of a hit proof; empty where it was not run."""
    found = [{"name": NAMES[name], "value": facts[name]} for name in NAMES if name in facts]
    perturbed = facts.get("perturbed", {})
    return found + [
        {"name": f"perturbation_{name}", "value": perturbed[name]} for name in PERTURBED if name in perturbed
    ]
