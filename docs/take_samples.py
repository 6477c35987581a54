"""Takes the samples of a run for `docs/how-akf-measures.md`: `python docs/take_samples.py RUN CANDIDATE`.

The run is one that `akf demo` made; its operator gate must hold samples. `python docs/generate.py` draws the plots.
"""

# ruff: noqa: INP001, E402 - a script, run by its path
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "src")]

from generator.measured import SAMPLES

from akf.store.collect import read_plain
from akf.store.run import Run


def taken(path: Path, candidate: str) -> dict[str, Any]:
    """Every raw value of A/A and A/B in planned order, and what the Campaign demands."""
    run = Run.open(path)
    plan = run.load(f"attempts/{candidate}/plan/operator.json").value
    by_purpose = {each["purpose"]: each for each in plan["measurements"]}
    acceptance = run.campaign["acceptance"]
    gain = next(rule for rule in acceptance["gains"] if rule["gate"] == "operator")
    found = {name: by_purpose["gain"][name] for name in ("metric", "unit", "rows", "pairs", "blocks", "batches")}
    found |= {
        "confidence": acceptance["confidence"],
        "threshold_ratio": gain["threshold_ratio"],
        "row_margin_ratio": acceptance["row_margin_ratio"],
        "noise_limit_ratio": run.campaign["noise"]["noise_limit_ratio"],
    }
    for name, purpose in (("aa", "aa"), ("ab", "gain")):
        records = [json.loads(line) for line in read_plain(run.path, by_purpose[purpose]["path"]).splitlines()]
        values = {each["id"]: each["values"] for each in records}
        found[name] = [values[each] for each in by_purpose[purpose]["samples"]]
    return found


def main(run: str, candidate: str) -> None:
    """Write the samples."""
    value = taken(Path(run), candidate)
    lines = [f" {json.dumps(name)}: {json.dumps(item)}" for name, item in value.items()]
    SAMPLES.parent.mkdir(exist_ok=True)
    SAMPLES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
