"""`ingest profile`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from akf.cli.options import check_data_class, check_id, check_one_of
from akf.cli.outputs import free, publish
from akf.cli.progress import Progress
from akf.cli.result import Result
from akf.contracts.documents import load
from akf.contracts.problems import DefectError, UsageError

_USAGE = "AKF-F135"
_LINES = ("computing_ns", "communication_ns", "waiting_ns", "host_gap_ns", "idle_ns", "overlapped_ns")
_SHOWN = 10


def ingest_profile(
    paths: Sequence[Path],
    out: Path | None,
    workload: Path | None,
    arm: str | None,
    name: str,
    title: str | None,
    platform: str | None,
    data_class: str,
    stage: str | None,
    step_kernel: str | None,
    logs: Sequence[Path],
    quiet: bool,
) -> Result:
    """Make a Capture of a profiler's files; without `out` only say what it would be."""
    from akf.contracts.canonical import canonical_bytes, digest, parse_canonical  # noqa: PLC0415
    from akf.contracts.models.base import Platform, StageName  # noqa: PLC0415
    from akf.contracts.schemas import validate  # noqa: PLC0415

    free(_USAGE, out=out)
    check_id(name)
    check_data_class(_USAGE, data_class)
    check_one_of(_USAGE, "--stage", stage, get_args(StageName))
    check_one_of(_USAGE, "--platform", platform, get_args(Platform))
    _check_arm(arm, workload, logs)
    from akf.frameworks.health import with_health  # noqa: PLC0415
    from akf.traffic.formats import ingest  # noqa: PLC0415
    from akf.traffic.profiles import Options  # noqa: PLC0415

    options = Options(
        id=name,
        title=title,
        data_class=data_class,
        platform=platform,
        stage=stage,
        step_kernel=step_kernel,
        workload=None if workload is None else load(workload, "Workload").value,
        arm=arm,
    )
    with Progress("reading", quiet=quiet) as shown:
        capture = with_health(ingest(paths, options, shown), logs, arm)
    data = canonical_bytes(capture)
    if problems := validate(parse_canonical(data, "capture.json"), "Capture"):
        raise DefectError(problems)
    document = {"capture": None if out is None else str(out), "digest": digest(data), **_summary(capture)}
    publish((out, data))
    return Result(document)


def _check_arm(arm: str | None, workload: Path | None, logs: Sequence[Path]) -> None:
    """Refuse an arm that nothing is asked of, and logs of no arm."""
    from akf.frameworks.arms import ARMS  # noqa: PLC0415

    message = None
    if logs and arm not in ARMS:
        message = f"--log says what a framework did: name the arm with --arm, one of {', '.join(ARMS)}"
    elif arm is not None and workload is None and not logs:
        message = "--arm says whose callsites of a Workload to take: name it with --workload"
    if message is not None:
        raise UsageError.of(_USAGE, message, found=str(arm), hint="see: akf ingest profile --help")


def _summary(capture: dict[str, Any]) -> dict[str, Any]:
    entries = sorted(capture["entries"], key=lambda entry: -entry["exposed_ns"])
    mapped = sum(entry["exposed_ns"] for entry in entries if entry["callsite"] is not None)
    return {
        "id": capture["id"],
        "platform": capture["platform"],
        "data_class": capture["data_class"],
        "tool": f"{capture['tool']['name']} {capture['tool']['version']}",
        "clock": capture["clock"],
        "entries": len(entries),
        "mapped_exposed_ns": mapped,
        "steps": [
            {name: line.get(name) for name in ("rank", "bounds", "steps", "step_ns", *_LINES)}
            for line in capture["breakdown"]
        ],
        "hotspots": [
            {name: entry.get(name) for name in ("rank", "kernel", "callsite", "core_type", "calls", "exposed_ns")}
            for entry in entries[:_SHOWN]
        ],
        "balance": [
            {"kernel": entry["kernel"], **blocks} for entry in entries[:_SHOWN] for blocks in entry.get("balance", ())
        ],
        "checks": capture["checks"],
        "completeness": capture.get("completeness", []),
        "health": capture.get("health"),
    }
