"""`ingest framework`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from akf.cli.options import check_id, check_name
from akf.cli.outputs import free, publish
from akf.cli.result import Result
from akf.contracts.problems import Problem, UsageError


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
    campaign: Path | None,
) -> Result:
    """Draft a Workload of a framework's configuration; without `out` it is part of the answer."""
    from akf.contracts.documents import load  # noqa: PLC0415
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
    if campaign is not None:
        wanted = load(campaign, "Campaign").value
        _agree(campaign, {"--arm": (arm, wanted["arm"]), "--model": (model, wanted["model"]["name"]),
                          "--id": (identity, wanted["workload"]["id"])})  # fmt: skip
        model, identity = model or wanted["model"]["name"], identity or wanted["workload"]["id"]
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


def _agree(campaign: Path, pairs: Mapping[str, tuple[str | None, str | None]]) -> None:
    """Refuse what is said otherwise than by the Campaign."""
    problems = [
        Problem(
            "AKF-F313",
            f"{option}: {said} is not what the Campaign says: {wanted}",
            file=str(campaign),
            expected=wanted,
            found=said,
            hint=f"leave {option} out" if option != "--arm" else "name the Campaign of this arm",
        )
        for option, (said, wanted) in pairs.items()
        if None not in {said, wanted} and said != wanted
    ]
    if problems:
        raise UsageError(problems)


def _names(arm: str, site: Mapping[str, Any]) -> dict[str, Any]:
    """Under which names a profiler shows what answers a callsite, and which of them nobody saw yet."""
    from akf.frameworks.arms import kernels  # noqa: PLC0415

    found = kernels(arm, site["op"], site["provider"])
    return {
        key: list(dict.fromkeys(name for kernel in found for name in kernel.get(table, ())))
        for key, table in (("kernels", "names"), ("kernels_unverified", "unverified"))
    }
