"""What an evaluation is about: the frozen artifacts behind one attempt, verified.

Invariants:
- Nothing here is read from the candidate's own words: Task, Candidate and Build are verified artifacts of the run.
- Identity has the same fields as the Campaign's expected identity, filled with what is read where the work runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.gates import BINARY_STAGES, loadable
from akf.contracts.identity import expected, machine_digest
from akf.contracts.loader import parse
from akf.contracts.problems import PreconditionError
from akf.contracts.rules.task import require_kernel
from akf.frameworks import host_reference
from akf.store.run import Run, ref


class Subject(NamedTuple):
    """Task, Candidate and Build of one attempt, with the references that a plan names."""

    campaign: dict[str, Any]
    workload_digest: str
    task: dict[str, Any]
    candidate: dict[str, Any]
    build: dict[str, Any]
    parents: list[dict[str, str]]

    @classmethod
    def read(cls, run: Run, candidate: str) -> Subject:
        """Read and verify an attempt that is built.

        Raises:
            PreconditionError: it is not built, or its build failed.
        """
        base = f"attempts/{candidate}"
        run.need_candidate(candidate)
        if not (run.path / base / "build.json").is_file():
            message = f"{candidate!r} is not built"
            raise PreconditionError.of("AKF-P115", message, hint="build it first: akf build RUN CANDIDATE")
        claim, build = run.load(f"{base}/candidate.json"), run.load(f"{base}/build.json")
        if build.value["outcome"] != "built":
            message = f"{candidate!r} did not compile, so there is nothing to measure"
            raise PreconditionError.of("AKF-P117", message, found=list(build.value.get("reasons", ())))
        if not loadable(build.value):
            message = f"the Build of {candidate!r} ends at {build.value['stage']}, which cannot be loaded"
            stopped = build.value.get("stopped", {}).get("message")
            raise PreconditionError.of(
                "AKF-P401", message, expected=list(BINARY_STAGES), found=build.value["stage"], hint=stopped
            )
        task_id = next(parent["id"] for parent in claim.value["parents"] if parent["kind"] == "Task")
        task = run.load(f"tasks/{task_id}.json")
        require_kernel(task.value)
        data = run.read("run.json")
        parents = [
            ref(parse(data, "run.json").value, data),
            ref(task.value, task.source),
            ref(claim.value, claim.source),
            ref(build.value, build.source),
        ]
        workload = digest(run.read("workload.json"))
        return cls(run.campaign, workload, task.value, claim.value, build.value, parents)

    def wanted(self) -> dict[str, Any]:
        """The identity that the Campaign demands."""
        return expected(self.campaign, self.workload_digest, self.task, self.candidate)

    def identity(self, environment: dict[str, Any], incumbent: str) -> dict[str, Any]:
        """The identity as read here and now."""
        here = {
            "soc": environment["soc"]["name"],
            "toolkit": environment["toolkit"],
            "frameworks": environment["frameworks"],
            "machine_digest": machine_digest(environment, host_reference.ranks()),
            "incumbent_digest": incumbent,
        }
        return {**self.wanted(), "platform": "host", "arm": host_reference.ARM, **here}


class Found(NamedTuple):
    """What a gate's measurement found."""

    checks: list[dict[str, Any]]
    isolation: str
    files: dict[str, bytes]
    shared: dict[str, bytes]
    side: dict[str, Any] | None = None
