"""The bodies of the Server's endpoints: the fields of the AIKG services, and ours beside them.

Invariants:
- A field of the AIKG wire has its name, type and default there, so that unmodified clients are understood.
- A field that is neither of that wire nor ours is kept apart and named in the answer; with `strict` it is refused.
- Every number has bounds: what is accepted can be stored and run.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

KNOWN_EXTRAS = frozenset({
    "migration_interval", "migration_rate", "elite_size", "parent_selection_prob", "handwrite_sample_num",
    "handwrite_decay_rate", "inspiration_sample_num", "meta_prompt_sample_num", "profile_settings", "verify_timeout",
    "user_requirements", "task_label", "config",
})  # fmt: skip
"""What job managers of the AIKG services read from a submission, although their wire does not name it."""
LONGEST_TEXT = 1 << 20
_Name = Annotated[str, Field(min_length=1, max_length=128)]
_Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
_Tags = Annotated[list[_Name], Field(max_length=32)]
_Count = Annotated[int, Field(ge=1, le=10_000)]


class Submit(BaseModel):
    """A job, as `POST /api/v1/jobs/submit` takes it."""

    model_config = ConfigDict(extra="allow")

    op_name: Annotated[_Name, Field(description="Name of the operator; letters, digits, dashes, underscores.")]
    task_desc: Annotated[
        _Text, Field(description="Python source with class Model, get_inputs and get_init_inputs: the reference.")
    ]
    job_type: Annotated[_Name, Field(description="Which executor runs it.")] = "single"
    backend: Annotated[_Name, Field(description="cuda, ascend or cpu.")] = "cuda"
    arch: Annotated[_Name, Field(description="The device's architecture, as workers register it.")] = "a100"
    dsl: Annotated[_Name, Field(description="The language of the candidate.")] = "triton"
    framework: Annotated[_Name, Field(description="The language of the reference.")] = "torch"
    workflow: Annotated[_Name, Field(description="How agents work together.")] = "coder_only_workflow"
    source_backend: Annotated[_Name | None, Field(description="Where code is ported from.")] = None
    source_arch: Annotated[_Name | None, Field(description="Its architecture.")] = None
    source_dsl: Annotated[_Name | None, Field(description="Its language.")] = None
    max_rounds: Annotated[_Count, Field(description="Rounds of an evolve job.")] = 1
    parallel_num: Annotated[_Count, Field(description="Candidates of one round.")] = 1
    num_islands: Annotated[_Count, Field(description="Islands of an evolve job.")] = 1
    init_code: Annotated[
        _Text | None, Field(description="Python source with class ModelNew: the candidate to start from.")
    ] = None
    tags: Annotated[_Tags, Field(description="Tags that the worker must have.")] = []
    priority: Annotated[int, Field(ge=-20, le=19, description="Among this user's jobs, the smallest runs next.")] = 0


class Register(BaseModel):
    """A Worker Service, as `POST /api/v1/workers/register` takes it."""

    url: Annotated[str, Field(min_length=1, max_length=2048, description="http:// or https:// address of the worker.")]
    backend: Annotated[_Name, Field(description="cuda, ascend or cpu.")]
    arch: Annotated[_Name, Field(description="Architecture of its devices.")]
    capacity: Annotated[
        int, Field(ge=1, le=4096, description="Its devices; the worker's own answer is taken where it gives one.")
    ] = 1
    tags: Annotated[_Tags, Field(description="What jobs may ask for.")] = []


class RegisterLocal(BaseModel):
    """Devices of the Server's own machine, as `POST /api/v1/workers/register-local` takes them."""

    backend: Annotated[_Name, Field(description="cuda, ascend or cpu.")]
    arch: Annotated[_Name, Field(description="Architecture of the devices.")]
    devices: Annotated[list[int], Field(max_length=4096, description="Their ids.")]
    tags: Annotated[_Tags, Field(description="What jobs may ask for.")] = []
