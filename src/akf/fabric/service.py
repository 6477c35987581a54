"""The Worker Service: the AIKG wire field for field, and beside it what that wire lacks.

Invariants:
- One implementation serves clients of both generations; what is ours is a further field or a further endpoint.
- What a package does is answered with 200. Another status says that there is no answer about the package.
- Whoever asks for something long and goes away ends it.
- The OpenAPI document describes all of it.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, File, Form, HTTPException, Query, Request, UploadFile
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException as StarletteError
from starlette.types import ASGIApp

from akf import __version__
from akf.contracts.problems import AkfError, StorageError
from akf.fabric import metrics, wire
from akf.fabric.access import Access, Who
from akf.fabric.clock import boot_clock
from akf.fabric.gate import GONE, Gate, GoneError, attended, body_of, status_of
from akf.fabric.interface import REFERENCE_S, VERIFY_S, Shown
from akf.fabric.leases import Lease
from akf.fabric.local import LocalWorker

PACKAGE_BYTES = 512 * 1024**2
HEARTBEAT_S = 15.0
DEFAULT_TTL_S = 60.0
_PAGES = Path(__file__).with_name("pages")
_DOCS = ("triton_ascend_api",)
_CHUNK = 1 << 20

TaskId = Annotated[str, Form(max_length=1000, description="The task for which this is done.")]
OpName = Annotated[str, Form(max_length=1000, description="The operator's name, as in the package's files.")]
Package = Annotated[UploadFile, File(description="A tar archive, plain or compressed by gzip, bzip2 or xz.")]
Seconds = Annotated[int, Form(description="How long it may run, in seconds.")]
Settings = Annotated[str, Form(max_length=100_000, description="A JSON object of settings.")]
LeaseId = Annotated[str | None, Form(max_length=100, description="A lease under which it runs; with its token.")]
Token = Annotated[int | None, Form(ge=0, lt=2**63, description="The fencing token of that lease.")]
Ttl = Annotated[
    float, Form(gt=0, le=86_400, allow_inf_nan=False, description="How long the lease holds without a renewal.")
]


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
    app.add_exception_handler(StarletteError, _unparsed)
    _devices(app, worker)
    _packages(app, worker)
    _leases(app, worker)
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


async def _unparsed(request: Request, error: Exception) -> Response:
    """A body that the machine could not take is no fault of the body."""
    if not isinstance(error, StarletteError):
        raise error
    if isinstance(error.__cause__, OSError):
        return await _refused(request, _no_room(error.__cause__))
    return await http_exception_handler(request, error)


def _no_room(error: OSError) -> StorageError:
    message = f"the package cannot be stored: {error.strerror or error}"
    return StorageError.of("AKF-F502", message, hint="free space on the worker's disk, and send it again")


async def _nobody(_: Request, __: Exception) -> Response:
    return Response(status_code=GONE)


def _who(request: Request) -> Who:
    who: Who = request.state.who
    return who


def _devices(app: FastAPI, worker: LocalWorker) -> None:
    @app.get("/api/v1/status", response_model=wire.Status, tags=["wire"])
    async def status() -> Any:
        """What this worker is."""
        return await worker.status()

    @app.post("/api/v1/acquire_device", response_model=wire.Device, responses=wire.REFUSALS, tags=["wire"])
    async def acquire_device(request: Request, task_id: TaskId) -> Any:
        """Wait for a device, first come first served."""
        device = await attended(request.receive, worker.acquire_device(task_id, _who(request).name))
        return {"device_id": device}

    @app.post("/api/v1/release_device", response_model=wire.Done, responses=wire.REFUSALS, tags=["wire"])
    async def release_device(
        request: Request, task_id: TaskId, device_id: Annotated[int, Form(description="The device to give back.")]
    ) -> Any:
        """Give a device back; what this task does not hold is left alone."""
        await worker.release_device(task_id, device_id, _who(request).name)
        await worker.pool.stored()
        return {"status": "ok"}


def _packages(app: FastAPI, worker: LocalWorker) -> None:
    @app.post("/api/v1/verify", response_model=wire.Verified, responses=wire.REFUSALS, tags=["wire"])
    async def verify(
        request: Request,
        package: Package,
        task_id: TaskId,
        op_name: OpName,
        timeout: Seconds = VERIFY_S,
        lease_id: LeaseId = None,
        token: Token = None,
    ) -> Any:
        """Run a package's `verify_{op_name}.py`."""
        tenant, lease = _who(request).name, _shown(lease_id, token)
        async with _stored(package, worker.uploads) as path:
            return await attended(
                request.receive, worker.verify(path, task_id, op_name, timeout, tenant=tenant, lease=lease)
            )

    @app.post("/api/v1/generate_reference", response_model=wire.Reference, responses=wire.REFUSALS, tags=["wire"])
    async def generate_reference(
        request: Request,
        package: Package,
        task_id: TaskId,
        op_name: OpName,
        timeout: Seconds = REFERENCE_S,
        lease_id: LeaseId = None,
        token: Token = None,
    ) -> Any:
        """Run a package's `verify_{op_name}.py` for the reference that it writes."""
        tenant, lease = _who(request).name, _shown(lease_id, token)
        async with _stored(package, worker.uploads) as path:
            work = worker.generate_reference(path, task_id, op_name, timeout, tenant=tenant, lease=lease)
            return await attended(request.receive, work)

    @app.post(
        "/api/v1/profile",
        response_model=wire.Profiled,
        response_model_exclude_unset=True,
        responses=wire.REFUSALS | wire.BAD_SETTINGS,
        tags=["wire"],
    )
    async def profile(
        request: Request,
        package: Package,
        task_id: TaskId,
        op_name: OpName,
        profile_settings: Settings = "{}",
        lease_id: LeaseId = None,
        token: Token = None,
    ) -> Any:
        """Time a package's baseline and candidate."""
        tenant, lease = _who(request).name, _shown(lease_id, token)
        settings = _settings(profile_settings)
        async with _stored(package, worker.uploads) as path:
            return await attended(
                request.receive, worker.profile(path, task_id, op_name, settings, tenant=tenant, lease=lease)
            )

    @app.post(
        "/api/v1/profile_single_task",
        response_model=wire.Single,
        responses=wire.REFUSALS | wire.BAD_SETTINGS,
        tags=["wire"],
    )
    async def profile_single_task(
        request: Request,
        package: Package,
        task_id: TaskId,
        op_name: OpName,
        profile_settings: Settings = "{}",
        lease_id: LeaseId = None,
        token: Token = None,
    ) -> Any:
        """Time one thing, by a package's `profile_single_{op_name}.py`."""
        tenant, lease = _who(request).name, _shown(lease_id, token)
        settings = _settings(profile_settings)
        async with _stored(package, worker.uploads) as path:
            work = worker.profile_single_task(path, task_id, op_name, settings, tenant=tenant, lease=lease)
            return await attended(request.receive, work)

    @app.get("/api/v1/docs/{doc_name}", response_model=wire.Page, responses=wire.NO_PAGE, tags=["wire"])
    def docs(doc_name: str) -> Any:
        """A page for those who write kernels."""
        if doc_name not in _DOCS:
            raise HTTPException(404, f"Unsupported doc name: {doc_name}")
        return {"doc_name": doc_name, "content": (_PAGES / f"{doc_name}.md").read_text(encoding="utf-8")}


def _leases(app: FastAPI, worker: LocalWorker) -> None:
    @app.post("/api/v1/leases", response_model=wire.LeaseView, responses=wire.REFUSALS, tags=["leases"])
    async def acquire_lease(
        request: Request,
        task_id: TaskId,
        ttl_s: Ttl = DEFAULT_TTL_S,
        wait_s: Annotated[
            float | None, Form(ge=0, le=86_400, allow_inf_nan=False, description="How long to wait for a device.")
        ] = None,
    ) -> Any:
        """Lease a device, with a time to live and a fencing token."""
        who = _who(request)
        await worker.open()
        try:
            async with asyncio.timeout(wait_s):
                work = worker.pool.acquire(task_id, who.name, ttl_s=ttl_s, nice=who.nice)
                return _view(await attended(request.receive, work))
        except TimeoutError:
            raise HTTPException(503, f"no device was free within {wait_s:g} s") from None

    @app.post(
        "/api/v1/leases/{lease_id}/renew", response_model=wire.LeaseView, responses=wire.REFUSALS, tags=["leases"]
    )
    async def renew_lease(
        lease_id: str,
        token: Annotated[int, Form(ge=0, lt=2**63, description="The lease's fencing token.")],
        ttl_s: Annotated[
            float | None, Form(gt=0, le=86_400, allow_inf_nan=False, description="Its time to live from now on.")
        ] = None,
    ) -> Any:
        """Let a lease hold on from now."""
        return _view(worker.pool.renew(lease_id, token, ttl_s))

    @app.post(
        "/api/v1/leases/{lease_id}/release", response_model=wire.Released, responses=wire.REFUSALS, tags=["leases"]
    )
    async def release_lease(
        lease_id: str, token: Annotated[int, Form(ge=0, lt=2**63, description="The lease's fencing token.")]
    ) -> Any:
        """Give a leased device back; what runs under the lease is ended."""
        released = worker.pool.release_lease(lease_id, token)
        await worker.pool.stored()
        return {"released": released}

    @app.get("/api/v1/leases", response_model=wire.LeaseViews, tags=["leases"])
    async def leases(request: Request) -> Any:
        """Every lease that holds; ids are shown to those whose they are, and to administrators."""
        who = _who(request)
        shown = [_view(lease) for lease in worker.pool.leases()]
        for view in shown:
            if view["tenant"] != who.name and not who.may("admin"):
                view["lease_id"] = ""
                view["token"] = 0
        return {"leases": shown, "waiting": worker.pool.waiting}


def _looks(app: FastAPI, worker: LocalWorker) -> None:
    @app.post("/api/v1/cancel", response_model=wire.Cancelled, responses=wire.REFUSALS, tags=["service"])
    async def cancel(request: Request, task_id: TaskId) -> Any:
        """End what waits or runs for a task, with its whole process tree."""
        return {"cancelled": await worker.cancel(task_id, _who(request).name)}

    @app.get("/api/v1/said", response_model=wire.Said, tags=["service"])
    async def said(
        request: Request, task_id: Annotated[str, Query(max_length=1000, description="The task that runs.")]
    ) -> Any:
        """What a task's programs said so far; a task is seen by who runs it."""
        return {"said": await worker.said(task_id, _who(request).name)}

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


@asynccontextmanager
async def _stored(package: UploadFile, folder: Path) -> AsyncIterator[Path]:
    """The uploaded file under a name, for the time of a block."""
    name = ""
    try:
        try:
            handle, name = tempfile.mkstemp(prefix="upload-", dir=folder)
            with os.fdopen(handle, "wb") as stream:
                while data := await package.read(_CHUNK):
                    stream.write(data)
        except OSError as error:
            raise _no_room(error) from error
        yield Path(name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 - of one file, at once


def _settings(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise HTTPException(400, "Invalid JSON for profile_settings")
    return value


def _shown(lease_id: str | None, token: int | None) -> Shown | None:
    if lease_id is None and token is None:
        return None
    if lease_id is None or token is None:
        raise HTTPException(400, "lease_id and token go together")
    return Shown(lease_id, token)


def _view(lease: Lease) -> dict[str, Any]:
    left = None if lease.ttl_s is None else max(0.0, lease.seen_s + lease.ttl_s - boot_clock())
    return {
        "lease_id": lease.id,
        "task_id": lease.task,
        "tenant": lease.tenant,
        "device_id": lease.device,
        "token": lease.token,
        "ttl_s": lease.ttl_s,
        "expires_in_s": left,
    }
