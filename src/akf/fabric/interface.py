"""What a worker does, wherever it is.

Invariants:
- An answer is the body of the wire contract, with `outcome` beside it: what happened, as one word of `OUTCOMES`.
- Only `candidate_failed` blames the candidate. `infra_error`, `timeout` and `cancelled` never count as its
  failure; the first may be tried again on another worker.
- A device is one holder's from `acquire_device` until `release_device`, and may be given back any number of times.
- Nothing is raised for what a package does. What is raised says that there was no answer: a worker that is gone, drains
  or refuses the request.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

Outcome = Literal["ok", "candidate_failed", "infra_error", "timeout", "cancelled"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""Every outcome of an execution."""
Package = bytes | Path
"""A tar archive, plain or compressed: its bytes, or the file that holds it."""
VERIFY_S = 300
REFERENCE_S = 120


class Shown(NamedTuple):
    """A lease as its holder shows it."""

    id: str
    token: int


class Leased(NamedTuple):
    """A lease of one device, with its fencing token."""

    id: str
    token: int
    device: int

    @property
    def shown(self) -> Shown:
        """What is shown at execution."""
        return Shown(self.id, self.token)


@runtime_checkable
class WorkerInterface(Protocol):
    """Devices of one backend and architecture, and the packages that run on them."""

    async def status(self) -> dict[str, Any]:
        """What the worker is: `status`, `backend`, `arch`, `devices`."""

    async def acquire_device(self, task_id: str) -> int:
        """A device for this task alone; waits until there is one.

        Raises:
            BlockedError: the worker gives out no more.
        """

    async def release_device(self, task_id: str, device_id: int) -> None:
        """Give a device back; nothing happens when this task does not hold it."""

    async def verify(self, package: Package, task_id: str, op_name: str, timeout: int = VERIFY_S) -> dict[str, Any]:
        """Run a package's `verify_{op_name}.py`.

        Returns:
            `success`, `log`, `artifacts` (relative path to raw text), `outcome`.
        """

    async def profile(
        self, package: Package, task_id: str, op_name: str, profile_settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Time a package's baseline and candidate.

        Returns:
            `gen_time`, `base_time` (microseconds or null), `speedup`, `roofline_time`, `roofline_speedup`, `roofline`,
            `artifacts`, `error` where there is one, `outcome`.
        """

    async def profile_single_task(
        self, package: Package, task_id: str, op_name: str, profile_settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Time one thing, by a package's `profile_single_{op_name}.py`.

        Returns:
            `time_us` (or null), `success`, `log`, `outcome`.
        """

    async def generate_reference(
        self, package: Package, task_id: str, op_name: str, timeout: int = REFERENCE_S
    ) -> dict[str, Any]:
        """Run a package's `verify_{op_name}.py` for the reference that it writes.

        Returns:
            `success`, `log`, `reference_data` (base64, or empty), `outcome`.
        """

    async def cancel(self, task_id: str) -> bool:
        """End what runs for a task, with its whole process tree; tells whether anything ran."""


class LeasingWorker(WorkerInterface, Protocol):
    """A worker that leases its devices with a fencing token, and asks for it at execution."""

    async def lease(self, task_id: str, ttl_s: float, wait_s: float) -> Leased:
        """A device for this task alone, for as long as it is renewed.

        Raises:
            BlockedError: none was free in time, or there is none.
        """

    async def renew(self, lease: Leased) -> None:
        """Let a lease hold on.

        Raises:
            ConflictError: it does not hold any more.
            BlockedError: nobody could say.
        """

    async def give_back(self, lease: Leased) -> bool:
        """Give a device back; tells whether the lease held it until now."""

    async def verify(
        self, package: Package, task_id: str, op_name: str, timeout: int = VERIFY_S, *, lease: Shown | None = None
    ) -> dict[str, Any]:
        """See `WorkerInterface.verify`; under the lease that is shown, or not at all."""
