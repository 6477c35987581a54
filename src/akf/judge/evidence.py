"""Row 0 of the decision table: everything that must hold before anything is judged.

Invariants, in the order in which they are checked:
- The five root artifacts verify and agree with the Run; the ledger's chain holds from the Run's digest on.
- Task, Candidate, Build, Plans and Gates of the attempt verify, are about one Task, and each has its line.
- A Task with an opportunity names a Triage of the run that verifies, and its numbers are the ones that follow from it.
- `akf.judge.lines`: what the ledger says of the attempt is what its artifacts say, in the order of their making.
- A file in `gates/` that is no gate of the ledger is refused.
- A gate reveals the secret that its plan committed to, in a digest that no other plan has, and ran the planned harness.
- Source files, build outputs and sample files are exactly those that the artifacts name, each named once.
- A sample file of another attempt is A/A only, and that attempt's own gate of the same kind and Task stands behind it.
- The ledger is read up to the last gate line of the attempt: a plan or a line that comes later is no input.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.gates import BINARY_STAGES, GATES, loadable
from akf.contracts.justified import justified_problems, triage_of
from akf.contracts.problems import AkfError, IntegrityError, Problem
from akf.contracts.tree import tree_digest
from akf.judge.lines import line_problems, prefix
from akf.store import layout, ledger
from akf.store.verify import Trust, tries, verify

Artifact = dict[str, Any]
ROOT = ("suite.json", "campaign.json", "workload.json", "capture.json", "run.json")
_SAMPLES = re.compile(rf"attempts/([a-z0-9][a-z0-9._-]{{0,62}})/samples/({'|'.join(GATES)})/[^/]+\.jsonl")


class Lender(NamedTuple):
    """The gate of another attempt whose A/A samples a gate of this one uses, with its plan."""

    gate: Artifact
    plan: Artifact


class Evidence(NamedTuple):
    """A run and one attempt of it, verified."""

    files: Mapping[str, bytes]
    run: Artifact
    suite: Artifact
    campaign: Artifact
    workload: Artifact
    capture: Artifact
    task: Artifact
    triage: Artifact | None
    candidate: Artifact
    build: Artifact | None
    plans: Mapping[str, Artifact]
    gates: Mapping[str, Artifact]
    lenders: Mapping[str, Lender]
    lines: tuple[ledger.Line, ...]

    @property
    def tries(self) -> int:
        """k: evaluations of this Task that were started up to here."""
        return tries(self.lines, self.task["id"])

    def reference(self, path: str, value: Artifact) -> dict[str, str]:
        """A parent reference to one of the files."""
        return {"kind": value["kind"], "id": value["id"], "digest": digest(self.files[path])}


def read(files: Mapping[str, bytes], candidate: str) -> Evidence:
    """Verify the files of a run for one attempt.

    Raises:
        IntegrityError: lists everything that does not hold.
    """
    base = f"attempts/{candidate}"
    problems: list[Problem] = []
    trust = _try(lambda: _trust(files), problems)
    if trust is None:
        raise IntegrityError(problems)
    found: dict[str, Artifact] = {}
    for path in [*ROOT, *_attempt_paths(files, base)]:
        document = _try(lambda path=path: verify(path, files, trust), problems)
        if document is not None:
            found[path] = document.value
    lines = _try(lambda: ledger.read(files.get("ledger.jsonl", b""), digest(files.get("run.json", b""))), problems)
    problems += _strays(files, base)
    if lines is None or f"{base}/candidate.json" not in found:
        _missing(f"{base}/candidate.json", found, problems)
        raise IntegrityError(problems)
    task_id = task_of(found[f"{base}/candidate.json"])
    task = _try(lambda: verify(f"tasks/{task_id}.json", files, trust), problems)
    triage = None
    if task is not None:
        found[f"tasks/{task_id}.json"] = task.value
        triage = _justified(files, task.value, trust, found, problems)
    mine = {path: value for path, value in found.items() if path not in ROOT}
    upto = prefix(lines, base)
    problems += _tasks(mine, task_id)
    problems += line_problems(lines, files, mine, base)
    problems += _sources(files, found, base)
    problems += _outputs(files, found, base)
    problems += _secrets(found, base, lines)
    problems += _samples(files, found, base)
    lenders = _lenders(files, found, base, upto, trust, problems)
    if problems or task is None:
        raise IntegrityError(problems)
    known = {line.path for line in upto}
    return Evidence(
        files=files,
        run=found["run.json"],
        suite=found["suite.json"],
        campaign=found["campaign.json"],
        workload=found["workload.json"],
        capture=found["capture.json"],
        task=task.value,
        triage=triage,
        candidate=found[f"{base}/candidate.json"],
        build=found.get(f"{base}/build.json") if f"{base}/build.json" in known else None,
        plans=_by_gate(found, f"{base}/plan", known),
        gates=_by_gate(found, f"{base}/gates", known),
        lenders=lenders,
        lines=upto,
    )


def task_of(value: Artifact) -> str:
    """Id of the Task that an artifact names as its parent."""
    return next(str(ref["id"]) for ref in value["parents"] if ref["kind"] == "Task")


def _justified(
    files: Mapping[str, bytes], task: Artifact, trust: Trust, found: dict[str, Artifact], problems: list[Problem]
) -> Artifact | None:
    """The Triage behind the Task, verified; the Task's opportunity is what it gives."""
    parent = triage_of(task)
    triage = None
    if parent is not None:
        path = f"{layout.TRIAGE}/{parent['id']}.json"
        document = _try(lambda: verify(path, files, trust), problems)
        if document is not None:
            triage = found[path] = document.value
    if "capture.json" in found and (triage is None) is (parent is None):
        problems += justified_problems(task, triage, found["capture.json"], f"tasks/{task['id']}.json")
    return triage


def _trust(files: Mapping[str, bytes]) -> Trust:
    """The Campaign's pins, from a Campaign whose bytes and shape hold; its signature is verified with them next."""
    return Trust.of(
        verify("campaign.json", {k: v for k, v in files.items() if k == "campaign.json"}, Trust(None)).value
    )


def _attempt_paths(files: Mapping[str, bytes], base: str) -> list[str]:
    own = [path for path in files if path.startswith(f"{base}/") and layout.place(path) is not None]
    return sorted(path for path in own if path != f"{base}/decision.json")


def _by_gate(found: Mapping[str, Artifact], folder: str, known: set[str]) -> dict[str, Artifact]:
    paths = {gate: f"{folder}/{gate}.json" for gate in GATES}
    return {gate: found[path] for gate, path in paths.items() if path in found and path in known}


def _tasks(mine: Mapping[str, Artifact], task: str) -> list[Problem]:
    """Everything in the attempt is about the Candidate's Task."""
    found = []
    for path, value in sorted(mine.items()):
        kinds = {ref["kind"] for ref in value["parents"]}
        if "Task" in kinds and task_of(value) != task:
            message = f"{path} is about another Task than its Candidate"
            found.append(_problem("AKF-I204", message, path, expected=task, found=task_of(value)))
    return found


def _strays(files: Mapping[str, bytes], base: str) -> list[Problem]:
    """Files in `gates/` that are no gate; a signature whose gate never appeared is what a killed command left."""
    wanted = {f"{base}/gates/{gate}{end}" for gate in GATES for end in (".json", ".sig.json")}
    found = []
    for path in sorted(files):
        if not path.startswith(f"{base}/gates/"):
            continue
        if path not in wanted:
            found.append(_problem("AKF-I208", f"{path} is no gate of this attempt", path))
    return found


def _sources(files: Mapping[str, bytes], found: Mapping[str, Artifact], base: str) -> list[Problem]:
    path = f"{base}/candidate.json"
    candidate = found[path]
    listed = candidate["sources"]
    problems = _exactly(files, listed, f"{base}/source/", path)
    once = len({each["path"] for each in listed}) == len(listed)  # else it is a problem already, and no tree
    if once and (
        tree_digest((each["path"], each["executable"], each["digest"]) for each in listed) != candidate["source_digest"]
    ):
        problems.append(_problem("AKF-I212", "source_digest does not follow from the source files", path))
    return problems


def _outputs(files: Mapping[str, bytes], found: Mapping[str, Artifact], base: str) -> list[Problem]:
    path = f"{base}/build.json"
    build = found.get(path)
    if build is None:
        return []
    problems = _exactly(files, build["outputs"], f"{base}/build/", path)
    measured = [gate for gate in GATES[1:] if f"{base}/gates/{gate}.json" in found]
    if measured and not loadable(build):
        message = f"the gate {measured[0]} stands on a Build that ends at {build['stage']}, before any binary"
        problems.append(_problem("AKF-I402", message, path, expected=list(BINARY_STAGES), found=build["stage"]))
    return problems


def _samples(files: Mapping[str, bytes], found: Mapping[str, Artifact], base: str) -> list[Problem]:
    problems = []
    for gate in GATES:
        path = f"{base}/gates/{gate}.json"
        value, plan = found.get(path), found.get(f"{base}/plan/{gate}.json")
        if value is None or plan is None:
            continue
        folder = f"{base}/samples/{gate}/"
        own = [each for each in value.get("samples", ()) if each["path"].startswith(folder)]
        problems += _exactly(files, [{**each, "path": each["path"][len(folder) :]} for each in own], folder, path)
        foreign = [each["path"] for each in value.get("samples", ()) if not each["path"].startswith(folder)]
        for name in foreign:
            purposes = {each["purpose"] for each in plan.get("measurements", ()) if each["path"] == name}
            if purposes != {"aa"} or foreign.count(name) > 1 or not _SAMPLES.fullmatch(name):
                problems.append(_problem("AKF-I213", f"{name} is no sample file of this gate", path))
    return problems


def _lenders(
    files: Mapping[str, bytes],
    found: Mapping[str, Artifact],
    base: str,
    lines: tuple[ledger.Line, ...],
    trust: Trust,
    problems: list[Problem],
) -> dict[str, Lender]:
    """The gates of other attempts behind A/A sample files that this attempt shares."""
    lenders = {}
    for gate in GATES:
        value = found.get(f"{base}/gates/{gate}.json")
        for each in value.get("samples", ()) if value else ():
            match = _SAMPLES.fullmatch(each["path"])
            if match is None or each["path"].startswith(f"{base}/samples/{gate}/"):
                continue
            owner, plan = (f"attempts/{match[1]}/{folder}/{match[2]}.json" for folder in ("gates", "plan"))
            both = [_try(lambda path=path: verify(path, files, trust), problems) for path in (owner, plan)]
            if None in both:
                continue
            lender = Lender(*(document.value for document in both))
            before = {line.path: line.digest for line in lines}
            holds = (
                match[2] == gate
                and task_of(lender.gate) == task_of(found[f"{base}/candidate.json"])
                and all(before.get(path) == digest(files[path]) for path in (owner, plan))
                and (each["path"], each["digest"]) in {(s["path"], s["digest"]) for s in lender.gate["samples"]}
                and digest(files.get(each["path"], b"")) == each["digest"]
            )
            if not holds:
                message = f"{each['path']} is not the A/A of a {gate} gate of this Task that the ledger holds"
                problems.append(_problem("AKF-I213", message, f"{base}/gates/{gate}.json"))
            lenders[each["path"]] = lender
    return lenders


def _secrets(found: Mapping[str, Artifact], base: str, lines: Iterable[ledger.Line]) -> list[Problem]:
    problems = []
    committed = [line.facts.get("secret_digest") for line in lines if line.event == "plan"]
    for gate in GATES:
        value, plan = found.get(f"{base}/gates/{gate}.json"), found.get(f"{base}/plan/{gate}.json")
        if plan is not None and committed.count(plan["secret_digest"]) > 1:
            message = f"{base}/plan/{gate}.json commits to a secret that another plan committed to"
            problems.append(_problem("AKF-I219", message, f"{base}/plan/{gate}.json"))
        if value is None or plan is None:
            continue
        path = f"{base}/gates/{gate}.json"
        revealed = "sha256:" + hashlib.sha256(bytes.fromhex(value["secret"])).hexdigest()
        if revealed != plan["secret_digest"]:
            message = f"{path} reveals another secret than its plan committed to"
            problems.append(_problem("AKF-I214", message, path, expected=plan["secret_digest"], found=revealed))
        if value["harness_digest"] != plan["harness_digest"]:
            problems.append(_problem("AKF-I223", f"{path} ran another harness than planned", path))
    return problems


def _exactly(
    files: Mapping[str, bytes], named: Iterable[Mapping[str, Any]], folder: str, artifact: str
) -> list[Problem]:
    """The named files are there with these bytes, each named once, and nothing else stands in the folder."""
    problems = []
    seen: set[str] = set()
    for each in named:
        path = folder + each["path"]
        data = files.get(path)
        if path in seen:
            problems.append(_problem("AKF-I218", f"{artifact} names {path} twice", artifact))
        elif data is None:
            problems.append(_problem("AKF-I202", f"{path} is missing", path))
        elif digest(data) != each["digest"] or len(data) != each["bytes"]:
            message = f"{path} has other bytes than its artifact names"
            problems.append(_problem("AKF-I211", message, path, expected=each["digest"], found=digest(data)))
        seen.add(path)
    strays = sorted(path for path in files if path.startswith(folder) and path not in seen)
    return [*problems, *(_problem("AKF-I208", f"{path} is named by no artifact", path) for path in strays)]


def _missing(path: str, found: Mapping[str, Artifact], problems: list[Problem]) -> None:
    if path not in found and not problems:
        problems.append(_problem("AKF-I202", f"{path} is missing", path))


def _problem(code: str, message: str, file: str, **more: Any) -> Problem:
    return Problem(code, message, file=file, **more)


def _try(step: Any, problems: list[Problem]) -> Any:
    try:
        return step()
    except AkfError as error:
        problems.extend(error.problems)
        return None
