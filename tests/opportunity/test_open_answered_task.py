"""`akf open-task` with a triage answer: a Task of each type, and every way in which numbers could be made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support import captures, runs
from tests.support.cli import Answer, inside

from akf.audit import audit
from akf.contracts.canonical import digest
from akf.contracts.problems import AkfError, PreconditionError
from akf.opportunity.tasks import open_task
from akf.store.overview import overview
from akf.store.run import Run

Value = dict[str, Any]
Edit = Callable[[Value], object]


class Bench(NamedTuple):
    """A run, its triage answer in a file, and a Task folder."""

    run: Path
    keys: Path
    answer: Path
    task: Path

    def open(self, *words: object) -> Answer:
        """`akf open-task RUN ANSWER`."""
        return inside("open-task", self.run, self.answer, *words, "--keys", self.keys)

    def filled(self, *words: object) -> Answer:
        """The same with the Task folder's semantics."""
        return self.open("--from", self.task, *words)

    def frozen(self, name: str) -> Value:
        """A Task of the run."""
        found: Value = json.loads((self.run / "tasks" / f"{name}.json").read_bytes())
        return found


def bench(source: runs.Ready, folder: Path, edit: Edit | None = None, campaign: Edit | None = None) -> Bench:
    """A bench whose Capture, and Campaign, are changed before they are frozen."""
    traced = runs.captured(source, folder / "traced", edit)
    if campaign is not None:
        runs.change(traced.campaign, campaign)
    run = runs.new_run(traced, folder / "runs")
    inside("triage", run, "--out", folder / "triage.json").accepted()
    return Bench(run, source.keys, folder / "triage.json", runs.task(folder / "task", _three_rows))


def _three_rows(value: Value) -> None:
    value["rows"] = json.loads((runs.TASK / "task.json").read_bytes())["rows"]


@pytest.fixture
def kernel(ready: runs.Ready, tmp_path: Path) -> Bench:
    return bench(ready, tmp_path)


def sound(made: Bench) -> Value:
    told = audit(made.run, made.keys / "trust.json")
    assert (told["pending"], told["leftovers"]) == ([], [])
    return told


def _clock(value: Value) -> None:
    value.update(clock="changed", clocks_mhz=[1200, 1800])


def _gap(value: Value) -> None:
    line = value["breakdown"][0]
    split = line["steps_lines"]
    for step, computing in enumerate(split["computing_ns"]):
        split["computing_ns"][step] -= computing // 3
        split["host_gap_ns"][step] += computing // 3
    line |= {name: sum(split[name]) for name in ("computing_ns", "host_gap_ns")}
    for entry in value["entries"]:
        entry["steps_exposed_ns"] = [time // 2 for time in entry["steps_exposed_ns"]]
        entry["exposed_ns"] = sum(entry["steps_exposed_ns"])


def _rival(value: Value) -> None:
    """Every shape was also run by a second kernel, three times as fast."""
    for entry in list(value["entries"]):
        fast = {**entry, "kernel": "fused", "time_ns": entry["time_ns"] // 300, "calls": entry["calls"] // 100}
        fast |= {"longest_ns": 1, "exposed_ns": 0, "steps_exposed_ns": [0] * captures.STEPS}
        value["entries"].append(fast)
        value["completeness"][0]["seen_calls"] += fast["calls"]
        value["completeness"][0]["expected_calls"] += fast["calls"]


class TestEachType:
    def test_kernel(self, kernel: Bench) -> None:
        said = kernel.filled().accepted().document
        assert (said["task"], said["type"]) == ("rmsnorm", "kernel")
        task = kernel.frozen("rmsnorm")
        triage = json.loads(kernel.answer.read_bytes())
        spot = triage["hotspots"][0]
        stated = task["opportunity"]
        assert stated["share_ratio"] == spot["share_ratio"] == pytest.approx(0.5, abs=1e-5)
        assert stated["share_high_ratio"] == spot["interval"]["high_ratio"]
        assert (stated["hotspot"], stated["coverage_ratio"]) == ("rms-norm", 1)
        assert [parent["kind"] for parent in task["parents"]] == ["Run", "Triage"]
        assert {row["id"]: row["weight"] for row in task["rows"]} == {
            "decode-1": 0.4, "decode-4": 0.3, "decode-8": 0.3,
        }  # fmt: skip
        assert task["reference"]["text"]
        told = sound(kernel)
        assert (told["triages"], told["tasks"], told["ledger_lines"]) == (1, 1, 3)
        assert [line.event for line in Run.open(kernel.run).lines()] == ["run", "triage", "task"]
        assert overview(kernel.run)["triages"] == ["triage-decode"]

    def test_configuration(self, ready: runs.Ready, tmp_path: Path) -> None:
        made = bench(ready, tmp_path, _clock)
        assert made.open().accepted().document["type"] == "configuration"
        task = made.frozen("configuration-baseline")
        assert task["problem"]["rule"] == "CLOCK_CHANGED"
        assert task["problem"]["evidence"] == ["The core clock changed inside the capture: 1200, 1800 MHz."]
        assert (task["abi"], task["rows"], task["opportunity"]["share_ratio"]) == (None, [], None)
        sound(made)

    def test_pipeline(self, ready: runs.Ready, tmp_path: Path) -> None:
        made = bench(ready, tmp_path, _gap)
        assert made.open().accepted().document["type"] == "pipeline"
        task = made.frozen("pipeline-host_gap")
        assert (task["problem"]["rule"], task["callsite"]) == ("HOST_GAP", None)
        assert task["opportunity"]["share_ratio"] == pytest.approx(0.3 + 0.7 / 3, abs=1e-3)
        sound(made)

    def test_integration(self, ready: runs.Ready, tmp_path: Path) -> None:
        made = bench(ready, tmp_path, _rival)
        assert made.open().accepted().document["type"] == "integration"
        task = made.frozen("integration-rms-norm")
        assert (task["problem"]["rule"], task["op"], task["abi"]) == ("PROVIDER_WINS", "rms_norm", None)
        assert task["problem"]["allowed_paths"] == ["adapters/host_reference/src/rms_norm.cpp"]
        sound(made)

    def test_integration_that_replaces_a_binding(self, ready: runs.Ready, tmp_path: Path) -> None:
        made = bench(ready, tmp_path, _rival)
        runs.change(made.task, lambda value: value.update(type="integration"))
        assert made.filled().accepted().document["type"] == "integration"
        assert made.frozen("rmsnorm")["abi"]["kind"] == "binary"
        sound(made)

    def test_no_go_is_no_task(self, ready: runs.Ready, tmp_path: Path) -> None:
        made = bench(ready, tmp_path, campaign=lambda value: value["opportunity"].update(target_ratio=3.0))
        before = runs.tree(made.run)
        refused = made.filled().refused(4)
        assert refused.codes == {"AKF-F385"}
        assert "CEILING_TOO_LOW" in refused.problems[0]["message"]
        assert runs.tree(made.run) == before


class TestChoice:
    def test_another_hotspot(self, kernel: Bench) -> None:
        assert kernel.open("--callsite", "host_gap").accepted().document["type"] == "pipeline"
        assert kernel.filled().accepted().document["type"] == "kernel"
        told = sound(kernel)
        assert (told["triages"], told["tasks"]) == (1, 2)

    def test_one_that_is_not_there(self, kernel: Bench) -> None:
        refused = kernel.open("--callsite", "rmsnorm").refused(2)
        assert refused.codes == {"AKF-F388"}
        assert refused.problems[0]["hint"] == "did you mean rms-norm?"

    def test_a_task_is_opened_once(self, kernel: Bench) -> None:
        kernel.filled().accepted()
        assert kernel.filled().refused(5).codes == {"AKF-C106"}
        assert sound(kernel)["ledger_lines"] == 3

    def test_a_kernel_needs_semantics_and_a_pipeline_takes_none(self, kernel: Bench) -> None:
        assert kernel.open().refused(2).codes == {"AKF-F389"}
        assert kernel.filled("--callsite", "host_gap").refused(2).codes == {"AKF-F389"}

    def test_options_go_with_a_triage(self, kernel: Bench) -> None:
        task = inside("open-task", kernel.run, kernel.task, "--callsite", "rms-norm", "--keys", kernel.keys)
        assert task.refused(2).codes == {"AKF-F389"}

    def test_a_task_file_alone_works_as_before(self, kernel: Bench) -> None:
        inside("open-task", kernel.run, kernel.task, "--keys", kernel.keys).accepted()
        assert kernel.frozen("rmsnorm")["opportunity"] is None
        assert sound(kernel)["triages"] == 0


def _only_other_eps(value: Value) -> None:
    value["abi"]["attributes"][0]["values"] = [1e-5]
    for each in [*value["rows"], *value["cases"]]:
        each["attributes"]["eps"] = 1e-5


def _domain(value: Value, **bounds: int) -> None:
    size = {**value["domain"][0], **bounds}
    value["domain"] = [size]
    for operand in value["abi"]["operands"]:
        operand["shape"] = [size if isinstance(each, dict) else each for each in operand["shape"]]
    for group in ("rows", "cases"):
        value[group] = [{**each, "symbols": {"T": size["max"]}} for each in value[group]]


CONTRADICTIONS: tuple[tuple[str, Edit], ...] = (
    ("/op", lambda value: value.update(op="layer_norm")),
    ("/callsite", lambda value: value.update(callsite="another")),
    ("/graph", lambda value: value.update(graph="graph")),
    ("/type", lambda value: value.update(type="integration")),
    ("/abi/operands/0", lambda value: value["abi"]["operands"][0].update(dtype="float64")),
    ("/abi/operands/0", lambda value: value["abi"]["operands"][0]["shape"].__setitem__(1, 4097)),
    ("/abi/operands", lambda value: value["abi"]["operands"].pop(1)),
    ("/abi/operands/3", lambda value: value["abi"]["operands"].append(
        {**value["abi"]["operands"][1], "name": "bias"})),
    ("/abi/attributes", _only_other_eps),
    ("/rows/1/bytes", lambda value: value["rows"][1].update(bytes=1)),
    ("/rows/0/operations", lambda value: value["rows"][0].update(operations=1)),
    ("/domain", lambda value: _domain(value, min=9, max=16)),
)  # fmt: skip


@pytest.mark.parametrize(("place", "edit"), CONTRADICTIONS, ids=[f"{n}{p}" for n, (p, _) in enumerate(CONTRADICTIONS)])
def test_what_contradicts_the_workload_is_refused(kernel: Bench, place: str, edit: Edit) -> None:
    runs.change(kernel.task, edit)
    before = runs.tree(kernel.run)
    refused = kernel.filled().refused(4)
    assert ("AKF-F381" if place == "/domain" else "AKF-F380", place) in {
        (problem["code"], problem["pointer"]) for problem in refused.problems
    }
    assert runs.tree(kernel.run) == before


def test_a_shape_that_the_task_file_lacks_becomes_a_row_by_its_formula(kernel: Bench) -> None:
    runs.change(kernel.task, lambda value: value["rows"].pop(1))
    kernel.filled().accepted()
    assert kernel.frozen("rmsnorm")["rows"][1] == {
        "id": "t-4", "symbols": {"T": 4}, "attributes": {"eps": 1e-6}, "weight": 0.3, "bytes": 147456,
        "operations": 65536,
    }  # fmt: skip


def test_an_operator_without_a_formula_takes_the_task_files_figures(ready: runs.Ready, tmp_path: Path) -> None:
    def rename(value: Value) -> None:
        value["op"] = "my_norm"

    def campaign(value: Value) -> None:
        value["capabilities"][0]["op"] = "my_norm"
        workload = tmp_path / "traced" / value["workload"]["path"]
        workload.chmod(0o644)
        runs.change(workload, lambda found: rename(found["callsites"][0]))

    made = bench(ready, tmp_path, campaign=campaign)
    runs.change(made.task, rename)
    runs.change(made.task, lambda value: value["rows"][0].update(bytes=5))
    made.filled().accepted()
    assert [row["bytes"] for row in made.frozen("rmsnorm")["rows"]] == [5, 147456, 278528]
    runs.change(made.task, lambda value: value.update(id="short", rows=value["rows"][:2]))
    refused = made.filled().refused(4)
    assert [(problem["code"], problem["expected"]) for problem in refused.problems] == [("AKF-F381", ["T = 8"])]


def test_a_narrower_domain_has_its_own_rows_and_coverage(kernel: Bench) -> None:
    def narrow(value: Value) -> None:
        size = {**value["domain"][0], "max": 4}
        value["domain"] = [size]
        for operand in value["abi"]["operands"]:
            operand["shape"] = [size if isinstance(each, dict) else each for each in operand["shape"]]
        value["rows"] = value["rows"][:2]

    runs.change(kernel.task, narrow)
    kernel.filled().accepted()
    task = kernel.frozen("rmsnorm")
    assert [row["id"] for row in task["rows"]] == ["decode-1", "decode-4"]
    assert task["opportunity"]["coverage_ratio"] == pytest.approx(2 / 3)
    sound(kernel)


FORGED: tuple[tuple[str, Edit], ...] = (
    ("a share", lambda value: value["hotspots"][0].update(share_ratio=0.9)),
    ("an answer", lambda value: value["hotspots"][1].update(answer="kernel")),
    ("a target", lambda value: value["policy"][0].update(value=1.0001)),
    ("ready", lambda value: value.update(ready=False)),
    ("another id", lambda value: value.update(id="mine")),
)


@pytest.mark.parametrize(("name", "edit"), FORGED, ids=[name for name, _ in FORGED])
def test_a_triage_that_a_hand_changed_is_refused(kernel: Bench, name: str, edit: Edit) -> None:
    del name
    kernel.answer.chmod(0o644)
    runs.change(kernel.answer, edit)
    before = runs.tree(kernel.run)
    assert kernel.filled().refused(3).codes == {"AKF-F383"}
    assert runs.tree(kernel.run) == before


class TestTarget:
    """What a person asks for by `--target`; the Campaign states 1.2."""

    def test_a_lower_one_opens_no_task(self, kernel: Bench, tmp_path: Path) -> None:
        inside("triage", kernel.run, "--target", "1.001", "--out", tmp_path / "low.json").accepted()
        before = runs.tree(kernel.run)
        refused = kernel._replace(answer=tmp_path / "low.json").filled().refused(3)
        assert refused.codes == {"AKF-F391"}
        assert (refused.problems[0]["expected"], refused.problems[0]["found"]) == (1.2, 1.001)
        assert "--target" in refused.problems[0]["hint"]
        assert runs.tree(kernel.run) == before

    def test_a_higher_one_opens_a_task_that_says_so(self, kernel: Bench, tmp_path: Path) -> None:
        inside("triage", kernel.run, "--target", "1.3", "--out", tmp_path / "high.json").accepted()
        high = kernel._replace(answer=tmp_path / "high.json")
        high.filled().accepted()
        triage = json.loads(high.answer.read_bytes())
        assert triage["policy"][0] == {"name": "target_ratio", "value": 1.3, "source": "flag", "assumed": False}
        needed = high.frozen("rmsnorm")["opportunity"]["needed_speedup_ratio"]
        assert needed == triage["hotspots"][0]["needed_speedup_ratio"] == pytest.approx(1.857, abs=1e-3)
        assert sound(high)["triages"] == 1
        kernel.open("--callsite", "host_gap").accepted()  # the run holds the Triage without the target beside it
        assert sound(kernel)["triages"] == 2

    @pytest.mark.parametrize("target", [1.001, "1.3", True, 0.5])
    def test_one_that_a_hand_wrote(self, kernel: Bench, target: object) -> None:
        kernel.answer.chmod(0o644)
        runs.change(kernel.answer, lambda value: value["policy"][0].update(value=target, source="flag"))
        assert kernel.filled().refused(3).codes == {"AKF-F383"}

    def test_a_lower_one_that_the_supervisor_signed(self, kernel: Bench, tmp_path: Path) -> None:
        inside("triage", kernel.run, "--target", "1.001", "--out", tmp_path / "low.json").accepted()
        kernel.open("--callsite", "host_gap").accepted()
        low = json.loads((tmp_path / "low.json").read_bytes())
        path = "triage/triage-decode.json"
        runs.resign(kernel.run, path, lambda value: value.update(low, id=value["id"]), kernel.keys)
        TestFrozen.broken(kernel, "AKF-F383")


class TestOtherCaptures:
    """A Triage that looked at a further Capture, in which another kernel does the same work faster."""

    @pytest.fixture
    def rival(self, kernel: Bench, tmp_path: Path) -> Path:
        fast = [
            captures.kernel(0.1, "rms-norm", name="fused", tokens=tokens, graph="eager", core_type="cpu")
            for tokens in (1, 4, 8)
        ]
        other = tmp_path / "other.json"
        other.write_text(json.dumps(captures.capture(*fast, id="other", platform="host")))
        inside("triage", kernel.run, "--capture", other, "--out", tmp_path / "with.json").accepted()
        return other

    def test_it_becomes_a_task_and_the_run_keeps_the_capture(self, kernel: Bench, rival: Path, tmp_path: Path) -> None:
        made = kernel._replace(answer=tmp_path / "with.json")
        assert made.open("--capture", rival).accepted().document["type"] == "integration"
        [held] = (kernel.run / "captures").glob("*[0-9a-f].json")
        assert digest(held.read_bytes()) == "sha256:" + held.stem
        assert [line.event for line in Run.open(kernel.run).lines()] == ["run", "capture", "triage", "task"]
        assert sound(made)["triages"] == 1
        made.open("--callsite", "host_gap").accepted()  # the run has the Capture
        assert sound(made)["tasks"] == 2

    def test_without_the_capture_it_is_refused(self, kernel: Bench, rival: Path, tmp_path: Path) -> None:
        before = runs.tree(kernel.run)
        made = kernel._replace(answer=tmp_path / "with.json")
        refused = made.open().refused(4)
        assert refused.codes == {"AKF-F390"}
        assert "--capture FILE" in refused.problems[0]["hint"]
        slower = tmp_path / "slower.json"
        slower.write_text(rival.read_text().replace("fused", "fuses"))
        assert made.open("--capture", slower).refused(2).codes == {"AKF-F389"}
        assert kernel.open("--capture", rival).refused(2).codes == {"AKF-F389"}
        assert inside("open-task", kernel.run, kernel.task, "--capture", rival).refused(2).codes == {"AKF-F389"}
        assert runs.tree(kernel.run) == before

    def test_a_capture_that_is_gone_or_changed(self, kernel: Bench, rival: Path, tmp_path: Path) -> None:
        kernel._replace(answer=tmp_path / "with.json").open("--capture", rival).accepted()
        [held] = (kernel.run / "captures").glob("*[0-9a-f].json")
        path = held.relative_to(kernel.run).as_posix()
        runs.resign(kernel.run, path, lambda value: value.update(title="Another"), kernel.keys)
        TestFrozen.broken(kernel, "AKF-I203")
        held.unlink()
        TestFrozen.broken(kernel, "AKF-I202")


def test_the_triage_of_another_run_is_refused(kernel: Bench, ready: runs.Ready, tmp_path: Path) -> None:
    other = bench(ready, tmp_path / "other", _gap)
    assert kernel._replace(answer=other.answer).open().refused(3).codes == {"AKF-F382"}


def test_the_same_bytes_in_another_form_are_the_same_triage(kernel: Bench, tmp_path: Path) -> None:
    loose = tmp_path / "loose.json"
    loose.write_text(json.dumps(json.loads(kernel.answer.read_bytes()), indent=3))
    kernel._replace(answer=loose).filled().accepted()
    assert (kernel.run / "triage" / "triage-decode.json").read_bytes() == kernel.answer.read_bytes()


def test_five_steps_are_a_first_look_and_no_task(ready: runs.Ready, tmp_path: Path) -> None:
    def short(value: Value) -> None:
        line = value["breakdown"][0]
        line |= {"steps": 5, "steps_ns": line["steps_ns"][:5]}
        line["step_ns"] = sum(line["steps_ns"])
        del line["steps_lines"]
        line["host_gap_ns"] = line["step_ns"] // 4
        line["computing_ns"] = line["step_ns"] - line["host_gap_ns"]
        for entry in value["entries"]:
            entry["steps_exposed_ns"] = entry["steps_exposed_ns"][:5]
            entry["exposed_ns"] = sum(entry["steps_exposed_ns"])

    made = bench(ready, tmp_path, short)
    refused = made.filled().refused(4)
    assert refused.codes == {"AKF-F384"}
    assert "cannot be told yet" in refused.problems[0]["message"]
    assert "akf ingest profile" in refused.problems[1]["hint"]


class TestFrozen:
    """What somebody with the supervisor's key could write; audit and judge derive it again."""

    def test_a_share_that_was_raised_in_the_task(self, kernel: Bench) -> None:
        kernel.filled().accepted()
        runs.resign(kernel.run, "tasks/rmsnorm.json", lambda v: v["opportunity"].update(share_high_ratio=0.99),
                    kernel.keys)  # fmt: skip
        self.broken(kernel, "AKF-F387")

    def test_an_opportunity_that_was_taken_away(self, kernel: Bench) -> None:
        kernel.filled().accepted()
        runs.resign(kernel.run, "tasks/rmsnorm.json", lambda v: v.update(opportunity=None), kernel.keys)
        self.broken(kernel, "AKF-I204")

    def test_a_triage_that_the_inputs_do_not_give(self, kernel: Bench) -> None:
        kernel.open("--callsite", "host_gap").accepted()
        path = "triage/triage-decode.json"
        runs.resign(kernel.run, path, lambda v: v["hotspots"][0].update(share_ratio=0.9), kernel.keys)
        self.broken(kernel, "AKF-F383")

    def test_a_triage_that_is_gone(self, kernel: Bench) -> None:
        kernel.filled().accepted()
        (kernel.run / "triage" / "triage-decode.json").unlink()
        self.broken(kernel, "AKF-I202")

    @staticmethod
    def broken(made: Bench, code: str) -> None:
        with pytest.raises(AkfError) as refused:
            audit(made.run, made.keys / "trust.json")
        assert refused.value.exit_code == 3
        assert code in {problem.code for problem in refused.value.problems}


class TestWithoutKernel:
    """A Task that asks for no kernel takes no candidate, and nothing crashes on it."""

    def test_submit(self, kernel: Bench, tmp_path: Path) -> None:
        kernel.open("--callsite", "host_gap").accepted()
        folder = runs.submission(tmp_path / "folder", edit=lambda v: v.update(task="pipeline-host_gap"))
        refused = inside("submit", kernel.run, folder, "--keys", kernel.keys).refused(4)
        assert refused.codes == {"AKF-F373"}
        sound(kernel)

    def test_build_evaluate_and_judge(self, open_run: Path, ready: runs.Ready, tmp_path: Path) -> None:
        """Even where a Task lost its ABI after a candidate was submitted, each command says so."""
        inside("submit", open_run, runs.submission(tmp_path / "f"), "--keys", ready.keys).accepted()
        runs.resign(open_run, "tasks/rmsnorm.json", _stripped, ready.keys)
        parent = Run.open(open_run).load("tasks/rmsnorm.json")
        ref = {"kind": "Task", "id": "rmsnorm", "digest": digest(parent.source)}
        path = "attempts/rmsnorm-fused/candidate.json"
        runs.resign(open_run, path, lambda v: v["parents"].__setitem__(1, ref), ready.keys)
        assert inside("build", open_run, "rmsnorm-fused", "--keys", ready.keys).refused(4).codes == {"AKF-F373"}
        gates = open_run / "attempts" / "rmsnorm-fused" / "gates"
        assert inside("judge", open_run, gates, "--keys", ready.keys).refused(4).codes == {"AKF-F373"}
        assert inside("status", open_run).accepted()


def _stripped(value: Value) -> None:
    value |= {"type": "pipeline", "abi": None, "rows": [], "cases": [], "domain": [], "routes": [], "tolerance": None}
    value |= {"reference": None, "perturbed": []}
    value["problem"] = {"subject": "host_gap", "rule": "HOST_GAP", "lever": "The host.", "evidence": ["It waits."]}


def test_a_hand_written_opportunity_is_refused(kernel: Bench) -> None:
    kernel.filled().accepted()
    stated = kernel.frozen("rmsnorm")["opportunity"]
    runs.change(kernel.task, lambda value: value.update(id="mine", opportunity=stated))
    with pytest.raises(AkfError) as refused:
        open_task(kernel.run, kernel.task, kernel.keys)
    assert {problem.code for problem in refused.value.problems} == {"AKF-M034"}
    with pytest.raises(PreconditionError) as contradicted:
        open_task(kernel.run, kernel.answer, kernel.keys, template=kernel.task)
    assert ("AKF-F380", "/opportunity") in {(each.code, each.pointer) for each in contradicted.value.problems}


FORM: tuple[tuple[str, str, Edit], ...] = (
    *(("AKF-F370", f"/{name}", lambda value, name=name: value.update({name: None}))
      for name in ("op", "callsite", "graph", "abi", "tolerance", "reference")),
    *(("AKF-F370", f"/{name}", lambda value, name=name: value.update({name: []}))
      for name in ("routes", "rows", "perturbed")),
    ("AKF-F371", "/abi", lambda value: value.update(type="pipeline")),
    ("AKF-F372", "", lambda value: value.update(type="configuration")),
    ("AKF-F372", "/problem", lambda value: value.update(problem={
        "subject": "x", "rule": "HOST_GAP", "lever": "x", "evidence": ["x"]})),
)  # fmt: skip


@pytest.mark.parametrize(("code", "place", "edit"), FORM, ids=[f"{code}{place}" for code, place, _ in FORM])
def test_what_a_tasks_type_demands_is_named(kernel: Bench, code: str, place: str, edit: Edit) -> None:
    runs.change(kernel.task, edit)
    refused = inside("open-task", kernel.run, kernel.task, "--keys", kernel.keys).refused(1)
    assert (code, place) in {(problem["code"], problem["pointer"]) for problem in refused.problems}
