"""In which order the batches of a pair run: each side is measured warm, equally often after the other.

Without the batch that is no sample, a block began with a baseline that had run just before and ended with one that had
not, and A/A showed the second side about 2 % faster in each pair's first block.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.builder import rmsnorm

from akf.harness import request as requests
from akf.harness import timing
from akf.harness.bench import Bench

BATCHES = 3


def test_a_segment_after_the_other_side_starts_with_a_batch_that_is_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = rmsnorm(tmp_path)
    task.rows = task.rows[:2]
    launches = {row["id"]: 4 for row in task.rows}
    plan = {"pairs": 1, "blocks": 3, "batches": BATCHES, "launches": launches, "round_trip_ns": 10_000, "runs": ["aa"]}
    ran: list[tuple[int, int]] = []
    batch = timing.batch

    def logged(child: Any, arena: Any, pool: Any) -> timing.Span:
        span = batch(child, arena, pool)
        ran.append((child.pid, span.parent))
        return span

    monkeypatch.setattr(timing, "batch", logged)
    result = timing.measure(Bench(requests.parse(task.request(plan=plan))))
    samples = result["samples"]["aa"]
    assert [each["side"] for each in samples] == list("ABBA" * 3 * 2)

    expected: list[tuple[str, bool]] = []  # side, whether it is a sample
    before = ""
    for index, sample in enumerate(samples):
        first_of_row = index % (3 * 4) in {0, 1}
        expected += [(sample["side"], False)] * (first_of_row or sample["side"] != before)
        expected += [(sample["side"], True)] * BATCHES
        before = sample["side"]
    sides = {ran[0][0]: "A"}
    found = [sides.setdefault(pid, "B") for pid, _ in ran]
    assert found == [side for side, _ in expected]
    taken = [time for (_, time), (_, is_sample) in zip(ran, expected, strict=True) if is_sample]
    assert taken == [value for sample in samples for value in sample["values"]]
