"""`judge`, `--recheck`, `--dry-run`, `--require` and `status` over a run; attacks on the chain, carried out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import evidence, runs
from tests.support.cli import Answer, akf, inside
from tests.support.runs import Ready, clone, overwrite, resign, tree

from akf.contracts.canonical import canonical_bytes, digest

Value = dict[str, Any]
ATTEMPT = "attempts/fused"
GATES = ("environment", "operator", "model", "serving", "reproduction", "release")


def judge(run: Path, *more: object, attempt: str = ATTEMPT) -> Answer:
    return inside("judge", run, run / attempt / "gates", *more)


def decision(run: Path, attempt: str = ATTEMPT) -> bytes:
    return (run / attempt / "decision.json").read_bytes()


class TestJudge:
    def test_the_decision_is_what_the_dry_run_said(self, whole_run: Path, whole_keys: Path) -> None:
        before = tree(whole_run)
        dry = judge(whole_run, "--dry-run").accepted().document
        assert tree(whole_run) == before
        made = judge(whole_run, "--keys", whole_keys).accepted().document
        assert dry["decision"] == made["decision"]
        assert dry["path"] is None
        assert canonical_bytes(made["decision"]) == decision(whole_run)
        assert set(tree(whole_run)) - set(before) <= {
            f"{ATTEMPT}/decision.json", f"{ATTEMPT}/decision.sig.json", "journal.jsonl",
        }  # fmt: skip

    def test_once(self, whole_run: Path, whole_keys: Path) -> None:
        judge(whole_run, "--keys", whole_keys).accepted()
        before = tree(whole_run)
        judge(whole_run, "--keys", whole_keys).refused(5)
        assert tree(whole_run) == before

    @pytest.mark.parametrize("role", ["evaluator", "supervisor"])
    def test_by_the_judge_s_key_alone(self, whole_run: Path, whole_keys: Path, tmp_path: Path, role: str) -> None:
        keys = clone(whole_keys, tmp_path / "keys")
        shutil.copyfile(keys / f"{role}.key", keys / "judge.key")
        before = tree(whole_run)
        assert judge(whole_run, "--keys", keys).refused(4).codes == {"AKF-P102"}
        assert tree(whole_run) == before

    def test_two_ways_to_say_it_exclude_each_other(self, whole_run: Path) -> None:
        judge(whole_run, "--recheck", "--dry-run").refused(2)

    def test_the_run_may_be_named_through_a_link_or_from_inside(
        self, whole_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = tmp_path / "link"
        link.symlink_to(whole_run)
        inside("judge", link, whole_run / ATTEMPT / "gates", "--dry-run").accepted()
        monkeypatch.chdir(whole_run / ATTEMPT)
        inside("judge", "../..", "gates", "--dry-run").accepted()

    def test_gates_of_another_run(self, whole_run: Path, tmp_path: Path, whole_keys: Path) -> None:
        other = clone(whole_run, tmp_path / "other")
        inside("judge", whole_run, other / ATTEMPT / "gates", "--keys", whole_keys).refused(2)

    @pytest.mark.parametrize("required", ["promotable", "rejected"])
    def test_a_required_verdict(self, whole_run: Path, whole_keys: Path, required: str) -> None:
        answer = judge(whole_run, "--keys", whole_keys, "--require", required)
        assert answer.status == (0 if required == "promotable" else 10)
        assert answer.document["verdict"] == "promotable"
        assert decision(whole_run), "a verdict that was not wanted is a Decision all the same"


class TestRecheck:
    def test_on_a_copy_it_agrees_byte_for_byte(self, whole_run: Path, whole_keys: Path, tmp_path: Path) -> None:
        judge(whole_run, "--keys", whole_keys).accepted()
        copy = tmp_path / "elsewhere" / "another name"
        copy.parent.mkdir()
        subprocess.run(["cp", "-r", str(whole_run), str(copy)], check=True)
        before = tree(copy)
        document = judge(copy, "--recheck").accepted().document
        assert tree(copy) == before
        assert canonical_bytes(document["decision"]) == decision(whole_run)

    def test_it_needs_no_keys_and_no_right_to_write(
        self, whole_run: Path, whole_keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        judge(whole_run, "--keys", whole_keys).accepted()
        monkeypatch.setenv("AKF_KEYS", str(tmp_path / "none"))
        judge(whole_run, "--recheck").accepted()

    def test_without_a_decision_there_is_nothing_to_recheck(self, whole_run: Path) -> None:
        assert judge(whole_run, "--recheck").refused(4).codes == {"AKF-P120"}

    @pytest.mark.parametrize(
        "edit",
        [
            lambda value: value.update(verdict="rejected", row=1),
            lambda value: value.update(tries=value["tries"] + 1),
            lambda value: value["reasons"][0].update(text="Because."),
            lambda value: value.update(ledger_head="sha256:" + "0" * 64),
            lambda value: value["checks"].pop(),
        ],
    )
    def test_a_decision_that_the_evidence_does_not_give(
        self, whole_run: Path, whole_keys: Path, edit: Callable[[Value], object]
    ) -> None:
        judge(whole_run, "--keys", whole_keys).accepted()
        resign(whole_run, f"{ATTEMPT}/decision.json", edit, whole_keys)
        before = tree(whole_run)
        assert judge(whole_run, "--recheck").refused(3).codes == {"AKF-I220"}
        assert tree(whole_run) == before

    def test_evidence_that_changed_since(self, whole_run: Path, whole_keys: Path) -> None:
        judge(whole_run, "--keys", whole_keys).accepted()
        resign(whole_run, f"{ATTEMPT}/gates/serving.json", lambda value: value.update(isolation="bwrap"), whole_keys)
        judge(whole_run, "--recheck").refused(3)

    def test_what_happens_later_to_others_is_no_input(self, tmp_path: Path, whole_keys: Path) -> None:
        maker = evidence.RunMaker(evidence.Changes(gates=("environment", "operator")))
        maker.attempt()
        run = runs.on_disk(maker.made(), tmp_path / "run")
        judge(run, "--keys", whole_keys).accepted()
        before = decision(run)
        maker.attempt(candidate="later")
        made = maker.made("later")
        for relative, data in made.files.items():
            if "/later/" in relative:
                (run / relative).parent.mkdir(parents=True, exist_ok=True)
                overwrite(run / relative, data)
        inside("judge", run, run / "attempts" / "later" / "gates", "--keys", whole_keys).accepted()
        judge(run, "--recheck").accepted()
        assert decision(run) == before
        assert len(inside("audit", run).accepted().document["decisions"]) == 2


class TestMeasuredHere:
    """The whole line on this machine: what is wrong is rejected, what is right lacks gates; speed decides nothing."""

    def verdict(self, run: Path, ready: Ready, name: str) -> Value:
        document = judge(run, "--keys", ready.keys, attempt=f"attempts/{name}").accepted().document
        judge(run, "--recheck", attempt=f"attempts/{name}").accepted()
        return document

    def test_the_wrong_one_is_rejected(self, measured_run: Path, ready: Ready) -> None:
        document = self.verdict(measured_run, ready, "rmsnorm-wrong")
        assert document["verdict"] == "rejected"
        assert document["decision"]["reasons"][0]["check"] == "correctness"

    def test_the_right_one_is_never_promotable_without_its_other_gates(self, measured_run: Path, ready: Ready) -> None:
        document = self.verdict(measured_run, ready, "rmsnorm-fused")
        assert document["verdict"] in {"incomplete", "incomparable", "rejected", "blocked"}
        missing = {each["gate"] for each in document["decision"]["missing"]}
        assert {"model", "serving", "reproduction", "release"} <= missing
        checks = {check["check"]: check["outcome"] for check in document["decision"]["checks"]}
        assert {checks[name] for name in ("correctness", "isfinite", "hit_proof")} == {"pass"}

    def test_what_was_never_measured_is_incomplete(self, measured_run: Path, ready: Ready) -> None:
        document = self.verdict(measured_run, ready, "rmsnorm-naive")
        assert document["verdict"] == "incomplete"
        assert {reason["code"] for reason in document["decision"]["reasons"]} == {"GATE_MISSING"}

    def test_what_did_not_compile_is_incomplete(self, measured_run: Path, ready: Ready) -> None:
        assert self.verdict(measured_run, ready, "rmsnorm-broken")["verdict"] == "incomplete"

    def test_the_copy_of_a_folder_agrees(self, measured_run: Path, ready: Ready, tmp_path: Path) -> None:
        self.verdict(measured_run, ready, "rmsnorm-fused")
        copy = tmp_path / "copy"
        subprocess.run(["cp", "-r", str(measured_run), str(copy)], check=True)
        answer = akf("judge", copy, copy / "attempts" / "rmsnorm-fused" / "gates", "--recheck").accepted()
        assert canonical_bytes(answer.document["decision"]) == decision(measured_run, "attempts/rmsnorm-fused")


class TestSameBytes:
    """The same evidence gives the same bytes: other language, time zone, mask, folder, hash seed and name."""

    SETTINGS = (
        ({"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "0"}, 0o022),
        ({"LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "4242", "PYTHONUTF8": "0"}, 0o077),
        ({"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Pacific/Chatham", "PYTHONHASHSEED": "random"}, 0o000),
        ({"LC_ALL": "POSIX", "TZ": "", "PYTHONHASHSEED": "1", "PYTHONOPTIMIZE": "2", "COLUMNS": "3"}, 0o027),
    )

    def test_of_the_decision(self, whole_run: Path, whole_keys: Path, tmp_path: Path) -> None:
        found = set()
        for number, (env, umask) in enumerate(self.SETTINGS):
            folder = tmp_path / f"cwd {number}"
            folder.mkdir()
            run = clone(whole_run, folder / f"run-{number}")
            words = ["judge", run.name, f"{run.name}/{ATTEMPT}/gates", "--keys", whole_keys]
            akf(*words, cwd=folder, env=env, umask=umask).accepted()
            signature = (run / ATTEMPT / "decision.sig.json").read_bytes()
            found.add((digest(decision(run)), digest(signature), (run / ATTEMPT / "decision.json").stat().st_mode))
        assert len(found) == 1

    def test_of_what_the_commands_say(self, whole_run: Path, whole_keys: Path) -> None:
        judge(whole_run, "--keys", whole_keys).accepted()
        draft = runs.DRAFT.parents[1] / "suite.json"
        for words in (
            ["judge", whole_run, whole_run / ATTEMPT / "gates", "--recheck"],
            ["audit", whole_run],
            ["validate-suite", draft],
            ["explain", "AKF-S006"],
        ):
            said = {akf(*words, env=env, umask=umask)[:2] for env, umask in self.SETTINGS}
            assert len(said) == 1, words


class TestAttacks:
    """Chain attacks of the kinds that fooled weak evaluators, each against a run that is real."""

    def test_a_link_out_of_the_allowed_path(self, open_run: Path, ready: Ready, tmp_path: Path) -> None:
        """A submission whose source is a link at the baseline: refused, and nothing is written through it."""
        baseline = tmp_path / "baseline" / "kernel.cpp"
        baseline.parent.mkdir()
        baseline.write_text("// frozen baseline\n")
        agent = runs.submission(open_run / "inbox" / "agent")
        (agent / "src" / "kernel.cpp").unlink()
        (agent / "src" / "kernel.cpp").symlink_to(baseline)
        (agent / "src" / "nested").symlink_to(baseline.parent, target_is_directory=True)
        before = tree(open_run)
        answer = inside("submit", open_run, agent, "--keys", ready.keys).refused(1)
        assert {problem["found"] for problem in answer.problems} == {"src/kernel.cpp", "src/nested"}
        assert tree(open_run) == before
        assert baseline.read_text() == "// frozen baseline\n"

    @pytest.mark.parametrize("gate", ["operator", "serving"])
    def test_a_key_twice_in_a_gate(self, whole_run: Path, whole_keys: Path, gate: str) -> None:
        """`failed` first and `passed` later under the same key: no parser gets to choose."""
        path = whole_run / ATTEMPT / "gates" / f"{gate}.json"
        data = path.read_bytes()
        overwrite(path, data.replace(b'"status":"pass"', b'"status":"fail","status":"pass"'))
        before = tree(whole_run)
        answer = judge(whole_run, "--keys", whole_keys).refused(3)
        assert "AKF-S006" in answer.codes
        assert tree(whole_run) == before
        inside("validate", path, "--kind", "Gate").refused(1)

    def test_a_key_twice_in_a_manifest(self, open_run: Path, ready: Ready, tmp_path: Path) -> None:
        agent = runs.submission(tmp_path / "agent")
        manifest = agent / "candidate.json"
        manifest.write_text(manifest.read_text().replace('"route"', '"route": "host_cpp", "route"', 1))
        assert inside("submit", open_run, agent, "--keys", ready.keys).refused(1).codes == {"AKF-S006"}

    @pytest.mark.parametrize("signed_again", [False, True], ids=["as it is", "signed by the evaluator"])
    def test_a_gate_from_another_arm(
        self, tmp_path: Path, whole_run: Path, whole_keys: Path, signed_again: bool
    ) -> None:
        """A good gate of one arm, presented for another after its label was edited."""
        lent = runs.on_disk(
            evidence.evidence(edit={"campaign": lambda value: value.update(id="host-other")}), tmp_path / "other"
        )
        path = f"{ATTEMPT}/gates/operator.json"
        value = json.loads((lent / path).read_bytes())
        value["identity"]["arm"] = "host_reference"
        overwrite(whole_run / path, canonical_bytes(value))
        if signed_again:
            resign(whole_run, path, lambda _: None, whole_keys)
        answer = judge(whole_run, "--keys", whole_keys).refused(3)
        assert not (whole_run / ATTEMPT / "decision.json").exists()
        if signed_again:
            assert "AKF-I205" in answer.codes

    @pytest.mark.parametrize("field", ["arm", "soc", "route", "platform"])
    def test_a_gate_that_says_another_identity(self, whole_run: Path, whole_keys: Path, field: str) -> None:
        """Signed by the evaluator with true parents, but measured somewhere else: neither pass nor fail."""
        path = f"{ATTEMPT}/gates/operator.json"
        other = {"arm": "xllm", "soc": "x86_64-other", "route": "triton_cuda", "platform": "cuda"}[field]
        resign(whole_run, path, lambda value: value["identity"].update({field: other}), whole_keys)
        document = judge(whole_run, "--keys", whole_keys).accepted().document
        assert document["verdict"] == "incomparable"
        assert document["decision"]["reasons"][0]["code"] == "IDENTITY_MISMATCH"

    def drop_slow(self, run: Path, keys: Path, kept: Callable[[list[Value]], list[Value]]) -> None:
        """Rewrite the operator gate's samples and everything that names them."""
        gate = json.loads((run / ATTEMPT / "gates" / "operator.json").read_bytes())
        entry = next(each for each in gate["samples"] if each["measurement"].endswith(".gain"))
        path = run / entry["path"]
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        data = evidence.lines_of(kept(records))
        overwrite(path, data)

        def name(value: Value) -> None:
            mine = next(each for each in value["samples"] if each["path"] == entry["path"])
            mine |= {"digest": digest(data), "bytes": len(data)}

        resign(run, f"{ATTEMPT}/gates/operator.json", name, keys)

    def test_slow_samples_left_out(self, whole_run: Path, whole_keys: Path) -> None:
        """The three slowest runs of the candidate are missing: the plan knows them."""

        def fastest(records: list[Value]) -> list[Value]:
            slow = sorted((each for each in records if each["side"] == "B"), key=lambda each: -each["values"][0])[:3]
            return [each for each in records if each not in slow]

        self.drop_slow(whole_run, whole_keys, fastest)
        document = judge(whole_run, "--keys", whole_keys).accepted().document
        assert document["verdict"] == "incomplete"
        assert "SAMPLES_MISSING" in {reason["code"] for reason in document["decision"]["reasons"]}

    def test_slow_samples_replaced_by_fast_ones(self, whole_run: Path, whole_keys: Path) -> None:
        """The same ids, but a sample stands twice."""
        self.drop_slow(whole_run, whole_keys, lambda records: [*records[:-1], records[0]])
        assert judge(whole_run, "--keys", whole_keys).accepted().document["verdict"] == "incomplete"

    def test_samples_changed_and_nothing_else(self, whole_run: Path, whole_keys: Path) -> None:
        path = next((whole_run / ATTEMPT / "samples" / "operator").glob("*gain*"))
        overwrite(path, path.read_bytes().splitlines(keepends=True)[0])
        answer = judge(whole_run, "--keys", whole_keys).refused(3)
        assert any(problem["file"].endswith(path.name) for problem in answer.problems)

    def test_slow_samples_left_out_of_what_was_measured_here(self, measured_run: Path, ready: Ready) -> None:
        name = "attempts/rmsnorm-fused"
        gate = json.loads((measured_run / name / "gates" / "operator.json").read_bytes())
        sampled = [each for each in gate["samples"] if "measurement" in each]
        if not sampled:
            assert gate["status"] != "pass"
            return  # this machine was too busy to time anything
        path = measured_run / sampled[-1]["path"]
        data = b"".join(path.read_bytes().splitlines(keepends=True)[:-3])
        overwrite(path, data)
        judge(measured_run, "--keys", ready.keys, attempt=name).refused(3)

        def named(value: Value) -> None:
            mine = next(each for each in value["samples"] if each["path"] == sampled[-1]["path"])
            mine |= {"digest": digest(data), "bytes": len(data)}

        resign(measured_run, f"{name}/gates/operator.json", named, ready.keys)
        document = judge(measured_run, "--keys", ready.keys, attempt=name).accepted().document
        assert document["verdict"] in {"incomplete", "incomparable", "rejected"}
        checks = {check["check"]: check["outcome"] for check in document["decision"]["checks"]}
        assert checks["gain:op-latency"] in {"not_run", "incomparable"}

    @pytest.mark.parametrize("gate", GATES)
    def test_a_missing_gate_counts_for_nothing(self, tmp_path: Path, whole_keys: Path, gate: str) -> None:
        """`all(g.passed)` over the rest is still true; the list of what is required is not the folder's."""
        kept = [each for each in GATES if each != gate]
        run = runs.on_disk(evidence.evidence(gates=kept), tmp_path / "run")
        document = judge(run, "--keys", whole_keys).accepted().document
        assert document["verdict"] == "incomplete"
        assert gate in {each["gate"] for each in document["decision"]["missing"]}

    @pytest.mark.parametrize("gate", GATES)
    def test_a_gate_that_is_taken_away(self, whole_run: Path, whole_keys: Path, gate: str) -> None:
        for name in (f"{gate}.json", f"{gate}.sig.json"):
            (whole_run / ATTEMPT / "gates" / name).unlink()
        answer = judge(whole_run, "--keys", whole_keys).refused(3)
        assert f"{ATTEMPT}/gates/{gate}.json" in {problem["file"] for problem in answer.problems}

    def test_no_gates_at_all(self, tmp_path: Path, whole_keys: Path) -> None:
        run = runs.on_disk(evidence.evidence(gates=()), tmp_path / "run")
        document = judge(run, "--keys", whole_keys).accepted().document
        assert document["verdict"] == "incomplete"
        assert {reason["code"] for reason in document["decision"]["reasons"]} == {"GATE_MISSING"}
        assert len(document["decision"]["missing"]) == len(GATES)

    @pytest.mark.parametrize(
        "name", ["serving2.json", "serving.json.bak", "SERVING.json", ".hidden", "model.sig.json~"]
    )
    def test_a_stray_file_among_the_gates(self, whole_run: Path, whole_keys: Path, name: str) -> None:
        shutil.copyfile(whole_run / ATTEMPT / "gates" / "serving.json", whole_run / ATTEMPT / "gates" / name)
        judge(whole_run, "--keys", whole_keys).refused(3)

    def test_two_gates_that_changed_their_names(self, whole_run: Path, whole_keys: Path) -> None:
        gates = whole_run / ATTEMPT / "gates"
        for end in (".json", ".sig.json"):
            (gates / f"model{end}").rename(gates / "aside")
            (gates / f"serving{end}").rename(gates / f"model{end}")
            (gates / "aside").rename(gates / f"serving{end}")
        judge(whole_run, "--keys", whole_keys).refused(3)


class TestStatus:
    def test_where_a_run_stands(self, measured_run: Path) -> None:
        document = inside("status", measured_run).accepted().document
        found = {each["candidate"]: each for each in document["attempts"]}
        assert document["tasks"] == ["rmsnorm"]
        assert {name: each["build"] for name, each in found.items()} == {
            "rmsnorm-fused": "built", "rmsnorm-wrong": "built", "rmsnorm-naive": "built", "rmsnorm-broken": "failed",
        }  # fmt: skip
        assert found["rmsnorm-wrong"]["operator"] == "fail"
        assert found["rmsnorm-wrong"]["environment"] == "pass"
        assert found["rmsnorm-naive"]["operator"] is None
        assert {each["verdict"] for each in found.values()} == {None}

    def test_it_writes_nothing_and_waits_for_nobody(self, whole_run: Path) -> None:
        before = tree(whole_run)
        for name in ("gates/model.json", "decision.json"):
            path = whole_run / ATTEMPT / name
            path.unlink(missing_ok=True)
            os.mkfifo(path)
        document = inside("status", whole_run).accepted().document
        assert document["attempts"][0]["model"] is None
        assert set(tree(whole_run)) - {f"{ATTEMPT}/decision.json"} == set(before)

    def test_by_a_process_of_its_own(self, whole_run: Path) -> None:
        assert akf("status", whole_run, "--human").text.startswith("command: status")


def test_a_decision_is_judged_in_the_order_of_no_folder(whole_run: Path, whole_keys: Path, tmp_path: Path) -> None:
    """A copy whose files were written in another order gives the same bytes."""
    judge(whole_run, "--keys", whole_keys).accepted()
    copy = tmp_path / "copy"
    names = sorted((path for path in whole_run.rglob("*") if path.is_file()), reverse=True)
    for path in names:
        target = copy / path.relative_to(whole_run)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    judge(copy, "--recheck").accepted()
