"""`fill --host`: a draft's placeholders become facts of this machine, in a new folder.

Invariants:
- The draft is never changed; the filled Suite folder appears whole or not at all.
- Only placeholders are filled, with what this machine says and measures now; nothing is invented.
- The noise limit is twice the A/A spread measured here, at least 0.5 % and at most the smallest threshold or margin:
  a noisier machine shows in each gate's own A/A.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.pointer import get, put
from akf.contracts.problems import ConflictError, InvalidError, PreconditionError
from akf.contracts.rules.check import Inputs, check_campaign
from akf.frameworks import host_reference
from akf.store.draft import copy_of, render
from akf.store.publish import StagedFolder, make_folder
from akf.trust.keys import PublicKey

CAPTURE = "captures/host_reference.json"
MIN_NOISE, NOISE_FACTOR, STEP = 0.005, 2.0, 0.001


class Measured(NamedTuple):
    """What a measurement of the baseline gave: time by row, and the A/A interval."""

    tool: str
    entries: list[dict[str, Any]]
    low_ratio: float
    high_ratio: float
    pairs: int
    source_digest: str


def together(parts: Sequence[Measured]) -> Measured:
    """One measurement of several operators: all times, and an A/A interval that holds each of theirs."""
    if len(parts) == 1:
        return parts[0]
    return Measured(
        parts[0].tool,
        [entry for part in parts for entry in part.entries],
        min(part.low_ratio for part in parts),
        max(part.high_ratio for part in parts),
        min(part.pairs for part in parts),
        source_digest([part.source_digest for part in parts]),
    )


def fill_host(campaign: Path, out: Path, keys: dict[str, PublicKey] | None, measure: Any) -> dict[str, Any]:
    """Fill a host draft with this machine's facts into the new folder `out`.

    Args:
        campaign: the draft Campaign of platform `host`.
        out: folder of the filled Suite; it must not exist.
        keys: public key of each role; None leaves an unsigned Campaign as it is.
        measure: callable `(campaign, workload, baseline) -> Measured`, the measurement of the baseline.

    Returns:
        What was filled: paths and the noise that was measured.

    Raises:
        PreconditionError: the draft is not of platform host.
        ConflictError: `out` exists.
    """
    inputs = fillable(campaign, out)
    suite, draft = copy_of(inputs.suite), copy_of(inputs.campaign)
    workload = copy_of(inputs.workload)
    with tempfile.TemporaryDirectory(prefix="akf-fill-") as scratch:
        baseline = host_reference.build_baseline(Path(scratch))
        environment = host_reference.environment(baseline)
        measured: Measured = measure(draft, workload, baseline)
    noise = noise_limit(draft, measured)
    filled = {
        "/soc/name": environment["soc"]["name"],
        "/toolkit/version": environment["toolkit"]["version"],
        "/toolkit/build": environment["toolkit"]["build"],
    }
    suite = _filled(suite, filled)
    facts: dict[str, Any] = {
        "/environment": environment,
        "/ranks": host_reference.ranks(),
        "/baseline/incumbent_digest": baseline.digest,
        "/capture/path": CAPTURE,
        "/noise/noise_limit_ratio": noise,
    }
    if draft["trust"]["mode"] == "signed" and keys is not None:
        facts["/trust/keys"] = {role: key.pin() for role, key in keys.items()}
    for index in range(len(draft["capabilities"])):
        facts[f"/capabilities/{index}/soc"] = environment["soc"]["name"]
        facts[f"/capabilities/{index}/toolkit"] = environment["toolkit"]
    draft = _filled(draft, facts)
    files = {
        Path(inputs.suite.file).name if inputs.suite else "suite.json": suite,
        _inside(campaign, inputs.root): draft,
        workload_path(draft): workload,
        CAPTURE: _capture(draft, measured),
    }
    make_folder(out.absolute().parent)
    with StagedFolder(out) as stage:
        for relative, value in files.items():
            stage.write(relative, render(value), mode=0o644)
    return {
        "folder": str(out),
        "campaign": str(out / _inside(campaign, inputs.root)),
        "noise_limit_ratio": noise,
        "aa": {"low_ratio": measured.low_ratio, "high_ratio": measured.high_ratio, "pairs": measured.pairs},
    }


def noise_limit(campaign: dict[str, Any], measured: Measured) -> float:
    """The noise limit that this machine's A/A supports, rounded up to 0.1 %."""
    acceptance = campaign["acceptance"]
    bounds = [rule["threshold_ratio"] for rule in acceptance["gains"]]
    bounds += [rule["margin_ratio"] for rule in acceptance.get("guards", ())]
    bounds.append(acceptance["row_margin_ratio"])
    spread = max(measured.high_ratio - 1, 1 - measured.low_ratio)
    wanted = max(MIN_NOISE, math.ceil(NOISE_FACTOR * spread / STEP) * STEP)
    most = min(bound for bound in bounds if bound is not None)
    return float(round(min(wanted, most), 6))


def workload_path(campaign: dict[str, Any]) -> str:
    """Where the Campaign's Workload stands in the Suite's folder."""
    return str(campaign["workload"]["path"])


def fillable(campaign: Path, out: Path) -> Inputs:
    """What would be filled; everything that can be refused is refused here, before anything is made or measured.

    Raises:
        InvalidError: the draft is invalid.
        PreconditionError: it is not of platform host.
        ConflictError: `out` exists.
    """
    inputs = _draft(campaign)
    if os.path.lexists(out):
        hint = "name a new folder with --out"
        raise ConflictError.of("AKF-C101", f"{out} exists already; nothing was changed", file=str(out), hint=hint)
    return inputs


def _draft(campaign: Path) -> Inputs:
    result = check_campaign(campaign)
    if not result.valid:
        raise InvalidError(result.problems)
    inputs = result.inputs
    if inputs is None or inputs.campaign.value["platform"] != "host":
        message = f"{campaign} is not a Campaign of platform host"
        raise PreconditionError.of(
            "AKF-P130", message, file=str(campaign), hint="`--host` fills the reference platform only"
        )
    if inputs.suite is None or inputs.workload is None:
        raise PreconditionError.of("AKF-P131", "the draft names no Suite or no Workload", file=str(campaign))
    return inputs


def _filled(value: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Put facts where the draft has nothing, or has an object of placeholders."""
    for pointer, fact in facts.items():
        here = get(value, pointer)
        if here is None or isinstance(here, dict):
            put(value, pointer, _over(here, fact))
    return value


def _over(draft: Any, fact: Any) -> Any:
    """The fact, under what the draft states already."""
    if not isinstance(draft, dict) or not isinstance(fact, dict):
        return fact if draft is None or isinstance(fact, list) else draft
    return {
        **{name: _over(draft.get(name), item) for name, item in fact.items()},
        **{n: i for n, i in draft.items() if n not in fact},
    }


def _capture(campaign: dict[str, Any], measured: Measured) -> dict[str, Any]:
    return {
        "kind": "Capture",
        "schema_version": 1,
        "id": campaign["capture"]["id"],
        "title": "Baseline of this machine, measured by fill",
        "platform": "host",
        "data_class": campaign["data_class"],
        "tool": {"name": measured.tool, "version": "1"},
        "sources": [{"name": "calibration.json", "digest": measured.source_digest}],
        "entries": measured.entries,
        "noise": [
            {
                "metric": "latency",
                "pairs": measured.pairs,
                "low_ratio": measured.low_ratio,
                "high_ratio": measured.high_ratio,
            }
        ],
        "clock": "unknown",
    }


def _inside(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path, root)).as_posix()


def source_digest(value: Any) -> str:
    """Digest of a report in canonical form."""
    return digest(canonical_bytes(value))
