"""The Server's endpoints: the six of the AIKG wire, and ours beside them.

Invariants:
- The six answer field for field as the wire says; what is ours stands beside it, in fields and endpoints of its own.
- A job is seen and cancelled by its user, and by administrators; workers are registered by administrators.
- Every refusal is `{"detail": ...}` with a status from 400 to 499; what a client sends never causes a 500.
- A reader of events never holds up anything: it reads from the store, at its own pace, and goes on where it left off.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel

from akf import __version__
from akf.contracts.problems import AkfError, StorageError
from akf.fabric.access import Access, Who
from akf.fabric.entries import Want
from akf.fabric.platforms import platform
from akf.server.checks import Refused, checked
from akf.server.executors import job_types
from akf.server.guard import Application, Guard
from akf.server.jobs import ServerJobManager
from akf.server.store import STATUSES, Event, Job
from akf.server.wire import Register, RegisterLocal, Submit
from akf.server.workers import ServerWorkers

PAGE = Path(__file__).with_name("page")
_LAST_EVENT = (1 << 63) - 1
_BATCH = 200
_QUIET_S = 15.0
_LOOK_S = 3.0
"""How often it is looked whether a job that is followed has a worker left."""
_LONGEST_LIST = 500


class Refusal(BaseModel):
    """What is wrong, in words."""

    detail: Any


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "A value is not one that is allowed; all of them are named."},
    401: {"model": Refusal, "description": "No token that is known."},
    403: {"model": Refusal, "description": "Another site's page, or a role that may not."},
    404: {"model": Refusal, "description": "No such job or worker, or another user's."},
    409: {"model": Refusal, "description": "No registered worker could run it."},
    413: {"model": Refusal, "description": "The body is too large."},
    421: {"model": Refusal, "description": "A host name that is not this machine's."},
    422: {"model": Refusal, "description": "Fields are missing or of another type; each is listed."},
    429: {"model": Refusal, "description": "The user's quota of jobs that are not over is used up."},
    507: {"model": Refusal, "description": "The store's disk is full."},
}
_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
router = APIRouter(responses=REFUSALS)


def application(jobs: ServerJobManager, workers: ServerWorkers, access: Access) -> Application:
    """The Server as an ASGI application."""

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        await workers.start()
        await jobs.start()
        try:
            yield
        finally:
            await jobs.stop()
            await workers.stop()

    app = FastAPI(title="AKF Server", version=__version__, lifespan=living, docs_url=None, redoc_url=None)
    app.state.jobs, app.state.workers = jobs, workers
    app.include_router(router)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(AkfError, _problem)
    return Guard(app, access)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)  # noqa: S101 - registered for it
    return JSONResponse({"detail": _plain(error.detail)}, error.status)


async def _problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AkfError)  # noqa: S101 - registered for it
    status = 507 if isinstance(error, StorageError) else 400
    told = _plain("; ".join(problem.message for problem in error.problems))
    return JSONResponse({"detail": told, "problems": [_plain(problem.to_json()) for problem in error.problems]}, status)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it
    found = [{name: each.get(name) for name in ("type", "loc", "msg", "input")} for each in error.errors()]
    return JSONResponse({"detail": _plain(found)}, 422)


def _plain(value: Any) -> Any:
    """The same without anything that is no JSON, such as halves of characters, and no longer than a reader reads."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()[:2000]
    if isinstance(value, dict):
        return {_plain(str(name)): _plain(item) for name, item in list(value.items())[:100]}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value[:100]]
    if value is None or isinstance(value, bool | int):
        return value
    return _plain(str(value))


def _jobs(request: Request) -> ServerJobManager:
    found: ServerJobManager = request.app.state.jobs
    return found


def _workers(request: Request) -> ServerWorkers:
    found: ServerWorkers = request.app.state.workers
    return found


def _who(request: Request, role: str) -> Who:
    who: Who = request.state.who
    if not who.may(role):
        raise Refused(403, f"this needs the role {role}; {who.name} is {who.role}")
    return who


def _job(request: Request, identity: str, role: str = "reader") -> Job:
    who = _who(request, role)
    job = _jobs(request).store.job(identity)
    if job is None or not (job.user == who.name or who.may("admin") or (role == "reader" and who.role == "reader")):
        raise Refused(404, "Job not found")
    return job


@router.post("/api/v1/jobs/submit")
async def submit(
    request: Request,
    job: Submit,
    strict: Annotated[bool, Query(description="Refuse fields that nobody reads.")] = False,
) -> dict[str, Any]:
    """Accept a job; its id is answered when it is stored."""
    who = _who(request, "user")
    kept, ignored = checked(job, job_types(), strict=strict)
    want = Want(job.backend, job.arch, frozenset(job.tags))
    if not _workers(request).manager.has_worker(*want):
        await _workers(request).refresh()
    if not _workers(request).manager.has_worker(*want):
        raise Refused(409, f"No available worker found for backend={job.backend}, arch={job.arch}; {_remedy(want)}")
    accepted = _jobs(request).submit(kept, who.name)
    return {"job_id": accepted.id, "ignored": [_plain(name) for name in ignored]}


@router.get("/api/v1/jobs/{job_id}/status")
async def status(request: Request, job_id: str) -> dict[str, Any]:
    """How a job stands."""
    job = _job(request, job_id)
    return _shown(job) | {"waiting_for": _jobs(request).lacking(job)}


@router.post("/api/v1/jobs/{job_id}/cancel")
async def cancel(request: Request, job_id: str) -> dict[str, Any]:
    """End a job and everything it started; answered when that has ended."""
    job = _job(request, job_id, "user")
    cancelled, before = await _jobs(request).cancel(job.id)
    return {"cancelled": True} if cancelled else {"cancelled": False, "reason": f"Job status is {before}"}


@router.post("/api/v1/workers/register")
async def register(request: Request, worker: Register) -> dict[str, Any]:
    """Register a Worker Service; the same address again changes what is known of it."""
    _who(request, "admin")
    _right(worker.backend, worker.arch)
    return {"status": "registered"} | await _workers(request).register(worker)


@router.post("/api/v1/workers/register-local")
async def register_local(request: Request, worker: RegisterLocal) -> dict[str, Any]:
    """Register devices of the Server's own machine."""
    _who(request, "admin")
    _right(worker.backend, worker.arch)
    if not worker.devices or len(set(worker.devices)) != len(worker.devices) or min(worker.devices) < 0:
        raise Refused(400, "devices must be some ids, each once, none negative")
    if max(worker.devices) >= 1 << 31:
        raise Refused(400, "no device has such an id")
    return {"status": "registered"} | await _workers(request).register_local(worker)


@router.post("/api/v1/workers/unregister")
async def unregister(request: Request, name: Annotated[str, Body(embed=True, max_length=2048)]) -> dict[str, Any]:
    """Choose a worker no more; what runs there goes on to its end. One that is not registered is left as it is."""
    _who(request, "admin")
    known = await _workers(request).unregister(name)
    return {"status": "unregistered", "name": _plain(known[0]), "known": known[1]}


@router.get("/api/v1/workers/status")
async def workers_status(request: Request) -> list[dict[str, Any]]:
    """Every worker, as the AIKG wire has it."""
    _who(request, "reader")
    return await _workers(request).manager.get_status()


@router.get("/api/v1/workers")
async def workers(request: Request) -> list[dict[str, Any]]:
    """Every worker with all that is known of it: health, devices, who holds which."""
    _who(request, "reader")
    return [entry.detailed() for entry in _workers(request).manager.entries]


@router.get("/api/v1/jobs")
async def listed(
    request: Request,
    status: Annotated[list[str] | None, Query(description="Only jobs of these statuses.")] = None,
    limit: Annotated[int, Query(ge=1, le=_LONGEST_LIST)] = 50,
    before: Annotated[int | None, Query(ge=0, le=_LAST_EVENT, description="Only jobs before this number.")] = None,
) -> dict[str, Any]:
    """Jobs, newest first: one's own, all of them for readers and administrators."""
    who = _who(request, "reader")
    wrong = [each for each in status or () if each not in STATUSES]
    if wrong:
        raise Refused(400, f"no status: {', '.join(wrong)}; there are {', '.join(STATUSES)}")
    user = who.name if who.role == "user" else None
    store = _jobs(request).store
    found = store.jobs(status or STATUSES, user, before, limit)
    return {"jobs": [_listed(job) for job in found], "counts": store.counts()}


@router.get("/api/v1/jobs/{job_id}/log", responses=_TEXT)
async def log(request: Request, job_id: str) -> Any:
    """What a job's executors logged so far; last, what its candidate says that runs now."""
    job = _job(request, job_id)
    lines: list[str] = []
    after = 0
    while batch := _jobs(request).store.events(job.id, after, _BATCH):
        lines += [str(event.data.get("text", "")) for event in batch if event.kind == "log"]
        after = batch[-1].number
    live = await _jobs(request).said(job)
    return PlainTextResponse("\n".join(lines if live is None else [*lines, live]))


@router.get("/api/v1/jobs/{job_id}/events", responses=_STREAM)
async def job_events(request: Request, job_id: str, after: Annotated[int, Query(ge=0, le=_LAST_EVENT)] = 0) -> Any:
    """What happens to a job, as server-sent events; the stream ends with the job."""
    job = _job(request, job_id)
    return _stream(request, job.id, after)


@router.get("/api/v1/events", responses=_STREAM)
async def all_events(request: Request, after: Annotated[int | None, Query(ge=0, le=_LAST_EVENT)] = None) -> Any:
    """What happens to all jobs, as server-sent events; from now on, unless a number is given."""
    who = _who(request, "reader")
    if who.role == "user":
        raise Refused(403, "a user reads the events of its own jobs, one by one")
    return _stream(request, None, _jobs(request).store.last_event() if after is None else after)


@router.get("/api/v1/health")
async def health(request: Request) -> dict[str, Any]:
    """Whether the Server answers, and how much waits and runs."""
    _who(request, "reader")
    return {"status": "ok", "version": __version__, "jobs": _jobs(request).store.counts()}


@router.get("/metrics", responses=_TEXT)
async def metrics(request: Request) -> Any:
    """Jobs by status and workers with load, capacity and health, for Prometheus."""
    _who(request, "reader")
    lines = ["# TYPE akf_jobs gauge"]
    lines += [f'akf_jobs{{status="{name}"}} {count}' for name, count in _jobs(request).store.counts().items()]
    rows = [entry.detailed() for entry in _workers(request).manager.entries]
    for metric in ("load", "capacity"):
        lines.append(f"# TYPE akf_worker_{metric} gauge")
        lines += [f"akf_worker_{metric}{{worker={_label(row['name'])}}} {row[metric]}" for row in rows]
    lines.append("# TYPE akf_worker_healthy gauge")
    lines += [f"akf_worker_healthy{{worker={_label(row['name'])}}} {int(row['health'] == 'closed')}" for row in rows]
    return PlainTextResponse("\n".join(lines) + "\n")


@router.get("/", include_in_schema=False)
async def page() -> FileResponse:
    """The page for people."""
    return FileResponse(PAGE / "index.html", media_type="text/html")


@router.get("/page/{name}", include_in_schema=False)
async def part(name: str) -> FileResponse:
    """What the page is made of."""
    kinds = {"page.js": "text/javascript", "page.css": "text/css"}
    if name not in kinds:
        raise HTTPException(404, "Not Found")
    return FileResponse(PAGE / name, media_type=kinds[name])


def _stream(request: Request, job: str | None, after: int) -> StreamingResponse:
    last = request.headers.get("last-event-id", "")
    start = int(last) if last.isascii() and last.isdigit() and int(last) <= _LAST_EVENT else after
    return StreamingResponse(_read(_jobs(request), job, start), media_type="text/event-stream")


async def _read(jobs: ServerJobManager, job: str | None, after: int) -> AsyncIterator[bytes]:
    with jobs.reader() as news:
        yield b": here\n\n"
        said: str | None = None
        quiet = 0.0
        while True:
            news.clear()
            batch = jobs.store.events(job, after, _BATCH)
            for event in batch:
                after = event.number
                yield _sent(event)
                if job is not None and event.kind == "finished":
                    return
            if batch:
                continue
            found = jobs.store.job(job) if job is not None else None
            if jobs.stopping or (job is not None and (found is None or found.end_time is not None)):
                return
            why = None if found is None else jobs.lacking(found)
            if why is not None and why != said:
                said = why
                yield b"event: waits\ndata: %b\n\n" % orjson.dumps({"job": job, "time": time.time(), "why": why})
            quiet_s = _QUIET_S if found is None else _LOOK_S
            try:
                await asyncio.wait_for(news.wait(), quiet_s)
            except TimeoutError:
                quiet += quiet_s
                if quiet >= _QUIET_S:
                    quiet = 0.0
                    yield b": still here\n\n"


def _sent(event: Event) -> bytes:
    data = {"job": event.job, "time": event.time, **event.data}
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.number, event.kind.encode(), orjson.dumps(data))


def _shown(job: Job) -> dict[str, Any]:
    """A job as the wire has it, and ours beside it."""
    return {
        "status": job.status,
        "job_type": job.request["job_type"],
        "op_name": job.request["op_name"],
        "submit_time": job.submit_time,
        "result": job.result,
        "error": job.error,
        "job_id": job.id,
        "user": job.user,
        "outcome": job.outcome,
        "starts": job.starts,
        "start_time": job.start_time,
        "end_time": job.end_time,
    }


def _listed(job: Job) -> dict[str, Any]:
    """A job as a row: without its sources and its result."""
    left_out = {"result"}
    row = {name: value for name, value in _shown(job).items() if name not in left_out}
    wanted = ("backend", "arch", "dsl", "framework")
    return {"number": job.number, **row, **{name: job.request[name] for name in wanted}, "priority": job.priority}


def _remedy(want: Want) -> str:
    tags = "".join(f" --tag {tag}" for tag in sorted(want.tags))
    return f"register one: akf worker register SERVER WORKER {want.backend} {want.arch}{tags}"


def _right(backend: str, arch: str) -> None:
    problems = platform(backend, arch)
    if problems:
        raise Refused(400, "; ".join(problems))


def _label(value: str) -> str:
    with suppress(ValueError):
        return orjson.dumps(value).decode()
    return '"?"'
