"""The calls of the Worker Service about leases: a device with a time to live and a fencing token."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import FastAPI, Form, HTTPException, Request

from akf.fabric import wire
from akf.fabric.clock import boot_clock
from akf.fabric.forms import TaskId, Ttl, who_asks
from akf.fabric.gate import attended
from akf.fabric.leases import Lease
from akf.fabric.local import LocalWorker

DEFAULT_TTL_S = 60.0


def lease_calls(app: FastAPI, worker: LocalWorker) -> None:
    """Add them to a service."""

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
        who = who_asks(request)
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
        who = who_asks(request)
        shown = [_view(lease) for lease in worker.pool.leases()]
        for view in shown:
            if view["tenant"] != who.name and not who.may("admin"):
                view["lease_id"] = ""
                view["token"] = 0
        return {"leases": shown, "waiting": worker.pool.waiting}


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
