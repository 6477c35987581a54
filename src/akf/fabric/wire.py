"""The bodies of the Worker Service, as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from akf.fabric.interface import Outcome


class Status(BaseModel):
    status: str = Field(description="`ready`.")
    backend: str = Field(description="`ascend`, `cuda` or `cpu`.")
    arch: str = Field(description="The architecture, by AIKG's name.")
    devices: list[int] = Field(description="Ids of the devices.")


class Device(BaseModel):
    device_id: int = Field(description="The device that the task has now.")


class Done(BaseModel):
    status: str = Field(description="`ok`.")


Happened = Annotated[Outcome, Field(description="What happened; only `candidate_failed` blames the candidate.")]


class Verified(BaseModel):
    success: bool = Field(description="Whether the script ended with status 0.")
    log: str = Field(description="Standard output, a line break, standard error; the middle of a long one is left out.")
    artifacts: dict[str, str] = Field(description="Raw text of every *.json and *.jsonl, by relative path.")
    outcome: Happened


class Reference(BaseModel):
    success: bool = Field(description="Whether there is a reference.")
    log: str = Field(description="As that of verify.")
    reference_data: str = Field(description="The reference file in base64, or empty.")
    outcome: Happened


class Profiled(BaseModel):
    gen_time: float | None = Field(description="Time of the candidate in microseconds.")
    base_time: float | None = Field(description="Time of the baseline in microseconds.")
    speedup: float = Field(description="Baseline by candidate; 0 when it is not known.")
    roofline_time: float | None = Field(description="Always null here.")
    roofline_speedup: float = Field(description="Always 0 here.")
    roofline: dict[str, Any] = Field(description="Says that no roofline is computed.")
    artifacts: dict[str, str] = Field(description="As those of verify.")
    outcome: Happened
    error: str | None = Field(default=None, description="Why the candidate was not timed.")


class Single(BaseModel):
    time_us: float | None = Field(description="The time in microseconds.")
    success: bool = Field(description="Whether there is one.")
    log: str = Field(description="As that of verify.")
    outcome: Happened


class Page(BaseModel):
    doc_name: str = Field(description="The page's name.")
    content: str = Field(description="The page, as Markdown.")


class LeaseView(BaseModel):
    lease_id: str = Field(description="The lease's id.")
    task_id: str = Field(description="Whose it is.")
    tenant: str = Field(description="Whose share of time it uses.")
    device_id: int = Field(description="The device.")
    token: int = Field(description="Its fencing token: larger than that of every earlier lease.")
    ttl_s: float | None = Field(description="How long it holds without a renewal; null on the AIKG wire.")
    expires_in_s: float | None = Field(description="What is left of that.")


class LeaseViews(BaseModel):
    leases: list[LeaseView] = Field(description="Every lease that holds.")
    waiting: int = Field(description="How many wait for a device.")


class Released(BaseModel):
    released: bool = Field(description="Whether the lease held until now.")


class Cancelled(BaseModel):
    cancelled: bool = Field(description="Whether anything waited or ran.")


class Said(BaseModel):
    said: str | None = Field(description="What it said so far, bounded; null when nothing of it runs.")


class Health(BaseModel):
    status: str = Field(description="`ok`, or `draining` with the status 503.")
    isolation: str | None = Field(description="How packages are shut in.")


class Refusal(BaseModel):
    detail: str = Field(description="What is wrong, in words.")


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The request is wrong."},
    409: {"model": Refusal, "description": "A lease does not hold."},
    413: {"model": Refusal, "description": "The request is too large."},
    503: {"model": Refusal, "description": "The worker takes nothing more, or has no device in time."},
}
BAD_SETTINGS: dict[int | str, dict[str, Any]] = {}
NO_PAGE: dict[int | str, dict[str, Any]] = {404: {"model": Refusal, "description": "There is no such page."}}
