"""What a report says, apart from how it is drawn.

Invariants:
- Every number comes with its unit, as a `Quantity` or in its field's name; integers stay integers.
- A block has one meaning; which one, its `block` says. Unknown blocks and fields are refused.
- What a model allows can be drawn: tables are rectangular, shares lie in [0, 1], intervals are in order, bounds finite.
- Bytes that are no text, as a path may hold them, are written as escapes.
- `from_json(to_json(report)) == report`; the bytes are canonical.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from akf.contracts.canonical import canonical_bytes
from akf.contracts.loader import parse
from akf.contracts.models.base import Count, Positive, Value
from akf.contracts.pointer import pointer_to
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import show

VERSION = 1
MOST_RANKS = 256
MOST_STEPS = 512
"""As many steps as a Capture keeps apart."""
MOST_PAIRS = 500
MOST_BINS = 128
LONGEST_TEXT = 65_536

Unit = Literal["count", "share", "gain", "times", "ns", "ms", "s", "mhz", "bytes", "tokens", "per_s"]
Tone = Literal["good", "warn", "bad", "info", "plain"]
Number = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)] | Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)] | Annotated[int, Field(ge=0, le=1)]
Bound = Annotated[float, Field(ge=1, le=1e9)] | Annotated[int, Field(ge=1, le=10**9)]


def _encodable(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


Words = Annotated[str, BeforeValidator(_encodable), Field(max_length=LONGEST_TEXT)]


class Quantity(Value):
    """A number with its unit, and its interval where there is one."""

    value: Number
    unit: Unit
    low: Number | None = None
    high: Number | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("the interval ends before it begins")
        return self


class Mark(Value):
    """A word with a colour and a sign: a verdict, a Task type, a state."""

    word: Words
    tone: Tone = "plain"


Cell = Words | Quantity | Mark | None


class Prose(Value):
    """Text: an empty line parts paragraphs, `backticks` mark code."""

    block: Literal["prose"] = "prose"
    text: Words


class Verdict(Value):
    """The answer, in a word and a sentence."""

    block: Literal["verdict"] = "verdict"
    mark: Mark
    sentence: Words
    rule: Words | None = None


class Fact(Value):
    """One figure or fact with its name."""

    name: Words
    value: Cell
    note: Words | None = None


class Facts(Value):
    """Facts, each for itself."""

    block: Literal["facts"] = "facts"
    facts: tuple[Fact, ...]


class Table(Value):
    """Rows of cells; the first column names the row."""

    block: Literal["table"] = "table"
    caption: Words
    columns: Annotated[tuple[Words, ...], Field(min_length=1)]
    rows: tuple[tuple[Cell, ...], ...]

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row has a cell for every column")
        return self


class Bar(Value):
    """A share of the whole, with its interval where it has one."""

    name: Words
    detail: Words | None = None
    share_ratio: Share
    low_ratio: Share | None = None
    high_ratio: Share | None = None
    mark: Mark | None = None
    muted: bool = False

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if (self.low_ratio is None) != (self.high_ratio is None):
            raise ValueError("an interval has two ends")
        if self.low_ratio is not None and self.high_ratio is not None and self.low_ratio > self.high_ratio:
            raise ValueError("the interval ends before it begins")
        return self


class Shares(Value):
    """Bars over one scale."""

    block: Literal["shares"] = "shares"
    caption: Words
    whole: Words
    bars: Annotated[tuple[Bar, ...], Field(min_length=1)]


class Split(Value):
    """What time of a rank is made of."""

    computing_ns: Count
    communication_ns: Count
    waiting_ns: Count
    host_gap_ns: Count
    idle_ns: Count

    @property
    def lines(self) -> tuple[tuple[str, str, int], ...]:
        """The five lines: their class, name, and time in nanoseconds."""
        return (
            ("computing", "computing", self.computing_ns),
            ("communication", "communication", self.communication_ns),
            ("waiting", "waiting for a slower rank", self.waiting_ns),
            ("host-gap", "host gap", self.host_gap_ns),
            ("idle", "idle", self.idle_ns),
        )


class RankTime(Split):
    """How one rank spent the steps that were measured: the five lines of all steps, and of each where known."""

    rank: Count
    steps: Positive
    steps_ns: Annotated[tuple[Count, ...], Field(max_length=MOST_STEPS)] = ()
    splits: Annotated[tuple[Split, ...], Field(max_length=MOST_STEPS)] = ()

    @model_validator(mode="after")
    def _split(self) -> Self:
        if self.splits and len(self.splits) != len(self.steps_ns):
            raise ValueError("every step has a split, or none has")
        return self


class Timeline(Value):
    """What a step is made of, and how long each step was, by rank."""

    block: Literal["timeline"] = "timeline"
    caption: Words
    ranks: Annotated[tuple[RankTime, ...], Field(min_length=1, max_length=MOST_RANKS)]


class Curve(Value):
    """Speed-up of the whole over that of one part with share h: 1 / ((1 - h) + h / s)."""

    name: Words
    share_ratio: Share
    low_ratio: Share
    high_ratio: Share
    ceiling_ratio: Bound | None = None
    needed_ratio: Bound | None = None
    mark: Mark | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low_ratio <= self.share_ratio <= self.high_ratio:
            raise ValueError("the share lies in its interval")
        return self


class Curves(Value):
    """One small chart a part, all over one scale, with the line that is to be reached."""

    block: Literal["curves"] = "curves"
    caption: Words
    target_ratio: Bound | None = None
    curves: Annotated[tuple[Curve, ...], Field(min_length=1)]


class Comparison(Value):
    """What pairs of two sides say: the gain of every pair in the order of measurement, and the interval of all.

    `aa` and `aa_pair_gains` are the same of the baseline against itself; `limit` is what the interval has to exceed.
    """

    name: Words
    detail: Words | None = None
    gain: Quantity
    pair_gains: Annotated[tuple[Number, ...], Field(min_length=1, max_length=MOST_PAIRS)]
    aa: Quantity | None = None
    aa_pair_gains: Annotated[tuple[Number, ...], Field(max_length=MOST_PAIRS)] = ()
    limit: Quantity | None = None
    limit_name: Words = "limit"
    mark: Mark | None = None


class Comparisons(Value):
    """Comparisons over one scale of gains, with the noise limit around 0."""

    block: Literal["comparisons"] = "comparisons"
    caption: Words
    noise_limit: Quantity | None = None
    rows: Annotated[tuple[Comparison, ...], Field(min_length=1)]


class Spread(Value):
    """How often each value was measured on two sides: counts over equal bins from `least` to `most`.

    Values outside stand in the first and the last bin; `note` says so.
    """

    name: Words
    least: Quantity
    most: Quantity
    first_counts: Annotated[tuple[Count, ...], Field(min_length=1, max_length=MOST_BINS)]
    second_counts: Annotated[tuple[Count, ...], Field(min_length=1, max_length=MOST_BINS)]
    first: Quantity
    second: Quantity
    note: Words | None = None

    @model_validator(mode="after")
    def _binned(self) -> Self:
        if len(self.first_counts) != len(self.second_counts):
            raise ValueError("both sides have the same bins")
        if self.least.value > self.most.value:
            raise ValueError("the bins end before they begin")
        return self


class Spreads(Value):
    """Distributions of single values, one small chart a row; `sides` names the upper and the lower half."""

    block: Literal["spreads"] = "spreads"
    caption: Words
    sides: tuple[Words, Words]
    rows: Annotated[tuple[Spread, ...], Field(min_length=1)]


class Item(Value):
    """Something that is wrong, missing or to be known, and what to do about it."""

    text: Words
    code: Words | None = None
    remedy: Words | None = None


class Items(Value):
    """A list of them."""

    block: Literal["items"] = "items"
    tone: Tone = "plain"
    items: tuple[Item, ...]


class Command(Value):
    """A command line to type, and what it is for."""

    block: Literal["command"] = "command"
    command: Words
    purpose: Words | None = None


Block = Annotated[
    Prose | Verdict | Facts | Table | Shares | Timeline | Curves | Comparisons | Spreads | Items | Command,
    Field(discriminator="block"),
]


class Section(Value):
    """Blocks under a title."""

    title: Annotated[Words, Field(min_length=1)]
    blocks: tuple[Block, ...]


class Report(Value):
    """A whole report."""

    report_version: Annotated[int, Field(ge=VERSION, le=VERSION)] = VERSION
    title: Annotated[Words, Field(min_length=1)]
    subtitle: Words | None = None
    sections: tuple[Section, ...]


def to_json(report: Report) -> bytes:
    """The canonical bytes of a report."""
    return canonical_bytes(report.model_dump(mode="json"))


def from_json(data: bytes, file: str) -> Report:
    """Read a report again.

    Raises:
        InvalidError: The bytes are no report of a version that is known; with every problem.
    """
    document = parse(data, file)
    try:
        return Report.model_validate(document.value)
    except ValidationError as error:
        raise InvalidError([_problem(each, file) for each in error.errors(include_url=False)]) from None


def _problem(error: Any, file: str) -> Problem:
    pointer = pointer_to(error["loc"])
    hint = f"this version draws reports of version {VERSION}" if error["loc"] == ("report_version",) else None
    found = error["input"] if isinstance(error["input"], str | int | float | bool) else None
    text = f"not a report: {error['msg']}" if not pointer else f"{show(pointer)}: {error['msg']}"
    return Problem("AKF-F440", text, file, pointer, found=found, hint=hint)
