"""Jobs as a Server runs them: the executors of the group `akf.jobs`, and of what `single` does without code.

Invariants:
- An operator with a shipped Task and a declared space is searched on this machine (`backend` cpu, `dsl` cpp), with a
  model or without one. Any other code is written by a model and verified on a worker, through the job's own context.
- A job's limits are its Task's; without a Task they are the Server's (`AKF_JOBS_TOKENS`, `AKF_JOBS_ATTEMPTS`).
- What was found goes into the inbox of the run `AKF_JOBS_RUN`, if there is one, and nowhere else. With the supervisor's
  keys (`AKF_JOBS_KEYS`) the Server goes on to a Decision, by commands.
- A job that is cancelled starts nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from akf.agents.files import write_candidate
from akf.agents.gate import Supervisor
from akf.agents.jobs import MAX_CHILDREN, MAX_ISLANDS, MAX_ROUNDS, Ended, Request, Type, run_job
from akf.agents.model import Settings
from akf.agents.space import SPACE, Space, load_space
from akf.agents.trial import Trial, Try
from akf.contracts.problems import AkfError, ConflictError, UsageError
from akf.contracts.shipped import shipped

RUN, KEYS, TOKENS, ATTEMPTS = "AKF_JOBS_RUN", "AKF_JOBS_KEYS", "AKF_JOBS_TOKENS", "AKF_JOBS_ATTEMPTS"
_DEFAULT_TOKENS, _DEFAULT_ATTEMPTS, _EVALUATION_S = 200_000, 50, 600


class Conclusion(NamedTuple):
    """How a job ended, as the Server reads it."""

    status: Literal["completed", "failed", "error"]
    result: dict[str, Any] | None
    error: str | None = None
    outcome: str | None = None


async def single(job: Any) -> Conclusion:
    """One candidate: planned, written, mended, timed."""
    return await _ran(job, "single")


async def evolve(job: Any) -> Conclusion:
    """Rounds of children."""
    return await _ran(job, "evolve")


async def adaptive_search(job: Any) -> Conclusion:
    """Rounds of children, each by the strategy that gained most."""
    return await _ran(job, "adaptive_search")


def asked(fields: Mapping[str, Any], job_type: Type, config: Mapping[str, Any] | None = None) -> Request:
    """What a submission asks.

    Args:
        fields: the submission's fields.
        job_type: its type.
        config: settings of the model, over the environment's.

    Raises:
        UsageError: a setting has another form.
    """
    folder, space = local(fields)
    return Request(
        folder or Path(), job_type, str(fields.get("workflow") or "coder_only_workflow"),
        rounds=_within(fields.get("max_rounds"), 8 if space is not None else 1, MAX_ROUNDS),
        children=_within(fields.get("parallel_num"), 1, MAX_CHILDREN),
        islands=_within(fields.get("num_islands"), 1, MAX_ISLANDS), space=space, model=Settings.read(config),
    )  # fmt: skip


def local(fields: Mapping[str, Any]) -> tuple[Path | None, Space | None]:
    """The shipped Task of an operator and its declared space, where it is for this machine's processor."""
    if fields.get("backend") != "cpu" or fields.get("dsl") != "cpp":
        return None, None
    name = str(fields.get("op_name"))
    tasks, spaces = shipped("examples") / "tasks", shipped("examples") / "spaces"
    known = {path.parent.name for path in tasks.glob("*/task.json")}
    name = {"rms_norm": "rmsnorm"}.get(name, name)
    if name not in known:
        return None, None
    return tasks / name, load_space(spaces / name) if (spaces / name / SPACE).is_file() else None


def _within(value: Any, usual: int, most: int) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return max(1, min(most, value)) if whole and value is not None else usual


def _setting(name: str, usual: int) -> int:
    text = os.environ.get(name, str(usual))
    if not text.isdecimal():
        raise UsageError.of("AKF-U720", f"{name} is no whole number", found=text[:40])
    return int(text)


async def _ran(job: Any, job_type: Type) -> Conclusion:
    """Run a job in a thread of its own; its trials on workers come back to this loop."""
    loop, fields, stopped = asyncio.get_running_loop(), job.request, threading.Event()
    request = asked(fields, job_type)
    task = None if request.task != Path() else _wire_task(fields)

    def emit(kind: str, data: dict[str, Any]) -> None:
        if stopped.is_set():
            raise _CancelledHere
        loop.call_soon_threadsafe(job.emit, kind, data)

    run = None if task is None else _on_workers(job, loop, stopped)
    try:
        ended = await asyncio.to_thread(run_job, request, emit, run, task)
    except asyncio.CancelledError:
        stopped.set()
        raise
    return concluded(fields, ended, await asyncio.to_thread(handed_in, request, ended))


class _CancelledHere(Exception):  # noqa: N818 - nobody reads it
    """The job is over for its Server."""


def _wire_task(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a submission says, as a Task without kernels; its code is verified by a worker."""
    budget = {
        "tokens": _setting(TOKENS, _DEFAULT_TOKENS), "attempts": _setting(ATTEMPTS, _DEFAULT_ATTEMPTS),
        "evaluation_s": _EVALUATION_S,
    }  # fmt: skip
    call = (
        f"One Python file that defines `class ModelNew`, in {fields['dsl']} for {fields['backend']} {fields['arch']}."
    )
    return {
        "id": str(fields["op_name"]), "op": str(fields["op_name"]), "routes": [str(fields["dsl"])], "budget": budget,
        "text": f"{call} It stands in for this reference:\n{fields['task_desc']}",
    }  # fmt: skip


def _on_workers(job: Any, loop: asyncio.AbstractEventLoop, stopped: threading.Event) -> Try:
    """Trials of code on workers, from another thread."""

    def run(files: Mapping[str, str], timed: bool) -> Trial:
        del timed
        if stopped.is_set():
            raise _CancelledHere
        answer = asyncio.run_coroutine_threadsafe(job.tried(code_of(files)), loop).result()
        found = answer.result or {}
        outcome = {"completed": "pass", "failed": "fail"}.get(answer.status, "cannot_tell")
        speed = (found.get("profile") or {}).get("speedup")
        reasons = () if outcome == "pass" else (str(answer.outcome or answer.status),)
        notes = (str(found.get("detail") or answer.error or ""), str(found.get("log") or "")[-2000:])
        real = float(speed) if isinstance(speed, int | float) and speed > 0 else None
        return Trial(outcome, reasons, notes, real, None, None)

    return run


def code_of(files: Mapping[str, str] | None) -> str | None:
    """The code of a candidate, as clients of the wire read it: its only source, or all of them."""
    sources = {path: text for path, text in (files or {}).items() if not path.endswith(".json")}
    if len(sources) == 1:
        return next(iter(sources.values()))
    return "\n".join(f"// FILE: {path}\n{text}" for path, text in sorted(sources.items())) or None


def concluded(fields: Mapping[str, Any], ended: Ended, decision: Any) -> Conclusion:
    """How a job ended, in the wire's words."""
    success = ended.status == "completed"
    result = {
        "success": success, "code": code_of(ended.files), "profile": {"speedup": ended.speed},
        "op_name": fields.get("op_name"), "full_result": {**ended.detail, "decision": decision},
    }  # fmt: skip
    return Conclusion(ended.status, None if ended.status == "error" else result, ended.error)


def handed_in(request: Request, ended: Ended) -> dict[str, Any] | None:
    """Put a candidate into the inbox of the Server's run, and on to a Decision where it has the keys."""
    run = os.environ.get(RUN)
    if run is None or ended.files is None or ended.name is None or request.task == Path():
        return None
    keys = os.environ.get(KEYS)
    try:
        if keys is None:
            return {"inbox": write_candidate(Path(run) / "inbox", ended.name, ended.files).name}
        supervisor = Supervisor(Path(run), Path(keys))
        with contextlib.suppress(ConflictError):  # the run may have the Task
            supervisor.open(request.task)
        return supervisor.decide(supervisor.take(ended.name, ended.files), ended.name)
    except AkfError as error:
        return {"problems": [problem.to_json() for problem in error.problems]}
