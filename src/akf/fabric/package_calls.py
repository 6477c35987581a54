"""The calls of the Worker Service that carry a package: it runs, and its answer says how that went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request

from akf.fabric import wire
from akf.fabric.forms import LeaseId, OpName, Package, Seconds, Settings, TaskId, Token, lease_of, settings_of, who_asks
from akf.fabric.gate import attended
from akf.fabric.interface import REFERENCE_S, VERIFY_S
from akf.fabric.local import LocalWorker
from akf.fabric.uploads import stored

_PAGES = Path(__file__).with_name("pages")
_DOCS = ("triton_ascend_api",)


def package_calls(app: FastAPI, worker: LocalWorker) -> None:
    """Add them to a service."""

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
        tenant, lease = who_asks(request).name, lease_of(lease_id, token)
        async with stored(package, worker.uploads) as path:
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
        tenant, lease = who_asks(request).name, lease_of(lease_id, token)
        async with stored(package, worker.uploads) as path:
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
        tenant, lease = who_asks(request).name, lease_of(lease_id, token)
        settings = settings_of(profile_settings)
        async with stored(package, worker.uploads) as path:
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
        tenant, lease = who_asks(request).name, lease_of(lease_id, token)
        settings = settings_of(profile_settings)
        async with stored(package, worker.uploads) as path:
            work = worker.profile_single_task(path, task_id, op_name, settings, tenant=tenant, lease=lease)
            return await attended(request.receive, work)

    @app.get("/api/v1/docs/{doc_name}", response_model=wire.Page, responses=wire.NO_PAGE, tags=["wire"])
    def docs(doc_name: str) -> Any:
        """A page for those who write kernels."""
        if doc_name not in _DOCS:
            raise HTTPException(404, f"Unsupported doc name: {doc_name}")
        return {"doc_name": doc_name, "content": (_PAGES / f"{doc_name}.md").read_text(encoding="utf-8")}
