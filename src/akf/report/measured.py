"""What was measured in one gate, as blocks of a report: every pair, every interval, every single value by side.

Invariants:
- Figures come from the plan and the sample file by the code that the judge uses; a gate's own summary is not read.
- A measurement that cannot be reduced is not drawn; the judge's note says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from akf import stats
from akf.judge.checks import Judged, JudgedGate
from akf.judge.evidence import Evidence
from akf.judge.planned import Found, Planned, rule_of
from akf.report.model import Block, Cell, Comparison, Comparisons, Mark, Quantity, Spread, Spreads, Table, Tone, Unit

OUTCOMES: dict[str, Tone] = {
    "pass": "good", "fail": "bad", "no_gain": "bad", "inconclusive": "warn", "blocked": "warn", "incomparable": "warn",
    "not_run": "plain",
}  # fmt: skip
_FACTORS: dict[str, tuple[Unit, int]] = {
    "ns": ("ns", 1), "us": ("ns", 1_000), "ms": ("ns", 1_000_000), "s": ("ns", 1_000_000_000),
    "bytes": ("bytes", 1), "tokens": ("tokens", 1), "per_s": ("per_s", 1),
}  # fmt: skip
_BINS = 48
_TAIL = 0.01
_QUANTILES = (0.1, 0.25, 0.75, 0.9)
_FEWEST = 2


class _Measured(NamedTuple):
    """A check that samples stand behind: its reduction, and A/A of the same."""

    check: Judged
    found: Found
    reduction: stats.Reduction
    noise: stats.Reduction | None
    row: str | None


def outcome(word: str) -> Mark:
    """An outcome as a word with its colour."""
    return Mark(word=word.replace("_", " "), tone=OUTCOMES.get(word, "plain"))


def blocks(evidence: Evidence, gate: JudgedGate, planned: Planned) -> Iterator[Block]:
    """Pairs with their intervals, single values by side, and both as tables; nothing where no samples stand."""
    measured = [each for check in gate.checks for each in _measured(evidence, check, planned)]
    if not measured:
        return
    limit = evidence.campaign["noise"]["noise_limit_ratio"]
    yield Comparisons(
        caption=f"The {gate.gate} gate, pair by pair: a dot is the gain of one pair, the first on top; the bar below "
        "is the interval over all of them. A gain is shown where the bar lies right of the threshold, and a row holds "
        "where it lies right of minus its margin.",
        noise_limit=None if limit is None else Quantity(value=limit, unit="share"),
        rows=tuple(_comparison(each, evidence) for each in measured),
    )
    yield _pairs(measured)
    for path in dict.fromkeys(each.found.planned["path"] for each in measured if each.found.planned):
        entry = next(
            each.found.planned for each in measured if each.found.planned and each.found.planned["path"] == path
        )
        yield from _values(entry, evidence.files[path])


def _measured(evidence: Evidence, check: Judged, planned: Planned) -> Iterator[_Measured]:
    kind, _, subject = check.check.partition(":")
    if kind not in {"gain", "guard", "row"}:
        return
    row = subject if kind == "row" else None
    rule = rule_of(evidence.campaign, subject) if row is None else _first_gain(evidence)
    if rule is None:
        return
    found = planned.behind(check.gate, "gain" if row is not None else kind, rule["id"])
    if found.planned is None or found.measured.reduced is None:
        return
    aa = planned.noise(check.gate, rule, found.planned).reduced
    reduced = found.measured.reduced
    if row is None:
        yield _Measured(check, found, reduced.total, aa.total if aa else None, None)
    elif row in reduced.rows:
        yield _Measured(check, found, reduced.rows[row], aa.rows.get(row) if aa else None, row)


def _first_gain(evidence: Evidence) -> dict[str, Any] | None:
    """The rule whose measurement the rows are judged on."""
    return next((each for each in evidence.campaign["acceptance"]["gains"] if each["gate"] == "operator"), None)


def _comparison(each: _Measured, evidence: Evidence) -> Comparison:
    limit = _limit(each.check, evidence)
    correlation = stats.lag1_correlation(each.reduction.ratios)
    detail = None if correlation is None else f"neighbouring pairs correlate by {correlation:+.2f}"
    return Comparison(
        name=_name(each.check.check),
        detail=detail,
        gain=_gain(each.reduction),
        pair_gains=tuple(ratio - 1 for ratio in each.reduction.ratios),
        aa=_gain(each.noise) if each.noise is not None else None,
        aa_pair_gains=tuple(ratio - 1 for ratio in each.noise.ratios) if each.noise is not None else (),
        limit=None if limit is None else Quantity(value=limit, unit="gain"),
        limit_name="threshold" if each.check.check.startswith("gain:") else "margin",
        mark=outcome(each.check.outcome),
    )


def _limit(check: Judged, evidence: Evidence) -> float | None:
    """What the interval's lower end has to exceed, as a gain."""
    kind, _, subject = check.check.partition(":")
    if kind == "row":
        margin = evidence.campaign["acceptance"]["row_margin_ratio"]
        return None if margin is None else -margin
    rule = rule_of(evidence.campaign, subject) or {}
    if kind == "gain":
        return rule.get("threshold_ratio")
    return None if rule.get("margin_ratio") is None else -rule["margin_ratio"]


def _gain(reduction: stats.Reduction) -> Quantity:
    interval = reduction.interval
    if interval is None:
        return Quantity(value=stats.hodges_lehmann(reduction.ratios) - 1, unit="gain")
    return Quantity(value=interval.estimate - 1, unit="gain", low=interval.low - 1, high=interval.high - 1)


def _name(check: str) -> str:
    """A check as the report names it."""
    kind, _, subject = check.partition(":")
    return f"row {subject}" if kind == "row" else f"{subject}, all rows by weight" if kind == "gain" else subject


def _pairs(measured: list[_Measured]) -> Table:
    """Every ratio as a number."""
    longest = max(len(each.reduction.ratios) for each in measured)
    columns = ["pair"]
    cells: list[list[Cell]] = [[str(number)] for number in range(1, longest + 1)]
    for each in measured:
        for words, reduction in ((_name(each.check.check), each.reduction), ("A/A", each.noise)):
            if reduction is None:
                continue
            columns.append(words)
            for number, row in enumerate(cells):
                ratios = reduction.ratios
                row.append(Quantity(value=ratios[number] - 1, unit="gain") if number < len(ratios) else None)
    return Table(
        caption="The same as numbers: the gain of every pair, in the order of measurement, each beside its A/A.",
        columns=tuple(columns),
        rows=tuple(tuple(row) for row in cells),
    )


def _values(planned: Mapping[str, Any], data: bytes) -> Iterator[Block]:
    """How often each raw value was measured, by row and side; times of batches are shown per launch."""
    unit, factor = _FACTORS.get(planned["unit"], ("count", 1))
    table = []
    for row in planned["rows"]:
        scaled = factor / row["launches"]
        for side, values in zip(("baseline", "candidate"), _sides(row, data), strict=True):
            shown = [values[0], *(stats.quantile(values, q) for q in _QUANTILES[:2]), stats.median(values)]
            shown += [*(stats.quantile(values, q) for q in _QUANTILES[2:]), values[-1]]
            cells = tuple(Quantity(value=value * scaled, unit=unit) for value in shown)
            table.append((row["id"], side, Quantity(value=len(values), unit="count"), *cells))
    launches = any(row["launches"] > 1 for row in planned["rows"])
    per = ", each divided by the launches of its batch" if launches else ""
    yield Spreads(
        caption=f"Every raw value of `{planned['metric']}` as it was measured{per}: how often it came, by side. None "
        "is left out; those beyond the scale stand at its ends.",
        sides=("baseline", "candidate"),
        rows=tuple(spread_of(row, planned, data) for row in planned["rows"]),
    )
    yield Table(
        caption="The same as numbers.",
        columns=("row", "side", "values", "least", "10 %", "25 %", "median", "75 %", "90 %", "largest"),
        rows=tuple(table),
    )


def _sides(row: Mapping[str, Any], data: bytes) -> list[list[int]]:
    """The raw values of a row, in rising order: the baseline's, the candidate's."""
    samples = [each for each in map(orjson.loads, data.splitlines()) if each["row"] == row["id"]]
    return [sorted(value for each in samples if each["side"] == side for value in each["values"]) for side in "AB"]


def spread_of(row: Mapping[str, Any], planned: Mapping[str, Any], data: bytes) -> Spread:
    """Both sides of a planned row over one scale, which leaves out at most a hundredth at each end of either."""
    unit, factor = _FACTORS.get(planned["unit"], ("count", 1))
    sides, launches = _sides(row, data), row["launches"]
    scaled = factor / launches
    enough = [values for values in sides if len(values) >= _FEWEST]
    least = min((stats.quantile(values, _TAIL) for values in enough), default=min(map(min, sides)))
    most = max((stats.quantile(values, 1 - _TAIL) for values in enough), default=max(map(max, sides)))
    counts = [[0] * _BINS for _ in sides]
    beyond = 0
    for values, counted in zip(sides, counts, strict=True):
        for value in values:
            place = (value - least) * _BINS // (most - least) if most > least else 0
            beyond += not least <= value <= most
            counted[min(max(place, 0), _BINS - 1)] += 1
    note = f"{launches:,} launches a batch" if launches > 1 else ""
    if beyond:
        note += f"{'; ' if note else ''}{beyond:,} of {sum(map(len, sides)):,} values beyond the scale"
    return Spread(
        name=row["id"],
        least=Quantity(value=least * scaled, unit=unit),
        most=Quantity(value=most * scaled, unit=unit),
        first_counts=tuple(counts[0]),
        second_counts=tuple(counts[1]),
        first=Quantity(value=stats.median(sides[0]) * scaled, unit=unit),
        second=Quantity(value=stats.median(sides[1]) * scaled, unit=unit),
        note=note or None,
    )
