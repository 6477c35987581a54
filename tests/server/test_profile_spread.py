"""What is said of a speed-up beside its number."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("orjson")
from akf.server.spread import BASE, CANDIDATE, spread


def profile(base: Any, candidate: Any) -> dict[str, Any]:
    parts = {BASE: base, CANDIDATE: candidate}
    return spread({"artifacts": {name: json.dumps({"block_times_us": value}) for name, value in parts.items()}})


def test_it_reaches_from_the_worst_to_the_best_and_says_when_nothing_is_known() -> None:
    found = profile([10, 20], [5, 40])
    assert (found["speedup_low"], found["speedup_high"], found["evidence"]) == (0.25, 4.0, False)
    assert "neither is known to be faster" in found["note"]


def test_a_clear_one_is_no_evidence_either() -> None:
    found = profile([20, 24], [4, 5])
    assert (found["speedup_low"], found["speedup_high"], found["evidence"]) == (4.0, 6.0, False)
    assert "leaves out 1; a diagnosis, no evidence" in found["note"]


@pytest.mark.parametrize("parts", [None, [], [0], [True], ["1"], "10", [-1.0]])
def test_what_a_worker_does_not_say_is_not_known(parts: Any) -> None:
    found = profile(parts, [1, 2])
    assert (found["speedup_low"], found["speedup_high"]) == (None, None)
    assert "not known" in found["note"]
