"""`worker`: run a Worker Service until it is told to end."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from akf.cli.result import Result
from akf.contracts.problems import BlockedError, UsageError
from akf.contracts.text import show

DEFAULTS = {"BACKEND": "ascend", "ARCH": "ascend910b4", "DEVICES": "0", "HOST": "127.0.0.1", "PORT": "9001"}
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
    tls: tuple[Path | None, Path | None, Path | None],
) -> Result | None:
    """Serve; the document is printed when the service has ended. Over a pipe there is none."""
    try:
        from akf.fabric import access, serve  # noqa: PLC0415 - an optional extra
        from akf.trust.tls import of_service  # noqa: PLC0415
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in {"", "akf"}:
            raise
        hint = "python -m pip install 'ascend-kernel-forge[server]'"
        raise BlockedError.of("AKF-E504", f"{name} is not installed", hint=hint) from error
    said = {name: serve.of_environment(os.environ, name, default) for name, default in DEFAULTS.items()}
    number = _port(said["PORT"]) if port is None else port
    settings = serve.Settings(
        *_platform(backend or said["BACKEND"], arch or said["ARCH"]),
        serve.devices_of(devices or said["DEVICES"]),
        host or said["HOST"],
        number,
        folder or serve.default_folder("pipe" if stdio else str(number)),
        drain_s,
        idle_s,
        _interpreter(python) if python is not None else sys.executable,
        package_mib * 1024**2,
        None if stdio else of_service(*tls),
    )
    if stdio:
        serve.serve_pipe(settings)
        return None
    return Result(
        serve.serve(settings, access.of_environment("AKF_WORKER_TOKEN", tokens, certified=settings.tls is not None))
    )


def _platform(backend: str, arch: str) -> tuple[str, str]:
    from akf.fabric.platforms import ARCHS, platform  # noqa: PLC0415 - only a worker that starts needs it

    if backend not in ARCHS:
        hint = f"one of {', '.join(ARCHS)}: --backend NAME or WORKER_BACKEND"
        raise UsageError.of("AKF-U506", f"no backend: {show(backend)}", expected=list(ARCHS), found=backend, hint=hint)
    wrong = platform(backend, arch)
    if wrong:
        raise UsageError.of(
            "AKF-U507", wrong[0], found=arch, hint="--arch NAME or WORKER_ARCH: no job could ask for it"
        )
    return backend, arch


def _interpreter(text: str) -> str:
    found = shutil.which(text)
    if found is None:
        hint = "--python PATH: the interpreter that has the packages' framework"
        raise UsageError.of("AKF-U508", f"no program that can be run: {show(text)}", found=text, hint=hint)
    return os.path.abspath(found)  # noqa: PTH100 - a link stays one: an environment's interpreter is known by its place


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text[:6]) <= _LARGEST_PORT:
        raise UsageError.of("AKF-U503", f"no port: {text!r}", hint=f"a whole number from 0 to {_LARGEST_PORT}")
    return int(text)
