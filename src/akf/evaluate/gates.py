"""`evaluate`: one gate of one Candidate, planned, measured, published.

Invariants:
- The plan is signed and in the ledger before the Build's objects are opened; its ids are the only ones measured.
- Gates are made in order; a gate after one that did not pass is refused, and a decided attempt is closed.
- A plan without its gate is an interrupted evaluation: it is resumed with the same secret, and the ledger says so.
- Raw samples stand beside the gate before the gate appears.
- A gate is planned and measured under a lease of its devices, which is checked again before anything is published; its
  token stands in the journal.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from akf.contracts.canonical import digest
from akf.contracts.gates import GATES, fold
from akf.contracts.loader import parse
from akf.contracts.problems import ConflictError, PreconditionError, UsageError
from akf.contracts.text import did_you_mean
from akf.evaluate import environment, operator
from akf.evaluate.hypothesis import Sessions, observe
from akf.evaluate.loaded import incumbent, objects_of
from akf.evaluate.program import Elsewhere, pack
from akf.evaluate.secrets import committed_secret, secret_digest, secret_for
from akf.evaluate.subject import Subject
from akf.frameworks import host_reference
from akf.lease import FileLeases, Holding, Leases, default_folder, devices_of, held
from akf.store import journal, layout, ledger
from akf.store.publish import StagedFolder, make_folder
from akf.store.run import Run, ref, signer_for
from akf.store.verify import tries

MEASURED_HERE = ("environment", "operator")


def evaluate(
    run_path: Path,
    candidate: str,
    gate: str,
    keys: Path,
    *,
    leases: Leases | None = None,
    wait_s: float = 0.0,
    profiled: Sessions | None = None,
    elsewhere: Elsewhere | None = None,
) -> dict[str, Any]:
    """Measure one gate, and the environment gate before it when it is missing; returns the Gate.

    Args:
        run_path: the run's folder.
        candidate: the attempt.
        gate: the gate.
        keys: folder of the evaluator's key.
        leases: where leases come from; None for this machine's.
        wait_s: how long another holder of the devices is waited for.
        profiled: sessions with a profiler on, for the hypothesis of the operator gate.
        elsewhere: what runs the harness, where it is a worker; `leases` are that worker's then.

    Raises:
        UsageError: there is no such gate.
        PreconditionError: nothing is built, an earlier gate did not pass, or the attempt is decided.
        ConflictError: the gate exists, another holds a device, or the lease was lost meanwhile.
        BlockedError: the machine cannot do it.
    """
    _known(gate)
    run = Run.open(run_path)
    with run.locked():
        _open(run, candidate, gate)
        subject = Subject.read(run, candidate)
        owner = f"akf evaluate {run.path.absolute().name} {candidate}"
        with held(leases or FileLeases(default_folder()), devices_of(run.campaign), owner, wait_s) as holding:
            for name in [each for each in GATES[: GATES.index(gate)] if each in MEASURED_HERE]:
                value = _existing(run, candidate, name) or _measure(
                    run, subject, name, keys, holding, elsewhere=elsewhere
                )
                if value["status"] != "pass":
                    found = value["status"]
                    message = f"the {name} gate of {candidate!r} is {found}, so the {gate} gate is not measured"
                    hint = "see its checks; after blocked or incomparable: akf submit --retry"
                    raise PreconditionError.of("AKF-P113", message, found=found, hint=hint)
            return _measure(run, subject, gate, keys, holding, profiled, elsewhere)


def preview(run_path: Path, candidate: str, gate: str) -> dict[str, Any]:
    """What the gate would measure, in which time, and what it could detect; runs nothing."""
    _known(gate)
    run = Run.open(run_path)
    subject = Subject.read(run, candidate)
    if gate == "environment":
        return {"candidate": candidate, "gate": gate, "estimate": {"wall_s": environment.ESTIMATE_S}}
    return {"candidate": candidate, "gate": gate, **operator.preview(run, subject)}


def _known(gate: str) -> None:
    if gate not in GATES:
        meant = did_you_mean(gate, GATES)
        hint = f"did you mean {meant}?" if meant else None
        raise UsageError.of("AKF-U002", f"there is no gate {gate!r}", expected=list(GATES), found=gate, hint=hint)
    if gate not in MEASURED_HERE:
        message = f"this version measures {', '.join(MEASURED_HERE)}; the {gate} gate stays missing"
        raise PreconditionError.of("AKF-P116", message, expected=list(MEASURED_HERE), found=gate)


def _open(run: Run, candidate: str, gate: str) -> None:
    run.need_candidate(candidate)
    run.need_open(candidate)
    if layout.gate(run.path, candidate, gate).exists():
        message = f"{candidate!r} has its {gate} gate already; a source gets one gate of each kind"
        raise ConflictError.of("AKF-C105", message, hint="after blocked or incomparable: akf submit --retry")


def _existing(run: Run, candidate: str, gate: str) -> dict[str, Any] | None:
    relative = f"attempts/{candidate}/gates/{gate}.json"
    return run.load(relative).value if (run.path / relative).exists() else None


def _measure(
    run: Run,
    subject: Subject,
    gate: str,
    keys: Path,
    holding: Holding,
    profiled: Sessions | None = None,
    elsewhere: Elsewhere | None = None,
) -> dict[str, Any]:
    """Plan, measure and publish one gate."""
    signer = signer_for(run, "evaluator", keys)
    module = environment if gate == "environment" else operator
    candidate = subject.candidate["id"]
    plan_path, gate_path = f"attempts/{candidate}/plan/{gate}.json", f"attempts/{candidate}/gates/{gate}.json"
    nonce = parse(run.read("run.json"), "run.json").value["nonce"]
    with tempfile.TemporaryDirectory(prefix="akf-evaluate-") as scratch:
        work = Path(scratch)
        program = pack(work, elsewhere)
        arm = host_reference.build_baseline(work, subject.task["op"])
        mine = incumbent(subject, arm, work)
        resumes = 0
        if (run.path / plan_path).exists():
            plan = run.load(plan_path).value
            if plan["harness_digest"] != program.digest:
                message = f"the {gate} gate of {candidate!r} was planned with another harness"
                hint = "finish it with the version of AKF that planned it: one gate, one harness"
                raise PreconditionError.of(
                    "AKF-P118", message, expected=plan["harness_digest"], found=program.digest, hint=hint
                )
            secret = committed_secret(nonce, candidate, gate, plan["secret_digest"])
            facts = {"task": subject.task["id"], "candidate": candidate, "gate": gate}
            ledger.append(run.path, "resume", plan_path, digest(run.read(plan_path)), facts)
        else:
            secret = secret_for(nonce, candidate, gate)
            plan = {
                "kind": "Plan",
                "schema_version": 1,
                "id": gate,
                "gate": gate,
                "parents": subject.parents,
                "secret_digest": secret_digest(secret),
                "harness_digest": program.digest,
                "tries_before": tries(run.lines(), subject.task["id"]),
                **module.plan(run, subject, objects_of(subject, mine, None), program, work),
            }
            run.record(plan_path, plan, signer)
        resumes = sum(line.event == "resume" and line.path == plan_path for line in run.lines())
        if gate == "environment":
            found = environment.measure(subject, arm, mine, holding)
        else:
            objects = objects_of(subject, mine, layout.build_outputs(run.path, candidate))
            found = operator.measure(run, subject, objects, program, work, plan, secret)
    symbol = subject.build.get("launch", {}).get("symbol", "")
    answer = observe(subject.task, subject.candidate, symbol, subject.campaign, profiled)
    value = {
        "kind": "Gate",
        "schema_version": 1,
        "id": gate,
        "gate": gate,
        "parents": [*subject.parents, ref(plan, run.read(plan_path))],
        "identity": subject.identity(host_reference.environment(arm), mine.digest),
        "isolation": found.isolation,
        "evidence": "measured",
        "status": fold([check["outcome"] for check in found.checks]),
        "checks": found.checks,
        "samples": _sample_files(plan, found.files, f"attempts/{candidate}/samples/{gate}", found.shared),
        "secret": secret.hex(),
        "harness_digest": program.digest,
        "hypothesis": answer.said,
        "resumes": resumes,
    }
    holding.check()
    if found.files:
        folder = layout.samples(run.path, candidate, gate)
        make_folder(folder.parent)
        with StagedFolder(folder, orphan_of=run.path / gate_path) as stage:
            for name, data in sorted(found.files.items()):
                stage.write(name, data)
    run.record(gate_path, value, signer)
    lease = {"devices": list(holding.lease.devices), "token": holding.lease.token}
    side = {**(found.side or {}), "lease": lease}
    if gate == "operator":
        digests = list(profiled.digests) if profiled else []
        side["hypothesis"] = {"said": answer.said, "why": answer.why, "captures": digests}
    journal.note(run.path, "measured", gate_path, side)
    return value


def _sample_files(
    plan: dict[str, Any], files: dict[str, bytes], folder: str, shared: dict[str, bytes]
) -> list[dict[str, Any]]:
    """The gate's sample files: its own, and an A/A file of an earlier gate where the plan names one."""
    by_path = {each["path"]: each["id"] for each in plan.get("measurements", ())}
    found = {**{f"{folder}/{name}": data for name, data in files.items()}, **shared}
    entries = []
    for path, data in sorted(found.items()):
        entry = {"path": path, "digest": digest(data), "bytes": len(data)}
        entries.append({"measurement": by_path[path], **entry} if path in by_path else entry)
    return entries
