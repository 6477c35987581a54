"""Timed calls of modules: whatever is different about them, every batch has new inputs and every output is checked."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.harness.builder import run_harness
from tests.harness.modules import HONEST, asked, linear, module, timed, trio, written

from akf.harness import product
from akf.harness.memory import POISON
from akf.harness.outcome import Check, HarnessError
from akf.harness.pool import Bait
from akf.harness.request import parse
from akf.harness.template import Template
from akf.harness.timing import Span, Tally, _Run, at_once

COUNTS = "calls = []"
AFTER = "calls.append(0)\nif len(calls) > 50: {wrong}\nreturn torch.relu(x @ w + b)"
LATER = {
    "zeros": ("return torch.zeros(x.shape[0], w.shape[1])", "WRONG_RESULT"),
    "nan": ("return torch.full((x.shape[0], w.shape[1]), float('nan'))", "NON_FINITE"),
    "mutates": ("x.zero_()", "INPUT_MUTATED"),
    "last_result": ("return held[0]", "OUTPUT_ALIASED"),
    "copy_of_last": ("return held[0].clone()", "WRONG_RESULT"),
    "thread": ("threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", "ASYNCHRONOUS_WORK"),
    "exit": ("os._exit(0)", "CHILD_EXITED"),
    "other_shape": ("return torch.relu(x @ w + b)[:1]", "SHAPE_MISMATCH"),
}
AHEAD = """
frame = sys._getframe(1)
worker = frame.f_locals.get("self")
if worker is None or len(worker._inputs) < 2: return torch.relu(x @ w + b)
if frame.f_locals["slot"] == 0:
    seen[:] = [torch.relu(each[0] @ each[1] + each[2]) for each in worker._inputs]
return seen[frame.f_locals["slot"]]
"""
ON_A_BUSY_MACHINE = {"TIMING_MISMATCH", "CORES_EXCEEDED"}


@pytest.mark.parametrize("name", LATER)
def test_who_changes_after_the_first_calls_is_found(template: Template, tmp_path: Path, name: str) -> None:
    wrong, code = LATER[name]
    head = f"import os, threading, time\n{COUNTS}\nheld = [torch.zeros(24, 16)]"
    body = AFTER.format(wrong=wrong)
    if name.endswith("last_result") or name.startswith("copy"):
        body = body.replace("return torch.relu(x @ w + b)", "held[0] = torch.relu(x @ w + b)\nreturn held[0]")
    check = timed(template, asked(trio(tmp_path, module(body, head))))
    assert [reason["code"] for reason in check.reasons] == [code], check
    assert check.facts["taken"] < check.facts["planned"]


def test_an_honest_module_is_measured(template: Template, tmp_path: Path) -> None:
    check = timed(template, asked(trio(tmp_path, module(HONEST))))
    assert check.facts["taken"] == check.facts["planned"]
    assert {reason["code"] for reason in check.reasons} <= ON_A_BUSY_MACHINE


def test_a_baseline_that_fails_blocks(template: Template, tmp_path: Path) -> None:
    artifacts = trio(tmp_path, module(HONEST))
    artifacts["baseline"], artifacts["candidate"] = artifacts["perturbed"], artifacts["baseline"]
    assert timed(template, asked(artifacts)).outcome == "blocked"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="needs a core for each side")
def test_who_works_on_a_whole_batch_at_once_is_found(template: Template, tmp_path: Path) -> None:
    """The child's own tensors can be found by walking frames; one of them changes before its turn."""
    del template  # for the check that torch is there
    plan = {"pairs": 1, "blocks": 1, "batches": 3, "launches": {"small": 64}, "round_trip_ns": 20_000, "runs": ["ab"]}
    found = {}
    for name, text in (("ahead", module(AHEAD, "import sys\nseen = []")), ("honest", module(HONEST))):
        (tmp_path / name).mkdir()
        request = asked(trio(tmp_path / name, text), plan=plan)
        _, report = run_harness("measure", request, tmp_path / name / "out")
        found[name] = report["checks"]["ab"]
    assert [reason["code"] for reason in found["ahead"]["reasons"]] == ["RESULT_REPLAY"]
    assert found["honest"]["facts"]["taken"] == found["honest"]["facts"]["planned"]
    assert {reason["code"] for reason in found["honest"]["reasons"]} <= ON_A_BUSY_MACHINE


@pytest.mark.parametrize(
    ("mine", "others", "outcome"), [(1.0, 1.0, "not_run"), (1.6, 1.0, "fail"), (1.0, 1.6, "incomparable")]
)
def test_more_processor_time_than_one_core_has(mine: float, others: float, outcome: str) -> None:
    run = object.__new__(_Run)
    run._bench = SimpleNamespace(confinement=SimpleNamespace(cpu=1))  # type: ignore[assignment]
    run._roles = {"A": "baseline", "B": "candidate"}
    run.check = Check()
    run.tallies = {
        side: Tally(spans=[Span(900, 890, 50, 1000, int(1000 * used))]) for side, used in (("A", others), ("B", mine))
    }
    run._settle_cores()
    assert run.check.outcome == outcome


PRODUCT = """
import numpy as np

def reference(x, w):
    return (x.astype(np.float64) @ w.astype(np.float64),)
"""


@pytest.mark.parametrize(
    ("body", "head", "code"),
    [
        ("return x @ w", "", ""),
        ("kept.setdefault(w.shape, w.clone())\nreturn x @ kept[w.shape]", "kept = {}", "WRONG_RESULT"),
        ("out = x @ w\nseen.append(0)\nout[-1] *= len(seen) < 9\nreturn out", "seen = []", "WRONG_RESULT"),
        (
            "out = x @ w\nseen.append(0)\nif len(seen) > 8: out[0] /= 0\nreturn out",
            "seen = []",
            "NON_FINITE",
        ),
    ],
    ids=["right", "keeps-the-weights", "skips-a-row-later", "not-a-number-later"],
)
def test_large_products_are_checked_by_places_and_folds(
    body: str, head: str, code: str, template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(product, "LARGE", 100)
    row = linear("small")
    row["operands"] = [each for each in row["operands"] if each["name"] != "b"]
    text = module(body, head).replace("run(x, w, b)", "run(x, w)")
    artifacts = {
        "baseline": written(tmp_path, "baseline", "def run(x, w):\n    return x @ w\n"),
        "candidate": written(tmp_path, "candidate", text),
    }
    request = asked(artifacts, rows=[row], cases=[], reference=PRODUCT, product={"left": "x", "right": "w"})
    check = timed(template, request)
    assert check.facts["folded"] == ["small"]
    assert [reason["code"] for reason in check.reasons if reason["code"] not in ON_A_BUSY_MACHINE] == (
        [code] if code else []
    )


def test_a_product_that_the_cases_do_not_have_is_no_request(tmp_path: Path) -> None:
    for stated in ({"left": "w", "right": "x"}, {"left": "x", "right": "b"}, {"left": "x"}):
        with pytest.raises(HarnessError):
            parse(asked(trio(tmp_path, module(HONEST)), product=stated))


def bait(*written: int) -> Bait:
    """One of a batch of sixteen slots, of which these hold an output."""
    outputs = np.full((16, 8), POISON, dtype=np.uint8)
    outputs[list(written)] = 7
    return Bait(14, outputs[2], outputs[12], lambda: None)


@pytest.mark.parametrize(
    ("written", "made", "counts", "backwards"),
    [
        ([], False, False, False),
        ([0, 1], False, False, False),
        ([0, 1, 2], True, True, False),
        (list(range(13)), True, False, False),
        ([15, 14, 13, 12], True, False, True),
        ([15], False, False, False),
    ],
    ids=["not-begun", "begins", "in-time", "too-late", "backwards", "nothing-to-be-seen"],
)
def test_what_changes_while_a_batch_runs(written: list[int], made: bool, counts: bool, backwards: bool) -> None:
    seen = bait(*written)
    assert seen.poll() is made
    assert (seen.counts, seen.backwards) == (counts, backwards)


def spans(in_time: int, of: int) -> list[Span]:
    return [Span(1, 1, in_time=number < in_time) for number in range(of)] + [Span(1, 1)]


def test_outputs_that_come_at_once_where_the_baseline_takes_its_turns() -> None:
    assert at_once(spans(1, 20), spans(19, 20))
    assert not at_once(spans(14, 20), spans(19, 20)), "a candidate that takes its turns"
    assert not at_once(spans(1, 20), spans(9, 20)), "a machine too busy to tell"
    assert not at_once(spans(0, 9), spans(20, 20)), "too few to tell"
