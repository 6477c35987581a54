"""Whose turn it is: the tenant with the smallest virtual runtime.

Invariants:
- Virtual runtime grows by time used divided by weight, in whole numbers: 2^30 units are one nanosecond at nice 0. The
  smallest runs next; of equals, the one that has waited longest.
- A turn is charged when it is taken, with what the tenant's last turn used, and corrected when it is settled. So a
  tenant cannot take every worker before its first turn ends. `used_ns` is any time that the tenant had for itself: of a
  worker, of a device, or of both.
- The queue has a virtual time of its own, the line between the two halves of an even race: it is never below the
  smallest virtual runtime that had a turn, grows by time used divided by the weight of all who are busy, and never goes
  back. Who is new starts there. So newcomers start behind whoever has waited, and without end they starve nobody.
- Who comes back from sleep has the virtual runtime that it left with, but at least the queue's virtual time less one
  latency period (the period over the weight of all who are busy): sleep is credited with one period and no more.
- A tenant that neither asks nor has a turn is forgotten in time, once it is not ahead of the queue's virtual time: it
  comes back as new, and has lost no more than the credit for its sleep. So as many are kept as are needed, not all.
- Turns are never interrupted. The period is therefore stretched, as CFS does for its least granularity: it is the least
  time in which every busy tenant's part by weight holds one of its longest turns, and never below the latency. Nobody
  who waits does so longer than the stretched period times the number of busy tenants, and the longest turn.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from akf.fair.weights import UNIT, weight

LATENCY_NS = 6_000_000
"""The default latency period: that of CFS on one core."""
_SCALE = UNIT << 20
_FEW = 256


class Turn(NamedTuple):
    """One turn of a tenant, with what it was charged in advance, at which weight."""

    tenant: str
    charged_ns: int
    weight: int


class _Tenant:
    __slots__ = ("asks", "last_ns", "longest_ns", "nice", "runtime", "since", "taken", "weight")

    def __init__(self, runtime: int, of_weight: int, latency_ns: int) -> None:
        self.runtime = runtime
        self.weight = of_weight
        self.last_ns = latency_ns
        self.longest_ns = 0
        self.nice = 0
        self.asks = False
        self.taken = 0
        self.since = 0


class FairShare:
    """Tenants, what each has used, and who asks for a turn."""

    def __init__(self, latency_ns: int = LATENCY_NS) -> None:
        if latency_ns <= 0:
            raise ValueError("a latency period takes time")
        self._latency_ns = latency_ns
        self._tenants: dict[str, _Tenant] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._lone: str | None = None
        self._asking = 0
        self._now = 0
        self._most = _FEW
        self._weight = 0
        self._count = 0

    def wake(self, tenant: str, nice: int = 0) -> None:
        """The tenant asks for turns, with this nice value from now on.

        Raises:
            UsageError: see `weight`.
        """
        found = self._tenants.get(tenant)
        if found is not None and found.asks and found.nice == nice:
            return
        of_weight = weight(nice)
        if found is not None and (found.asks or found.taken):
            self._weight += of_weight - found.weight
            found.weight = of_weight
            if found.asks:
                found.nice = nice
                return
        else:
            self._weight += of_weight
            if found is None:
                self._sweep()
                found = self._tenants[tenant] = _Tenant(self._now, of_weight, self._latency_ns)
            found.weight = of_weight
            found.runtime = max(found.runtime, self._now - self._latency_ns * _SCALE // self._weight)
        found.asks = True
        found.nice = nice
        self._asking += 1
        if self._asking == 1:
            self._lone = tenant
        elif self._lone is not None:
            lone, self._lone = self._lone, None
            heappush(self._heap, (self._tenants[lone].runtime, self._tenants[lone].since, lone))
        self._wait(tenant, found)

    def sleep(self, tenant: str) -> None:
        """The tenant asks for no more turns; those that it has are still to be settled."""
        found = self._tenants.get(tenant)
        if found is not None and found.asks:
            found.asks = False
            self._asking -= 1
            if self._lone == tenant:
                self._lone = None
            self._rest(found)

    def take(self) -> Turn | None:
        """The next turn, of the tenant whose virtual runtime is smallest; none when nobody asks."""
        if self._lone is not None:
            return self._turn(self._lone, self._tenants[self._lone])
        while self._heap:
            _, since, tenant = heappop(self._heap)
            found = self._tenants.get(tenant)
            if found is not None and found.asks and found.since == since:
                return self._turn(tenant, found)
            # else: of an earlier state of the tenant
        return None

    def settle(self, turn: Turn, used_ns: int) -> None:
        """The turn is over, and took this long."""
        found = self._tenants.get(turn.tenant)
        if found is None or not found.taken:
            raise ValueError("the turn was not taken here, or settled already")
        if used_ns < 0:
            raise ValueError("a turn takes time")
        found.runtime += used_ns * _SCALE // turn.weight - turn.charged_ns * _SCALE // turn.weight
        self._now += used_ns * _SCALE // self._weight
        found.last_ns = used_ns
        found.longest_ns = max(found.longest_ns, used_ns)
        found.taken -= 1
        if found.asks:
            self._wait(turn.tenant, found)
        else:
            self._rest(found)

    def forget(self, tenant: str) -> None:
        """Keep nothing of a tenant that neither asks nor has a turn: if it comes back, it is new."""
        found = self._tenants.get(tenant)
        if found is not None and not found.asks and not found.taken:
            del self._tenants[tenant]

    def __len__(self) -> int:
        return len(self._tenants)

    def runtime_ns(self, tenant: str) -> int:
        """The tenant's virtual runtime, as nanoseconds at nice 0."""
        return self._tenants[tenant].runtime >> 20

    def period_ns(self) -> int:
        """The latency period now, stretched so that every busy tenant's part of it holds its longest turn."""
        busy = [each for each in self._tenants.values() if each.asks or each.taken]
        return max([self._latency_ns, *(-(-each.longest_ns * self._weight // each.weight) for each in busy)])

    def _turn(self, tenant: str, found: _Tenant) -> Turn:
        self._now = max(self._now, found.runtime)
        charged, of_weight = found.last_ns, found.weight
        found.taken += 1
        found.runtime += charged * _SCALE // of_weight
        self._wait(tenant, found)
        return Turn(tenant, charged, of_weight)

    def _wait(self, tenant: str, found: _Tenant) -> None:
        """Its place among those who ask; one that is alone needs none."""
        self._count += 1
        found.since = self._count
        if self._lone is not None:
            return
        heappush(self._heap, (found.runtime, found.since, tenant))
        if len(self._heap) > 2 * len(self._tenants) + 64:
            asking = self._tenants.items()
            self._heap = sorted((each.runtime, each.since, name) for name, each in asking if each.asks)

    def _sweep(self) -> None:
        """Forget who is idle and not ahead, whenever there are twice as many tenants as were left the last time."""
        if len(self._tenants) < self._most:
            return
        kept = {
            name: each for name, each in self._tenants.items() if each.asks or each.taken or each.runtime > self._now
        }
        self._tenants = kept
        self._most = 2 * len(kept) + _FEW

    def _rest(self, found: _Tenant) -> None:
        if not found.taken:
            self._weight -= found.weight
