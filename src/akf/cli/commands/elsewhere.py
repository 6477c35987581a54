"""`evaluate --worker`: which worker runs the harness of a gate."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from akf.contracts.problems import BlockedError
from akf.lease import Leases

if TYPE_CHECKING:
    from akf.fabric.elsewhere import Elsewhere
    from akf.fabric.interface import LeasingWorker

LOCAL, RAY = "local", "ray"


@contextmanager
def at_worker(worker: str, run: Path, here: Leases) -> Iterator[Elsewhere]:
    """The worker of this name for the time of a block.

    Args:
        worker: `local`, an address of a Worker Service, or `ray` with or without an address.
        run: the run, whose Campaign names the platform.
        here: the leases of this machine.

    Raises:
        UsageError: it is no such thing.
        BlockedError: what it needs is not installed.
    """
    from akf.fabric.elsewhere import elsewhere  # noqa: PLC0415
    from akf.store.run import Run  # noqa: PLC0415

    campaign = Run.open(run).campaign
    backend, arch = campaign["platform"], campaign["environment"]["soc"]["name"]
    if backend == "host":
        backend, arch = "cpu", platform.machine()
    with tempfile.TemporaryDirectory(prefix="akf-worker-") as folder:

        async def opened() -> LeasingWorker:
            if worker == LOCAL:
                from akf.fabric.local import LocalWorker  # noqa: PLC0415

                return LocalWorker(backend, arch, [0], Path(folder) / "worker")
            if worker == RAY or worker.startswith(f"{RAY}://"):
                from akf.fabric.ray import RayWorker  # noqa: PLC0415

                return RayWorker(backend, arch, "auto" if worker == RAY else worker)
            from akf.fabric.remote import RemoteWorker  # noqa: PLC0415

            return RemoteWorker(worker)

        try:
            with elsewhere(opened, here if worker == LOCAL else None) as there:
                yield there
        except ModuleNotFoundError as error:
            name = (error.name or "").partition(".")[0]
            if name in {"", "akf"}:
                raise
            hint = f"python -m pip install 'ascend-kernel-forge[{RAY if worker.startswith(RAY) else 'client'}]'"
            raise BlockedError.of("AKF-E504", f"{name} is not installed", hint=hint) from error
