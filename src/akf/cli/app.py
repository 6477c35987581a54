"""The commands and their options; each loads what it needs when it runs."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
import typer

from akf.cli.result import FORMATS, Result, Settings
from akf.cli.start import LATER, not_yet


class Commands(typer.core.TyperGroup):
    """The commands; one that only a later version has is not taken for a slip."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, except for the commands of later versions."""
        if args and args[0] in LATER and args[0] not in self.commands:
            ctx.fail(not_yet(args[0]))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="akf",
    cls=Commands,
    help="Ascend Kernel Forge: freeze what is measured, build and measure by trusted programs, judge by rule.",
    rich_markup_mode=None,
    add_completion=False,
    suggest_commands=False,  # click suggests already
    context_settings={
        "terminal_width": 80,  # the same help on every terminal
        "max_content_width": 80,
        "help_option_names": ["-h", "--help"],
    },
)
keys_app = typer.Typer(help="Keys of the four roles.", rich_markup_mode=None)
app.add_typer(keys_app, name="keys")
capability_app = typer.Typer(help="Routes from source to binary, and what they may claim.", rich_markup_mode=None)
app.add_typer(capability_app, name="capability")
toolchain_app = typer.Typer(help="Toolchains of this machine.", rich_markup_mode=None)
app.add_typer(toolchain_app, name="toolchain")
ingest_app = typer.Typer(help="From files of other tools to Workload and Capture.", rich_markup_mode=None)
app.add_typer(ingest_app, name="ingest")

# `readable=False`: a file that may not be read is no usage error; the commands say what it is (exit 7).
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, made by init-run.", readable=False)]
CandidateArgument = Annotated[str, typer.Argument(metavar="CANDIDATE", help="Id of a submitted candidate.")]
KeysOption = Annotated[
    Path | None,
    typer.Option(
        "--keys", metavar="FOLDER", help="Folder of the role keys [AKF_KEYS, ~/.config/akf/keys].", readable=False
    ),
]
ReadyOption = Annotated[bool, typer.Option("--require-ready", help="Exit 10 unless the result is ready.")]


def command() -> typer.core.TyperGroup:
    """The click command behind the app."""
    return typer.main.get_command(app)  # type: ignore[return-value]


def _version(wanted: bool) -> None:
    if wanted:
        from akf import __version__

        typer.echo(f"akf {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    human: Annotated[bool, typer.Option("--human", help="A table for people instead of JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit status answers.")] = False,
    form: Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="Format of the answer.")] = "json",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options for the output; they may stand anywhere on the command line."""
    del version
    if form not in FORMATS:
        raise typer.BadParameter(f"{form!r} is not one of {', '.join(FORMATS)}.", param_hint="--format")
    settings = context.obj if isinstance(context.obj, Settings) else Settings()
    settings.format = "human" if human else form
    settings.quiet = quiet


@app.command("validate-suite")
def validate_suite(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="Suite file.", readable=False)],
    require_ready: ReadyOption = False,
) -> Result:
    """Check a Suite and the Campaigns of its arms: structure, meaning, readiness."""
    from akf.cli.commands.validate import suite as run

    return run(suite, require_ready)


@app.command("validate-campaign")
def validate_campaign(
    campaign: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="Campaign file.", readable=False)],
    require_ready: ReadyOption = False,
) -> Result:
    """Check a Campaign with its Suite, Workload and Capture."""
    from akf.cli.commands.validate import campaign as run

    return run(campaign, require_ready)


@app.command("validate")
def validate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Any artifact, a manifest, or a launch spec.", readable=False)
    ],
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Kind that it must be, or LaunchSpec.")
    ] = None,
) -> Result:
    """Check one file by itself: the schema of its kind, and what it must mean."""
    from akf.cli.commands.validate import artifact as run

    return run(file, kind)


@app.command("init-run")
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


@app.command("fill")
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


@app.command("open-task")
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
    keys: KeysOption = None,
) -> Result:
    """Put a Task under a run: a Task folder's, or the one that a triage answers with."""
    from akf.cli.commands.run import open_task as answer

    return answer(run, file, keys, callsite, template)


@app.command("triage")
def triage(
    place: Annotated[
        Path, typer.Argument(metavar="RUN|CAMPAIGN", help="Run folder, or a Campaign file.", readable=False)
    ],
    captures: Annotated[
        list[Path] | None,
        typer.Option(
            "--capture", metavar="FILE", help="Another Capture to look for faster providers in.", readable=False
        ),
    ] = None,
    target: Annotated[
        float | None, typer.Option("--target", metavar="RATIO", help="Speed-up of the service that is worth while.")
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="STAGE", help="Stage of the Workload that was captured.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New file for the Triage.", readable=False)
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="New file for the answer as a page.", readable=False)
    ] = None,
) -> Result:
    """Say whether this is worth a kernel, and which: from Workload and Capture alone."""
    from akf.cli.commands.triage import triage as answer

    return answer(place, captures or [], target, stage, out, html)


@app.command("submit")
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


@app.command("intake")
def intake(run: RunArgument, keys: KeysOption = None) -> Result:
    """Submit everything that waits in a run's inbox."""
    from akf.cli.commands.run import intake as answer

    return answer(run, keys)


@app.command("build")
def build(
    place: Annotated[
        Path, typer.Argument(metavar="RUN|SOURCE", help="Run folder; with --route a source.", readable=False)
    ],
    candidate: Annotated[
        str | None, typer.Argument(metavar="[CANDIDATE]", help="Id of a submitted candidate of the run.")
    ] = None,
    route: Annotated[
        str | None, typer.Option("--route", metavar="ROUTE", help="Build a source outside a run, by this route.")
    ] = None,
    soc: Annotated[str | None, typer.Option("--soc", metavar="SOC", help="SoC to compile for, with --route.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="New folder, with --route.", readable=False)
    ] = None,
    toolchains: Annotated[
        list[str] | None, typer.Option("--toolchain", metavar="ID", help="Registered toolchain, with --route.")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="Option of the route, with --route.")
    ] = None,
    keys: KeysOption = None,
) -> Result:
    """Build a Candidate by its route, or a source outside a run."""
    from akf.cli.commands.build import build as answer

    return answer(place, candidate, route, soc, out, toolchains or [], options or [], keys)


@app.command("inspect")
def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Object, cubin, archive, or text that a build made.", readable=False)
    ],
) -> Result:
    """Say what a built file is: identity, kernels, symbols, digests; never run it."""
    from akf.cli.commands.inspect_file import inspect as answer

    return answer(file)


@app.command("evaluate")
def evaluate(
    run: RunArgument,
    candidate: CandidateArgument,
    gate: Annotated[str, typer.Option("--gate", metavar="GATE", help="environment or operator.")] = "operator",
    plan: Annotated[bool, typer.Option("--plan", help="Print time, cost and detectable effect; run nothing.")] = False,
    keys: KeysOption = None,
) -> Result:
    """Measure one gate of a Candidate."""
    from akf.cli.commands.run import evaluate as answer

    return answer(run, candidate, gate, plan, keys)


@app.command("judge")
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


@app.command("audit")
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


@app.command("status")
def status(run: RunArgument) -> Result:
    """Say where a run stands: tasks, attempts, gates, decisions, what is pending."""
    from akf.cli.commands.run import status as answer

    return answer(run)


@keys_app.command("init")
def keys_init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="Where to make them [AKF_KEYS, ~/.config/akf/keys].", readable=False),
    ] = None,
) -> Result:
    """Make a key pair for every role, and the trust root that pins them."""
    from akf.cli.commands.keys import init as answer

    return answer(folder)


@ingest_app.command("framework")
def ingest_framework(
    arm: Annotated[str, typer.Option("--arm", metavar="ARM", help="xllm, vllm_ascend, sglang_ascend or transformers.")],
    model_config: Annotated[
        Path, typer.Option("--model-config", metavar="FILE", help="The model's config.json.", readable=False)
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The framework's configuration as JSON [its defaults].", readable=False
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="REVISION", help="Version or commit of the framework.")
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option("--log", metavar="FILE", help="Log of the framework; may be repeated.", readable=False),
    ] = None,
    tp: Annotated[
        int | None, typer.Option("--tp", metavar="N", help="Tensor parallel size [the configuration's, or 1].")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Name of the model.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New file for the Workload.", readable=False)
    ] = None,
    identity: Annotated[str | None, typer.Option("--id", metavar="ID", help="Id of the Workload.")] = None,
) -> Result:
    """From a model's config and a framework's to the callsites of a draft Workload."""
    from akf.cli.commands.ingest_framework import ingest as answer

    return answer(arm, model_config, config, revision, logs or [], tp, model, out, identity)


@ingest_app.command("profile")
def ingest_profile(
    context: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Folders or files of a profiler.", readable=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New file for the Capture.", readable=False)
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option("--workload", metavar="WORKLOAD", help="Give kernels to its callsites.", readable=False),
    ] = None,
    arm: Annotated[
        str | None, typer.Option("--arm", metavar="ARM", help="Arm that was profiled; its calls are counted.")
    ] = None,
    name: Annotated[str, typer.Option("--id", metavar="ID", help="Id of the Capture.")] = "capture",
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title for people.")] = None,
    platform: Annotated[
        str | None, typer.Option("--platform", metavar="PLATFORM", help="Refuse profiles of another one.")
    ] = None,
    data_class: Annotated[
        str, typer.Option("--data-class", metavar="CLASS", help="public, internal or confidential.")
    ] = "internal",
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="STAGE", help="Stage of the Workload that was profiled.")
    ] = None,
    step_kernel: Annotated[
        str | None, typer.Option("--step-kernel", metavar="NAME", help="Cut steps where this kernel starts.")
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option(
            "--log", metavar="FILE", help="Log of the framework, with --arm; may be repeated.", readable=False
        ),
    ] = None,
) -> Result:
    """From a profiler's files to a Capture: where the device's time goes."""
    from akf.cli.commands.ingest_profile import ingest_profile as answer

    return answer(
        paths, out, workload, arm, name, title, platform, data_class, stage, step_kernel, logs or [], context.obj.quiet
    )  # fmt: skip


@ingest_app.command("trace")
def ingest_trace(
    traces: Annotated[
        list[Path], typer.Argument(metavar="TRACE...", help="Files of one trace of requests.", readable=False)
    ],
    onto: Annotated[
        Path, typer.Option("--onto", metavar="WORKLOAD", help="Draft with callsites and stages.", readable=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New file for the Workload.", readable=False)
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option("--requests", metavar="FILE", help="New file for the list of requests.", readable=False),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout", metavar="NAME", help="bailian, mooncake, azure, burstgpt or timed_trace [recognised]."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="FIELD=NAME", help="Name of a field, with --layout timed_trace."),
    ] = None,
    sec_multiplier: Annotated[
        str | None,
        typer.Option("--sec-multiplier", metavar="SECONDS", help="Unit of time, with --layout timed_trace."),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option("--block-size", metavar="TOKENS", help="Size of a block, with --layout timed_trace [16]."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds", metavar="STAGE=MIN:MAX,MIN:MAX", help="Other bounds of a stage: input, output, in tokens."
        ),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", metavar="NAME", help="Tokenizer that counted the tokens.")
    ] = None,
    subset: Annotated[
        int | None, typer.Option("--subset", metavar="N", help="List N representative requests instead of all.")
    ] = None,
    data_class: Annotated[
        str, typer.Option("--data-class", metavar="CLASS", help="public, internal or confidential.")
    ] = "internal",
    captures: Annotated[
        list[Path] | None,
        typer.Option("--capture", metavar="CAPTURE", help="Take the sizes of steps from it.", readable=False),
    ] = None,
) -> Result:
    """From a trace of requests to a Workload: stages, arrivals, prefix reuse."""
    from akf.cli.commands.ingest_trace import ingest as answer

    return answer(
        traces, onto, out, requests, layout, labels or [], sec_multiplier, block_size, bounds or [], tokenizer, subset,
        data_class, captures or [],
    )  # fmt: skip


@ingest_app.command("bench")
def ingest_bench(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE_OR_FOLDER...", help="Results of a benchmark client.", readable=False),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New file for the ServingBenchmark.", readable=False)
    ] = None,
    name: Annotated[str, typer.Option("--id", metavar="ID", help="Id of the artifact.")] = "serving-benchmark",
    data_class: Annotated[
        str, typer.Option("--data-class", metavar="CLASS", help="public, internal or confidential.")
    ] = "internal",
    quantiles: Annotated[
        list[str] | None,
        typer.Option("--quantile", metavar="Q", help="Quantile to compute from detail [0.5 0.9 0.95 0.99]."),
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Pair the figures of two results by meaning.")] = False,
) -> Result:
    """Read results of benchmark clients into one meaning."""
    from akf.cli.commands.ingest_bench import ingest_bench as answer

    return answer(paths, out, name, data_class, quantiles or [], compare)


@capability_app.command("list")
def capability_list() -> Result:
    """List the routes: platform, stages, what is real without CANN."""
    from akf.cli.commands.capability import list_all as answer

    return answer()


@capability_app.command("explain")
def capability_explain(
    route: Annotated[str, typer.Argument(metavar="ROUTE", help="Name of a route.")],
    soc: Annotated[str | None, typer.Option("--soc", metavar="SOC", help="SoC, by AKF's name.")] = None,
) -> Result:
    """Say all that a route declares: tools and how to get them, SoC names, stages, outputs, claims."""
    from akf.cli.commands.capability import explain as answer

    return answer(route, soc)


@app.command("survey")
def survey(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...", help="Profiles, benchmark results, traces, configs, logs; or folders.", readable=False
        ),
    ],
    target: Annotated[
        float | None, typer.Option("--target", metavar="RATIO", help="Speed-up of the service that is worth a Task.")
    ] = None,
    arm: Annotated[
        str | None, typer.Option("--arm", metavar="ARM", help="Framework that was profiled, for its callsites.")
    ] = None,
    model_config: Annotated[
        Path | None, typer.Option("--model-config", metavar="FILE", help="The model's config.json.", readable=False)
    ] = None,
    framework_config: Annotated[
        Path | None,
        typer.Option("--framework-config", metavar="FILE", help="The framework's configuration.", readable=False),
    ] = None,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="REVISION", help="Version or commit of the framework.")
    ] = None,
    tp: Annotated[
        int | None, typer.Option("--tp", metavar="N", help="Tensor parallel size, where no configuration says it.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model's name; its config does not hold it.")
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="STAGE", help="Stage of the service that was profiled.")
    ] = None,
    step_kernel: Annotated[
        str | None, typer.Option("--step-kernel", metavar="NAME", help="Cut steps where this kernel starts.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME=VALUE", help="A value that the answer goes by, instead of the default."),
    ] = None,
    data_class: Annotated[
        str, typer.Option("--data-class", metavar="CLASS", help="public, internal or confidential.")
    ] = "internal",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="New folder for the artifacts and the answer.", readable=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="New file for the answer as a page.", readable=False)
    ] = None,
) -> Result:
    """Say what your profiles, benchmarks and traces are worth a look for, before any Campaign."""
    from akf.cli.commands.survey import survey as answer

    return answer(
        paths, target=target, arm=arm, model_config=model_config, framework_config=framework_config, revision=revision,
        tp=tp, model=model, stage=stage, step_kernel=step_kernel, policy=policy or [], data_class=data_class, out=out,
        html=html, quiet=context.obj.quiet,
    )  # fmt: skip


@toolchain_app.command("add")
def toolchain_add(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="An installed CANN, or an environment with bin/python.", readable=False),
    ] = None,
    packages: Annotated[
        str | None, typer.Option("--packages", metavar="ROUTE", help="Make the environment of this route.")
    ] = None,
    name: Annotated[str | None, typer.Option("--id", metavar="ID", help="Name of the toolchain.")] = None,
    wheels: Annotated[
        Path | None,
        typer.Option("--wheels", metavar="FOLDER", help="Wheels to use instead of the network.", readable=False),
    ] = None,
) -> Result:
    """Register an installed toolchain, or make one of packages that are pinned by hash."""
    from akf.cli.commands.toolchain import add as answer

    return answer(folder, packages, name, wheels)


@toolchain_app.command("list")
def toolchain_list() -> Result:
    """List the registered toolchains, and how far each route gets with them."""
    from akf.cli.commands.toolchain import list_all as answer

    return answer()


@toolchain_app.command("check")
def toolchain_check(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Toolchains; all by default.")] = None,
) -> Result:
    """Read toolchains again, and say field by field what is not as registered."""
    from akf.cli.commands.toolchain import check as answer

    return answer(names or [])


@app.command("schema")
def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="Kind to print; all kinds are listed without one.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FOLDER", help="Write all schemas to a new folder.", readable=False),
    ] = None,
) -> Result:
    """List, print or export the JSON schemas of the artifacts."""
    from akf.cli.commands.reference import schema as answer

    return answer(kind, export)


@app.command("explain")
def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="AKF-S012, a reason code, or a verdict.")],
) -> Result:
    """Explain a problem code, a reason code or a verdict: the rule, why it exists, examples."""
    from akf.cli.commands.reference import explain as answer

    return answer(code)


@app.command("demo")
def demo(
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Empty folder to work in [akf-demo].", readable=False),
    ] = None,
) -> Result:
    """Run the whole line on this machine: from source files to Decisions."""
    from akf.cli.commands.demo import demo as answer

    return answer(folder)
