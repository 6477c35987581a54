"""Services and their clients: the Server and its jobs."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akf.cli.result import Result

ServerOption = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="The Server; $AKF_SERVER_URL, else http://127.0.0.1:8000."),
]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of a job.")]


TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert", metavar="FILE", help="Certificate (PEM) of this service; $AKF_TLS_CERT.", readable=False
    ),
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key; $AKF_TLS_KEY.", readable=False)
]
TlsClients = Annotated[
    Path | None,
    typer.Option(
        "--tls-clients", metavar="FILE", help="Whose certificates clients must have; $AKF_TLS_CLIENTS.", readable=False
    ),
]


def server(
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Address; 127.0.0.1 by default.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port; 8000 by default, 0 any.")
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="PLACE", help="Where jobs are kept: a folder, or postgresql://...")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="FILE", help="Who may ask, by token.", readable=False)
    ] = None,
    running: Annotated[
        int, typer.Option("--running", metavar="N", min=1, max=10_000, help="Jobs that run at once.")
    ] = 64,
    per_user: Annotated[
        int, typer.Option("--per-user", metavar="N", min=1, max=10_000, help="Of these, jobs of one user.")
    ] = 32,
    waiting: Annotated[
        int, typer.Option("--waiting", metavar="N", min=1, max=1_000_000, help="Jobs of one user that are not over.")
    ] = 10_000,
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=1, max=10_000_000, help="Jobs kept when they are over.")
    ] = 100_000,
    keep_days: Annotated[
        int, typer.Option("--keep-days", metavar="DAYS", min=1, max=36500, help="How long they are kept.")
    ] = 30,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_clients: TlsClients = None,
) -> Result:
    """Run the Server: it takes jobs, keeps them, and has workers run them."""
    from akf.cli.commands.server import run

    return run(host, port, store, tokens, running, per_user, waiting, keep, keep_days, (tls_cert, tls_key, tls_clients))


def job_submit(
    task: Annotated[
        Path, typer.Argument(metavar="TASK", help="The reference: Model, get_inputs, get_init_inputs.", readable=False)
    ],
    op_name: Annotated[
        str | None, typer.Option("--op", metavar="NAME", help="Operator; TASK's name by default.")
    ] = None,
    init_code: Annotated[
        Path | None, typer.Option("--init-code", metavar="FILE", help="The candidate: ModelNew.", readable=False)
    ] = None,
    job_type: Annotated[str, typer.Option("--type", metavar="TYPE", help="Which executor runs it.")] = "single",
    backend: Annotated[str, typer.Option("--backend", metavar="NAME", help="ascend, cuda or cpu.")] = "ascend",
    arch: Annotated[str, typer.Option("--arch", metavar="NAME", help="Architecture of the device.")] = "ascend910b4",
    dsl: Annotated[str, typer.Option("--dsl", metavar="NAME", help="Language of the candidate.")] = "triton_ascend",
    framework: Annotated[str, typer.Option("--framework", metavar="NAME", help="torch or numpy.")] = "torch",
    more: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another field; VALUE is JSON or text.")
    ] = None,
    wait: Annotated[
        float | None, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait so long for its end.")
    ] = None,
    server: ServerOption = None,
) -> Result:
    """Submit a job to a Server."""
    from akf.cli.commands.job import submit

    named = {"job_type": job_type, "backend": backend, "arch": arch, "dsl": dsl, "framework": framework}
    return submit(server, task, op_name, init_code, named, more or [], wait)


def job_status(job: JobArgument, server: ServerOption = None) -> Result:
    """Say how a job stands."""
    from akf.cli.commands.job import status

    return status(server, job)


def job_wait(
    job: JobArgument,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long at most.")] = 3600.0,
    server: ServerOption = None,
) -> Result:
    """Wait until a job is over."""
    from akf.cli.commands.job import wait

    return wait(server, job, timeout)


def job_cancel(job: JobArgument, server: ServerOption = None) -> Result:
    """End a job, and everything that it started."""
    from akf.cli.commands.job import cancel

    return cancel(server, job)


def job_list(
    status: Annotated[
        list[str] | None, typer.Option("--status", metavar="STATUS", help="Only jobs of this status.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=500, help="How many.")] = 50,
    server: ServerOption = None,
) -> Result:
    """List jobs, newest first."""
    from akf.cli.commands.job import list_all

    return list_all(server, status or [], limit)


def job_logs(
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", help="Show it as it grows, on standard error.")] = False,
    server: ServerOption = None,
) -> Result:
    """Print a job's log."""
    from akf.cli.commands.job import logs

    return logs(server, job, follow)


def worker_register(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The Server.")],
    url: Annotated[str, typer.Argument(metavar="WORKER", help="The Worker Service, as the Server reaches it.")],
    backend: Annotated[str, typer.Argument(metavar="BACKEND", help="ascend, cuda or cpu.")],
    arch: Annotated[str, typer.Argument(metavar="ARCH", help="Architecture of its devices.")],
    capacity: Annotated[
        int, typer.Argument(metavar="[CAPACITY]", min=1, max=4096, help="Used while the worker does not say itself.")
    ] = 1,
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="What jobs may ask for.")] = None,
) -> Result:
    """Register a Worker Service with a Server."""
    from akf.cli.commands.job import register

    return register(server, url, backend, arch, capacity, tags or [])


def worker_unregister(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The Server.")],
    url: Annotated[
        str, typer.Argument(metavar="WORKER", help="The worker's address, or its name as the Server lists it.")
    ],
) -> Result:
    """Have a Server choose a worker no more."""
    from akf.cli.commands.job import unregister

    return unregister(server, url)
