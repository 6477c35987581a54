"""The operator gate: correctness, isfinite, hit proof, then timing against the baseline, profiler off.

Invariants:
- Checks run in order and stop at the first failure; what was not run says so.
- A/A is measured once per run, Task and machine, by the first gate; later gates name that file by digest.
- Outcomes are computed from the raw sample files by the same code that the judge uses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from akf import stats
from akf.contracts.canonical import digest, jcs
from akf.contracts.gates import required_checks
from akf.contracts.measured import Measured, swallows
from akf.contracts.measured import measure as reduce_samples
from akf.contracts.problems import BlockedError, IntegrityError
from akf.evaluate import planning
from akf.evaluate.checks import evidence, timing
from akf.evaluate.planning import operator_gain
from akf.evaluate.program import Answer, Program
from akf.evaluate.program import run as run_harness
from akf.evaluate.request import BATCHES, Objects, PythonObjects, harness_plan, harness_request, seeds_for
from akf.evaluate.subject import Found, Subject
from akf.harness.plan import planned_ids
from akf.store.collect import read_plain
from akf.store.run import Run
from akf.store.verify import tries

GATE = "operator"
EVIDENCE = ("sensitivity", "correctness", "isfinite", "hit_proof")
_NO_SECRET = b""


def plan(run: Run, subject: Subject, objects: Objects | PythonObjects, program: Program, work: Path) -> dict[str, Any]:
    """Launches per batch, measurements, sample ids and cases; opens the baseline only."""
    own = f"attempts/{subject.candidate['id']}/samples/{GATE}"
    shared = _shared_noise(run, subject, program.digest)
    if shared is not None:
        noise = shared
    else:
        launches, trip = _calibrate(subject, objects, program, work)
        noise = _measurement(subject, "aa", f"{own}/aa.jsonl", launches, trip)
    launches = {row["id"]: row["launches"] for row in noise["rows"]}
    gain = _measurement(subject, "gain", f"{own}/ab.jsonl", launches, noise["round_trip_ns"])
    cases = [
        {name: each.get(name, "normal") for name in ("id", "symbols", "attributes", "inputs")}
        for each in [*subject.task["rows"], *subject.task.get("cases", ())]
    ]
    return {"measurements": [noise, gain], "cases": cases, "estimate": _estimate(run, subject, shared)}


def preview(run: Run, subject: Subject) -> dict[str, Any]:
    """What a plan would say beforehand."""
    pairs = subject.campaign["acceptance"]["pairs"]
    shared = _shared_noise(run, subject)
    rows = [row["id"] for row in subject.task["rows"]]
    return {
        "rows": rows,
        "pairs": pairs[GATE],
        "blocks": pairs["blocks"],
        "samples": len(planned_ids(rows, pairs[GATE], pairs["blocks"])),
        "aa_shared": shared is not None,
        "estimate": _estimate(run, subject, shared),
        "claim": planning.claim(subject.campaign, tries(run.lines(), subject.task["id"]) + 1),
        "budget": {
            "evaluation_s": subject.task["budget"]["evaluation_s"],
            "board_s": subject.campaign["budget"]["board_s"],
        },
    }


def measure(
    run: Run,
    subject: Subject,
    objects: Objects | PythonObjects,
    program: Program,
    work: Path,
    plan: dict[str, Any],
    secret: bytes,
) -> Found:
    """Run the harness and read its answers."""
    seeds = _seeds(subject, secret)
    request = harness_request(subject.task, subject.campaign, objects, "auto", seeds)
    limit = float(subject.task["budget"]["evaluation_s"])
    answer = run_harness(program, "check", request, work, limit)
    isolation = answer.report["facts"]["isolation"]
    checks = [evidence(name, answer.report["checks"][name]) for name in EVIDENCE]
    files = {"correctness.jsonl": answer.files["correctness.jsonl"]}
    side = {"check": _side(answer)}
    stop = next((check["name"] for check in checks if check["outcome"] != "pass"), None)
    if stop is not None:
        return Found([*checks, *_not_run(subject, stop)], isolation, files, {}, side)
    noise, gain = plan["measurements"]
    own = noise["path"].startswith(f"attempts/{subject.candidate['id']}/")
    runs = ["aa", "ab"] if own else ["ab"]
    launches = {row["id"]: row["launches"] for row in gain["rows"]}
    request["plan"] = harness_plan(
        launches, gain["round_trip_ns"], gain["pairs"], gain["blocks"], gain["batches"], runs
    )
    answer = run_harness(program, "measure", request, work, limit)
    files |= {f"{name}.jsonl": _canonical(answer.files[f"{name}.jsonl"]) for name in runs}
    side["measure"] = _side(answer)
    shared = {} if own else {noise["path"]: read_plain(run.path, noise["path"])}
    checks.append(timing(answer.report["checks"], runs))
    if checks[-1]["outcome"] != "pass":
        return Found([*checks, *_not_run(subject, "timing")], isolation, files, shared, side)
    confidence = subject.campaign["acceptance"]["confidence"]
    aa = reduce_samples(noise, files["aa.jsonl"] if own else shared[noise["path"]], confidence)
    ab = reduce_samples(gain, files["ab.jsonl"], confidence)
    return Found([*checks, *_figures(subject, gain["id"], aa, ab)], isolation, files, shared, side)


def _side(answer: Answer) -> dict[str, Any]:
    """Load and wall time of one command of the harness, for the journal; logs and spans stay out."""
    side = orjson.loads(answer.files["side.json"])
    return {name: side[name] for name in ("load_before", "load_after", "wall_s") if name in side}


def _seeds(subject: Subject, secret: bytes) -> dict[str, str]:
    digests = {parent["kind"]: parent["digest"] for parent in subject.parents}
    return seeds_for(subject.task, secret, digests["Candidate"], digests["Build"], GATE, subject.candidate["id"])


def _calibrate(
    subject: Subject, objects: Objects | PythonObjects, program: Program, work: Path
) -> tuple[dict[str, int], int]:
    request = harness_request(subject.task, subject.campaign, objects, "auto", _seeds(subject, _NO_SECRET))
    answer = run_harness(program, "calibrate", request, work, float(subject.task["budget"]["evaluation_s"]))
    check = answer.report["checks"]["calibration"]
    if check["outcome"] != "pass":
        message = "the baseline could not be timed on this machine"
        raise BlockedError.of(
            "AKF-E105", message, found=check["reasons"], hint="is the machine idle, and is its memory free?"
        )
    return answer.report["facts"]["launches"], answer.report["facts"]["round_trip_ns"]


def _shared_noise(run: Run, subject: Subject, harness: str | None = None) -> dict[str, Any] | None:
    """The A/A measurement of an earlier gate of this Task on this machine, or None."""
    for line in run.lines():
        if line.event != "gate" or line.facts.get("gate") != GATE or line.facts.get("task") != subject.task["id"]:
            continue
        gate = run.load(line.path).value
        if harness not in {None, gate["harness_digest"]}:
            continue  # measured by another program
        earlier = run.load(line.path.replace("/gates/", "/plan/")).value
        noise = next((each for each in earlier["measurements"] if each["purpose"] == "aa"), None)
        files = {each["path"]: each["digest"] for each in gate.get("samples", ())}
        if noise is None or noise["path"] not in files:
            continue
        if gate["identity"] != subject.wanted() or gate["status"] == "incomparable":
            continue  # measured elsewhere, or too noisy to lend
        data = read_plain(run.path, noise["path"])
        if digest(data) != files[noise["path"]]:
            message = f"{noise['path']} has other bytes than its gate names"
            raise IntegrityError.of("AKF-I211", message, file=noise["path"])
        return noise  # type: ignore[no-any-return]
    return None


def _measurement(subject: Subject, purpose: str, path: str, launches: dict[str, int], trip: int) -> dict[str, Any]:
    acceptance = subject.campaign["acceptance"]
    rule = operator_gain(subject.campaign)
    rows = subject.task["rows"]
    pairs, blocks = acceptance["pairs"][GATE], acceptance["pairs"]["blocks"]
    return {
        "id": f"{rule['id']}.{purpose}",
        "purpose": purpose,
        "rule": rule["id"],
        "metric": rule["metric"],
        "unit": rule["unit"],
        "better": rule["better"],
        "design": "abba",
        "statistic": rule["statistic"],
        "rows": [{"id": row["id"], "weight": row["weight"], "launches": launches[row["id"]]} for row in rows],
        "pairs": pairs,
        "blocks": blocks,
        "batches": BATCHES,
        "round_trip_ns": trip,
        "path": path,
        "samples": planned_ids([row["id"] for row in rows], pairs, blocks),
    }


def _estimate(run: Run, subject: Subject, shared: dict[str, Any] | None) -> dict[str, Any]:
    """Time, cost and power, from the best that is known of the noise."""
    rows = [row["id"] for row in subject.task["rows"]]
    acceptance = subject.campaign["acceptance"]
    aa = None
    if shared is not None:
        aa = reduce_samples(shared, read_plain(run.path, shared["path"]), acceptance["confidence"])
    capture = run.load("capture.json").value
    noise = planning.noise_of(subject.campaign, capture, rows, aa)
    segments_s = planning.segments_s(subject.campaign, capture, subject.task)
    return planning.estimate(subject.campaign, noise, segments_s, shared=shared is not None)


def _not_run(subject: Subject, stop: str) -> list[dict[str, Any]]:
    rows = tuple(row["id"] for row in subject.task["rows"])
    names = [name for name in required_checks(GATE, subject.campaign, rows) if name.partition(":")[1]]
    return [_check(name, "not_run", note=f"{stop} did not pass") for name in names]


def _figures(subject: Subject, measurement: str, aa: Measured, ab: Measured) -> list[dict[str, Any]]:
    """The gain and the row checks, as the samples say."""
    acceptance = subject.campaign["acceptance"]
    rule = operator_gain(subject.campaign)
    found = []
    wanted = [(f"gain:{rule['id']}", None, rule["threshold_ratio"])]
    wanted += [(f"row:{row['id']}", row["id"], acceptance["row_margin_ratio"]) for row in subject.task["rows"]]
    for name, row, limit in wanted:
        if aa.reduced is None or ab.reduced is None:
            broken = ab if ab.reduced is None else aa
            found.append(_check(name, "not_run", [broken.code], broken.note or broken.code))
            continue
        noise = aa.reduced.total if row is None else aa.reduced.rows[row]
        reduction = ab.reduced.total if row is None else ab.reduced.rows[row]
        if noise.interval is None or reduction.interval is None:
            found.append(_check(name, "not_run", ["SAMPLES_TOO_FEW"], "no interval at this confidence"))
            continue
        shown: dict[str, Any] = {"measurement": measurement, "interval": _interval(reduction.interval)}
        if swallows(noise.interval, limit, subject.campaign["noise"]["noise_limit_ratio"]):
            note = f"A/A [{noise.interval.low - 1:+.4f}, {noise.interval.high - 1:+.4f}] could swallow {limit}"
            found.append(_check(name, "incomparable", ["NOISE_TOO_HIGH"], note, **shown))
            continue
        decide = stats.gain_outcome if row is None else stats.guard_outcome
        found.append(_check(name, decide(reduction.interval, limit), **shown))
    return found


def _check(name: str, outcome: str, reasons: list[str] | None = None, note: str = "", **more: Any) -> dict[str, Any]:
    kind = name.partition(":")[0]
    category = "gain" if kind == "gain" else "guard"
    value: dict[str, Any] = {"name": name, "category": category, "outcome": outcome, "profiler": "off", **more}
    if reasons:
        value["reasons"] = reasons
    if note:
        value["note"] = note
    return value


def _interval(interval: stats.Interval) -> dict[str, Any]:
    return {
        "estimate": interval.estimate, "low": interval.low, "high": interval.high, "pairs": interval.n,
        "confidence": interval.confidence,
    }  # fmt: skip


def _canonical(data: bytes) -> bytes:
    """The harness's lines in canonical form, as sample files are kept."""
    return b"".join(jcs(orjson.loads(line)) + b"\n" for line in data.splitlines())
