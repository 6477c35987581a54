"""Properties of serving figures: units survive, quantiles are ordered, failures never help."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import benchmarks
from tests.support.benchmarks import Request, one, with_failures

from akf.contracts.canonical import canonical_bytes
from akf.contracts.problems import InvalidError, Problem
from akf.stats import quantile, quantile_support
from akf.traffic.bench import QUANTILES, compare, ingest
from akf.traffic.bench.summary import figure, linear, name, nearest_rank, share, support
from akf.traffic.bench.units import UNITS, cell, many, nanoseconds

TIMES = st.integers(0, 10**12)
SHARES = st.integers(1, 999).map(lambda permille: Fraction(permille, 1000))
REQUESTS = st.lists(
    st.builds(
        Request,
        st.integers(1, 10**10),
        st.lists(st.integers(0, 10**9), min_size=1, max_size=5).map(tuple),
        st.just(False),
    ),
    min_size=1,
    max_size=30,
)


def read(requests: list[Request]) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.json")
        path.write_text(json.dumps(benchmarks.vllm(requests)))
        return one(path)


@given(TIMES, st.sampled_from(["ns", "us", "ms", "s"]))
def test_a_time_survives_every_unit(ns: int, unit: str) -> None:
    number = Decimal(ns).scaleb(-UNITS[unit])
    assert nanoseconds(number, unit) == ns
    assert many([number, 0], unit) == [ns, 0]
    assert cell(f"{number:f} {unit}") == (number, unit)


@given(st.lists(TIMES, min_size=1, max_size=60), SHARES)
def test_the_rule_is_that_of_the_statistics_package(values: list[int], q: Fraction) -> None:
    assert nearest_rank(sorted(values), q) == quantile(values, float(q))
    if q >= Fraction(1, 2):
        assert support(q) == quantile_support(float(q))
    assert support(q) == support(1 - q)
    assert share(name(q)) == q


@given(st.lists(TIMES, min_size=1, max_size=60), st.lists(SHARES, min_size=2, max_size=8))
def test_quantiles_are_ordered_and_inside_the_range(values: list[int], shares: list[Fraction]) -> None:
    ordered = sorted(values)
    for rule in (nearest_rank, linear):
        found = [rule(ordered, q) for q in sorted(shares)]
        assert found == sorted(found)
        assert ordered[0] <= found[0]
        assert found[-1] <= ordered[-1]
    assert ordered[0] <= figure(ordered, "mean") <= ordered[-1]


@settings(deadline=None, max_examples=40)
@given(REQUESTS, st.lists(st.integers(0, 30), max_size=4))
def test_a_failed_request_changes_no_latency(requests: list[Request], places: list[int]) -> None:
    clean, mixed = read(requests), read(with_failures(requests, places))
    assert mixed["metrics"] == clean["metrics"]
    assert mixed["refused"] == clean["refused"]


@settings(deadline=None, max_examples=40)
@given(REQUESTS)
def test_figures_are_those_of_the_requests(requests: list[Request]) -> None:
    metrics = read(requests)["metrics"]
    assert isinstance(metrics, list)
    found = {(m["concept"], m["statistic"]): m["value_ns"] for m in metrics if m["recomputed"]}
    e2e = sorted(request.e2e_ns for request in requests)
    assert found["e2e", "min"] == e2e[0]
    assert found["e2e", "max"] == e2e[-1]
    assert found["e2e", "mean"] == round(Fraction(sum(e2e), len(e2e)))
    for q in QUANTILES:
        assert (("e2e", name(q)) in found) == (len(e2e) >= support(q))


ODD = st.sampled_from([
    None, True, -1, 0, 2.5, 1e300, 10**30, "", "x", "1,5 ms", "12 ms", "inf", [], [None], [[1]], {}, {"unit": "ms"},
])  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths into a JSON value; of an array only the first three items."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for step, item in inside:
        yield (*path, step)
        yield from places(item, (*path, step))


@functools.cache
def layouts(folder: Path) -> dict[Path, str]:
    """A folder with a result of every tool."""
    mixed = with_failures(benchmarks.steady(), (3,))
    benchmarks.evalscope(folder / "evalscope", mixed)
    benchmarks.aiperf(folder / "aiperf", mixed, records=False)
    benchmarks.aisbench(folder / "aisbench", mixed)
    slos: dict[str, Any] = {"goodput_slos_ms": {"ttft": 50.0}, "slo_attainment": 0.5, "request_rate": 4.0}
    benchmarks.write(folder / "vllm.json", benchmarks.vllm(mixed))
    benchmarks.write(folder / "sglang.jsonl", benchmarks.sglang(mixed, **slos))
    benchmarks.write(folder / "guidellm.json", benchmarks.guidellm(mixed))
    return {path: path.read_text() for path in sorted(folder.rglob("*.json*"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmarks")


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_whatever_one_value_becomes_there_is_an_answer(folder: Path, data: st.DataObject) -> None:
    """A result, or a refusal with its line; never anything else."""
    files = layouts(folder)
    path = data.draw(st.sampled_from(list(files)))
    value = json.loads(files[path])
    *way, last = data.draw(st.sampled_from(list(places(value))))
    inner = value
    for step in way:
        inner = inner[step]
    inner[last] = data.draw(ODD)
    path.write_text(json.dumps(value))
    refused: list[Problem] = []
    try:
        artifact = ingest([path if path.parent == folder else path.parent]).artifact
    except InvalidError as error:
        refused += error.problems
    else:
        assert canonical_bytes(artifact)
        json.dumps(compare(artifact["results"][0], artifact["results"][-1]))
    finally:
        path.write_text(files[path])
    assert all(problem.line is not None or problem.code in {"AKF-F206", "AKF-F208"} for problem in refused)
