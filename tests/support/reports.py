"""Reports to draw: one that has everything, strategies that make any, and a reader of pages."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TypeVar

from hypothesis import strategies as st

from akf.report import model as m

T = TypeVar("T")
VOID = {"meta", "br", "col", "link"}


def rank(number: int) -> m.RankTime:
    """A rank whose lines and steps differ from every other's."""
    steps = tuple(4_200_000 + 7_919 * number + 1_013 * step for step in range(12))
    computing, communication, waiting, gap = 29_000_000 + number, 8_000_000 - number, 1_500_000, 5_000_000
    idle = sum(steps) - computing - communication - waiting - gap
    return m.RankTime(rank=number, steps=12, computing_ns=computing, communication_ns=communication, waiting_ns=waiting,
                      host_gap_ns=gap, idle_ns=idle, steps_ns=steps,
                      splits=tuple(split(time) for time in steps))  # fmt: skip


def split(step_ns: int) -> m.Split:
    """A step that is half computing."""
    computing, communication, waiting, gap = step_ns // 2, step_ns // 5, step_ns // 9, step_ns // 11
    idle = step_ns - computing - communication - waiting - gap
    return m.Split(computing_ns=computing, communication_ns=communication, waiting_ns=waiting, host_gap_ns=gap,
                   idle_ns=idle)  # fmt: skip


def whole() -> m.Report:
    """Every block, every optional field, and every unit."""
    units = (("count", 1152), ("times", 1.0587), ("ns", 28_441_000), ("ms", 12.75), ("s", 46_800), ("mhz", 1800),
             ("bytes", 49_152), ("tokens", 2048), ("per_s", 4.25))  # fmt: skip
    facts = tuple(m.Fact(name=unit, value=m.Quantity(value=value, unit=unit), note="stated") for unit, value in units)  # type: ignore[arg-type]
    share = m.Quantity(value=0.05543, unit="share", low=0.0541, high=0.0569)
    good, plain = m.Mark(word="kernel", tone="good"), m.Mark(word="no-go")
    return m.Report(
        title="Survey of a decode profile",
        subtitle="Synthetic",
        sections=(
            m.Section(title="Answer", blocks=(
                m.Verdict(mark=good, sentence="Open a Task for `rms-norm`.", rule="ceiling 1.135 exceeds 1.05"),
                m.Facts(facts=facts),
            )),
            m.Section(title="Time", blocks=(
                m.Timeline(caption="Steps", ranks=(rank(0), rank(1))),
                m.Shares(caption="Hotspots", whole="step time", bars=(
                    m.Bar(name="qkv-proj", detail="MatMulV2", share_ratio=0.2131, low_ratio=0.2087, high_ratio=0.2169,
                          mark=plain),
                    m.Bar(name="rms-norm", share_ratio=0.119, low_ratio=0.1151, high_ratio=0.1243, mark=good),
                    m.Bar(name="everything else", share_ratio=0.04, muted=True),
                )),
            )),
            m.Section(title="Bounds", blocks=(
                m.Curves(caption="Amdahl", target_ratio=1.05, curves=(
                    m.Curve(name="qkv-proj", share_ratio=0.2131, low_ratio=0.2087, high_ratio=0.2169,
                            ceiling_ratio=1.2708, needed_ratio=1.288, mark=plain),
                    m.Curve(name="rope", share_ratio=0.021, low_ratio=0.0199, high_ratio=0.0231, ceiling_ratio=1.02145),
                )),
                m.Table(caption="All", columns=("callsite", "share", "answer", "note"),
                        rows=(("rms-norm", share, good, None), ("rope", share, plain, "fused"))),
                m.Comparisons(caption="Pairs", noise_limit=m.Quantity(value=0.015, unit="share"), rows=(
                    m.Comparison(name="op-latency", detail="correlate by -0.19",
                                 gain=m.Quantity(value=0.1213, unit="gain", low=0.1088, high=0.1402),
                                 pair_gains=(0.1188, 0.1277, 0.1402, -0.0013), aa_pair_gains=(0.0021, -0.0017),
                                 aa=m.Quantity(value=0.0004, unit="gain", low=-0.0031, high=0.0047),
                                 limit=m.Quantity(value=0.05, unit="gain"), limit_name="threshold", mark=good),
                    m.Comparison(name="decode-1", gain=m.Quantity(value=-0.0811, unit="gain"), pair_gains=(-0.0811,)),
                )),
                m.Spreads(caption="Values", sides=("baseline", "candidate"), rows=(
                    m.Spread(name="decode-8", least=m.Quantity(value=1805, unit="ns"),
                             most=m.Quantity(value=7094, unit="ns"), first_counts=(0, 2, 41, 7),
                             second_counts=(33, 17, 0, 0), first=m.Quantity(value=6050, unit="ns"),
                             second=m.Quantity(value=2070, unit="ns"), note="256 launches a batch"),
                )),
                m.Items(tone="warn", items=(m.Item(code="AKF-F440", text="No trace.", remedy="Add a `trace`."),)),
                m.Command(command="akf triage campaign.json", purpose="Next:"),
                m.Prose(text="One.\n\nTwo with `code`."),
            )),
        ),
    )  # fmt: skip


HOSTILE = st.one_of(
    st.sampled_from([
        "<script>alert(1)</script>", "</style><img src=x onerror=alert(1)>", "\"' onload=alert(1) x='", "&lt;b&gt;",
        "]]><!--", "--><svg/onload=alert(1)>", "\x00\x1b[31m\x7f", "\u202egnp.exe", "a\ud800b", "`<b>`",
        "\ufeff", "javascript:x",
    ]),
    st.text(st.characters(codec=None), max_size=24),
)  # fmt: skip
UNITS: st.SearchStrategy[m.Unit] = st.sampled_from(
    ["count", "share", "gain", "times", "ns", "ms", "s", "mhz", "bytes", "tokens", "per_s"]
)
TONES = st.sampled_from(["good", "warn", "bad", "info", "plain"])
NUMBERS = st.one_of(st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e15, 1e15))
RATIO = st.floats(0, 1)
MARKS = st.builds(m.Mark, word=HOSTILE, tone=TONES)


@st.composite
def quantities(draw: st.DrawFn) -> m.Quantity:
    """A number of any unit, with an interval or without."""
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    ends = {"low": low, "high": high} if draw(st.booleans()) else {}
    return m.Quantity(value=draw(NUMBERS), unit=draw(UNITS), **ends)


CELLS = st.one_of(HOSTILE, quantities(), MARKS, st.none())


@st.composite
def tables(draw: st.DrawFn) -> m.Table:
    """A rectangular table."""
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[CELLS] * width), max_size=3))
    return m.Table(caption=draw(HOSTILE), columns=tuple(draw(HOSTILE) for _ in range(width)), rows=tuple(rows))


@st.composite
def bars(draw: st.DrawFn) -> m.Bar:
    """A share, with an interval or without."""
    low, share, high = sorted(draw(st.tuples(RATIO, RATIO, RATIO)))
    one = m.Bar(name=draw(HOSTILE), share_ratio=share, mark=draw(st.none() | MARKS), muted=draw(st.booleans()))
    return one.model_copy(update={"low_ratio": low, "high_ratio": high}) if draw(st.booleans()) else one


@st.composite
def curves(draw: st.DrawFn) -> m.Curve:
    """A share in its interval, with what follows from it or without."""
    low, share, high = sorted(draw(st.tuples(RATIO, RATIO, RATIO)))
    bound = st.none() | st.floats(1, 1e9)
    return m.Curve(name=draw(HOSTILE), share_ratio=share, low_ratio=low, high_ratio=high, ceiling_ratio=draw(bound),
                   needed_ratio=draw(bound), mark=draw(st.none() | MARKS))  # fmt: skip


GAINS = st.floats(-1, 1e6)


@st.composite
def comparisons(draw: st.DrawFn) -> m.Comparison:
    """Pairs, with an interval, A/A and a limit or without."""
    low, gain, high = sorted(draw(st.tuples(GAINS, GAINS, GAINS)))
    ends = {"low": low, "high": high} if draw(st.booleans()) else {}
    return m.Comparison(
        name=draw(HOSTILE), detail=draw(st.none() | HOSTILE), gain=m.Quantity(value=gain, unit="gain", **ends),
        pair_gains=tuple(draw(st.lists(GAINS, min_size=1, max_size=4))), aa=draw(st.none() | quantities()),
        aa_pair_gains=tuple(draw(st.lists(GAINS, max_size=3))), limit=draw(st.none() | quantities()),
        limit_name=draw(HOSTILE), mark=draw(st.none() | MARKS),
    )  # fmt: skip


@st.composite
def spreads(draw: st.DrawFn) -> m.Spread:
    """Counts over bins, with medians inside or outside."""
    least, most = sorted(draw(st.tuples(NUMBERS, NUMBERS)))
    bins = draw(st.integers(1, 4))
    counts = st.lists(st.integers(0, 999), min_size=bins, max_size=bins).map(tuple)
    unit = draw(UNITS)
    return m.Spread(
        name=draw(HOSTILE), least=m.Quantity(value=least, unit=unit), most=m.Quantity(value=most, unit=unit),
        first_counts=draw(counts), second_counts=draw(counts), first=draw(quantities()), second=draw(quantities()),
        note=draw(st.none() | HOSTILE),
    )  # fmt: skip


TIMES = st.integers(0, 2**50)
WHOLE = st.builds(
    m.RankTime, rank=st.integers(0, 999), steps=st.integers(1, 9), computing_ns=TIMES, communication_ns=TIMES,
    waiting_ns=TIMES, host_gap_ns=TIMES, idle_ns=TIMES, steps_ns=st.lists(TIMES, max_size=5).map(tuple),
)  # fmt: skip
RANKS = WHOLE | WHOLE.map(lambda rank: rank.model_copy(update={"splits": tuple(map(split, rank.steps_ns))}))


def _tuples(of: st.SearchStrategy[T], least: int = 0) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(of, min_size=least, max_size=3).map(tuple)


BLOCKS = st.one_of(
    st.builds(m.Prose, text=HOSTILE),
    st.builds(m.Verdict, mark=MARKS, sentence=HOSTILE, rule=st.none() | HOSTILE),
    st.builds(m.Facts, facts=_tuples(st.builds(m.Fact, name=HOSTILE, value=CELLS, note=st.none() | HOSTILE))),
    tables(),
    st.builds(m.Shares, caption=HOSTILE, whole=HOSTILE, bars=_tuples(bars(), 1)),
    st.builds(m.Timeline, caption=HOSTILE, ranks=_tuples(RANKS, 1)),
    st.builds(m.Curves, caption=HOSTILE, target_ratio=st.none() | st.floats(1, 1e6), curves=_tuples(curves(), 1)),
    st.builds(
        m.Comparisons,
        caption=HOSTILE,
        noise_limit=st.none() | st.builds(m.Quantity, value=RATIO, unit=st.just("share")),
        rows=_tuples(comparisons(), 1),
    ),
    st.builds(m.Spreads, caption=HOSTILE, sides=st.tuples(HOSTILE, HOSTILE), rows=_tuples(spreads(), 1)),
    st.builds(m.Items, tone=TONES, items=_tuples(st.builds(m.Item, text=HOSTILE, code=st.none() | HOSTILE))),
    st.builds(m.Command, command=HOSTILE, purpose=st.none() | HOSTILE),
)
REPORTS = st.builds(
    m.Report,
    title=HOSTILE.filter(bool),
    subtitle=st.none() | HOSTILE,
    sections=_tuples(st.builds(m.Section, title=HOSTILE.filter(bool), blocks=_tuples(BLOCKS))),
)


class Page(HTMLParser):
    """A page, read strictly: every element closed in its order, every attribute once."""

    def __init__(self, data: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(data.decode("utf-8"))
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute twice in {tag}"
        assert all(value is not None for _, value in attrs), f"an attribute without a value in {tag}"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} is closed and was not open"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    @property
    def text(self) -> str:
        """All words, labels of pictures included."""
        labels = [attributes.get("aria-label", "") for _, attributes in self.elements]
        return "\n".join(self.words + labels)
