"""Shapes that a secret draws from the Task's domain: inside it, published nowhere, bounded, the same for one secret."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from akf.evaluate.request import HELD_BACK, HELD_BACK_ELEMENTS, held_back

DIMENSIONS = st.builds(
    lambda unit, least, more: {"min": max(1, unit * least), "max": unit * (least + more), "multiple_of": unit},
    st.sampled_from([1, 2, 8, 16]),
    st.integers(1, 64),
    st.integers(0, 4096),
)
TASKS = st.builds(
    lambda m, n, values: {
        "abi": {
            "operands": [
                {"name": "x", "shape": [{"sym": "M"}, 64]},
                {"name": "out", "shape": [{"sym": "M"}, {"sym": "N"}]},
            ],
            "attributes": [{"name": "eps", "values": values}],
        },
        "domain": [{"sym": "M", **m}, {"sym": "N", **n}],
        "rows": [{"symbols": {"M": m["min"], "N": n["max"]}, "attributes": {"eps": values[0]}}],
        "cases": [],
    },
    DIMENSIONS,
    DIMENSIONS,
    st.lists(st.sampled_from([1e-6, 1e-5, 1e-3]), min_size=1, max_size=3, unique=True),
)


def seed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@given(TASKS, st.text(max_size=4))
def test_inside_the_domain_and_published_nowhere(task: dict[str, Any], secret: str) -> None:
    found = held_back(task, seed(secret))
    assert found == held_back(task, seed(secret))
    assert [case["id"] for case in found] == [f"held-back-{number + 1}" for number in range(len(found))]
    seen = [(row["symbols"], row["attributes"]) for row in task["rows"]]
    for case in found:
        for each in task["domain"]:
            size = case["symbols"][each["sym"]]
            assert each["min"] <= size <= each["max"]
            assert size % each["multiple_of"] == 0
        smallest = {each["sym"]: each["min"] for each in task["domain"]}
        elements = max(case["symbols"]["M"] * 64, case["symbols"]["M"] * case["symbols"]["N"])
        assert elements <= HELD_BACK_ELEMENTS or case["symbols"] == smallest
        assert case["attributes"]["eps"] in task["abi"]["attributes"][0]["values"]
        assert (case["symbols"], case["attributes"]) not in seen
        seen.append((case["symbols"], case["attributes"]))


def test_a_domain_of_one_point_holds_nothing_back() -> None:
    point = {"min": 8, "max": 8, "multiple_of": 1}
    task = {
        "abi": {"operands": [{"name": "x", "shape": [{"sym": "M"}]}]},
        "domain": [{"sym": "M", **point}],
        "rows": [{"symbols": {"M": 8}, "attributes": {}}],
    }
    assert held_back(task, seed("")) == []
    task["domain"] = [{"sym": "M", "min": 8, "max": 9, "multiple_of": 1}]
    assert [case["symbols"] for case in held_back(task, seed(""))] == [{"M": 9}]


def test_small_and_large_sizes_are_drawn() -> None:
    task = {
        "abi": {"operands": [{"name": "x", "shape": [{"sym": "M"}]}]},
        "domain": [{"sym": "M", "min": 1, "max": 8192, "multiple_of": 1}],
        "rows": [],
    }
    sizes = [case["symbols"]["M"] for text in range(40) for case in held_back(task, seed(str(text)))]
    assert len(sizes) == 40 * HELD_BACK
    assert min(sizes) <= 8
    assert max(sizes) >= 4096
