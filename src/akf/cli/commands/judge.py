"""`judge` and `audit`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

from akf.cli.commands.run import folder_of_keys
from akf.cli.result import NOT_MET, Result
from akf.contracts.problems import IntegrityError, PreconditionError, UsageError
from akf.contracts.text import did_you_mean


def judge(run: Path, gates: Path, recheck: bool, dry_run: bool, require: str | None, keys: Path | None) -> Result:
    """Judge one attempt; any verdict is exit 0, unless another was required."""
    from akf.contracts.models.decision import Verdict  # noqa: PLC0415

    if require is not None and require not in get_args(Verdict):
        meant = did_you_mean(require, get_args(Verdict))
        hint = f"did you mean {meant}?" if meant else None
        message = f"--require: {require!r} is no verdict"
        raise UsageError.of("AKF-U002", message, expected=list(get_args(Verdict)), found=require, hint=hint)
    if recheck and dry_run:
        raise UsageError.of("AKF-U004", "--recheck and --dry-run exclude each other")
    candidate = _candidate(run, gates)
    decision = _decide(run, candidate, recheck=recheck, dry_run=dry_run, keys=keys)
    path = run / "attempts" / candidate / "decision.json"
    document = {
        "candidate": candidate,
        "verdict": decision["verdict"],
        "decision": decision,
        "path": None if dry_run else str(path),
    }
    return Result(document, NOT_MET if require not in {None, decision["verdict"]} else 0)


def _candidate(run: Path, gates: Path) -> str:
    """The attempt that GATES names; it must be RUN/attempts/ID/gates."""
    from akf.store.layout import attempt_of_gates  # noqa: PLC0415

    found = attempt_of_gates(gates.absolute())
    if found is None or os.path.realpath(found[0]) != os.path.realpath(run):
        message = f"GATES must be {run}/attempts/CANDIDATE/gates, not {gates}"
        hint = _meant(run, gates) or "akf status RUN lists the candidates"
        raise UsageError.of(
            "AKF-U005", message, expected=f"{run}/attempts/CANDIDATE/gates", found=str(gates), hint=hint
        )
    if not os.path.isdir(gates.parent):  # noqa: PTH112 - a path that no system takes is no folder either
        hint = _meant(run, gates) or "akf status RUN lists them"
        raise UsageError.of("AKF-U005", f"the run has no attempt {found[1]!r}", found=str(gates), hint=hint)
    return found[1]


def _meant(run: Path, gates: Path) -> str | None:
    """The path to type, when one part of what was typed is, or nearly is, a candidate of the run."""
    try:
        here = [name for name in os.listdir(run / "attempts") if not name.startswith(".")]  # noqa: PTH208 - names only
    except (OSError, ValueError):
        return None
    given = [part for part in reversed(gates.parts) if part not in {"gates", "attempts", run.name}]
    meant = next((part for part in given if part in here), None) or did_you_mean(given[0] if given else "", here)
    return f"did you mean {run / 'attempts' / meant / 'gates'}?" if meant else None


def _decide(run_path: Path, candidate: str, *, recheck: bool, dry_run: bool, keys: Path | None) -> dict[str, Any]:
    from akf.judge import decide  # noqa: PLC0415
    from akf.store.collect import attempt_files  # noqa: PLC0415
    from akf.store.layout import LEDGER  # noqa: PLC0415
    from akf.store.run import Run, checked, signer_for  # noqa: PLC0415

    run = Run.open(run_path)

    def foreseen() -> dict[str, Any]:
        return decide({**attempt_files(run.path, candidate), LEDGER: run.foreseen()[0]}, candidate)

    relative = f"attempts/{candidate}/decision.json"
    if recheck:
        if not (run.path / relative).is_file():
            raise PreconditionError.of("AKF-P120", f"{candidate!r} has no Decision to recheck", hint="judge it first")
        run.load(relative)
        found = run.read(relative)
        value = foreseen()
        if checked(value) != found:
            raise IntegrityError.of(
                "AKF-I220", f"{relative} is not what the evidence gives", file=relative, expected=value["verdict"]
            )
        return value
    if dry_run:
        return foreseen()
    with run.locked():
        signer = signer_for(run, "judge", folder_of_keys(keys))
        value = decide(attempt_files(run.path, candidate), candidate)
        run.record(relative, value, signer)
    return value


def audit(run: Path, trust: Path | None, clean: bool) -> Result:
    """Re-derive a run offline; exit 3 when something does not hold."""
    from akf.audit import audit as step  # noqa: PLC0415

    return Result(step(run, trust, clean=clean))
