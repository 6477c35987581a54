"""The client for asyncio: the methods of `AKFClient`, to be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

import httpx

from akf.client import exchange
from akf.client.exchange import Asked, ServiceError, UnreachableError
from akf.trust import tls


class AsyncAKFClient:
    """A Server, as its callers see it. Connections are kept; use it as an async context manager, or `aclose` it.

    Args:
        server_url: its address; `AKF_SERVER_URL`, else http://127.0.0.1:8000 by default.
        token: who asks; `AKF_SERVER_TOKEN` by default, none where the Server asks for none.
        timeout: how long an answer may take, in seconds.
    """

    def __init__(
        self, server_url: str | None = None, token: str | None = None, timeout: float = exchange.TIMEOUT_S
    ) -> None:
        self.server_url = exchange.server_url(server_url)
        self._http = httpx.AsyncClient(
            base_url=self.server_url, headers=exchange.headers(token), timeout=timeout, limits=exchange.LIMITS,
            trust_env=False, verify=tls.of_client(),
        )  # fmt: skip

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the kept connections."""
        await self._http.aclose()

    async def submit_job(
        self,
        op_name: str,
        task_desc: str,
        job_type: str = "single",
        backend: str = "cuda",
        arch: str = "a100",
        dsl: str = "triton_cuda",
        framework: str = "torch",
        **kwargs: Any,
    ) -> str:
        """See `AKFClient.submit_job`."""
        named = {"job_type": job_type, "backend": backend, "arch": arch, "dsl": dsl, "framework": framework}
        return str((await self.submit(op_name, task_desc, named | kwargs))["job_id"])

    async def submit(self, op_name: str, task_desc: str, fields: dict[str, Any]) -> dict[str, Any]:
        """See `AKFClient.submit`."""
        found: dict[str, Any] = await self._asked(exchange.submit(op_name, task_desc, fields))
        return found

    async def get_job_status(self, job_id: str) -> dict[str, Any]:
        """See `AKFClient.get_job_status`."""
        found: dict[str, Any] = await self._asked(exchange.status(job_id))
        return found

    async def cancel_job(self, job_id: str) -> dict[str, Any]:
        """See `AKFClient.cancel_job`."""
        found: dict[str, Any] = await self._asked(exchange.cancel(job_id))
        return found

    async def get_workers_status(self) -> list[dict[str, Any]]:
        """See `AKFClient.get_workers_status`."""
        found: list[dict[str, Any]] = await self._asked(exchange.workers())
        return found

    async def register_worker(
        self, url: str, backend: str, arch: str, capacity: int = 1, tags: list[str] | None = None
    ) -> dict[str, Any]:
        """See `AKFClient.register_worker`."""
        found: dict[str, Any] = await self._asked(exchange.register(url, backend, arch, capacity, tags or []))
        return found

    async def unregister_worker(self, name: str) -> dict[str, Any]:
        """See `AKFClient.unregister_worker`."""
        found: dict[str, Any] = await self._asked(exchange.unregister(name))
        return found

    async def list_jobs(
        self, statuses: list[str] | None = None, limit: int = 50, before: int | None = None
    ) -> dict[str, Any]:
        """See `AKFClient.list_jobs`."""
        found: dict[str, Any] = await self._asked(exchange.jobs(statuses or [], limit, before))
        return found

    async def get_job_log(self, job_id: str) -> str:
        """See `AKFClient.get_job_log`."""
        response = await self._sent(exchange.log(job_id))
        if response.is_error:
            exchange.body_of(response)
        return response.text

    async def events(self, job_id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """See `AKFClient.events`."""
        asked = exchange.events(job_id, after)
        stream = exchange.Stream(after)
        try:
            async with self._http.stream(
                asked.method, asked.path, params=asked.params, timeout=asked.timeout_s
            ) as response:
                if response.is_error:
                    await response.aread()
                    exchange.body_of(response)
                async for line in response.aiter_lines():
                    for event in stream.line(line):
                        yield event
        except httpx.HTTPError as error:
            raise UnreachableError.at(self.server_url, exchange.why(error)) from error

    async def wait_for_completion(
        self,
        job_id: str,
        interval: float = exchange.INTERVAL_S,
        timeout: float = 3600,
        cancel_on_interrupt: bool = True,
    ) -> dict[str, Any]:
        """See `AKFClient.wait_for_completion`; who cancels the wait interrupts it."""
        try:
            async with asyncio.timeout(timeout):
                return await self._wait(job_id, interval)
        except TimeoutError:
            raise TimeoutError(f"job {job_id} is not over after {timeout:g} s") from None
        except asyncio.CancelledError:
            if cancel_on_interrupt:
                await self.cancel_job(job_id)
            raise

    async def _wait(self, job_id: str, interval: float) -> dict[str, Any]:
        after: int | None = 0
        found: dict[str, Any] | None = await self.get_job_status(job_id)
        while True:
            if found is not None and found["status"] in exchange.OVER:
                return found
            before, after = after, await self._follow(job_id, after) if after is not None else None
            if after is None or after == before:
                await asyncio.sleep(interval)
            found = await self._patient(job_id)

    async def _patient(self, job_id: str) -> dict[str, Any] | None:
        """How a job stands; none while the Server is away: it may be starting again."""
        try:
            return await self.get_job_status(job_id)
        except UnreachableError:
            return None

    async def _follow(self, job_id: str, after: int) -> int | None:
        """Read events until the job is over or the stream breaks off; none when the service has no events."""
        try:
            async for event in self.events(job_id, after):
                after = event["number"]
        except ServiceError:
            return None
        except UnreachableError:
            return after
        return after

    async def _asked(self, asked: Asked) -> Any:
        return exchange.body_of(await self._sent(asked))

    async def _sent(self, asked: Asked) -> httpx.Response:
        limit = httpx.USE_CLIENT_DEFAULT if asked.timeout_s is None else asked.timeout_s
        try:
            return await self._http.request(
                asked.method, asked.path, json=asked.json, params=asked.params, timeout=limit
            )
        except httpx.HTTPError as error:
            raise UnreachableError.at(self.server_url, exchange.why(error)) from error
