"""`server`: run the Server until it is told to end."""

from __future__ import annotations

from pathlib import Path

from akf.cli.result import Result
from akf.contracts.problems import BlockedError, UsageError

LARGEST_PORT = 65535


def run(
    host: str | None,
    port: int | None,
    store: str | None,
    tokens: Path | None,
    running: int,
    per_user: int,
    waiting: int,
    keep: int,
    keep_days: int,
    tls: tuple[Path | None, Path | None, Path | None],
) -> Result:
    """Serve; the document is printed when the Server has ended."""
    try:
        from akf.server import serve  # noqa: PLC0415 - an optional extra
        from akf.server.jobs import Limits  # noqa: PLC0415
        from akf.trust.tls import of_service  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing(error, "server") from error
    wanted = port if port is not None else _port(serve.from_environment("PORT", "8000"))
    limits = Limits(
        running=running, running_per_user=per_user, waiting_per_user=waiting, keep_jobs=keep, keep_s=keep_days * 86400.0
    )
    settings = serve.Settings(
        host or serve.from_environment("HOST", "127.0.0.1"),
        wanted,
        store or serve.default_store(),
        tokens,
        limits,
        5.0,
        of_service(*tls),
    )
    try:
        return Result(serve.serve(settings))
    except ModuleNotFoundError as error:
        raise missing(error, "postgres") from error


def missing(error: ModuleNotFoundError, extra: str) -> BlockedError:
    """What is said when an optional extra is not installed."""
    name = (error.name or "").partition(".")[0]
    if name in {"", "akf"}:
        raise error
    hint = f"python -m pip install 'ascend-kernel-forge[{extra}]'"
    return BlockedError.of("AKF-E607", f"{name} is not installed", hint=hint)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 <= int(text) <= LARGEST_PORT:
        raise UsageError.of("AKF-U603", f"no port: {text!r}", hint=f"a whole number from 0 to {LARGEST_PORT}")
    return int(text)
