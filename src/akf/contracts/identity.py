"""The identity that evidence must have for a Campaign, as one flat value.

Invariants:
- `expected` is a pure function of frozen artifacts; the evaluator fills the same fields with what it reads where the
  work runs, and the judge compares them one by one.
- Groups of facts enter by the digest of their canonical bytes, so that any change in them is a difference.
"""

from __future__ import annotations

from typing import Any

from akf.contracts.canonical import canonical_bytes, digest


def policy_digest(campaign: dict[str, Any]) -> str:
    """Digest of everything that decides how results are read: acceptance, noise, serving state, promotion."""
    return _digest({name: campaign[name] for name in ("acceptance", "noise", "serving", "promotion")})


def machine_digest(environment: dict[str, Any], ranks: dict[str, Any]) -> str:
    """Digest of the machine's facts; toolkit, SoC and frameworks are compared by name besides."""
    return _digest({"environment": environment, "ranks": ranks})


def expected(
    campaign: dict[str, Any], workload_digest: str, task: dict[str, Any], candidate: dict[str, Any]
) -> dict[str, Any]:
    """The identity that every gate of this candidate must show."""
    environment = campaign["environment"]
    return {
        "platform": campaign["platform"],
        "arm": campaign["arm"],
        "lane": campaign["lane"],
        "soc": environment["soc"]["name"],
        "toolkit": environment["toolkit"],
        "route": candidate["claim"]["route"],
        "graph": task["graph"],
        "frameworks": [{"name": each["name"], "revision": each["revision"]} for each in environment["frameworks"]],
        "model_digest": campaign["model"]["weights_digest"],
        "workload_digest": workload_digest,
        "policy_digest": policy_digest(campaign),
        "machine_digest": machine_digest(environment, campaign["ranks"]),
        "incumbent_digest": campaign["baseline"]["incumbent_digest"],
    }


def differing(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Names of the fields that differ, in order."""
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def capability_of(campaign: dict[str, Any], task: dict[str, Any], route: str) -> dict[str, Any] | None:
    """The Campaign's capability tuple that covers this Task on this route, or None: unknown fails closed."""
    for capability in campaign["capabilities"]:
        exact = (
            capability["backend"] == route
            and capability["soc"] == campaign["environment"]["soc"]["name"]
            and capability["toolkit"] == campaign["environment"]["toolkit"]
            and capability["op"] == task["op"]
            and capability["graph"] == task["graph"]
        )
        if exact and _covers(capability, task):
            return capability  # type: ignore[no-any-return]
    return None


def _covers(capability: dict[str, Any], task: dict[str, Any]) -> bool:
    """Whether the tuple's shape covers the main operand over the Task's whole domain, and every row lies inside it."""
    operand = task["abi"]["operands"][0]
    if operand["dtype"] != capability["dtype"] or len(operand["shape"]) != len(capability["shape"]):
        return False
    sizes = [size for each in task["abi"]["operands"] for size in each["shape"] if isinstance(size, dict)]
    if not all(_inside(row["symbols"], size) for row in task["rows"] for size in sizes):
        return False
    return all(_within(mine, theirs) for mine, theirs in zip(operand["shape"], capability["shape"], strict=True))


def _inside(symbols: dict[str, int], size: dict[str, Any]) -> bool:
    """Whether a row gives this symbol, and a size of its domain."""
    found = symbols.get(size["sym"])
    return found is not None and size["min"] <= found <= size["max"] and found % size["multiple_of"] == 0


def _within(mine: int | dict[str, Any], theirs: int | dict[str, Any]) -> bool:
    if isinstance(mine, int):
        mine = {"min": mine, "max": mine, "multiple_of": mine}
    if isinstance(theirs, int):
        return bool(mine["min"] == mine["max"] == theirs)
    step: int = theirs["multiple_of"]
    return bool(theirs["min"] <= mine["min"] and mine["max"] <= theirs["max"] and mine["multiple_of"] % step == 0)


def _digest(value: Any) -> str:
    return digest(canonical_bytes(value))
