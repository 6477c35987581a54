"""`worker`: run a Worker Service until it is told to end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from akf.cli.result import Result
from akf.contracts.problems import BlockedError, UsageError

DEFAULTS = {"BACKEND": "ascend", "ARCH": "ascend910b4", "DEVICES": "0", "HOST": "127.0.0.1", "PORT": "9001"}
BACKENDS = ("ascend", "cuda", "cpu")
_LARGEST_PORT = 65535


def run(
    backend: str | None,
    arch: str | None,
    devices: str | None,
    host: str | None,
    port: int | None,
    folder: Path | None,
    tokens: Path | None,
    python: str | None,
    idle_s: float,
    drain_s: float,
    package_mib: int,
    stdio: bool,
) -> Result | None:
    """Serve; the document is printed when the service has ended. Over a pipe there is none."""
    try:
        from akf.fabric import access, serve  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in {"", "akf"}:
            raise
        hint = "python -m pip install 'ascend-kernel-forge[server]'"
        raise BlockedError.of("AKF-E504", f"{name} is not installed", hint=hint) from error
    said = {name: serve.of_environment(os.environ, name, default) for name, default in DEFAULTS.items()}
    number = _port(said["PORT"]) if port is None else port
    settings = serve.Settings(
        _backend(backend or said["BACKEND"]),
        arch or said["ARCH"],
        serve.devices_of(devices or said["DEVICES"]),
        host or said["HOST"],
        number,
        folder or serve.default_folder("pipe" if stdio else str(number)),
        drain_s,
        idle_s,
        python or sys.executable,
        package_mib * 1024**2,
    )
    if stdio:
        serve.serve_pipe(settings)
        return None
    return Result(serve.serve(settings, access.of_environment("AKF_WORKER_TOKEN", tokens)))


def _backend(text: str) -> str:
    if text not in BACKENDS:
        hint = f"one of {', '.join(BACKENDS)}: --backend NAME or WORKER_BACKEND"
        raise UsageError.of("AKF-U506", f"no backend: {text!r}", expected=list(BACKENDS), found=text, hint=hint)
    return text


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text[:6]) <= _LARGEST_PORT:
        raise UsageError.of("AKF-U503", f"no port: {text!r}", hint=f"a whole number from 0 to {_LARGEST_PORT}")
    return int(text)
