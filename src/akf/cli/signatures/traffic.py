"""From real traffic to a Task."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akf.cli.result import Result
from akf.cli.signatures.shared import DataClassOption, RevisionOption, StepKernelOption


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
    data_class: DataClassOption = "internal",
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="STAGE", help="Stage of the Workload that was profiled.")
    ] = None,
    step_kernel: StepKernelOption = None,
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
    data_class: DataClassOption = "internal",
    captures: Annotated[
        list[Path] | None,
        typer.Option(
            "--capture", metavar="CAPTURE", help="Take sizes of steps from it; may be repeated.", readable=False
        ),
    ] = None,
) -> Result:
    """From a trace of requests to a Workload: stages, arrivals, prefix reuse."""
    from akf.cli.commands.ingest_trace import ingest as answer

    return answer(
        traces, onto, out, requests, layout, labels or [], sec_multiplier, block_size, bounds or [], tokenizer, subset,
        data_class, captures or [],
    )  # fmt: skip


def ingest_bench(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE_OR_FOLDER...", help="Results of a benchmark client.", readable=False),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New file for the ServingBenchmark.", readable=False)
    ] = None,
    name: Annotated[str, typer.Option("--id", metavar="ID", help="Id of the artifact.")] = "serving-benchmark",
    data_class: DataClassOption = "internal",
    quantiles: Annotated[
        list[str] | None,
        typer.Option("--quantile", metavar="Q", help="Quantile to compute from detail [0.5 0.9 0.95 0.99]."),
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Pair the figures of two results by meaning.")] = False,
) -> Result:
    """Read results of benchmark clients into one meaning."""
    from akf.cli.commands.ingest_bench import ingest_bench as answer

    return answer(paths, out, name, data_class, quantiles or [], compare)


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
    revision: RevisionOption = None,
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
    campaign: Annotated[
        Path | None,
        typer.Option("--campaign", metavar="FILE", help="Take id and model's name of this Campaign.", readable=False),
    ] = None,
) -> Result:
    """From a model's config and a framework's to the callsites of a draft Workload."""
    from akf.cli.commands.ingest_framework import ingest as answer

    return answer(arm, model_config, config, revision, logs or [], tp, model, out, identity, campaign)


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
    revision: RevisionOption = None,
    tp: Annotated[
        int | None, typer.Option("--tp", metavar="N", help="Tensor parallel size, where no configuration says it.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model's name; its config does not hold it.")
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="STAGE", help="Stage of the service that was profiled.")
    ] = None,
    step_kernel: StepKernelOption = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME=VALUE", help="A value that the answer goes by, instead of the default."),
    ] = None,
    data_class: DataClassOption = "internal",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="New folder for the artifacts and the answer.", readable=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="New file for the answer as a page.", readable=False)
    ] = None,
) -> Result:
    """Say whether a kernel is worth it, and which: from profiles, benchmarks and traces."""
    from akf.cli.commands.survey import survey as answer

    return answer(
        paths, target=target, arm=arm, model_config=model_config, framework_config=framework_config, revision=revision,
        tp=tp, model=model, stage=stage, step_kernel=step_kernel, policy=policy or [], data_class=data_class, out=out,
        html=html, quiet=context.obj.quiet,
    )  # fmt: skip


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
