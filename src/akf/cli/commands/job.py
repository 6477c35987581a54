"""`job submit|status|wait|cancel|list|logs` and `worker register|unregister`: what is asked of a Server."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from akf.cli.commands.server import missing
from akf.cli.result import NOT_MET, Result
from akf.contracts.problems import BlockedError, InvalidError, StorageError, UsageError
from akf.contracts.text import printable, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from akf.client import AKFClient

MAX_SOURCE_BYTES = 1 << 20
FOLLOW_S = 1.0
OVER = frozenset({"completed", "failed", "error", "cancelled"})
NO_CODER = "no coder configured"
WAITS = "waits"
"""The Server's event that says what a job waits for."""


@contextmanager
def _client(server: str | None) -> Iterator[AKFClient]:
    try:
        from akf.client import AKFClient  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise missing(error, "client") from error
    with AKFClient(server) as client:
        yield client


def submit(
    server: str | None,
    task: Path,
    op_name: str | None,
    init_code: Path | None,
    named: dict[str, str],
    more: list[str],
    wait_s: float | None,
) -> Result:
    """Submit a job; with a time to wait, how it ended."""
    fields: dict[str, Any] = dict(named)
    if init_code is not None:
        fields["init_code"] = _source(init_code)
    fields |= _more(more)
    with _client(server) as client:
        answer = client.submit(op_name or task.stem.replace(".", "_"), _source(task), fields)
        ignored = {"ignored": answer["ignored"]} if answer.get("ignored") else {}
        if ignored:
            listed = ", ".join(map(show, answer["ignored"]))
            print(f"akf job: the Server reads no such field, and ignores it: {listed}", file=sys.stderr, flush=True)
        if wait_s is None:
            return Result({"job_id": answer["job_id"], **ignored})
        ended = _waited(client, answer["job_id"], wait_s, ours=True)
        return Result(ended.document | ignored, ended.status)


def status(server: str | None, job: str) -> Result:
    """How a job stands."""
    with _client(server) as client:
        return Result({"job": client.get_job_status(job)})


def wait(server: str | None, job: str, wait_s: float) -> Result:
    """How a job ended; it goes on when the wait is interrupted."""
    with _client(server) as client:
        return _waited(client, job, wait_s, ours=False)


def cancel(server: str | None, job: str) -> Result:
    """End a job."""
    with _client(server) as client:
        return Result({"job_id": job, **client.cancel_job(job)})


def list_all(server: str | None, statuses: list[str], limit: int) -> Result:
    """Jobs, newest first."""
    with _client(server) as client:
        return Result(client.list_jobs(statuses, limit))


def logs(server: str | None, job: str, follow: bool) -> Result:
    """A job's log; followed, line by line on standard error too."""
    with _client(server) as client:
        shown = 0
        while follow:
            over = client.get_job_status(job)["status"] in OVER
            lines = client.get_job_log(job).splitlines()
            ready = len(lines) if over else max(len(lines) - 1, 0)  # the last one may go on
            for line in lines[shown:ready]:
                print(printable(line), file=sys.stderr, flush=True)
            shown = max(shown, ready)
            follow = not over
            if follow:
                time.sleep(FOLLOW_S)
        return Result({"job_id": job, "log": client.get_job_log(job).splitlines()})


def register(server: str, url: str, backend: str, arch: str, capacity: int, tags: list[str]) -> Result:
    """A Worker Service is the Server's from now on; what is known of it then."""
    with _client(server) as client:
        answer = client.register_worker(url, backend, arch, capacity, tags)
    return Result({"worker": {name: answer.get(name) for name in ("name", "capacity", "verified")}})


def unregister(server: str, url: str) -> Result:
    """A worker is the Server's no more."""
    with _client(server) as client:
        answer = client.unregister_worker(url)
    return Result({"worker": {"name": answer.get("name", url), "known": answer.get("known", True)}})


def _waited(client: AKFClient, job: str, wait_s: float, *, ours: bool) -> Result:
    """The answer is no with status 10; that there is none is a problem of its own."""
    hint = f"akf job logs {job}"

    def told(event: dict[str, Any]) -> None:
        if event["kind"] == WAITS:
            print(f"akf job: it waits: {printable(str(event.get('why', '')))}", file=sys.stderr, flush=True)

    client.told = told
    try:
        found = client.wait_for_completion(job, timeout=wait_s, cancel_on_interrupt=ours)
    except TimeoutError:
        message = f"the job {job} is not over after {wait_s:g} s; it goes on"
        lacking = client.get_job_status(job).get("waiting_for")
        if lacking:
            message += f", and waits: {printable(str(lacking))}"
        raise BlockedError.of("AKF-E610", message, hint=f"akf job wait {job}") from None
    if found["status"] not in {"completed", "failed"}:
        error = printable(str(found.get("error") or "nobody said why"))
        if NO_CODER in error:
            hint = "give a candidate with --init-code FILE, or a model to the Server (AKF_MODEL, docs/agents.md)"
        message = f"the job {job} ended without an answer, as {found['status']}: {error}"
        raise BlockedError.of("AKF-E609", message, found=found["status"], hint=hint)
    return Result({"job_id": job, "job": found}, 0 if found["status"] == "completed" else NOT_MET)


def _source(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError.of("AKF-F604", f"cannot read it: {error.strerror}", file=str(path)) from error
    if len(data) > MAX_SOURCE_BYTES:
        hint = "a job's sources are one file of Python each"
        message = f"{len(data)} bytes are more than {MAX_SOURCE_BYTES}"
        raise InvalidError.of("AKF-M602", message, file=str(path), hint=hint)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError.of("AKF-M602", f"it is no UTF-8: {error.reason}", file=str(path)) from error


def _more(words: list[str]) -> dict[str, Any]:
    import json  # noqa: PLC0415 - for the few who set more

    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UsageError.of("AKF-U604", f"{show(word)} sets nothing", hint="NAME=VALUE, such as priority=5")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found
