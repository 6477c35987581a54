"""A run as a page: at any stage, with the judge's numbers, every text as text, and never of what does not hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.support import evidence, runs
from tests.support.cli import inside
from tests.support.evidence import Made
from tests.support.reports import Page
from tests.support.runs import on_disk, overwrite, tree

from akf.contracts.gates import GATES
from akf.report import numbers
from akf.report.model import Comparisons, Report, Spreads
from akf.report.page import render
from akf.report.run import attempts_of, report_of
from akf.store.run import Run

Value = dict[str, Any]
HOSTILE = "<script>alert(1)</script> \u202e `x` </style>"


def drawn(made: Made, folder: Path) -> tuple[Report, Page]:
    run = Run.open(on_disk(made, folder / "run"))
    report = report_of(run, attempts_of(run))
    return report, Page(render(report))


def blocks(report: Report, kind: type) -> list[Any]:
    return [block for section in report.sections for block in section.blocks if isinstance(block, kind)]


class TestNumbers:
    def test_intervals_are_those_of_the_decision(self, tmp_path: Path) -> None:
        made = evidence.evidence(gains={"operator/op-latency": (0.07, 0.31)}, rows={"decode-8": (-0.01, 0.02)})
        report, page = drawn(made, tmp_path)
        judged = [check for check in made.decide()["checks"] if "interval" in check]
        shown = [row for block in blocks(report, Comparisons) for row in block.rows]
        assert len(shown) == len(judged) > 6
        for row, check in zip(shown, judged, strict=True):
            interval = check["interval"]
            wanted = tuple(interval[name] - 1 for name in ("estimate", "low", "high"))
            assert (row.gain.value, row.gain.low, row.gain.high) == wanted
            assert len(row.pair_gains) == interval["pairs"]
            assert numbers.interval(*wanted[1:], "gain") in page.text
            assert row.mark is not None
            assert row.mark.word == check["outcome"].replace("_", " ")

    def test_every_ratio_of_a_pair_follows_from_the_samples(self, tmp_path: Path) -> None:
        wanted = (0.07, 0.31)
        report, page = drawn(evidence.evidence(gains={"operator/op-latency": wanted}), tmp_path)
        row = blocks(report, Comparisons)[0].rows[0]
        assert row.pair_gains == pytest.approx([ratio - 1 for ratio in evidence.ratios(wanted, 8)], abs=1e-6)
        assert row.aa_pair_gains == pytest.approx([ratio - 1 for ratio in evidence.ratios(evidence.NOISE, 8)], abs=1e-6)
        assert all(numbers.gain(gain) in page.text for gain in row.pair_gains)

    def test_limits_are_the_campaigns(self, tmp_path: Path) -> None:
        made = evidence.evidence()
        report, _ = drawn(made, tmp_path)
        acceptance = made.value("campaign.json")["acceptance"]
        limits = {row.name.split(",")[0]: row.limit.value for row in blocks(report, Comparisons)[0].rows}
        assert limits["op-latency"] == acceptance["gains"][0]["threshold_ratio"]
        assert limits["row decode-1"] == limits["row decode-8"] == -acceptance["row_margin_ratio"]

    def test_no_value_is_left_out_of_the_counts(self, tmp_path: Path) -> None:
        made = evidence.evidence(gates=("environment", "operator"))
        report, _ = drawn(made, tmp_path)
        planned = next(each for each in made.value("plan/operator.json")["measurements"] if each["purpose"] == "gain")
        values = planned["pairs"] * planned["blocks"] * 2 * planned["batches"]
        (found,) = blocks(report, Spreads)
        assert [row.name for row in found.rows] == [row["id"] for row in planned["rows"]]
        for row, launches in zip(found.rows, evidence.LAUNCHES.values(), strict=True):
            assert sum(row.first_counts) == sum(row.second_counts) == values
            assert row.second.value < row.first.value  # 20 % faster
            assert f"{launches:,} launches" in row.note

    def test_an_outlier_stands_at_the_end_and_is_said(self, tmp_path: Path) -> None:
        def slow(records: list[Value]) -> list[Value]:
            records[0]["values"] = [10**9]
            return records

        def many(value: Value) -> None:
            value["acceptance"]["pairs"] |= {"operator": 20, "blocks": 3}

        made = evidence.evidence(samples={"operator/op-latency.gain": slow}, edit={"campaign": many})
        report, page = drawn(made, tmp_path)
        row = blocks(report, Spreads)[0].rows[0]
        assert row.most.value < 10**5
        assert "; 1 of 240 values beyond the scale" in row.note
        assert "500.0 µs" in page.text  # the largest value, per launch, in the table


class TestStages:
    @pytest.mark.parametrize("gates", [(), ("environment",), ("environment", "operator"), GATES])
    def test_as_many_gates_as_there_are(self, tmp_path: Path, gates: tuple[str, ...]) -> None:
        made = evidence.evidence(gates=gates)
        report, page = drawn(made, tmp_path)
        decision = made.decide()
        assert f"{decision['verdict']} so far" in page.text
        assert decision["reasons"][0]["text"] in page.text
        assert len(blocks(report, Comparisons)) == len(set(gates) - {"environment", "release"})

    def test_nothing_was_submitted(self, ready: runs.Ready, tmp_path: Path) -> None:
        run = runs.new_run(ready, tmp_path)
        page = tmp_path / "page.html"
        answer = inside("report", run, "--out", page).accepted().document
        assert answer["attempts"] == []
        assert "Nothing was submitted yet." in Page(page.read_bytes()).text

    def test_a_build_that_failed(self, tmp_path: Path) -> None:
        def fail(build: Value) -> None:
            build |= {"outcome": "failed", "reasons": [f"error: {HOSTILE}"], "outputs": []}
            for name in ("launch", "reproduction"):
                build.pop(name, None)

        made = evidence.evidence(gates=(), edit={"build": fail})
        for subject in ("candidate", "perturbed"):
            del made.files[f"{made.base}/build/{subject}/kernel.so"]
        _, page = drawn(made, tmp_path)
        assert "The candidate was not built" in page.text
        assert "error: <script>" in page.text

    def test_a_gate_that_measured_nothing_has_no_chart(self, tmp_path: Path) -> None:
        made = evidence.evidence(
            gates=("environment", "operator"),
            outcomes={"operator/correctness": {"outcome": "fail", "reasons": ["WRONG_RESULT"]}},
            edit={
                "gates/operator": lambda gate: gate.update(samples=[]),
                "plan/operator": lambda plan: plan.update(measurements=[]),
            },
        )
        report, page = drawn(made, tmp_path)
        assert blocks(report, Comparisons) == blocks(report, Spreads) == []
        assert "rejected so far" in page.text
        assert "WRONG_RESULT" in page.text

    def test_what_would_decide_is_said(self, tmp_path: Path) -> None:
        made = evidence.evidence(gains={"operator/op-latency": (0.01, 0.12)})
        missing = next(each for each in made.decide()["missing"] if "pairs_to_decide" in each)
        _, page = drawn(made, tmp_path)
        assert f"about {missing['pairs_to_decide']} pairs in all would decide it" in " ".join(page.text.split("\n"))

    def test_a_verdict_that_more_would_not_change_asks_for_nothing(self, tmp_path: Path) -> None:
        made = evidence.evidence(gains={"operator/op-latency": (-0.3, -0.2)}, gates=("environment", "operator"))
        assert made.decide()["verdict"] == "rejected"
        _, page = drawn(made, tmp_path)
        assert "What would decide" not in page.text
        assert "Gates that are not there: model, serving, reproduction, release." in page.text

    def test_a_part_that_passes_is_said_with_its_gain(self, tmp_path: Path) -> None:
        made = evidence.evidence(rows={"decode-1": (0.30, 0.34), "decode-8": (-0.31, -0.29)})
        _, page = drawn(made, tmp_path)
        words = "1 of 2 rows (decode-1). Over these rows alone the gain is +32.0 % [+30.0 %, +34.0 %]."
        assert words in page.text

    def test_a_real_run_with_broken_and_wrong_candidates(self, measured_run: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        answer = inside("report", measured_run, "--out", page).accepted().document
        found = {each["candidate"]: each for each in answer["attempts"]}
        assert found["rmsnorm-wrong"]["reasons"][0] == "WRONG_RESULT"
        assert "BUILD_FAILED" in found["rmsnorm-broken"]["reasons"]
        assert found["rmsnorm-naive"]["gates"] == {}
        words = Page(page.read_bytes()).text
        assert all(f"Candidate {name}" in words for name in found)


class TestText:
    def test_a_candidates_words_stay_words(self, tmp_path: Path) -> None:
        def claim(candidate: Value) -> None:
            words = candidate["claim"]
            words |= {"data_flow_change": HOSTILE, "failure_boundary": HOSTILE}
            words["hypothesis"]["falsified_by"] = HOSTILE

        report, page = drawn(evidence.evidence(gates=(), edit={"candidate": claim}), tmp_path)
        assert {name for name, _ in page.elements}.isdisjoint({"script", "img"})
        assert page.text.count("<script>alert(1)</script>") == 3
        assert b"\xe2\x80\xae" not in render(report)

    def test_the_chain_has_every_line_with_its_digest(self, tmp_path: Path) -> None:
        made = evidence.evidence()
        _, page = drawn(made, tmp_path)
        for line in made.lines():
            assert line["path"] in page.text
            assert line["digest"] in page.text


class TestPage:
    def test_the_same_run_gives_the_same_bytes(self, tmp_path: Path) -> None:
        made = evidence.evidence(gates=("environment", "operator"))
        pages = []
        for name, files in (("one", made.files), ("other", dict(reversed(made.files.items())))):
            run = on_disk(Made(files, made.candidate, made.signers), tmp_path / name / "run")
            (run / "journal.jsonl").write_text(f'{{"remark":"{name}"}}\n')
            os.utime(run / "campaign.json", (1, len(name)))
            inside("report", run, "--out", tmp_path / f"{name}.html").accepted()
            pages.append((tmp_path / f"{name}.html").read_bytes())
        assert pages[0] == pages[1]

    def test_without_a_file_it_answers_and_writes_nothing(self, tmp_path: Path) -> None:
        run = on_disk(evidence.evidence(), tmp_path / "run")
        before = tree(tmp_path)
        answer = inside("report", run).accepted().document
        assert tree(tmp_path) == before
        assert answer["html"] is None
        assert [(each["candidate"], each["verdict"], each["decided"]) for each in answer["attempts"]] == [
            ("fused", "promotable", False)
        ]

    def test_a_file_is_never_replaced(self, tmp_path: Path) -> None:
        run = on_disk(evidence.evidence(gates=()), tmp_path / "run")
        (tmp_path / "page.html").write_text("mine")
        assert inside("report", run, "--out", tmp_path / "page.html").refused(5).codes == {"AKF-C101"}
        assert (tmp_path / "page.html").read_text() == "mine"

    def test_what_does_not_hold_is_not_drawn(self, tmp_path: Path) -> None:
        made = evidence.evidence()
        run = on_disk(made, tmp_path / "run")
        path = next(path for path in made.files if path.endswith("op-latency.gain.jsonl"))
        overwrite(run / path, made.files[path].replace(b'"pair":0', b'"pair":1', 1))
        assert "AKF-I211" in inside("report", run, "--out", tmp_path / "page.html").refused(3).codes
        assert not (tmp_path / "page.html").exists()

    def test_a_decision_that_the_evidence_does_not_give_is_refused(self, tmp_path: Path) -> None:
        made = evidence.evidence()
        run = on_disk(made, tmp_path / "run")
        keys = runs.evidence_keys(tmp_path / "keys")
        inside("judge", run, run / made.base / "gates", "--keys", keys).accepted()
        assert inside("report", run).accepted().document["attempts"][0]["decided"] is True
        runs.resign(run, f"{made.base}/decision.json", lambda value: value.update(tries=7), keys)
        assert inside("report", run).refused(3).codes == {"AKF-I220"}
