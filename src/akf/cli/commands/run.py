"""Commands that move a run forward, one step each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from akf.cli.result import Result
from akf.trust.keys import default_directory


def folder_of_keys(keys: Path | None) -> Path:
    """The keys' folder: as named, or the user's."""
    return keys if keys is not None else default_directory()


def init(campaign: Path, runs_root: Path, run_id: str | None, keys: Path | None) -> Result:
    """Make a run."""
    from akf.store.left import beside  # noqa: PLC0415
    from akf.store.snapshot import init_run  # noqa: PLC0415

    run = init_run(campaign, runs_root, folder_of_keys(keys), run_id)
    return Result({"run": run.name, "path": str(run), "leftovers": [str(path) for path in beside(runs_root)]})


def open_task(
    run: Path, file: Path, keys: Path | None, callsite: str | None, template: Path | None, captures: list[Path]
) -> Result:
    """Put a Task under a run."""
    from akf.opportunity.tasks import open_task as step  # noqa: PLC0415

    task = step(run, file, folder_of_keys(keys), callsite=callsite, template=template, captures=captures)
    path = str(run / "tasks" / f"{task['id']}.json")
    return Result({"task": task["id"], "type": task["type"], "path": path, "opportunity": task["opportunity"]})


def submit(run: Path, folder: Path, retry: bool, keys: Path | None) -> Result:
    """Make a Candidate of a folder."""
    from akf.candidates import submit as step  # noqa: PLC0415

    candidate = step(run, folder, folder_of_keys(keys), retry=retry)
    path = run / "attempts" / candidate["id"]
    return Result({"candidate": candidate["id"], "path": str(path), "source_digest": candidate["source_digest"]})


def intake(run: Path, keys: Path | None) -> Result:
    """Submit what waits in the inbox; the status is the worst of them."""
    from akf.candidates import intake as step  # noqa: PLC0415

    results = step(run, folder_of_keys(keys))
    problems = [problem for entry in results for problem in entry["problems"]]
    submissions = [{name: entry[name] for name in ("name", "candidate", "new", "status")} for entry in results]
    return Result(
        {"submissions": submissions, "problems": problems}, max((entry["status"] for entry in results), default=0)
    )


def evaluate(
    run: Path,
    candidate: str,
    gate: str,
    plan: bool,
    wait_s: int,
    profiled: tuple[Path, Path] | None,
    worker: str | None,
    keys: Path | None,
) -> Result:
    """Measure a gate; 0 whenever it could answer, 6 when blocked."""
    from akf.contracts.problems import BlockedError  # noqa: PLC0415
    from akf.evaluate import evaluate as step  # noqa: PLC0415
    from akf.evaluate import preview  # noqa: PLC0415
    from akf.evaluate.hypothesis import sessions  # noqa: PLC0415
    from akf.lease import FileLeases, default_folder  # noqa: PLC0415

    if plan:
        return Result(preview(run, candidate, gate))
    leases = FileLeases(default_folder())
    measured = partial(
        step,
        run,
        candidate,
        gate,
        folder_of_keys(keys),
        wait_s=wait_s,
        profiled=sessions(profiled) if profiled else None,
    )
    if worker is None:
        value = measured(leases=leases)
    else:
        from akf.cli.commands.elsewhere import at_worker  # noqa: PLC0415

        with at_worker(worker, run, leases) as there:
            value = measured(leases=there, elsewhere=there.run)
    document = {"candidate": candidate, "gate": gate, "gate_status": value["status"], "checks": value["checks"]}
    return Result(document, BlockedError.exit_code if value["status"] == "blocked" else 0)


def status(run: Path) -> Result:
    """Where a run stands."""
    from akf.store.overview import overview  # noqa: PLC0415

    return Result(overview(run))
