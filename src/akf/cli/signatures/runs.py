"""A run from its inputs to its Decisions, and the keys that sign it."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akf.cli.result import Result
from akf.cli.signatures.shared import CandidateArgument, KeysOption, RunArgument


def init_run(
    campaign: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="Ready Campaign file.", readable=False)],
    runs_root: Annotated[
        Path, typer.Option("--runs-root", metavar="FOLDER", help="Folder of all runs.", readable=False)
    ] = Path("runs"),
    run_id: Annotated[str | None, typer.Option("--run-id", metavar="ID", help="Name of the run.")] = None,
    keys: KeysOption = None,
) -> Result:
    """Freeze Suite, Campaign, Workload and Capture as a new run."""
    from akf.cli.commands.run import init as run

    return run(campaign, runs_root, run_id, keys)


def fill(
    campaign: Annotated[
        Path, typer.Argument(metavar="CAMPAIGN", help="Draft Campaign, or a Suite with --set.", readable=False)
    ],
    host: Annotated[bool, typer.Option("--host", help="Fill in this machine's facts and a measured Capture.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="New folder for the filled Suite.", readable=False)
    ] = None,
    keys: KeysOption = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="POINTER=VALUE", help="Fill one placeholder; VALUE is JSON or text."),
    ] = None,
) -> Result:
    """Fill a draft's placeholders into a new folder; the draft is not changed."""
    from akf.cli.commands.fill import fill as run

    return run(campaign, host, out, keys, values or [])


def open_task(
    run: RunArgument,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="task.json of a Task folder, or a triage of this run.", readable=False),
    ],
    callsite: Annotated[
        str | None, typer.Option("--callsite", metavar="NAME", help="Hotspot of the triage; its answer's by default.")
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="TASK_FILE", help="Semantics of a kernel Task that a triage answers.", readable=False
        ),
    ] = None,
    captures: Annotated[
        list[Path] | None,
        typer.Option("--capture", metavar="FILE", help="Another Capture that the triage looked at.", readable=False),
    ] = None,
    keys: KeysOption = None,
) -> Result:
    """Put a Task under a run: a Task folder's, or the one that a triage answers with."""
    from akf.cli.commands.run import open_task as answer

    return answer(run, file, keys, callsite, template, captures or [])


def try_candidate(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="A Task's folder, or its task.json.", readable=False)],
    candidate: Annotated[
        Path,
        typer.Argument(
            metavar="CANDIDATE", help="Folder of candidate.json and src/, or a Python file.", readable=False
        ),
    ],
    device: Annotated[
        str, typer.Option("--device", metavar="cpu|cuda|npu", help="Where a Python candidate's tensors live.")
    ] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Time nothing.")] = False,
) -> Result:
    """Run the operator gate's checks on a candidate, without a campaign; no evidence."""
    from akf.cli.commands.try_candidate import try_candidate as answer

    return answer(task, candidate, device, quick=quick)


def submit(
    run: RunArgument,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="candidate.json and src/, as AGENTS.md says.", readable=False)
    ],
    retry: Annotated[
        bool, typer.Option("--retry", help="Try the same sources once more after a blocked or incomparable gate.")
    ] = False,
    keys: KeysOption = None,
) -> Result:
    """Make a Candidate of an agent's folder."""
    from akf.cli.commands.run import submit as answer

    return answer(run, folder, retry, keys)


def intake(run: RunArgument, keys: KeysOption = None) -> Result:
    """Submit everything that waits in a run's inbox."""
    from akf.cli.commands.run import intake as answer

    return answer(run, keys)


def evaluate(
    run: RunArgument,
    candidate: CandidateArgument,
    gate: Annotated[str, typer.Option("--gate", metavar="GATE", help="environment or operator.")] = "operator",
    plan: Annotated[bool, typer.Option("--plan", help="Print time, cost and detectable effect; run nothing.")] = False,
    wait: Annotated[
        int,
        typer.Option("--wait", metavar="SECONDS", min=0, help="Wait while another measures on the same devices."),
    ] = 0,
    profiled: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--profiled",
            metavar="BASELINE CANDIDATE",
            help="Captures of both with a profiler on, for the hypothesis; they change no verdict.",
            readable=False,
        ),
    ] = None,
    worker: Annotated[
        str | None,
        typer.Option("--worker", metavar="WORKER", help="Run the harness by a worker: local, http://HOST:PORT or ray."),
    ] = None,
    keys: KeysOption = None,
) -> Result:
    """Measure one gate of a Candidate."""
    from akf.cli.commands.run import evaluate as answer

    return answer(run, candidate, gate, plan, wait, profiled, worker, keys)


def judge(
    run: RunArgument,
    gates: Annotated[Path, typer.Argument(metavar="GATES", help="RUN/attempts/CANDIDATE/gates.", readable=False)],
    recheck: Annotated[
        bool, typer.Option("--recheck", help="Recompute an existing Decision and compare; writes nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the Decision that would be made; writes nothing.")
    ] = False,
    require: Annotated[
        str | None, typer.Option("--require", metavar="VERDICT", help="Exit 10 unless this is the verdict.")
    ] = None,
    keys: KeysOption = None,
) -> Result:
    """Judge a Candidate's gates by the decision table."""
    from akf.cli.commands.judge import judge as answer

    return answer(run, gates, recheck, dry_run, require, keys)


def audit(
    run: RunArgument,
    trust: Annotated[
        Path | None, typer.Option("--trust", metavar="FILE", help="Trust root from outside the run.", readable=False)
    ] = None,
    clean: Annotated[bool, typer.Option("--clean", help="Remove what interrupted commands left behind.")] = False,
) -> Result:
    """Re-derive every digest, parent, signature and ledger link offline."""
    from akf.cli.commands.judge import audit as answer

    return answer(run, trust, clean)


def report(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New HTML file for the page.", readable=False)
    ] = None,
) -> Result:
    """Draw a run as one page: verdicts, pairs, intervals, raw samples and the chain of digests."""
    from akf.cli.commands.report import report as answer

    return answer(run, out)


def status(run: RunArgument) -> Result:
    """Say where a run stands: tasks, attempts, gates, decisions, what is pending."""
    from akf.cli.commands.run import status as answer

    return answer(run)


def keys_init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="Where to make them [AKF_KEYS, ~/.config/akf/keys].", readable=False),
    ] = None,
) -> Result:
    """Make a key pair for every role, and the trust root that pins them."""
    from akf.cli.commands.keys import init as answer

    return answer(folder)


def demo(
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Empty folder to work in [akf-demo].", readable=False),
    ] = None,
) -> Result:
    """Run the whole line on this machine: from source files to Decisions."""
    from akf.cli.commands.demo import demo as answer

    return answer(folder)
