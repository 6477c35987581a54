"""`KernelTask`, the seed's `Task`: one operator, its arguments, and `await task.run()`.

Invariants:
- The arguments are the seed's. `device_pool` is taken with a `DeprecationWarning` and changes nothing.
- With a Server (`config["server_url"]`, `AKF_SERVER_URL`) the job is submitted there. Without one an operator with a
  shipped Task runs here; any other is refused, because nothing here has devices.
- `run` answers `(op_name, success, result)`; what cannot be tried is an error, never a failure of the candidate.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from akf.agents.executors import asked, concluded, handed_in, local
from akf.agents.jobs import TYPES, WORKFLOWS, Type, run_job
from akf.contracts.problems import BlockedError, UsageError
from akf.contracts.text import did_you_mean

SERVER = "AKF_SERVER_URL"
_OPTIONS = ("max_rounds", "parallel_num", "num_islands", "init_code")


class Done(NamedTuple):
    """How a task ended."""

    op_name: str
    success: bool
    result: dict[str, Any]


class KernelTask:
    """One operator for which a kernel is wanted.

    Args:
        op_name: the operator.
        task_desc: its reference, as code.
        task_id: a name for logs.
        dsl: the language of the kernel.
        backend: `ascend`, `cuda` or `cpu`.
        arch: architecture of the device.
        config: `server_url`, `job_type`, `model`, `base_url`, `temperature`, `max_rounds`, `parallel_num`,
            `num_islands`, `init_code`, all of them optional.
        framework: framework of the reference.
        workflow: how agents work together.
        device_pool: deprecated; register a worker instead.
    """

    def __init__(
        self,
        op_name: str,
        task_desc: str,
        task_id: str,
        dsl: str,
        backend: str,
        arch: str,
        config: Mapping[str, Any] | None = None,
        framework: str = "torch",
        workflow: str = "coder_only_workflow",
        device_pool: object = None,
    ) -> None:
        if device_pool is not None:
            message = "device_pool is deprecated: register a worker (akf.fabric.register_local_worker) and leave it out"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
        self.config = dict(config or {})
        self.job_type: Type = self.config.get("job_type", "single")
        for name, value, known in (("workflow", workflow, WORKFLOWS), ("job_type", self.job_type, TYPES)):
            if value not in known:
                near = did_you_mean(str(value), known)
                hint = f"did you mean {near}?" if near else None
                raise UsageError.of("AKF-U721", f"{name} {value!r} is not known", expected=sorted(known), hint=hint)
        self.task_id = task_id
        self.fields: dict[str, Any] = {
            "op_name": op_name, "task_desc": task_desc, "dsl": dsl, "backend": backend, "arch": arch,
            "framework": framework, "workflow": workflow,
            **{name: self.config[name] for name in _OPTIONS if name in self.config},
        }  # fmt: skip

    async def run(self) -> Done:
        """Run the task to its end.

        Raises:
            BlockedError: there is neither a Server nor a Task of this operator here.
            AkfError: it cannot be tried.
        """
        url = self.config.get("server_url") or os.environ.get(SERVER)
        if url:
            return await self._submitted(str(url))
        if local(self.fields)[0] is None:
            message = (
                f"nothing here can try {self.fields['op_name']!r} in {self.fields['dsl']} on {self.fields['backend']}"
            )
            raise BlockedError.of("AKF-E721", message, hint=f"name a Server: config['server_url'] or {SERVER}")
        request = asked(self.fields, self.job_type, self.config)
        ended = await asyncio.to_thread(run_job, request)
        found = concluded(self.fields, ended, await asyncio.to_thread(handed_in, request, ended))
        return self._done(found.status, found.result, found.error)

    async def _submitted(self, url: str) -> Done:
        from akf.client import AsyncAKFClient  # noqa: PLC0415

        async with AsyncAKFClient(url) as client:
            job = await client.submit_job(**self.fields, job_type=self.job_type)
            status = await client.wait_for_completion(job)
        return self._done(status["status"], status.get("result"), status.get("error"))

    def _done(self, status: str, result: Mapping[str, Any] | None, error: str | None) -> Done:
        success = status == "completed" and bool((result or {}).get("success"))
        return Done(self.fields["op_name"], success, {**(result or {}), "status": status, "error": error})
