"""The client for programs without an event loop; the methods are those of `AIKGClient`, and more beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import httpx

from akf.client import exchange
from akf.client.exchange import Asked, ServiceError, UnreachableError
from akf.trust import tls


class AKFClient:
    """A Server, as its callers see it. Connections are kept; use it as a context manager, or `close` it.

    Args:
        server_url: its address; `AKF_SERVER_URL`, else http://127.0.0.1:8000 by default.
        token: who asks; `AKF_SERVER_TOKEN` by default, none where the Server asks for none.
        timeout: how long an answer may take, in seconds.
    """

    def __init__(
        self, server_url: str | None = None, token: str | None = None, timeout: float = exchange.TIMEOUT_S
    ) -> None:
        self.server_url = exchange.server_url(server_url)
        self.told: Callable[[dict[str, Any]], None] | None = None
        """Hears of the events of a job that is waited for, where the service has events."""
        self._http = httpx.Client(
            base_url=self.server_url, headers=exchange.headers(token), timeout=timeout, limits=exchange.LIMITS,
            trust_env=False, verify=tls.of_client(),
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the kept connections."""
        self._http.close()

    def submit_job(
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
        """Submit a job; its id. What else the Server knows (`init_code`, `workflow`, `priority`, ...) goes by name.

        Raises:
            ServiceError: the Server refused; its words say why.
            UnreachableError: nobody answered.
        """
        named = {"job_type": job_type, "backend": backend, "arch": arch, "dsl": dsl, "framework": framework}
        return str(self.submit(op_name, task_desc, named | kwargs)["job_id"])

    def submit(self, op_name: str, task_desc: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Submit a job; all that is answered: `job_id`, and in `ignored` the names of fields that nobody reads."""
        found: dict[str, Any] = self._asked(exchange.submit(op_name, task_desc, fields))
        return found

    def get_job_status(self, job_id: str) -> dict[str, Any]:
        """How a job stands: `status`, `result`, `error`, ..."""
        found: dict[str, Any] = self._asked(exchange.status(job_id))
        return found

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        """End a job: `{"cancelled": true}`, or false with the reason."""
        found: dict[str, Any] = self._asked(exchange.cancel(job_id))
        return found

    def get_workers_status(self) -> list[dict[str, Any]]:
        """Backend, arch, load, capacity and tags of every worker."""
        found: list[dict[str, Any]] = self._asked(exchange.workers())
        return found

    def register_worker(
        self, url: str, backend: str, arch: str, capacity: int = 1, tags: list[str] | None = None
    ) -> dict[str, Any]:
        """Register a Worker Service; the same address again changes what is known of it."""
        found: dict[str, Any] = self._asked(exchange.register(url, backend, arch, capacity, tags or []))
        return found

    def unregister_worker(self, name: str) -> dict[str, Any]:
        """Have a worker chosen no more, by its name or address; whether it was `known`."""
        found: dict[str, Any] = self._asked(exchange.unregister(name))
        return found

    def list_jobs(
        self, statuses: list[str] | None = None, limit: int = 50, before: int | None = None
    ) -> dict[str, Any]:
        """Jobs, newest first, and how many there are by status."""
        found: dict[str, Any] = self._asked(exchange.jobs(statuses or [], limit, before))
        return found

    def get_job_log(self, job_id: str) -> str:
        """What was logged for a job so far."""
        response = self._sent(exchange.log(job_id))
        if response.is_error:
            exchange.body_of(response)
        return response.text

    def events(self, job_id: str, after: int = 0, until: float | None = None) -> Iterator[dict[str, Any]]:
        """What happens to a job, as it happens, until the job is over.

        Args:
            job_id: the job.
            after: the number of the last event that is known.
            until: the time of `time.monotonic` at which to stop, about.
        """
        asked = exchange.events(job_id, after)
        stream = exchange.Stream(after)
        quiet_s = exchange.QUIET_S if until is None else max(0.1, min(exchange.QUIET_S, until - time.monotonic()))
        try:
            with self._http.stream(asked.method, asked.path, params=asked.params, timeout=quiet_s) as response:
                if response.is_error:
                    response.read()
                    exchange.body_of(response)
                for line in response.iter_lines():
                    yield from stream.line(line)
                    if until is not None and until - time.monotonic() < min(quiet_s, exchange.BEAT_S):
                        return
        except httpx.HTTPError as error:
            raise UnreachableError.at(self.server_url, exchange.why(error)) from error

    def wait_for_completion(
        self,
        job_id: str,
        interval: float = exchange.INTERVAL_S,
        timeout: float = 3600,
        cancel_on_interrupt: bool = True,
    ) -> dict[str, Any]:
        """Wait until a job is over; how it stands then. Events tell; where there are none it is asked again.

        Args:
            job_id: the job.
            interval: seconds between two questions, where there are no events or they broke off.
            timeout: seconds to wait at most.
            cancel_on_interrupt: end the job when the wait is interrupted from the keyboard.

        Raises:
            TimeoutError: it is not over in time; it goes on.
        """
        until = time.monotonic() + timeout
        after: int | None = 0
        known = False
        try:
            while True:
                found = self._patient(job_id, until, known=known)
                known = True
                if found is not None and found["status"] in exchange.OVER:
                    return found
                if time.monotonic() >= until:
                    raise TimeoutError(f"job {job_id} is not over after {timeout:g} s")
                before, after = after, self._follow(job_id, after, until) if after is not None else None
                if after is None or after == before:
                    time.sleep(max(0.0, min(interval, until - time.monotonic())))
        except KeyboardInterrupt:
            if cancel_on_interrupt:
                self.cancel_job(job_id)
            raise

    def _patient(self, job_id: str, until: float, *, known: bool) -> dict[str, Any] | None:
        """How a job stands; none while a Server that was there is away: it may be starting again."""
        try:
            return self.get_job_status(job_id)
        except UnreachableError:
            if not known or time.monotonic() >= until:
                raise
            return None

    def _follow(self, job_id: str, after: int, until: float) -> int | None:
        """Read events until the job is over or the stream breaks off; none when the service has no events."""
        try:
            for event in self.events(job_id, after, until):
                after = event["number"]
                if self.told is not None:
                    self.told(event)
        except ServiceError:
            return None
        except UnreachableError:
            return after
        return after

    def _asked(self, asked: Asked) -> Any:
        return exchange.body_of(self._sent(asked))

    def _sent(self, asked: Asked) -> httpx.Response:
        limit = httpx.USE_CLIENT_DEFAULT if asked.timeout_s is None else asked.timeout_s
        try:
            return self._http.request(asked.method, asked.path, json=asked.json, params=asked.params, timeout=limit)
        except httpx.HTTPError as error:
            raise UnreachableError.at(self.server_url, exchange.why(error)) from error


AIKGClient = AKFClient
