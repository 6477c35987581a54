"""The fields of the Worker Service's forms, and what is read of them."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import File, Form, HTTPException, Request, UploadFile

from akf.fabric.access import Who
from akf.fabric.interface import Shown

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


def who_asks(request: Request) -> Who:
    """Who was let in."""
    who: Who = request.state.who
    return who


def settings_of(text: str) -> dict[str, Any]:
    """A profile's settings."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise HTTPException(400, "Invalid JSON for profile_settings")
    return value


def lease_of(lease_id: str | None, token: int | None) -> Shown | None:
    """The lease that a caller shows, if it shows one."""
    if lease_id is None and token is None:
        return None
    if lease_id is None or token is None:
        raise HTTPException(400, "lease_id and token go together")
    return Shown(lease_id, token)
