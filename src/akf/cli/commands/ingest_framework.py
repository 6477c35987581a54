"""`ingest framework`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from akf.cli.options import check_id, check_name
from akf.cli.outputs import free, publish
from akf.cli.result import Result


def ingest(
    arm: str,
    model_config: Path,
    config: Path | None,
    revision: str | None,
    logs: Sequence[Path],
    tp: int | None,
    model: str | None,
    out: Path | None,
    identity: str | None,
) -> Result:
    """Draft a Workload of a framework's configuration; without `out` it is part of the answer."""
    from akf.contracts.rules.placeholders import blockers  # noqa: PLC0415
    from akf.contracts.schemas import schema  # noqa: PLC0415
    from akf.frameworks.arms import arm as arm_data  # noqa: PLC0415
    from akf.frameworks.draft import draft  # noqa: PLC0415
    from akf.frameworks.revisions import known  # noqa: PLC0415
    from akf.frameworks.settings import listed  # noqa: PLC0415
    from akf.store.draft import render  # noqa: PLC0415

    free("AKF-F312", out=out)
    check_id(identity)
    check_name("AKF-F312", "--model", model)
    made = draft(arm, model_config, config, logs, revision=revision, tp=tp, name=model, identity=identity)
    publish((out, render(made.workload)))
    document: dict[str, Any] = {
        "workload": made.workload if out is None else str(out),
        "id": made.workload["id"],
        "arm": arm,
        "revision": {"stated": revision, "mapped": known(arm_data(arm))},
        "settings": list(listed(made.settings)),
        "callsites": [
            {
                "id": site["id"],
                "op": site["op"],
                "provider": site["provider"],
                "graph": site["graph"]["mode"],
                "calls_per_step": site["calls_per_step"],
                **_names(arm, site),
            }
            for site in made.workload["callsites"]
        ],
        "log": {
            "lines": made.evidence.lines,
            "lines_that_tell": made.evidence.told,
            "graph_replay_seen": made.evidence.replay_seen,
            "health": made.evidence.health(),
        }
        if logs
        else None,
        "blockers": blockers(schema("Workload"), made.workload, str(out or "WORKLOAD")),
    }
    return Result(document)


def _names(arm: str, site: Mapping[str, Any]) -> dict[str, Any]:
    """Under which names a profiler shows what answers a callsite, and which of them nobody saw yet."""
    from akf.frameworks.arms import kernels  # noqa: PLC0415

    found = kernels(arm, site["op"], site["provider"])
    return {
        key: list(dict.fromkeys(name for kernel in found for name in kernel.get(table, ())))
        for key, table in (("kernels", "names"), ("kernels_unverified", "unverified"))
    }
