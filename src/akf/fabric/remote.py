"""A worker on another machine, over HTTP: an AIKG Worker Service of either generation, or ours.

Invariants:
- Connections are kept, and every call has a time limit; waiting for a device is the one thing without, and ends when
  the link is cut.
- Whatever prevents an answer is a `WorkerError` that says what, and whether anybody is there. It is never turned into
  an answer about the candidate.
- A device that arrives after the caller went away is given back.
- No hardware of this machine is looked at.
- The address is shown without its password.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import httpx
import orjson

from akf.contracts.problems import BlockedError, ConflictError, UsageError
from akf.contracts.text import printable, show
from akf.fabric import answers
from akf.fabric.interface import REFERENCE_S, VERIFY_S, Leased, Package, Shown
from akf.fabric.links import OPTIONS
from akf.trust import tls

CONNECT_S = 5.0
STATUS_S = 5.0
RELEASE_S = 10.0
CANCEL_S = 20.0
LEAST_S = 1.0
"""A service is given this long to say that a device is free."""
MARGIN_S = 10.0
"""How much longer than its time limit an execution may take to be answered."""
MAX_BODY_BYTES = 64 << 20
_KEPT_S = 4.0
"""Below the five seconds after which uvicorn closes an idle connection, so that none is used that just closed."""
IS_SERVER = ("x-akf-service", "server")
"""The header by which a Server says that it is one: it takes jobs, and is no worker."""
_REFUSED = 400
_NOT_FOUND, _CONFLICT = 404, 409


class WorkerError(BlockedError):
    """A worker gave no answer; `gone` when nobody is there."""

    gone = False

    @classmethod
    def at(cls, url: str, why: str, *, gone: bool = False) -> WorkerError:
        """The error for what a worker did."""
        hint = "look at the worker's own log; work goes on elsewhere where another worker fits"
        error = cls.of("AKF-E602", f"the worker {url} gave no answer: {printable(why)}", found=why, hint=hint)
        error.gone = gone
        return error


def normal(url: str) -> str:
    """An address as it is kept: without a path's last slash.

    Raises:
        UsageError: it is no http or https address.
    """
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in {"http", "https"} and parts.hostname and not parts.query and not parts.fragment
        port = parts.port
    except ValueError:
        good, port = False, None
    if not good or port == 0 or not url.isprintable():
        hint = "http://HOST:PORT, such as http://localhost:9001"
        raise UsageError.of("AKF-U601", f"{show(url)} is no address of a worker", found=show(url), hint=hint)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def shown(url: str) -> str:
    """An address without the password that it may hold."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


class RemoteWorker:
    """The `WorkerInterface` of a Worker Service.

    Args:
        url: `http://HOST:PORT`; `http://akf:TOKEN@HOST:PORT` where the service asks for a token.
    """

    def __init__(self, url: str) -> None:
        self._address = normal(url)
        self.url = shown(self._address)
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._returning: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """The address with its password, to be kept by who registers it."""
        return self._address

    async def aclose(self) -> None:
        """Close the kept connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def status(self) -> dict[str, Any]:
        """See `WorkerInterface.status`."""
        body = await self._asked("GET", "/api/v1/status", read_s=STATUS_S)
        if body.get("status") != "ready":
            raise WorkerError.at(self.url, f"its status is {show(body.get('status'))}")
        return body

    async def acquire_device(self, task_id: str) -> int:
        """See `WorkerInterface.acquire_device`."""
        asked = asyncio.ensure_future(self._asked("POST", "/api/v1/acquire_device", {"task_id": task_id}, read_s=None))
        try:
            body = await asyncio.shield(asked)
        except asyncio.CancelledError:
            task = asyncio.ensure_future(self._give_back(asked, task_id))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)
            raise
        return self._device(body)

    async def _give_back(self, asked: asyncio.Future[dict[str, Any]], task_id: str) -> None:
        """A device that nobody waits for any more goes back when it comes."""
        try:
            await self.release_device(task_id, self._device(await asked))
        except WorkerError:
            return

    def _device(self, body: dict[str, Any]) -> int:
        device = body.get("device_id")
        if not isinstance(device, int) or isinstance(device, bool):
            raise WorkerError.at(self.url, f"it gave {show(device)} as a device")
        return device

    async def release_device(self, task_id: str, device_id: int) -> None:
        """See `WorkerInterface.release_device`."""
        data = {"task_id": task_id, "device_id": str(device_id)}
        await self._asked("POST", "/api/v1/release_device", data, read_s=RELEASE_S)

    async def lease(self, task_id: str, ttl_s: float, wait_s: float) -> Leased:
        """See `LeasingWorker.lease`; an AIKG service has no leases."""
        patience = max(wait_s, LEAST_S)
        data = {"task_id": task_id, "ttl_s": f"{ttl_s:g}", "wait_s": f"{patience:g}"}
        body = await self._asked("POST", "/api/v1/leases", data, read_s=patience + MARGIN_S)
        name, token = body.get("lease_id"), body.get("token")
        if not isinstance(name, str) or not name.isalnum() or type(token) is not int:
            raise WorkerError.at(self.url, f"it gave {show(name)} with {show(token)} as a lease")
        return Leased(name, token, self._device(body))

    async def renew(self, lease: Leased) -> None:
        """See `LeasingWorker.renew`."""
        try:
            await self._asked("POST", f"/api/v1/leases/{lease.id}/renew", {"token": str(lease.token)}, read_s=RELEASE_S)
        except _ConflictingError as error:
            raise _lost(lease.shown) from error

    async def give_back(self, lease: Leased) -> bool:
        """See `LeasingWorker.give_back`."""
        data = {"token": str(lease.token)}
        body = await self._asked("POST", f"/api/v1/leases/{lease.id}/release", data, read_s=RELEASE_S)
        return body.get("released") is True

    async def verify(
        self, package: Package, task_id: str, op_name: str, timeout: int = VERIFY_S, *, lease: Shown | None = None
    ) -> dict[str, Any]:
        """See `WorkerInterface.verify`."""
        data = {"task_id": task_id, "op_name": op_name, "timeout": str(timeout)}
        if lease is not None:
            data |= {"lease_id": lease.id, "token": str(lease.token)}
            try:
                return answers.verified(await self._executed("verify", package, data, timeout))
            except _ConflictingError as error:
                raise _lost(lease) from error
        return answers.verified(await self._executed("verify", package, data, timeout))

    async def profile(
        self, package: Package, task_id: str, op_name: str, profile_settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """See `WorkerInterface.profile`."""
        return answers.profiled(await self._profile("profile", package, task_id, op_name, profile_settings or {}))

    async def profile_single_task(
        self, package: Package, task_id: str, op_name: str, profile_settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """See `WorkerInterface.profile_single_task`."""
        settings = profile_settings or {}
        return answers.timed(await self._profile("profile_single_task", package, task_id, op_name, settings))

    async def _profile(
        self, name: str, package: Package, task_id: str, op_name: str, settings: dict[str, Any]
    ) -> dict[str, Any]:
        stated = settings.get("timeout", VERIFY_S)
        limit = float(stated) if isinstance(stated, int | float) else float(VERIFY_S)
        data = {"task_id": task_id, "op_name": op_name, "profile_settings": orjson.dumps(settings).decode()}
        return await self._executed(name, package, data, limit)

    async def generate_reference(
        self,
        package: Package,
        task_id: str,
        op_name: str,
        timeout: int = REFERENCE_S,
    ) -> dict[str, Any]:
        """See `WorkerInterface.generate_reference`."""
        data = {"task_id": task_id, "op_name": op_name, "timeout": str(timeout)}
        body = answers.verified(await self._executed("generate_reference", package, data, timeout))
        body.pop("artifacts")
        return {"reference_data": "", **body}

    async def cancel(self, task_id: str) -> bool:
        """See `WorkerInterface.cancel`; an AIKG service cannot, and runs on until its own limit."""
        try:
            body = await self._asked("POST", "/api/v1/cancel", {"task_id": task_id}, read_s=CANCEL_S)
        except _NotThereError:
            return False
        return body.get("cancelled") is True

    async def said(self, task_id: str) -> str | None:
        """What a task that runs said so far; none where nothing of it runs, or the service cannot tell."""
        try:
            body = await self._asked("GET", f"/api/v1/said?task_id={quote(task_id, safe='')}", read_s=STATUS_S)
        except _NotThereError:
            return None
        text = body.get("said")
        return text if isinstance(text, str) else None

    async def _executed(self, name: str, package: Package, data: dict[str, str], limit_s: float) -> dict[str, Any]:
        content = await asyncio.to_thread(package.read_bytes) if isinstance(package, Path) else package
        files = {"package": ("package.tar", content, "application/x-tar")}
        return await self._asked("POST", f"/api/v1/{name}", data, files, read_s=limit_s + MARGIN_S)

    async def _asked(
        self,
        method: str,
        path: str,
        data: dict[str, str] | None = None,
        files: dict[str, tuple[str, bytes, str]] | None = None,
        *,
        read_s: float | None,
    ) -> dict[str, Any]:
        """One exchange: the body of a good answer.

        Raises:
            WorkerError: there is none.
        """
        limits = httpx.Timeout(CONNECT_S, read=read_s, write=60.0, pool=None)
        try:
            async with self._kept().stream(
                method, self._address + path, data=data, files=files, timeout=limits
            ) as response:
                body = bytearray()
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > MAX_BODY_BYTES:
                        raise WorkerError.at(self.url, f"its answer is larger than {MAX_BODY_BYTES} bytes")
        except httpx.TimeoutException as error:
            raise WorkerError.at(self.url, f"no answer to {path} in time ({type(error).__name__})") from error
        except httpx.ConnectError as error:
            why = tls.explained(f"nobody is there ({error})", self.url)
            raise WorkerError.at(self.url, why, gone=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = tls.explained(f"the connection broke ({str(error) or type(error).__name__})", self.url)
            raise WorkerError.at(self.url, why) from error
        if response.headers.get(IS_SERVER[0]) == IS_SERVER[1]:
            hint = "name the Worker Service that is to run jobs; its port is 9001 by default"
            message = f"{self.url} is the address of a Server, which takes jobs, not of a worker"
            raise UsageError.of("AKF-U605", message, found=self.url, hint=hint)
        try:
            value = orjson.loads(bytes(body))
        except orjson.JSONDecodeError:
            value = None
        if response.status_code >= _REFUSED:
            detail = value.get("detail") if isinstance(value, dict) else None
            kind = _KINDS.get(response.status_code, WorkerError)
            said = str(detail) if detail is not None else "without a word"
            raise kind.at(self.url, f"status {response.status_code} to {path}: {said[:500]}")
        if not isinstance(value, dict):
            raise WorkerError.at(self.url, f"its answer to {path} is no JSON object")
        return value

    def _kept(self) -> httpx.AsyncClient:
        """The client of this event loop; connections of another one cannot be used in it."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=16, keepalive_expiry=_KEPT_S)
            transport = httpx.AsyncHTTPTransport(
                limits=limits, trust_env=False, socket_options=OPTIONS, verify=tls.of_client()
            )
            self._client, self._loop = httpx.AsyncClient(transport=transport, trust_env=False), loop
        return self._client


class _NotThereError(WorkerError):
    """The service has no such endpoint."""


class _ConflictingError(WorkerError):
    """The service says that a lease does not hold, or is in use."""


_KINDS: dict[int, type[WorkerError]] = {_NOT_FOUND: _NotThereError, _CONFLICT: _ConflictingError}


def _lost(lease: Shown) -> ConflictError:
    message = f"the lease {show(lease.id)} with token {lease.token} does not hold at the worker"
    return ConflictError.of("AKF-C502", message, found=lease.token, hint="ask for a new lease and run again")


def worker_url() -> str | None:
    """The address that the environment names: `AKF_WORKER_URL`, else `AIKG_WORKER_URL`."""
    return os.environ.get("AKF_WORKER_URL") or os.environ.get("AIKG_WORKER_URL") or None
