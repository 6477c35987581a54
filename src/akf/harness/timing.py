"""The commands `calibrate` and `measure`: raw nanoseconds of batches, on the parent's clock.

Invariants:
- A pair is two fresh processes, both alive; one runs at a time, the other is stopped.
- A sample is one segment: an odd number of batches of K launches; K and every id are in the plan beforehand.
- A segment that follows one of the other side starts with a batch that is no sample: all samples are taken warm, and
  neither side meets the other's caches more often.
- Every batch has inputs that no batch had before; what came out is verified before its time counts.
- The child's own spans are untrusted: they are compared with the parent's clock and never become a sample.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from . import outcome
from .bench import Bench
from .memory import Arena
from .outcome import Check, ChildFailure, HarnessError
from .plan import planned
from .pool import BAIT_LAUNCHES, Pool
from .process import Child
from .request import Case

ROUND_TRIPS = 301
BATCH_ROUND_TRIPS = 110
SHORTEST_BATCH_NS = 500_000
UNKNOWN_CANDIDATE = 2  # calibrated on the baseline alone: room for a candidate that is faster
FIRST_LAUNCHES = 16
NOISY_SHARE, OWN_SHARE = 0.25, 0.5
MISMATCH_FLOOR_ROUND_TRIPS = 4
EARLY_LEAST, EARLY_SURE, EARLY_SHARE = 30, 5, 0.25
AT_ONCE_LEAST, IN_TIME_SHARE, AT_ONCE_SHARE = 12, 0.75, 0.3
INPUT_FACTOR = 4
CORE_SLACK = 1.1
WARM_AT_FIRST, WARM_PYTHON = 1, 5


@dataclass
class Span:
    """One batch: the parent's time and the child's own; before it, how long the child took to wake and answer.

    Around both: how long it ran in all, and how much processor time its threads had, as the kernel says. `in_time` says
    whether the input that changed while it ran changed well before its launch; None where none changed.
    """

    parent: int
    child: int
    waking: int = 0
    wall: int = 0
    cpu: int = 0
    in_time: Optional[bool] = None

    @property
    def impossible(self) -> bool:
        """The child's span lies inside the parent's, on the same clock: it cannot be longer."""
        return self.child > self.parent

    def disagrees(self, round_trip: int) -> bool:
        """Whether the two differ by more than 1 % of the batch and a floor of a few round trips."""
        return abs(self.parent - self.child) > self.parent // 100 + MISMATCH_FLOOR_ROUND_TRIPS * round_trip


@dataclass
class Tally:
    """What was seen on one side of one run."""

    batches: int = 0
    mismatches: int = 0
    spans: list[Span] = field(default_factory=list)
    rows: dict[str, list[Span]] = field(default_factory=dict)


def round_trip(child: Child) -> int:
    """Median nanoseconds of a command that launches nothing."""
    return int(statistics.median(child.run(0, 0)[0] for _ in range(ROUND_TRIPS)))


def batch(child: Child, arena: Arena, pool: Pool) -> Span:
    """Fill, let run, stop, verify. The child is stopped before and after."""
    pool.fill(arena)
    before = child.cpu_ns()
    start = time.perf_counter_ns()
    child.thaw()
    child.run(0, 0)
    waking = time.perf_counter_ns() - start
    bait = pool.bait(arena)
    parent, own = child.run(0, pool.count, None if bait is None else bait.poll)
    child.freeze()
    wall = time.perf_counter_ns() - start
    pool.verify(arena)
    in_time = None if bait is None else bait.counts
    return Span(parent, own, waking, wall, child.cpu_ns() - before, in_time)


def _middle(values: Sequence[int]) -> tuple[float, float]:
    """Mean of what is left without a tenth at each end, and about how far off it may be by chance."""
    kept = sorted(values)[len(values) // 10 : len(values) - len(values) // 10]
    return statistics.fmean(kept), statistics.pstdev(kept) / len(kept) ** 0.5


def early_work(mine: Sequence[Span], others: Sequence[Span], round_trip: int) -> float:
    """Share of a batch by which one side takes longer to wake than the other; 0 where that may be chance.

    The inputs are there before the clock starts. Whoever works on them at once, say in a signal handler, answers late.
    """
    if min(len(mine), len(others)) < EARLY_LEAST:
        return 0.0
    slow, slow_error = _middle([span.waking for span in mine])
    fast, fast_error = _middle([span.waking for span in others])
    batch_ns, _ = _middle([span.parent for span in others])
    extra = slow - fast
    floor = batch_ns / 100 + MISMATCH_FLOOR_ROUND_TRIPS * round_trip + EARLY_SURE * (slow_error + fast_error)
    return extra / batch_ns if extra > floor else 0.0


def at_once(mine: Sequence[Span], others: Sequence[Span]) -> bool:
    """Whether one side's outputs come too much at once for an input to be changed in time, where the other's do not.

    Who takes its turns lets the same change come in time as often as the other side does.
    """
    seen, known = ([span.in_time for span in spans if span.in_time is not None] for spans in (mine, others))
    if min(len(seen), len(known)) < AT_ONCE_LEAST:
        return False
    return sum(known) >= IN_TIME_SHARE * len(known) and sum(seen) < AT_ONCE_SHARE * len(seen)


def _bind(bench: Bench, child: Child, pool: Pool, role: str) -> None:
    child.thaw()
    child.ask(b"B", bench.binding(role, pool.layout, 1))
    child.freeze()


def _launches_for(case: Case, bench: Bench, nanoseconds: float, trip: int) -> int:
    span = max(BATCH_ROUND_TRIPS * trip, SHORTEST_BATCH_NS)
    if "candidate" not in bench.request.artifacts:
        span *= UNKNOWN_CANDIDATE
    wanted = int(span / nanoseconds) + 1
    budget = int(bench.request.limits["output_bytes_per_row"])
    outputs = sum(operand.nbytes for operand in case.outputs)
    inputs = sum(operand.nbytes for operand in case.inputs)
    return max(2, min(max(wanted, BAIT_LAUNCHES), budget // outputs, INPUT_FACTOR * budget // max(1, inputs)))


def _probe(bench: Bench, role: str, case: Case, count: int) -> tuple[int, float]:
    """Round trip and nanoseconds per launch, in a fresh process."""
    pool = Pool(bench, case, count)
    arena = Arena(pool.layout.size)
    child: Optional[Child] = None
    try:
        child = bench.child(role, arena)
        child.freeze()
        _bind(bench, child, pool, role)
        child.thaw()
        trip = round_trip(child)
        child.freeze()
        spans = [batch(child, arena, pool).parent for _ in range(5)][2:]
        return trip, max(1.0, (statistics.median(spans) - trip) / count)
    finally:
        if child is not None:
            child.close()
        arena.close()


def calibrate(bench: Bench) -> dict[str, Any]:
    """K per row, so that the faster side's batch is at least 100 round trips; bounded by memory."""
    check = Check()
    launches: dict[str, int] = {}
    figures: list[dict[str, Any]] = []
    trips: list[int] = []
    roles = [role for role in ("baseline", "candidate") if role in bench.request.artifacts]
    for row in bench.request.rows:
        count = FIRST_LAUNCHES
        for _ in range(2):
            fastest = float("inf")
            for role in roles:
                try:
                    trip, each = _probe(bench, role, row, count)
                except ChildFailure as error:
                    _blame(check, role, error, row.id)
                    return _calibrated(bench, check, {}, 0, [])
                trips.append(trip)
                fastest = min(fastest, each)
                figures.append({"row": row.id, "role": role, "launches": count, "ns_per_launch": int(each)})
            count = _launches_for(row, bench, fastest, int(statistics.median(trips)))
        launches[row.id] = count
    check.settle()
    return _calibrated(bench, check, launches, int(statistics.median(trips)), figures)


def _calibrated(
    bench: Bench, check: Check, launches: dict[str, int], trip: int, figures: list[dict[str, Any]]
) -> dict[str, Any]:
    facts = {"launches": launches, "round_trip_ns": trip, "rows": [row.id for row in bench.request.rows]}
    return {"checks": {"calibration": check}, "facts": facts, "side": {"calibration": figures}}


def _blame(check: Check, role: str, error: ChildFailure, where: str) -> None:
    if role == "candidate":
        check.add(error.code, where=where, detail=error.detail)
    else:
        check.add(outcome.BASELINE_FAILED, outcome.BLOCKED, where=where, detail=str(error))


class _Run:
    """One A/A or A/B run."""

    def __init__(self, bench: Bench, name: str, pools: dict[str, Pool]) -> None:
        plan = bench.request.plan
        if plan is None:
            raise HarnessError("REQUEST_INVALID", "measure needs /plan", 2)
        self._bench = bench
        self._plan = plan
        self._name = name
        self._pools = pools
        self._roles = {"A": "baseline", "B": "candidate" if name == "ab" else "baseline"}
        self._ran = ""  # the side of the segment before
        self.check = Check()
        self.samples: list[dict[str, Any]] = []
        self.tallies = {"A": Tally(), "B": Tally()}

    def take(self) -> None:
        """Every planned sample, pair by pair; a failure ends the run and names its side."""
        samples = planned([row.id for row in self._bench.request.rows], self._plan.pairs, self._plan.blocks)
        for pair in range(self._plan.pairs):
            if not self._pair([sample for sample in samples if sample["pair"] == pair]):
                break
        self._settle(len(samples))

    def _pair(self, samples: Sequence[dict[str, Any]]) -> bool:
        size = max(pool.layout.size for pool in self._pools.values())
        arenas = {side: Arena(size) for side in ("A", "B")}
        children: dict[str, Child] = {}
        self._ran = ""
        side = "A"
        where = samples[0]["id"]
        try:
            for side in samples[0]["side"], "B" if samples[0]["side"] == "A" else "A":
                children[side] = self._bench.child(self._roles[side], arenas[side])
                children[side].freeze()
            bound = {"A": "", "B": ""}
            for sample in samples:
                side, where = sample["side"], sample["id"]
                self._segment(children[side], arenas[side], sample, bound)
        except ChildFailure as error:
            _blame(self.check, self._roles[side], error, where)
            return False
        finally:
            for child in children.values():
                child.close()
            for arena in arenas.values():
                arena.close()
        return True

    def _segment(self, child: Child, arena: Arena, sample: dict[str, Any], bound: dict[str, str]) -> None:
        side = sample["side"]
        role, pool = self._roles[side], self._pools[sample["row"]]
        warm = 0
        if bound[side] != sample["row"]:
            _bind(self._bench, child, pool, role)
            bound[side] = sample["row"]
            warm = WARM_PYTHON if self._bench.is_python(role) else WARM_AT_FIRST
        elif side != self._ran or self._bench.is_python(role):
            warm = WARM_AT_FIRST  # the other side's data lie in the caches, or an interpreter's own
        self._ran = side
        for _ in range(warm):
            batch(child, arena, pool)  # first touches: verified, never a sample
        spans = [batch(child, arena, pool) for _ in range(self._plan.batches)]
        self.samples.append({**sample, "values": [span.parent for span in spans]})
        tally = self.tallies[side]
        tally.batches += len(spans)
        tally.mismatches += sum(span.disagrees(self._plan.round_trip_ns) for span in spans)
        tally.spans += spans
        tally.rows.setdefault(sample["row"], []).extend(spans)

    def _settle(self, planned_count: int) -> None:
        if len(self.samples) == planned_count:
            self._settle_clocks()
        self.check.facts.update(
            {
                "planned": planned_count,
                "taken": len(self.samples),
                "batches": {side: tally.batches for side, tally in self.tallies.items()},
                "shortest_batch_ns": {
                    side: min((span.parent for span in tally.spans), default=0) for side, tally in self.tallies.items()
                },
                "in_time": {
                    side: [
                        sum(span.in_time is True for span in tally.spans),
                        sum(span.in_time is not None for span in tally.spans),
                    ]
                    for side, tally in self.tallies.items()
                },
                "folded": sorted(row for row, pool in self._pools.items() if pool.folded),
                "mismatches": {side: tally.mismatches for side, tally in self.tallies.items()},
            }
        )
        self.check.settle()

    def _settle_clocks(self) -> None:
        """A busy machine delays both sides; only what the candidate alone shows, in most batches, is its own."""
        share = {side: tally.mismatches / max(1, tally.batches) for side, tally in self.tallies.items()}
        impossible = self._name == "ab" and any(span.impossible for span in self.tallies["B"].spans)
        if impossible:
            self.check.add(outcome.TIMING_MISMATCH, detail="the child's span is longer than the one that holds it")
        elif share["A"] <= NOISY_SHARE and share["B"] > OWN_SHARE and self._name == "ab":
            self.check.add(outcome.TIMING_MISMATCH, side="B")
        elif max(share.values()) > NOISY_SHARE:
            side = "A" if share["A"] > NOISY_SHARE else "B"
            self.check.add(outcome.TIMING_MISMATCH, outcome.INCOMPARABLE, side=side)
        self._settle_cores()
        for row in sorted(self.tallies["A"].rows) if self._name == "ab" else ():
            mine, others = self.tallies["B"].rows[row], self.tallies["A"].rows[row]
            if at_once(mine, others):
                self.check.add(outcome.RESULT_REPLAY, row=row, detail="the outputs of a timed batch come at once")
            early = early_work(mine, others, self._plan.round_trip_ns)
            detail = f"{early:.0%} of a batch passes before the clock starts, beyond the baseline's"
            if early > EARLY_SHARE:
                self.check.add(outcome.ASYNCHRONOUS_WORK, row=row, detail=detail)
            elif early:
                self.check.add(outcome.TIMING_MISMATCH, outcome.INCOMPARABLE, row=row, side="B", detail=detail)

    def _settle_cores(self) -> None:
        """A child has one core: its threads cannot have had more processor time than went by."""
        if self._bench.confinement.cpu is None:
            return
        for side, tally in self.tallies.items():
            wall, cpu = sum(span.wall for span in tally.spans), sum(span.cpu for span in tally.spans)
            if cpu > wall * CORE_SLACK and self._roles[side] == "candidate":
                self.check.add(outcome.CORES_EXCEEDED, side=side, detail=f"{cpu / wall:.2f} cores were used, one given")
            elif cpu > wall * CORE_SLACK:
                self.check.add(outcome.CORES_EXCEEDED, outcome.INCOMPARABLE, side=side)

    def diagnostics(self) -> dict[str, Any]:
        """How far the child's own spans are from the parent's clock: not evidence."""
        return {
            side: {
                "median_gap_ns": int(statistics.median([span.parent - span.child for span in tally.spans] or [0])),
                "median_waking_ns": int(statistics.median([span.waking for span in tally.spans] or [0])),
                "largest_gap_ns": max([abs(span.parent - span.child) for span in tally.spans] or [0]),
            }
            for side, tally in self.tallies.items()
        }


def measure(bench: Bench) -> dict[str, Any]:
    """Take the planned samples of A/A, A/B or both."""
    plan = bench.request.plan
    if plan is None:
        raise HarnessError("REQUEST_INVALID", "measure needs /plan", 2)
    if "ab" in plan.runs and "candidate" not in bench.request.artifacts:
        raise HarnessError("REQUEST_INVALID", "an A/B run needs the artifact candidate", 2)
    pools = {row.id: Pool(bench, row, plan.launches[row.id]) for row in bench.request.rows}
    checks: dict[str, Check] = {}
    samples: dict[str, Any] = {}
    side: dict[str, Any] = {}
    for name in plan.runs:
        clock = time.perf_counter()
        run = _Run(bench, name, pools)
        run.take()
        checks[name], samples[name] = run.check, run.samples
        side[name] = {"wall_s": round(time.perf_counter() - clock, 3), "spans": run.diagnostics()}
    facts = {"launches": plan.launches, "round_trip_ns": plan.round_trip_ns}
    return {"checks": checks, "samples": samples, "facts": facts, "side": side}
