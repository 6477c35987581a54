"""The Worker Service."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akf.cli.result import Result
from akf.cli.signatures.services import TlsCertificate, TlsClients, TlsKey


def worker(
    context: typer.Context,
    backend: Annotated[
        str | None, typer.Option("--backend", metavar="NAME", help="ascend, cuda or cpu; $WORKER_BACKEND, else ascend.")
    ] = None,
    arch: Annotated[
        str | None, typer.Option("--arch", metavar="NAME", help="Architecture; $WORKER_ARCH, else ascend910b4.")
    ] = None,
    devices: Annotated[
        str | None, typer.Option("--devices", metavar="LIST", help="Devices, as 0,1; $WORKER_DEVICES, else 0.")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="Address; $WORKER_HOST, else 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port; $WORKER_PORT, else 9001; 0 takes any."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Where leases are kept; one worker has it.", readable=False),
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="FILE", help="Who may ask, by token.", readable=False)
    ] = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="Interpreter that runs packages; this one by default."),
    ] = None,
    idle_s: Annotated[
        float,
        typer.Option("--idle", metavar="SECONDS", min=1, max=86_400, help="Reclaim a device that lies idle so long."),
    ] = 900.0,
    drain_s: Annotated[
        float, typer.Option("--drain", metavar="SECONDS", min=0, max=86_400, help="Time for what runs, at the end.")
    ] = 10.0,
    package_mib: Annotated[
        int, typer.Option("--package-mib", metavar="N", min=1, max=65_536, help="How large a request may be.")
    ] = 512,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve on standard input and output, not on a port.")] = False,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_clients: TlsClients = None,
) -> Result | None:
    """Run a Worker Service: it lends this machine's devices and runs packages on them."""
    if context.invoked_subcommand is not None:
        return None
    from akf.cli.commands.worker import run

    tls = (tls_cert, tls_key, tls_clients)
    return run(backend, arch, devices, host, port, folder, tokens, python, idle_s, drain_s, package_mib, stdio, tls)
