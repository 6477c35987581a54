"""The job type `single`: verify a candidate against its reference on a device, then time both.

Invariants:
- Only a check that came to its end books a failure of the candidate. What a worker lacks is an infrastructure fault of
  that worker, and another one is tried.
- A candidate that does not agree is not timed. A time stands with its spread, and is never called evidence.
- Without `init_code` somebody writes the candidate: the coder of `akf.agents`, if a model is configured.
"""

from __future__ import annotations

from typing import Any

import orjson

from akf.fabric.entries import Assignment
from akf.fabric.package import RESULT, Content, packed, profile_settings
from akf.server.executors import Conclusion, JobContext, written
from akf.server.spread import spread

VERIFY_S = 300
_LONGEST_LOG = 8000
_TIMES = ("gen_time", "base_time", "speedup")


async def run(job: JobContext) -> Conclusion:
    """See the module."""
    request = job.request
    code = request.get("init_code")
    if code is None:
        return await written(job)
    names = ("op_name", "backend", "arch", "dsl", "framework")
    content = Content(reference=request["task_desc"], candidate=code, **{name: request[name] for name in names})
    limit = limit_s(request)

    async def on_device(assignment: Assignment) -> dict[str, Any]:
        package = packed(content, assignment.device)
        worker = assignment.worker
        answer = judged(await worker.verify(package, job.task_id, content.op_name, limit))
        job.log(answer["log"])
        job.emit("verified", {"outcome": answer["outcome"], "detail": answer["detail"]})
        if answer["outcome"] == "ok":
            times = await worker.profile(package, job.task_id, content.op_name, profile_settings(content, limit))
            answer["profile"] = {name: times.get(name) for name in _TIMES} | spread(times)
            job.emit("profiled", answer["profile"])
        return answer | {"worker": assignment.name, "device": assignment.device}

    answer = await job.on_device(on_device)
    success = answer["outcome"] == "ok"
    kept = ("outcome", "detail", "log", "profile", "worker", "device")
    result = {"success": success, "code": code, **{name: answer.get(name) for name in kept}}
    status, error = ("completed", None) if success else ("failed", answer["detail"])
    return Conclusion("completed" if status == "completed" else "failed", result, error, answer["outcome"])


def limit_s(request: dict[str, Any]) -> int:
    """The time limit of a verification: the request's, where it is one."""
    stated = request.get("verify_timeout")
    good = isinstance(stated, int) and not isinstance(stated, bool) and 1 <= stated <= 24 * 3600
    return int(stated) if good and stated is not None else VERIFY_S


def judged(answer: dict[str, Any]) -> dict[str, Any]:
    """A worker's answer with `detail`, and with what the check itself says of this machine."""
    log = answer["log"]
    found = _check(answer)
    detail = str(found.get("detail") or _last_line(log))
    outcome = answer["outcome"]
    more: dict[str, Any] = {}
    if outcome == "candidate_failed" and found.get("outcome") == "infra_error":
        outcome, more = "infra_error", {"lacking": detail}
    elif outcome == "cancelled":
        outcome = "infra_error"  # a cancelled job does not come here: the worker ended it by itself
    if len(log) > _LONGEST_LOG:
        log = f"{log[: _LONGEST_LOG // 2]}\n[...]\n{log[-_LONGEST_LOG // 2 :]}"
    return {"outcome": outcome, "detail": detail, "log": log, **more}


def _check(answer: dict[str, Any]) -> dict[str, Any]:
    try:
        found = orjson.loads(answer.get("artifacts", {}).get(RESULT, "{}"))
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _last_line(log: str) -> str:
    lines = log.strip().splitlines()
    return lines[-1][:500] if lines else "without a word"
