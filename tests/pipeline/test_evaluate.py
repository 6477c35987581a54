"""Gates in their order, planned before they are measured, once each; and what an interrupted evaluation leaves.

Nothing here depends on how fast anything is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support import runs
from tests.support.cli import inside
from tests.support.runs import Ready, overwrite, tree

from akf.candidates import submit
from akf.contracts.canonical import digest
from akf.contracts.problems import AkfError, BlockedError
from akf.evaluate import evaluate, operator
from akf.evaluate.program import Answer, Program
from akf.evaluate.program import run as run_harness
from akf.evaluate.subject import Subject
from akf.frameworks import host_reference
from akf.store.run import Run

Value = dict[str, Any]
FUSED, WRONG, NAIVE = "rmsnorm-fused", "rmsnorm-wrong", "rmsnorm-naive"

pytestmark = pytest.mark.usefixtures("measured")


def load(run: Path, relative: str) -> Value:
    found: Value = json.loads((run / relative).read_bytes())
    return found


def lines(run: Path) -> list[Value]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]


def refused(run: Path, keys: Path, name: str, gate: str = "operator") -> AkfError:
    before = tree(run)
    with pytest.raises(AkfError) as caught:
        evaluate(run, name, gate, keys)
    assert tree(run) == before
    return caught.value


class TestGates:
    def test_the_environment_comes_first_and_plans_before_gates(self, measured_run: Path) -> None:
        mine = [(line["event"], line["path"].split("/", 2)[2]) for line in lines(measured_run) if FUSED in line["path"]]
        assert mine == [
            ("candidate", "candidate.json"),
            ("build", "build.json"),
            ("plan", "plan/environment.json"),
            ("gate", "gates/environment.json"),
            ("plan", "plan/operator.json"),
            ("gate", "gates/operator.json"),
        ]

    def test_what_is_wrong_is_found_and_nothing_is_timed(self, measured_run: Path) -> None:
        gate = load(measured_run, f"attempts/{WRONG}/gates/operator.json")
        outcomes = {check["name"]: check["outcome"] for check in gate["checks"]}
        assert gate["status"] == "fail"
        assert outcomes["correctness"] == "fail"
        assert {outcomes[name] for name in outcomes if name.startswith(("gain:", "row:"))} == {"not_run"}
        assert [Path(each["path"]).name for each in gate["samples"]] == ["correctness.jsonl"]

    def test_the_secret_is_committed_to_before_and_revealed_after(self, measured_run: Path) -> None:
        for name in (FUSED, WRONG):
            for gate in ("environment", "operator"):
                plan = load(measured_run, f"attempts/{name}/plan/{gate}.json")
                value = load(measured_run, f"attempts/{name}/gates/{gate}.json")
                assert digest(bytes.fromhex(value["secret"])) == plan["secret_digest"]
                assert value["harness_digest"] == plan["harness_digest"]
        secrets = {line["facts"]["secret_digest"] for line in lines(measured_run) if line["event"] == "plan"}
        assert len(secrets) == 4

    def test_the_secret_lies_outside_the_run_and_is_the_owner_s(self, measured_run: Path, state: Path) -> None:
        kept = [path for path in (state / "state").rglob("*") if path.is_file()]
        assert len(kept) == 4
        assert {path.stat().st_mode & 0o077 for path in kept} == {0}
        revealed = load(measured_run, f"attempts/{FUSED}/gates/operator.json")["secret"]
        assert bytes.fromhex(revealed) in {path.read_bytes() for path in kept}
        for path in measured_run.rglob("*"):
            if path.is_file():
                assert not any(secret.read_bytes() in path.read_bytes() for secret in kept), path

    def test_a_gate_is_measured_once(self, measured_run: Path, ready: Ready) -> None:
        for gate in ("environment", "operator"):
            assert refused(measured_run, ready.keys, FUSED, gate).exit_code == 5
        assert refused(measured_run, ready.keys, WRONG).exit_code == 5

    def test_a_decided_attempt_is_closed(self, measured_run: Path, ready: Ready) -> None:
        gates = measured_run / "attempts" / NAIVE / "gates"
        inside("judge", measured_run, gates, "--keys", ready.keys).accepted()
        error = refused(measured_run, ready.keys, NAIVE)
        assert error.exit_code == 4
        assert error.problems[0].code == "AKF-P114"

    def test_nothing_is_measured_that_is_not_built(self, measured_run: Path, ready: Ready, tmp_path: Path) -> None:
        agent = runs.submission(tmp_path / "agent", FUSED, lambda value: value.update(id="fresh"))
        (agent / "src" / "kernel.cpp").write_text("// fresh\n")
        submit(measured_run, agent, ready.keys)
        error = refused(measured_run, ready.keys, "fresh")
        assert (error.exit_code, error.problems[0].code) == (4, "AKF-P115")

    def test_nothing_is_measured_that_ends_before_a_binary(
        self, measured_run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("akf.contracts.gates.BINARY_STAGES", ("device_object",))
        with pytest.raises(AkfError) as caught:
            Subject.read(Run.open(measured_run), FUSED)
        assert caught.value.exit_code == 4
        assert caught.value.problems[0].code == "AKF-P401"

    @pytest.mark.parametrize("gate", ["environment", "operator"])
    def test_a_preview_runs_nothing(self, measured_run: Path, gate: str) -> None:
        before = tree(measured_run)
        document = inside("evaluate", measured_run, NAIVE, "--gate", gate, "--plan").accepted().document
        assert document["estimate"]["wall_s"] > 0
        if gate == "operator":
            assert document["rows"] == ["decode-1"]
            assert document["samples"] == 6 * 1 * 4
            assert document["claim"] == {
                "tries": 3,  # two of this Task were evaluated before
                "one_sided_error_ratio": 0.025 / 3,
                "fewest_pairs": 7,
                "reproduction_pairs": 6,
            }
            assert document["budget"]["evaluation_s"] > document["estimate"]["wall_s"]
        assert tree(measured_run) == before

    def test_the_evaluator_s_key_is_needed(self, measured_run: Path, ready: Ready, tmp_path: Path) -> None:
        keys = runs.clone(ready.keys, tmp_path / "keys")
        shutil.copyfile(keys / "judge.key", keys / "evaluator.key")
        assert refused(measured_run, keys, NAIVE).exit_code == 4


class TestTampered:
    @pytest.mark.parametrize(
        "relative",
        [
            f"attempts/{NAIVE}/build.json",
            f"attempts/{NAIVE}/candidate.json",
            "tasks/rmsnorm.json",
            "campaign.json",
            "workload.json",
            "ledger.jsonl",
        ],
    )
    def test_an_artifact_behind_it(self, measured_run: Path, ready: Ready, relative: str) -> None:
        data = (measured_run / relative).read_bytes()
        overwrite(measured_run / relative, data.replace(b"rms", b"rmz", 1))
        assert refused(measured_run, ready.keys, NAIVE).exit_code == 3

    @pytest.mark.parametrize("which", ["candidate", "perturbed", "launcher"])
    def test_an_object_that_is_not_the_build_s(self, measured_run: Path, ready: Ready, which: str) -> None:
        outputs = load(measured_run, f"attempts/{NAIVE}/build.json")["outputs"]
        mine = next(each for each in outputs if each["subject"] == which and each["role"] != "log")
        path = measured_run / "attempts" / NAIVE / "build" / mine["path"]
        overwrite(path, path.read_bytes() + b"\0")
        with pytest.raises(AkfError) as caught:
            runs.patiently(lambda: evaluate(measured_run, NAIVE, "operator", ready.keys))
        assert caught.value.exit_code == 3
        assert not (measured_run / "attempts" / NAIVE / "gates" / "operator.json").exists()


class TestEnvironment:
    """The machine's fault is never the candidate's."""

    def sources(self, tmp_path: Path) -> Path:
        return runs.clone(host_reference._sources(), tmp_path / "arm")

    def test_a_baseline_that_changed_is_incomparable(
        self, measured_run: Path, ready: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = self.sources(tmp_path)
        path = folder / "rms_norm.cpp"
        path.write_text(path.read_text() + '\nextern "C" int one_more() { return 1; }\n')
        monkeypatch.setattr(host_reference, "_sources", lambda: folder)
        answer = inside("evaluate", measured_run, NAIVE, "--keys", ready.keys).refused(4)
        assert answer.codes == {"AKF-P113"}
        gate = load(measured_run, f"attempts/{NAIVE}/gates/environment.json")
        assert gate["status"] == "incomparable"
        notes = {check["name"]: check.get("note", "") for check in gate["checks"]}
        assert "/frameworks/0/revision" in notes["identity"]
        assert "incumbent_digest" in notes["baseline_health"]
        document = inside("judge", measured_run, measured_run / "attempts" / NAIVE / "gates", "--keys", ready.keys)
        assert document.accepted().document["verdict"] == "incomparable"
        inside("audit", measured_run).accepted()

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (("python",), "3.99.0"),
            (("soc", "name"), "x86_64-another"),
            (("toolkit", "build"), "g++ another inner build"),
            (("host", "cpu_model"), "another"),
            (("host", "compiler_digest"), "sha256:" + "0" * 64),
        ],
    )
    def test_a_machine_that_is_not_the_campaign_s(
        self, measured_run: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch, place: tuple[str, ...], value: str
    ) -> None:
        real = host_reference.environment

        def changed(baseline: host_reference.Baseline) -> Value:
            found = json.loads(json.dumps(real(baseline)))
            here = found
            for part in place[:-1]:
                here = here[part]
            here[place[-1]] = value
            return dict(found)

        monkeypatch.setattr(host_reference, "environment", changed)
        gate = evaluate(measured_run, NAIVE, "environment", ready.keys)
        assert gate["status"] == "incomparable"
        assert gate["checks"][0]["reasons"] == ["IDENTITY_MISMATCH"]
        assert "/".join(["", *place]) in gate["checks"][0]["note"]
        assert refused(measured_run, ready.keys, NAIVE).exit_code == 4

    def test_it_may_be_tried_again_and_all_tries_stay(
        self, measured_run: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(host_reference, "ranks", lambda: {"tp": 2, "pp": 1, "dp": 1, "ep": 1, "devices": []})
            assert evaluate(measured_run, NAIVE, "environment", ready.keys)["status"] == "incomparable"
        again = submit(measured_run, measured_run / "inbox" / NAIVE, ready.keys, retry=True)
        assert again["id"] == f"{NAIVE}.r2"
        assert (measured_run / "attempts" / NAIVE / "gates" / "environment.json").exists()

    def test_no_compiler_is_blocked_and_leaves_nothing(
        self, measured_run: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        before = tree(measured_run)
        answer = inside("evaluate", measured_run, NAIVE, "--keys", ready.keys).refused(6)
        assert answer.codes == {"AKF-E101"}
        assert tree(measured_run) == before


class TestInterrupted:
    def test_a_plan_without_its_gate_is_resumed_with_the_same_secret(
        self, measured_run: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: Any) -> None:
            raise BlockedError.of("AKF-E103", "the machine went away")

        with monkeypatch.context() as patch:
            patch.setattr(operator, "measure", killed)
            for _ in range(2):
                with pytest.raises(BlockedError):
                    runs.patiently(lambda: evaluate(measured_run, NAIVE, "operator", ready.keys), tries=3)
        plan = measured_run / "attempts" / NAIVE / "plan" / "operator.json"
        assert plan.exists()
        before = plan.read_bytes()
        gate = runs.patiently(lambda: evaluate(measured_run, NAIVE, "operator", ready.keys))
        assert plan.read_bytes() == before
        started = [line for line in lines(measured_run) if line["event"] == "resume"]
        assert gate["resumes"] == len(started) >= 1
        assert {line["path"] for line in started} == {f"attempts/{NAIVE}/plan/operator.json"}
        assert digest(bytes.fromhex(gate["secret"])) == json.loads(before)["secret_digest"]
        inside("judge", measured_run, plan.parents[1] / "gates", "--keys", ready.keys).accepted()
        inside("audit", measured_run).accepted()
        mine = [line for line in lines(measured_run) if line["facts"].get("gate") == "operator"]
        decision = load(measured_run, f"attempts/{NAIVE}/decision.json")
        assert decision["tries"] == sum(line["event"] in {"plan", "resume"} for line in mine), "every start counts"

    def test_without_its_secret_it_is_not_resumed(self, measured_run: Path, ready: Ready, state: Path) -> None:
        self._planned(measured_run)
        shutil.rmtree(state / "state")
        error = refused(measured_run, ready.keys, FUSED)
        assert (error.exit_code, error.problems[0].code) == (3, "AKF-I216")

    def test_with_another_harness_it_is_not_resumed(
        self, measured_run: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._planned(measured_run)
        from akf.evaluate import gates, program  # noqa: PLC0415

        def other(out: Path, elsewhere: program.Elsewhere | None = None) -> program.Program:
            return program.pack(out, elsewhere)._replace(digest="sha256:" + "0" * 64)

        monkeypatch.setattr(gates, "pack", other)
        error = refused(measured_run, ready.keys, FUSED)
        assert (error.exit_code, error.problems[0].code) == (4, "AKF-P118")

    def _planned(self, run: Path) -> None:
        """The state after a kill between the plan's line and the gate."""
        kept = [line for line in lines(run) if not (line["event"] == "gate" and line["path"].endswith("operator.json"))]
        for name in (FUSED, WRONG):
            attempt = run / "attempts" / name
            for path in (attempt / "gates" / "operator.json", attempt / "gates" / "operator.sig.json"):
                path.unlink()
            shutil.rmtree(attempt / "samples")
        runs.rechain(run, kept)

    def test_killed_in_the_middle_of_measuring(self, measured_run: Path, ready: Ready) -> None:
        plan = measured_run / "attempts" / NAIVE / "plan" / "operator.json"
        command = [sys.executable, "-m", "akf", "evaluate", str(measured_run), NAIVE, "--keys", str(ready.keys)]
        for _ in range(6):  # calibration of a busy machine may be refused
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and not plan.exists():
                time.sleep(0.01)
            if plan.exists():
                break
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(process.pid, signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            return  # it had ended: nothing was interrupted
        assert not (measured_run / "attempts" / NAIVE / "gates" / "operator.json").exists()
        assert not _outlived(children), "the harness outlived its evaluator"
        status = inside("status", measured_run).accepted().document
        assert next(each for each in status["attempts"] if each["candidate"] == NAIVE)["operator"] is None
        inside("audit", measured_run).accepted()
        gate = runs.patiently(lambda: evaluate(measured_run, NAIVE, "operator", ready.keys))
        assert gate["resumes"] >= 1
        inside("audit", measured_run).accepted()


def _outlived(pids: list[str]) -> list[str]:
    """Those processes that still run a moment later."""
    deadline = time.monotonic() + 10
    while (found := [pid for pid in pids if _runs(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _runs(pid: str) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    return False


def test_a_budget_of_time_ends_an_evaluation(ready: Ready, monkeypatch: pytest.MonkeyPatch, measured_run: Path) -> None:
    """A harness that takes too long is ended, and the evaluation can be started again."""

    def at_once(program: Program, command: str, request: Value, work: Path, _: float) -> Answer:
        return run_harness(program, command, request, work, 0.05)

    monkeypatch.setattr(operator, "run_harness", at_once)
    with pytest.raises(BlockedError) as caught:
        evaluate(measured_run, NAIVE, "operator", ready.keys)
    assert caught.value.problems[0].code == "AKF-E104"
    assert not (measured_run / "attempts" / NAIVE / "gates" / "operator.json").exists()
    inside("audit", measured_run).accepted()
