"""What a lease is, whoever gives it.

Invariants:
- A lease is of whole devices, all of those asked for or none, and one holder has them.
- Its fencing token is larger than that of every earlier lease of each of its devices. Who acts for a lease shows the
  token, so that work of an earlier holder can be told.
- A lease is checked at use: one that was lost is refused then, whatever its holder believes.
- Release is idempotent and takes the very lease: another owner's, or an earlier one's, releases nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol


class Lease(NamedTuple):
    """Devices that one owner has for itself."""

    devices: tuple[str, ...]
    owner: str
    token: int


class Holding(NamedTuple):
    """A lease with the one who gave it, who knows whether it still holds."""

    leases: Leases
    lease: Lease

    def check(self) -> None:
        """See `Leases.check`."""
        self.leases.check(self.lease)


class Leases(Protocol):
    """Where leases come from."""

    def acquire(self, devices: Sequence[str], owner: str, wait_s: float = 0.0) -> Lease:
        """All these devices, within the time.

        Args:
            devices: names of devices; their order does not matter.
            owner: who asks, in words for people.
            wait_s: how long another holder is waited for.

        Raises:
            UsageError: no device, or a name that is none.
            ConflictError: another holder has one of them; names it.
            StorageError: leases cannot be kept where they should be.
        """

    def check(self, lease: Lease) -> None:
        """Whether the lease still holds.

        Raises:
            ConflictError: it does not.
        """

    def release(self, lease: Lease) -> bool:
        """Give the devices back; tells whether this lease held them until now."""


@contextmanager
def held(leases: Leases, devices: Sequence[str], owner: str, wait_s: float = 0.0) -> Iterator[Holding]:
    """A lease for the time of a block."""
    lease = leases.acquire(devices, owner, wait_s)
    try:
        yield Holding(leases, lease)
    finally:
        leases.release(lease)
