"""The Worker Service: the AIKG wire field for field, and beside it what that wire lacks.

Invariants:
- One implementation serves clients of both generations; what is ours is a further field or a further endpoint.
- What a package does is answered with 200. Another status says that there is no answer about the package.
- Whoever asks for something long and goes away ends it.
- The OpenAPI document describes all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Form, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException as StarletteError
from starlette.types import ASGIApp

from akf import __version__
from akf.contracts.problems import AkfError
from akf.fabric import metrics, wire
from akf.fabric.access import Access
from akf.fabric.forms import TaskId, who_asks
from akf.fabric.gate import GONE, Gate, GoneError, attended, body_of, status_of
from akf.fabric.lease_calls import lease_calls
from akf.fabric.local import LocalWorker
from akf.fabric.package_calls import package_calls
from akf.fabric.uploads import unparsed

PACKAGE_BYTES = 512 * 1024**2
HEARTBEAT_S = 15.0


def create_app(worker: LocalWorker, access: Access | None = None, package_bytes: int = PACKAGE_BYTES) -> ASGIApp:
    """The service of a worker.

    Args:
        worker: what does the work.
        access: who may ask; by default everybody who reaches it.
        package_bytes: how large a request with a package may be.
    """
    app = FastAPI(
        title="AKF Worker Service", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan(worker)
    )
    app.add_exception_handler(AkfError, _refused)
    app.add_exception_handler(GoneError, _nobody)
    app.add_exception_handler(StarletteError, unparsed)
    _devices(app, worker)
    package_calls(app, worker)
    lease_calls(app, worker)
    _looks(app, worker)
    return Gate(app, access or Access(), package_bytes)


def _lifespan(worker: LocalWorker) -> Any:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await worker.open()
        try:
            yield
        finally:
            await worker.close()

    return lifespan


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, AkfError):
        raise error
    return JSONResponse(body_of(error), status_of(error))


async def _nobody(_: Request, __: Exception) -> Response:
    return Response(status_code=GONE)


def _devices(app: FastAPI, worker: LocalWorker) -> None:
    @app.get("/api/v1/status", response_model=wire.Status, tags=["wire"])
    async def status() -> Any:
        """What this worker is."""
        return await worker.status()

    @app.post("/api/v1/acquire_device", response_model=wire.Device, responses=wire.REFUSALS, tags=["wire"])
    async def acquire_device(request: Request, task_id: TaskId) -> Any:
        """Wait for a device, first come first served."""
        device = await attended(request.receive, worker.acquire_device(task_id, who_asks(request).name))
        return {"device_id": device}

    @app.post("/api/v1/release_device", response_model=wire.Done, responses=wire.REFUSALS, tags=["wire"])
    async def release_device(
        request: Request, task_id: TaskId, device_id: Annotated[int, Form(description="The device to give back.")]
    ) -> Any:
        """Give a device back; what this task does not hold is left alone."""
        await worker.release_device(task_id, device_id, who_asks(request).name)
        await worker.pool.stored()
        return {"status": "ok"}


def _looks(app: FastAPI, worker: LocalWorker) -> None:
    @app.post("/api/v1/cancel", response_model=wire.Cancelled, responses=wire.REFUSALS, tags=["service"])
    async def cancel(request: Request, task_id: TaskId) -> Any:
        """End what waits or runs for a task, with its whole process tree."""
        return {"cancelled": await worker.cancel(task_id, who_asks(request).name)}

    @app.get("/api/v1/said", response_model=wire.Said, tags=["service"])
    async def said(
        request: Request, task_id: Annotated[str, Query(max_length=1000, description="The task that runs.")]
    ) -> Any:
        """What a task's programs said so far; a task is seen by who runs it."""
        return {"said": await worker.said(task_id, who_asks(request).name)}

    @app.post("/api/v1/drain", response_model=wire.Done, tags=["service"])
    async def drain() -> Any:
        """Give out no device any more and take no package; what runs goes on."""
        worker.pool.drain()
        return {"status": "ok"}

    @app.get("/health", response_model=wire.Health, responses=wire.REFUSALS, tags=["service"])
    async def health() -> Any:
        """Whether the service takes work."""
        state = "draining" if worker.pool.draining else "ok"
        return JSONResponse({"status": state, "isolation": worker.isolation}, 503 if state == "draining" else 200)

    @app.get("/metrics", response_class=Response, tags=["service"])
    async def prometheus() -> Response:
        """Figures, as Prometheus reads them."""
        data, kind = metrics.rendered(worker)
        return Response(data, headers={"content-type": kind})

    @app.get("/api/v1/events", response_class=StreamingResponse, tags=["service"])
    async def events(request: Request) -> StreamingResponse:
        """What happens here, as server-sent events; `Last-Event-ID` says what is known already."""
        given = request.headers.get("last-event-id", "")
        known = int(given) if given.isascii() and given.isdigit() and len(given) < 20 else None  # noqa: PLR2004
        return StreamingResponse(_streamed(worker, known), media_type="text/event-stream")


async def _streamed(worker: LocalWorker, known: int | None) -> AsyncIterator[bytes]:
    stream = worker.events.after(known)
    yield b": events\n\n"
    coming = asyncio.ensure_future(anext(stream))
    try:
        while True:
            done, _ = await asyncio.wait([coming], timeout=HEARTBEAT_S)
            if not done:
                yield b": still here\n\n"
                continue
            event = coming.result()
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (event.number, event.kind.encode(), orjson.dumps(event.data))
            coming = asyncio.ensure_future(anext(stream))
    except StopAsyncIteration:
        return
    finally:
        coming.cancel()
