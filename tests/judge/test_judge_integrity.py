"""Row 0: what does not hold gives no Decision at all, exit status 3, and says what it is."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from tests.support.evidence import Changes, Made, RunMaker, Value, deciding, evidence

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.gates import GATES
from akf.contracts.problems import IntegrityError
from akf.store.run import checked, facts_of
from akf.store.verify import signature_path
from akf.trust import dsse
from akf.trust.roles import ROLES

BASE = "attempts/fused"
GATE = f"{BASE}/gates/operator.json"
PLAN = f"{BASE}/plan/operator.json"


@cache
def sound() -> Made:
    return evidence(others=2)


@pytest.fixture
def made() -> Made:
    return Made(dict(sound().files), sound().candidate, sound().signers)


def refused(made: Made, *codes: str) -> str:
    """The judge refuses with these codes among its problems; returns all it said."""
    with pytest.raises(IntegrityError) as caught:
        made.decide()
    assert caught.value.exit_code == 3
    assert set(codes) <= {problem.code for problem in caught.value.problems}, str(caught.value)
    return str(caught.value)


def rewrite(made: Made, path: str, change: Callable[[Value], object], role: str | None = None) -> None:
    """Change an artifact as somebody could who holds its owner's key and writes into the folder."""
    value = made.value(path)
    change(value)
    made.put(path, value, role=role)


def test_the_run_that_these_tests_damage_is_sound(made: Made) -> None:
    assert deciding(made.decide()) == ("promotable", 7, "ALL_GATES_HOLD")


# Files in gates/


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "operator.json.bak",
        "operator",
        "Operator.json",
        "gate.json",
        "decision.json",
        "x/operator.json",
        ".a",
    ],
)
def test_a_stray_file_among_the_gates_is_refused(made: Made, name: str) -> None:
    made.files[f"{BASE}/gates/{name}"] = made.files[GATE]
    assert name in refused(made, "AKF-I208")


def test_a_signature_whose_gate_never_appeared_changes_nothing() -> None:
    made = evidence(gates=GATES[:2])
    before = made.decide()
    made.files[f"{BASE}/gates/model.sig.json"] = made.files[signature_path(GATE)]
    assert made.decide() == before


@pytest.mark.parametrize("other", [gate for gate in GATES if gate != "operator"])
def test_a_gate_under_another_gates_name_is_refused(made: Made, other: str) -> None:
    for path in (GATE, signature_path(GATE)):
        made.files[path.replace("operator", other)] = made.files[path]
    refused(made, "AKF-I203")


def test_a_copy_in_the_place_of_a_gate_that_was_not_made_is_refused() -> None:
    made = evidence(gates=GATES[:2])
    for path in (GATE, signature_path(GATE)):
        made.files[path.replace("operator", "model")] = made.files[path]
    refused(made, "AKF-I203")


def test_a_renamed_gate_is_missed_under_its_name(made: Made) -> None:
    for path in (GATE, signature_path(GATE)):
        made.files[path.replace("operator.", "operator-2.")] = made.files.pop(path)
    refused(made, "AKF-I202", "AKF-I208")


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_the_ledger_names_must_be_there(made: Made, gate: str) -> None:
    for path in (f"{BASE}/gates/{gate}.json", f"{BASE}/gates/{gate}.sig.json"):
        del made.files[path]
    assert f"gates/{gate}.json is missing" in refused(made, "AKF-I202")


def test_a_gate_of_another_arm_is_refused_whatever_its_label_says(made: Made) -> None:
    other = evidence(platform="ascend")
    for path in (GATE, signature_path(GATE)):
        made.files[path] = other.files[path]
    refused(made, "AKF-I205")
    label = other.value("gates/operator.json")
    label["identity"] = made.value("gates/operator.json")["identity"]
    made.put(GATE, label)
    refused(made, "AKF-I205")


def test_a_gate_of_another_run_of_the_same_campaign_is_refused(made: Made) -> None:
    other = evidence(others=2, edit={"run": lambda run: run.update(nonce="1" * 64)})
    for path in (GATE, signature_path(GATE), PLAN, signature_path(PLAN)):
        made.files[path] = other.files[path]
    refused(made, "AKF-I205", "AKF-I211")


def test_a_gate_replayed_from_another_attempt_is_refused() -> None:
    run = RunMaker(Changes(candidate="first"))
    run.attempt()
    run.attempt(candidate="second", gates=("environment",))
    made = run.made("second")
    lines = made.lines()
    for folder in ("plan", "gates", "samples"):
        for path, data in list(made.files.items()):
            if path.startswith(f"attempts/first/{folder}/operator"):
                made.files[path.replace("first", "second")] = data
    refused(made, "AKF-I204", "AKF-T006")
    for line in [
        line for line in lines if line["path"].startswith(("attempts/first/plan/o", "attempts/first/gates/o"))
    ]:
        facts = line["facts"] | {"candidate": "second"}
        lines.append(line | {"path": line["path"].replace("first", "second"), "facts": facts})
    made.rechain(lines)
    refused(made, "AKF-I204")


# Bytes and signatures


def test_an_edited_gate_is_refused(made: Made) -> None:
    made.files[GATE] = made.files[GATE].replace(b'"outcome":"pass"', b'"outcome":"fail"', 1)
    refused(made, "AKF-I211", "AKF-T007")


def test_a_gate_that_its_evaluator_signed_anew_has_other_bytes_than_the_ledger(made: Made) -> None:
    value = made.value("gates/operator.json")
    value["checks"][0]["note"] = "again"
    made.files[GATE] = checked(value)
    made.files[signature_path(GATE)] = dsse.sign(GATE, made.files[GATE], made.signers["evaluator"])
    refused(made, "AKF-I211")


OWNED = {
    GATE: "evaluator",
    PLAN: "evaluator",
    f"{BASE}/build.json": "builder",
    f"{BASE}/candidate.json": "supervisor",
    "tasks/rmsnorm.json": "supervisor",
    "campaign.json": "supervisor",
}
FOREIGN = [(path, role) for path, owner in OWNED.items() for role in (*ROLES, "stranger") if role != owner]


@pytest.mark.parametrize(("path", "role"), FOREIGN)
def test_a_key_that_does_not_own_an_artifact_cannot_sign_it(made: Made, path: str, role: str) -> None:
    signer = made.signers[role]
    made.files[signature_path(path)] = dsse.sign(path, made.files[path], signer)
    refused(made, "AKF-T004")
    claimed = json.loads(made.files[signature_path(path)])
    claimed["signatures"][0]["keyid"] = made.signers[OWNED[path]].key_id
    made.files[signature_path(path)] = _canonical(claimed)
    refused(made, "AKF-T005")


def test_a_signature_of_another_artifact_is_none(made: Made) -> None:
    made.files[signature_path(GATE)] = made.files[signature_path(f"{BASE}/gates/model.json")]
    refused(made, "AKF-T006", "AKF-T007")


@pytest.mark.parametrize("path", sorted(path for path in evidence().files if path.endswith(".sig.json")))
def test_no_signature_may_be_missing(made: Made, path: str) -> None:
    del made.files[path]
    refused(made, "AKF-I206")


def test_an_unsigned_run_holds_no_signature() -> None:
    made = evidence(signed=False)
    made.files[signature_path(GATE)] = dsse.sign(GATE, made.files[GATE], made.signers["evaluator"])
    refused(made, "AKF-I206")


def _canonical(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode() + b"\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"status":"pass"', b'"status":"fail","status":"pass"'),
        (b'"status":"pass"', b'"status": "pass"'),
        (b'"status":"pass"', b'"status":"pass","zzz":1'),
        (b'"resumes":0', b'"resumes":NaN'),
        (b'"resumes":0', b'"resumes":0.0'),
        (b'"resumes":0', b'"resumes":-0'),
        (b'"schema_version":1', b'"schema_version":2'),
        (b'"kind":"Gate"', b'"kind":"Plan"'),
        (b'"status":"pass"', b'"status":"\\u0070ass"'),
        (b'"status":"pass"', b'"status":"passed"'),
        (b"}\n", b"}"),
        (b"}\n", b"}\n\n"),
        (b"{", b"\xef\xbb\xbf{"),
    ],
)
def test_a_gate_is_one_canonical_document_of_its_schema(made: Made, before: bytes, after: bytes) -> None:
    """However well it is signed and however neatly the ledger names it."""
    data = made.files[GATE].replace(before, after, 1)
    assert data != made.files[GATE]
    made.files[GATE] = data
    made.files[signature_path(GATE)] = dsse.sign(GATE, data, made.signers["evaluator"], kind="Gate")
    lines = made.lines()
    next(line for line in lines if line["path"] == GATE)["digest"] = digest(data)
    made.rechain(lines)
    refused(made)


# Parents


def test_the_campaigns_policy_cannot_change_after_the_results(made: Made) -> None:
    def lower(campaign: Value) -> None:
        campaign["acceptance"]["gains"][0]["threshold_ratio"] = 0.01

    rewrite(made, "campaign.json", lower)
    refused(made, "AKF-I205")
    run = made.value("run.json")
    run["parents"][1]["digest"] = digest(made.files["campaign.json"])
    made.put("run.json", run)
    lines = made.lines()
    lines[0]["digest"] = digest(made.files["run.json"])
    made.rechain(lines)
    refused(made, "AKF-I205")


@pytest.mark.parametrize("path", ["suite.json", "campaign.json", "workload.json", "capture.json"])
def test_the_frozen_inputs_are_those_of_the_run(made: Made, path: str) -> None:
    rewrite(made, path, lambda value: value.update(id="another"))
    refused(made, "AKF-I205")


@pytest.mark.parametrize("kind", ["Run", "Task", "Candidate", "Build", "Plan"])
def test_a_gate_names_its_parents_by_kind_id_and_digest(made: Made, kind: str) -> None:
    def ref(value: Value) -> Value:
        return next(each for each in value["parents"] if each["kind"] == kind)

    for change in ({"digest": digest(b"x")}, {"id": "another"}, {"kind": "Gate"}):
        again = Made(dict(made.files), made.candidate, made.signers)
        rewrite(again, GATE, lambda value, change=change: ref(value).update(change))  # type: ignore[misc]
        refused(again)


def test_everything_in_an_attempt_is_about_one_task() -> None:
    """A gate on an easier Task of the same run says nothing about this one."""
    run = RunMaker(Changes(gates=("environment",)))
    run.attempt()
    easier = run.made().value("tasks/rmsnorm.json") | {"id": "easier", "tolerance": {"atol": 1, "rtol": 1}}
    run.record("tasks/easier.json", easier)
    parents = [run.made().value("gates/environment.json")["parents"][index] for index in (0, 2, 3)]
    parents.insert(1, {"kind": "Task", "id": "easier", "digest": digest(run.files["tasks/easier.json"])})
    run.gate("operator", parents, run.made().value("candidate.json"))
    refused(run.made(), "AKF-I204")


# The ledger


LINES = [f"{BASE}/{name}.json" for name in ("candidate", "build")]
LINES += [f"{BASE}/{folder}/{gate}.json" for folder in ("plan", "gates") for gate in GATES]


def lines_without(made: Made, *paths: str) -> None:
    made.rechain([line for line in made.lines() if line["path"] not in paths])


@pytest.mark.parametrize("at", range(1, 22, 3))
def test_a_line_that_is_edited_dropped_or_moved_breaks_the_chain(made: Made, at: int) -> None:
    raw = made.files["ledger.jsonl"].splitlines(keepends=True)
    damages: Sequence[Sequence[bytes]] = (
        [*raw[:at], raw[at].replace(b"sha256:", b"sha256:0", 1), *raw[at + 1 :]],
        [*raw[:at], raw[at].replace(b'"event":"', b'"event":"x', 1), *raw[at + 1 :]],
        [*raw[:at], *raw[at + 1 :]],
        [*raw[:at], raw[at + 1], raw[at], *raw[at + 2 :]],
        [*raw[:at], raw[at], *raw[at:]],
        [*raw[:-1], raw[-1][:-1]],
    )
    for damaged in damages:
        made.files["ledger.jsonl"] = b"".join(damaged)
        refused(made)


def test_a_ledger_without_lines_is_none(made: Made) -> None:
    made.files["ledger.jsonl"] = b""
    refused(made, "AKF-I103")
    del made.files["ledger.jsonl"]
    refused(made, "AKF-I103")


@pytest.mark.parametrize("path", LINES)
def test_a_ledger_chained_anew_without_a_line_of_the_attempt_is_refused(made: Made, path: str) -> None:
    lines_without(made, path)
    refused(made, "AKF-I210")


def test_a_gate_without_a_plan_in_the_ledger_is_refused(made: Made) -> None:
    lines_without(made, PLAN)
    refused(made, "AKF-I207")


def test_a_gate_whose_plan_came_after_it_is_refused(made: Made) -> None:
    lines = made.lines()
    at = next(index for index, line in enumerate(lines) if line["path"] == PLAN)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    made.rechain(lines)
    refused(made, "AKF-I207")


def test_no_artifact_stands_before_its_parents(made: Made) -> None:
    lines = made.lines()
    at = next(index for index, line in enumerate(lines) if line["path"] == f"{BASE}/build.json")
    lines[at - 1], lines[at] = lines[at], lines[at - 1]
    made.rechain(lines)
    refused(made, "AKF-I231")


def test_the_tries_of_others_cannot_be_taken_out_of_the_ledger(made: Made) -> None:
    """Fewer tries make the promotable claim cheaper; every signed plan says how many came before it."""
    lines_without(made, "attempts/other-0/plan/operator.json")
    refused(made, "AKF-I232")


def test_the_tries_of_others_cannot_be_given_to_another_task(made: Made) -> None:
    lines = made.lines()
    next(line for line in lines if line["path"] == "attempts/other-1/plan/operator.json")["facts"]["task"] = "x"
    made.rechain(lines)
    refused(made, "AKF-I232")


def test_an_earlier_try_of_the_same_sources_cannot_be_taken_out_of_the_ledger() -> None:
    """A source gets one gate of each kind; a further try says that it is one."""
    run = RunMaker(Changes(candidate="first", gates=("environment",)))
    run.attempt()
    run.attempt(candidate="first.r2", gates=GATES[:2])
    made = run.made("first.r2")
    assert made.decide()["verdict"] == "incomplete"
    made.rechain([line for line in made.lines() if not line["path"].startswith("attempts/first/")])
    refused(made, "AKF-I232")


@pytest.mark.parametrize("change", [{"task": "x"}, {"gate": "model"}, {"candidate": "x"}, {"secret_digest": "x"}])
def test_a_line_says_of_its_artifact_what_the_artifact_says(made: Made, change: Value) -> None:
    lines = made.lines()
    next(line for line in lines if line["path"] == PLAN)["facts"].update(change)
    made.rechain(lines)
    refused(made, "AKF-I230")


@pytest.mark.parametrize("event", ["task", "candidate", "build", "plan", "resume", "decision"])
def test_a_line_says_what_kind_of_artifact_stands_at_its_path(made: Made, event: str) -> None:
    lines = made.lines()
    next(line for line in lines if line["path"] == GATE)["event"] = event
    made.rechain(lines)
    refused(made, "AKF-I230")


def test_no_artifact_has_two_lines(made: Made) -> None:
    lines = made.lines()
    lines.append(next(line for line in lines if line["path"] == GATE))
    made.rechain(lines)
    refused(made, "AKF-I209")


def test_starting_again_is_in_the_ledger_as_often_as_in_the_gate() -> None:
    made = evidence(resumes={"operator": 1})
    assert made.decide()["tries"] == 2
    without = Made(dict(made.files), made.candidate, made.signers)
    without.rechain([line for line in made.lines() if line["event"] != "resume"])
    refused(without, "AKF-I232")
    rewrite(made, GATE, lambda gate: gate.update(resumes=0))
    refused(made, "AKF-I232")


def test_a_resumed_plan_is_one_that_the_ledger_holds(made: Made) -> None:
    lines = made.lines()
    resume = next(line for line in lines if line["path"] == PLAN) | {"event": "resume"}
    made.rechain([lines[0], resume, *lines[1:]])
    refused(made, "AKF-I230")


def test_a_tail_that_no_decision_binds_can_be_cut_but_never_promotes() -> None:
    """The one thing that cannot be seen; what is left is an attempt with fewer gates."""
    made = evidence()
    cut = [f"{BASE}/{folder}/{gate}" for folder in ("plan", "gates") for gate in GATES[3:]]
    made.files = {
        p: d
        for p, d in made.files.items()
        if not p.startswith(tuple(cut)) and "samples/s" not in p and "samples/rep" not in p
    }
    made.rechain([line for line in made.lines() if not line["path"].startswith(tuple(cut))])
    assert deciding(made.decide()) == ("incomplete", 5, "GATE_MISSING")


# Secrets and harness


def test_a_gate_reveals_the_secret_that_its_plan_committed_to(made: Made) -> None:
    rewrite(made, GATE, lambda gate: gate.update(secret="1" * 64))
    refused(made, "AKF-I214")


def test_a_secret_serves_one_plan() -> None:
    secret = "ab" * 32

    def commit(value: Value) -> None:
        value.update(
            {"secret_digest": digest(bytes.fromhex(secret))} if value["kind"] == "Plan" else {"secret": secret}
        )

    edit = {f"{folder}/{gate}": commit for folder in ("plan", "gates") for gate in ("operator", "reproduction")}
    refused(evidence(edit=edit))


def test_a_gate_ran_the_harness_that_was_planned(made: Made) -> None:
    rewrite(made, GATE, lambda gate: gate.update(harness_digest=digest(b"another harness")))
    refused(made)


# Sources, build outputs, samples


@pytest.mark.parametrize(
    "path",
    [
        f"{BASE}/source/kernel.cpp",
        f"{BASE}/build/candidate/kernel.so",
        f"{BASE}/samples/operator/op-latency.gain.jsonl",
        f"{BASE}/samples/serving/ttft-p90.aa.jsonl",
    ],
)
def test_files_are_exactly_those_that_the_artifacts_name(made: Made, path: str) -> None:
    data = made.files[path]
    for code, change in (
        ("AKF-I211", {path: data + b"\n"}),
        ("AKF-I211", {path: bytes([data[0] ^ 1]) + data[1:]}),
        ("AKF-I208", {path + ".more": data}),
        ("AKF-I208", {path.rpartition("/")[0] + "/x": b""}),
    ):
        refused(Made({**made.files, **change}, made.candidate, made.signers), code)
    del made.files[path]
    refused(made, "AKF-I202")


@pytest.mark.parametrize(
    ("path", "name"),
    [(f"{BASE}/candidate.json", "sources"), (f"{BASE}/build.json", "outputs"), (GATE, "samples")],
)
def test_a_file_is_named_once(made: Made, path: str, name: str) -> None:
    """Twice, and nobody could say which of two digests counts."""
    rewrite(made, path, lambda value: value[name].insert(0, value[name][-1] | {"digest": digest(b"other")}))
    assert "twice" in refused(made)


def test_sizes_are_those_of_the_files(made: Made) -> None:
    rewrite(made, GATE, lambda gate: gate["samples"][0].update(bytes=1))
    refused(made, "AKF-I211")


def test_the_source_digest_follows_from_the_source_files(made: Made) -> None:
    rewrite(made, f"{BASE}/candidate.json", lambda value: value.update(source_digest=digest(b"x")))
    refused(made, "AKF-I212")


# What is no input


@pytest.mark.parametrize(
    "path",
    [
        "journal.jsonl",
        "inbox/next/candidate.json",
        "attempts/other/candidate.json",
        f"{BASE}/notes.txt",
        f"{BASE}/decision.json",
        f"{BASE}/decision.sig.json",
        f"{BASE}/samples/nothing/x.jsonl",
        f"{BASE}/plan/notes.txt",
        "tasks/other.json",
    ],
)
def test_what_no_rule_reads_is_no_input(made: Made, path: str) -> None:
    before = checked(made.decide())
    made.files[path] = b"anything"
    assert checked(made.decide()) == before


def test_what_comes_after_the_last_gate_of_the_attempt_is_no_input() -> None:
    run = RunMaker(Changes())
    run.attempt()
    before = run.made().decide()
    decision = run.made().decide()
    run.record(f"{BASE}/decision.json", decision)
    run.attempt(candidate="later")
    assert checked(run.made("fused").decide()) == checked(before)


def test_a_plan_whose_gate_was_never_made_does_not_keep_the_others_from_being_judged() -> None:
    """An evaluation that crashed, or one that began after the Decision."""
    run = RunMaker(Changes(gates=GATES[:2]))
    run.attempt()
    before = checked(run.made().decide())
    whole = evidence()
    plan = whole.value("plan/model.json")
    run.record(f"{BASE}/plan/model.json", plan)
    assert checked(run.made().decide()) == before
    made = run.made()
    made.files[f"{BASE}/plan/model.json"] = made.files[PLAN]
    refused(made)


def test_a_decision_that_the_ledger_names_must_have_its_bytes() -> None:
    run = RunMaker(Changes())
    run.attempt()
    run.record(f"{BASE}/decision.json", run.made().decide())
    made = run.made()
    made.files[f"{BASE}/decision.json"] = made.files[f"{BASE}/decision.json"].replace(b"promotable", b"incomplete")
    refused(made, "AKF-I211")


def test_facts_of_the_builder_are_those_of_the_store() -> None:
    made = evidence()
    for line in made.lines()[1:]:
        assert line["facts"] == facts_of(json.loads(made.files[line["path"]]))


# Who is judged


@pytest.mark.parametrize("candidate", ["", "nobody", "../fused", "fused/gates", "fused/../fused", "FUSED"])
def test_an_attempt_that_is_not_there_is_refused(made: Made, candidate: str) -> None:
    made.candidate = candidate
    refused(made, "AKF-I202")


@pytest.mark.parametrize("path", ["run.json", "campaign.json", "suite.json", "workload.json", "capture.json"])
@pytest.mark.parametrize("data", [None, b"", b"{}\n", b"null\n", b"\xff\n", b"[" * 100 + b"\n"])
def test_a_run_without_its_root_is_refused(made: Made, path: str, data: bytes | None) -> None:
    if data is None:
        del made.files[path]
    else:
        made.files[path] = data
    refused(made)


def test_no_files_at_all_are_refused() -> None:
    refused(Made({}, "fused", {}))


def test_a_diagnostic_build_is_no_build_of_a_run(made: Made) -> None:
    rewrite(made, f"{BASE}/build.json", lambda value: value.update(diagnostic=True))
    assert "belongs to no run" in refused(made, "AKF-I401")


@pytest.mark.parametrize("dressed", [False, True], ids=["as it is", "dressed up as a gate"])
def test_what_was_executed_without_a_device_is_no_gate_whoever_signs_it(made: Made, dressed: bool) -> None:
    """The answer of `akf.evaluate.emulate`, signed with the evaluator's key and written into the ledger."""
    answer = {"diagnostic": True, "route": "triton_ascend", "stage": "linalg", "outcome": "pass", "reasons": []}
    data = canonical_bytes({**(made.value(GATE) if dressed else {}), **answer})
    made.files[GATE] = data
    made.files[signature_path(GATE)] = dsse.sign(GATE, data, made.signers["evaluator"], kind="Gate")
    made.rechain([line | ({"digest": digest(data)} if line["path"] == GATE else {}) for line in made.lines()])
    refused(made)


@pytest.mark.parametrize(
    "stage", ["source", "host_parts", "frontend_ir", "linalg", "hivm_ir", "lowered_mlir", "cpu_sim_so"]
)
def test_no_gate_stands_on_a_build_without_a_binary(stage: str) -> None:
    other = evidence(edit={"build": lambda value: value.update(stage=stage)})
    assert f"ends at {stage}" in refused(other, "AKF-I402")


# The Triage behind the Task

TRIAGE = "triage/triage-decode.json"
TASK = "tasks/rmsnorm.json"


def test_a_triage_that_is_missing(made: Made) -> None:
    del made.files[TRIAGE]
    refused(made, "AKF-I205")


def test_a_triage_that_another_role_signed(made: Made) -> None:
    made.put(TRIAGE, made.value(TRIAGE), role="evaluator")
    refused(made, "AKF-T004", "AKF-T008")


def test_a_triage_without_its_line(made: Made) -> None:
    made.rechain([line for line in made.lines() if line["path"] != TRIAGE])
    refused(made, "AKF-I210")


def test_a_triage_that_comes_after_its_task(made: Made) -> None:
    lines = made.lines()
    lines[1], lines[2] = lines[2], lines[1]
    made.rechain(lines)
    refused(made, "AKF-I231")


@pytest.mark.parametrize(
    "change",
    [
        {"share_high_ratio": 0.9}, {"ceiling_ratio": 10}, {"coverage_ratio": 0.5}, {"needed_speedup_ratio": None},
        {"hotspot": "another"}, {"hotspot": None},
    ],
    ids=str,
)  # fmt: skip
def test_an_opportunity_that_the_triage_does_not_give(change: Value) -> None:
    made = evidence(edit={"opportunity": lambda value: value.update(change)})
    refused(made, "AKF-F387")


def test_an_answer_of_another_type(made: Made) -> None:
    changed = evidence(edit={"triage": lambda value: value["hotspots"][0].update(answer="pipeline")})
    refused(changed, "AKF-F387")
    assert deciding(made.decide())[0] == "promotable"


def test_an_opportunity_without_a_triage_among_the_parents(made: Made) -> None:
    stated = made.value(TASK)["opportunity"]
    orphaned = evidence(opportunity=False, edit={"task": lambda value: value.update(opportunity=stated)})
    refused(orphaned, "AKF-I204")
