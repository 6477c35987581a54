"""What both clients have in common: requests as values, and what answers mean.

Invariants:
- A refusal of the Server is a `ServiceError` with its status and the Server's own words; that nobody answers is an
  `UnreachableError`. Neither is ever an answer.
- What a caller gives beyond the named arguments is sent as it is: the Server knows what it reads.
- A service without events (the AIKG services have none) is asked again and again instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import httpx
import orjson

from akf.contracts.problems import BlockedError, InvalidError, UsageError
from akf.contracts.text import printable, show
from akf.trust.tls import explained

OVER = frozenset({"completed", "failed", "error", "cancelled"})
DEFAULT_URL = "http://127.0.0.1:8000"
URL_VARIABLE, TOKEN_VARIABLE = "AKF_SERVER_URL", "AKF_SERVER_TOKEN"
TIMEOUT_S = 30.0
CANCEL_S = 60.0
INTERVAL_S = 2.0
QUIET_S = 45.0
"""How long a stream of events may say nothing before it is taken for dead; the Server says something every 15 s."""
BEAT_S = 16.0
"""With less than this left to wait, the next word of a quiet stream would come too late."""
LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=4.0)
_REFUSED = 400


class ServiceError(InvalidError):
    """The Server refused; `http_status` and `detail` are its answer."""

    http_status: int
    detail: Any

    @classmethod
    def answered(cls, status: int, detail: Any) -> ServiceError:
        """The error for an answer."""
        said = detail if isinstance(detail, str) else orjson.dumps(detail, default=str).decode()
        message = f"the Server refused with status {status}: {printable(said)}"
        error = cls.of("AKF-M601", message, found=status)
        error.http_status, error.detail = status, detail
        return error


class UnreachableError(BlockedError):
    """The Server gave no answer."""

    @classmethod
    def at(cls, url: str, why: str) -> UnreachableError:
        """The error for what happened."""
        hint = "start it (akf server), or name another with --server or AKF_SERVER_URL"
        return cls.of("AKF-E608", f"the Server at {url} gave no answer: {printable(explained(why, url))}", hint=hint)


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    json: dict[str, Any] | None = None
    params: dict[str, Any] | None = None
    timeout_s: float | None = None


def server_url(url: str | None) -> str:
    """The Server's address: as given, else from the environment, else this machine's.

    Raises:
        UsageError: it is none.
    """
    given = (url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
    try:
        parts = urlsplit(given)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        hint = f"--server or {URL_VARIABLE}: http://HOST:PORT, such as {DEFAULT_URL}"
        raise UsageError.of("AKF-U601", f"no address of a Server: {show(given)}", found=given, hint=hint)
    return given


def headers(token: str | None) -> dict[str, str]:
    """The headers of every request."""
    shown = token or os.environ.get(TOKEN_VARIABLE)
    return {"authorization": f"Bearer {shown}"} if shown else {}


def submit(op_name: str, task_desc: str, fields: dict[str, Any]) -> Asked:
    """Submit a job."""
    return Asked("POST", "/api/v1/jobs/submit", {"op_name": op_name, "task_desc": task_desc, **fields})


def status(job_id: str) -> Asked:
    """Ask how a job stands."""
    return Asked("GET", f"/api/v1/jobs/{_part(job_id)}/status")


def cancel(job_id: str) -> Asked:
    """End a job."""
    return Asked("POST", f"/api/v1/jobs/{_part(job_id)}/cancel", timeout_s=CANCEL_S)


def workers() -> Asked:
    """Ask for the workers, as the AIKG wire has them."""
    return Asked("GET", "/api/v1/workers/status")


def register(url: str, backend: str, arch: str, capacity: int, tags: list[str]) -> Asked:
    """Register a Worker Service."""
    body = {"url": url, "backend": backend, "arch": arch, "capacity": capacity, "tags": tags}
    return Asked("POST", "/api/v1/workers/register", body)


def unregister(name: str) -> Asked:
    """Have a worker chosen no more."""
    return Asked("POST", "/api/v1/workers/unregister", {"name": name})


def jobs(statuses: list[str], limit: int, before: int | None) -> Asked:
    """List jobs."""
    params: dict[str, Any] = {"limit": limit}
    if statuses:
        params["status"] = statuses
    if before is not None:
        params["before"] = before
    return Asked("GET", "/api/v1/jobs", params=params)


def events(job_id: str, after: int) -> Asked:
    """Follow a job."""
    return Asked("GET", f"/api/v1/jobs/{_part(job_id)}/events", params={"after": after}, timeout_s=QUIET_S)


def log(job_id: str) -> Asked:
    """Read a job's log."""
    return Asked("GET", f"/api/v1/jobs/{_part(job_id)}/log")


def body_of(response: httpx.Response) -> Any:
    """The body of a good answer.

    Raises:
        ServiceError: the Server refused, or it is not one.
    """
    try:
        value = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        value = None
    if response.status_code >= _REFUSED:
        raise ServiceError.answered(
            response.status_code, value.get("detail", value) if isinstance(value, dict) else value
        )
    if value is None:
        raise ServiceError.answered(response.status_code, "its answer is no JSON")
    return value


def why(error: httpx.HTTPError) -> str:
    """What prevented an answer, in words."""
    return str(error) or type(error).__name__


class Stream:
    """Server-sent events, line by line."""

    def __init__(self, after: int = 0) -> None:
        self.after = after
        self._kind, self._data = "", ""

    def line(self, line: str) -> Iterator[dict[str, Any]]:
        """The event that a line completes, if it does."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if self._data:
                yield {"number": self.after, "kind": self._kind, **orjson.loads(self._data)}
            self._kind, self._data = "", ""
        elif name == "id" and value.isdigit():
            self.after = int(value)
        elif name == "event":
            self._kind = value
        elif name == "data":
            self._data += value


def _part(identity: str) -> str:
    return quote(identity, safe="")
