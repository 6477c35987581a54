"""What was planned, what was measured, and whether the second is all of the first.

Invariants:
- A design has one sample for each row, pair, block and segment; its planned ids are as many, each of them
  once.
- ABBA: segments 0 to 3 of a block are A, B, B, A. Legs: block 0, segments 0 and 1 are A, B in even pairs and
  B, A in odd ones. A sample on the other side than its place says is misplaced.
- Nothing is dropped or mended: one sample too few, too many or out of place, and there is no figure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from akf.stats.signed_rank import MAX_PAIRS, exact_share

Side = Literal["A", "B"]
Kind = Literal["abba", "legs"]
Better = Literal["lower", "higher"]
Statistic = Literal["median"] | tuple[Literal["quantile"], float]

_SIDES: dict[str, tuple[str, ...]] = {"abba": ("ABBA", "ABBA"), "legs": ("AB", "BA")}
_LARGEST_VALUE = 2**53 - 1
_LARGEST_WEIGHT = 2.0**300
"""Weights within [1/this, this] keep products of weighted totals finite."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The raw values of one segment or leg.

    Attributes:
        id: the planned id.
        row: row of the design (a shape, a request class).
        pair: number of the pair, from 0.
        block: number of the block within its pair, from 0; 0 for legs.
        segment: position within the block (0 to 3), or of the leg within its pair (0 or 1).
        side: A for the baseline, B for the candidate.
        values: raw values as integers in the metric's unit (nanoseconds for times), each from 1 to 2^53 - 1.
    """

    id: str
    row: str
    pair: int
    block: int
    segment: int
    side: Side
    values: tuple[int, ...]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Sample":
        """Build a sample from a record with the same fields, such as a validated line of a sample file."""
        return cls(
            id=record["id"],
            row=record["row"],
            pair=record["pair"],
            block=record["block"],
            segment=record["segment"],
            side=record["side"],
            values=tuple(record["values"]),
        )


@dataclass(frozen=True, slots=True)
class Design:
    """How a measurement was planned and is to be read.

    Attributes:
        kind: `abba` (both processes live, blocks of four segments) or `legs` (a pair is two adjacent legs).
        rows: weight of each row in the total (no unit, above 0).
        pairs: number of pairs.
        planned: the ids of all planned samples.
        blocks: blocks a pair, odd; 1 for legs.
        better: whether `lower` or `higher` values are better.
        statistic: what summarises a segment or leg: `median`, or `("quantile", q)`.
        confidence: two-sided confidence of the intervals.

    Raises:
        ValueError: when the parts do not make a design.
    """

    kind: Kind
    rows: Mapping[str, float]
    pairs: int
    planned: tuple[str, ...]
    blocks: int = 1
    better: Better = "lower"
    statistic: Statistic = "median"
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.kind not in _SIDES or self.better not in {"lower", "higher"}:
            raise ValueError(f"a design cannot be of kind {self.kind!r} with {self.better!r} better")
        if not 1 <= self.pairs <= MAX_PAIRS:
            raise ValueError(f"pairs must lie between 1 and {MAX_PAIRS}, not {self.pairs}")
        if self.blocks < 1 or self.blocks % 2 == 0 or (self.kind == "legs" and self.blocks != 1):
            raise ValueError(f"blocks must be odd, and 1 for legs, not {self.blocks}")
        if self.statistic != "median":
            if self.statistic[0] != "quantile":
                raise ValueError(f"the statistic must be median or a quantile, not {self.statistic[0]!r}")
            exact_share(self.statistic[1], "q")
        exact_share(self.confidence)
        for row, weight in self.rows.items():
            if not 1 / _LARGEST_WEIGHT <= weight <= _LARGEST_WEIGHT:
                raise ValueError(f"the weight of row {row!r} must be finite and above 0, not {weight}")
        places = len(self.rows) * self.pairs * self.blocks * self.segments
        if not places or not len(self.planned) == len(set(self.planned)) == places:
            raise ValueError(f"the design has {places} places, the plan {len(set(self.planned))} different ids")

    @property
    def segments(self) -> int:
        """Segments a block (4), or legs a pair (2)."""
        return len(_SIDES[self.kind][0])

    def side(self, pair: int, segment: int) -> str:
        """Return the side that is measured in this segment of a block of this pair."""
        return _SIDES[self.kind][pair % 2][segment]

    def place(self, sample: Sample) -> int | None:
        """Return the sample's position among those of its row, in order of time, or None when it has none."""
        if not (
            sample.row in self.rows
            and 0 <= sample.pair < self.pairs
            and 0 <= sample.block < self.blocks
            and 0 <= sample.segment < self.segments
            and sample.side == self.side(sample.pair, sample.segment)
        ):
            return None
        return (sample.pair * self.blocks + sample.block) * self.segments + sample.segment


@dataclass(frozen=True, slots=True)
class Incomplete:
    """The samples are not the planned ones; all ids in rising order.

    Attributes:
        missing: planned, not there.
        unplanned: there, not planned.
        duplicated: there more than once.
        invalid: there once, but in no place of the design, in one with another sample, on the wrong side, or
            with values that are none.
    """

    missing: tuple[str, ...]
    unplanned: tuple[str, ...]
    duplicated: tuple[str, ...]
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TooFewSamples:
    """A quantile has too few samples behind it; the arm with the fewest is named.

    Attributes:
        needed: samples an arm needs, 10 / (1 - q).
        found: samples that this arm has, pooled over its segments or legs.
        row: the row.
        side: the arm.
    """

    needed: int
    found: int
    row: str
    side: str


def values_hold(values: tuple[int, ...]) -> bool:
    """Say whether there are values, all of them integers from 1 to 2^53 - 1."""
    return (
        len(values) > 0
        and all(type(value) is int for value in values)
        and min(values) > 0
        and max(values) <= _LARGEST_VALUE
    )
