"""`ingest profile`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.cli.progress import Progress
from akf.cli.result import Result
from akf.contracts.documents import load
from akf.contracts.ids import id_problem
from akf.contracts.problems import ConflictError, DefectError, UsageError
from akf.contracts.text import show

_CLASSES = ("public", "internal", "confidential")
_STAGES = ("short_prefill", "long_prefill", "decode", "mixed")
_PLATFORMS = ("ascend", "cuda", "host")
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
    from akf.contracts.schemas import validate  # noqa: PLC0415
    from akf.store.publish import make_folder, publish_file  # noqa: PLC0415
    from akf.traffic import need_polars  # noqa: PLC0415

    _check(out, arm, workload, logs, name, platform, data_class, stage)
    need_polars()
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
    if out is not None:
        make_folder(out.absolute().parent)
        publish_file(out, data, mode=0o644)
    return Result(document)


def _check(
    out: Path | None,
    arm: str | None,
    workload: Path | None,
    logs: Sequence[Path],
    name: str,
    platform: str | None,
    data_class: str,
    stage: str | None,
) -> None:
    """Refuse before anything is read what would be refused at the end."""
    if out is not None and os.path.lexists(out):
        hint = "published files are never replaced: name a new one"
        raise ConflictError.of("AKF-C101", f"{out} exists already; nothing was changed", file=str(out), hint=hint)
    if (problem := id_problem(name)) is not None:
        raise _usage(f"--id: {problem}", name)
    for option, value, known in (
        ("--data-class", data_class, _CLASSES), ("--stage", stage, _STAGES), ("--platform", platform, _PLATFORMS)
    ):  # fmt: skip
        if value is not None and value not in known:
            raise _usage(f"{option}: {show(value)} is not one of {', '.join(known)}", value)
    if logs and arm not in (arms := _arms()):
        raise _usage(f"--log says what a framework did: name the arm with --arm, one of {', '.join(arms)}", str(arm))
    if arm is not None and workload is None and not logs:
        raise _usage("--arm says whose callsites of a Workload to take: name it with --workload", arm)


def _arms() -> tuple[str, ...]:
    """The arms whose logs are understood."""
    from akf.frameworks.arms import ARMS  # noqa: PLC0415 - only with a log

    return ARMS


def _usage(message: str, found: str) -> UsageError:
    return UsageError.of("AKF-F135", message, found=found, hint="see: akf ingest profile --help")


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
