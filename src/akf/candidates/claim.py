"""What a candidate's manifest must mean beyond its schema.

Invariants:
- One main hypothesis: one active bound, a metric that this bound moves, one direction, one range, one falsifier.
- The `binary` ABI names its launch spec among the sources, the `python` ABI has a module there; where the sources are
  not known, that is left open.
"""

from __future__ import annotations

from akf.contracts.gates import PYTHON
from akf.contracts.ids import candidate_id_problem
from akf.contracts.loader import Document
from akf.contracts.problems import Problem
from akf.contracts.rules.finding import at
from akf.contracts.text import did_you_mean, printable

SHOWN = 8
# What a hypothesis about each active bound may be measured by (the Campaign's own KPIs besides).
METRICS = {
    "compute": ("latency", "activity", "utilization"),
    "transfer": ("latency", "traffic", "overlap"),
    "balance": ("latency", "row_p95", "cv", "tail_cost"),
    "launch_graph": ("latency", "host_gap", "recompile", "replay_hit"),
}


def claim_problems(document: Document, sources: list[str] | None) -> list[Problem]:
    """Problems of one manifest.

    Args:
        document: the manifest, valid by its schema.
        sources: paths of the source files, relative to `src/`; None when nobody has looked.
    """
    claim = document.value
    hypothesis = claim["hypothesis"]
    line, column = document.locate("/id")
    name = candidate_id_problem(claim["id"], file=document.file, pointer="/id", line=line, column=column)
    found = [] if name is None else [name]
    allowed = METRICS[hypothesis["active_bound"]]
    if hypothesis["metric"] not in allowed:
        message = f"the bound {hypothesis['active_bound']} is not observed by {hypothesis['metric']!r}"
        more = {"expected": list(allowed), "found": hypothesis["metric"], "hint": f"one of {', '.join(allowed)}"}
        found.append(at(document, "/hypothesis/metric", "AKF-M040", message, **more))
    if hypothesis["size_low_ratio"] > hypothesis["size_high_ratio"]:
        message = "the smallest expected change exceeds the largest"
        found.append(at(document, "/hypothesis/size_low_ratio", "AKF-M044", message))
    launch = claim.get("launch")
    if claim["abi"] == "binary" and launch is None:
        message = "the binary ABI needs a launch spec"
        found.append(at(document, "", "AKF-M041", message, hint='add "launch": "launch.json" and the file under src/'))
    if launch is not None and sources is not None and launch not in sources:
        message = f"the launch spec {launch!r} is not among the sources"
        hint = _meant(launch, sources)
        found.append(at(document, "/launch", "AKF-M041", message, expected=sources, found=launch, hint=hint))
    found += _module(document, sources)
    for symbol, (low, high) in (claim.get("domain") or {}).items():
        if low > high:
            found.append(
                at(document, f"/domain/{symbol}", "AKF-M042", f"{symbol}: smallest {low} exceeds largest {high}")
            )
    return found


def _module(document: Document, sources: list[str] | None) -> list[Problem]:
    """What goes with the `python` ABI, and with no other."""
    claim = document.value
    python = claim["abi"] == PYTHON
    found = []
    if python != (claim["route"] == PYTHON):
        message = f"the {claim['abi']} ABI does not go with the route {claim['route']}"
        hint = "a module has the abi and the route `python`; what a route compiles has the abi `binary`"
        found.append(at(document, "/route", "AKF-M047", message, found=claim["route"], hint=hint))
    if python and claim.get("launch") is not None:
        message = "a module has no launch spec: its function is called as run(*inputs, **attributes)"
        found.append(at(document, "/launch", "AKF-M047", message, hint="leave it out"))
    if python and sources is not None and module_of(sources) is None:
        message = "src/ holds neither kernel.py nor a single Python file"
        found.append(at(document, "", "AKF-M047", message, expected="kernel.py", found=sources[:SHOWN]))
    return found


def module_of(sources: list[str]) -> str | None:
    """The file of a tree that holds the module's function: `kernel.py`, or the only Python file at its top."""
    top = [source for source in sources if source.endswith(".py") and "/" not in source]
    return "kernel.py" if "kernel.py" in top else top[0] if len(top) == 1 else None


def _meant(launch: str, sources: list[str]) -> str:
    """Which of the sources was probably meant: another folder, or a slip."""
    name = launch.rsplit("/", 1)[-1]
    same = [source for source in sources if source.rsplit("/", 1)[-1] == name]
    near = min(same, key=len) if same else did_you_mean(launch, sources)
    question = f"did you mean {printable(near)}?" if near else "the file is not there"
    return f"paths are relative to src/; {question}"
