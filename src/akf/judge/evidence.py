"""Row 0 of the decision table: everything that must hold before anything is judged.

Invariants, in the order in which they are checked:
- The five root artifacts verify and agree with the Run; the ledger's chain holds from the Run's digest on.
- Task, Candidate, Build, Plans and Gates of the attempt verify, and each is in the ledger with these bytes.
- A gate that the ledger names is there; a file in `gates/` that is no gate of the ledger is refused.
- A gate stands after its plan in the ledger, reveals the plan's secret, and ran the planned harness.
- Source files, build outputs and sample files are exactly those that the artifacts name, byte for byte.
- The ledger is read up to the last gate line of the attempt: what comes later is no input.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.gates import GATES
from akf.contracts.problems import AkfError, IntegrityError, Problem
from akf.contracts.tree import tree_digest
from akf.store import layout, ledger
from akf.store.verify import Trust, verify

Artifact = dict[str, Any]
ROOT = ("suite.json", "campaign.json", "workload.json", "capture.json", "run.json")


class Evidence(NamedTuple):
    """A run and one attempt of it, verified."""

    files: Mapping[str, bytes]
    run: Artifact
    suite: Artifact
    campaign: Artifact
    workload: Artifact
    capture: Artifact
    task: Artifact
    candidate: Artifact
    build: Artifact | None
    plans: Mapping[str, Artifact]
    gates: Mapping[str, Artifact]
    lines: tuple[ledger.Line, ...]

    @property
    def tries(self) -> int:
        """k: evaluations of this Task that were started up to here."""
        return sum(
            line.event in {"plan", "resume"}
            and line.facts.get("task") == self.task["id"]
            and line.facts.get("gate") == "operator"
            for line in self.lines
        )

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
    task_id = next(ref["id"] for ref in found[f"{base}/candidate.json"]["parents"] if ref["kind"] == "Task")
    task = _try(lambda: verify(f"tasks/{task_id}.json", files, trust), problems)
    if task is not None:
        found[f"tasks/{task_id}.json"] = task.value
    prefix = _prefix(lines, base)
    problems += _entries(prefix, files, found, base)
    problems += _sources(files, found, base)
    problems += _outputs(files, found, base)
    problems += _secrets(found, base)
    problems += _samples(files, found, base)
    if problems or task is None:
        raise IntegrityError(problems)
    return Evidence(
        files=files,
        run=found["run.json"],
        suite=found["suite.json"],
        campaign=found["campaign.json"],
        workload=found["workload.json"],
        capture=found["capture.json"],
        task=task.value,
        candidate=found[f"{base}/candidate.json"],
        build=found.get(f"{base}/build.json"),
        plans=_by_gate(found, f"{base}/plan"),
        gates=_by_gate(found, f"{base}/gates"),
        lines=prefix,
    )


def _trust(files: Mapping[str, bytes]) -> Trust:
    """The Campaign's pins, from a Campaign whose bytes and shape hold; its signature is verified with them next."""
    return Trust.of(
        verify("campaign.json", {k: v for k, v in files.items() if k == "campaign.json"}, Trust(None)).value
    )


def _attempt_paths(files: Mapping[str, bytes], base: str) -> list[str]:
    own = [path for path in files if path.startswith(f"{base}/") and layout.place(path) is not None]
    return sorted(path for path in own if not path.endswith("/decision.json"))


def _by_gate(found: Mapping[str, Artifact], folder: str) -> dict[str, Artifact]:
    return {gate: found[f"{folder}/{gate}.json"] for gate in GATES if f"{folder}/{gate}.json" in found}


def _prefix(lines: tuple[ledger.Line, ...], base: str) -> tuple[ledger.Line, ...]:
    """The ledger up to the last gate line of the attempt, or else up to its last line before a decision."""
    mine = [line for line in lines if line.path.startswith(f"{base}/") and line.event != "decision"]
    gates = [line for line in mine if line.event == "gate"]
    last = (gates or mine or list(lines[:1]))[-1]
    return lines[: last.seq + 1]


def _strays(files: Mapping[str, bytes], base: str) -> list[Problem]:
    """Files in `gates/` that are neither a gate nor the signature of one."""
    wanted = {f"{base}/gates/{gate}{end}" for gate in GATES for end in (".json", ".sig.json")}
    found = []
    for path in sorted(files):
        if not path.startswith(f"{base}/gates/"):
            continue
        lonely = path.endswith(".sig.json") and path.replace(".sig.json", ".json") not in files
        if path not in wanted or lonely:
            found.append(_problem("AKF-I208", f"{path} is no gate of this attempt", path))
    return found


def _entries(
    lines: Iterable[ledger.Line], files: Mapping[str, bytes], found: Mapping[str, Artifact], base: str
) -> list[Problem]:
    """Every artifact has one line with these bytes, every line of the attempt its artifact, plans before gates."""
    problems = []
    seen: dict[str, ledger.Line] = {}
    for line in lines:
        if line.event == "resume":
            continue
        if line.path in seen:
            problems.append(_problem("AKF-I209", f"the ledger names {line.path} twice", "ledger.jsonl"))
        seen[line.path] = line
        mine = line.path.startswith(f"{base}/") and line.event != "decision"
        if mine and line.path not in files:
            problems.append(_problem("AKF-I202", f"{line.path} is missing; the ledger names it", line.path))
        if line.event == "gate" and line.path.replace("/gates/", "/plan/") not in seen:
            problems.append(_problem("AKF-I207", f"{line.path} was never planned", line.path))
    for path in sorted(found):
        if path in ROOT:
            continue
        entry = seen.get(path)
        if entry is None:
            problems.append(_problem("AKF-I210", f"{path} has no line in the ledger", path))
        elif entry.digest != digest(files[path]):
            message = f"{path} has other bytes than the ledger names"
            problems.append(_problem("AKF-I211", message, path, expected=entry.digest, found=digest(files[path])))
    return problems


def _sources(files: Mapping[str, bytes], found: Mapping[str, Artifact], base: str) -> list[Problem]:
    candidate = found[f"{base}/candidate.json"]
    named = {f"{base}/source/{each['path']}": each["digest"] for each in candidate["sources"]}
    problems = _exactly(files, named, f"{base}/source/")
    if (
        tree_digest((each["path"], each["executable"], each["digest"]) for each in candidate["sources"])
        != candidate["source_digest"]
    ):
        problems.append(
            _problem("AKF-I212", "source_digest does not follow from the source files", f"{base}/candidate.json")
        )
    return problems


def _outputs(files: Mapping[str, bytes], found: Mapping[str, Artifact], base: str) -> list[Problem]:
    build = found.get(f"{base}/build.json")
    if build is None:
        return []
    return _exactly(
        files, {f"{base}/build/{each['path']}": each["digest"] for each in build["outputs"]}, f"{base}/build/"
    )


def _samples(files: Mapping[str, bytes], found: Mapping[str, Artifact], base: str) -> list[Problem]:
    problems = []
    for gate in GATES:
        value = found.get(f"{base}/gates/{gate}.json")
        if value is None:
            continue
        named = {each["path"]: each["digest"] for each in value.get("samples", ())}
        problems += _exactly(files, named, f"{base}/samples/{gate}/")
        plan = found.get(f"{base}/plan/{gate}.json", {})
        purposes = {each["path"]: each["purpose"] for each in plan.get("measurements", ())}
        for path in named:
            shared = purposes.get(path) == "aa" and path.startswith("attempts/") and path.endswith(".jsonl")
            if not path.startswith(f"{base}/samples/{gate}/") and not shared:
                problems.append(
                    _problem("AKF-I213", f"{path} is no sample file of this gate", f"{base}/gates/{gate}.json")
                )
    return problems


def _secrets(found: Mapping[str, Artifact], base: str) -> list[Problem]:
    problems = []
    for gate in GATES:
        value, plan = found.get(f"{base}/gates/{gate}.json"), found.get(f"{base}/plan/{gate}.json")
        if value is None or plan is None:
            continue
        path = f"{base}/gates/{gate}.json"
        revealed = "sha256:" + hashlib.sha256(bytes.fromhex(value["secret"])).hexdigest()
        if revealed != plan["secret_digest"]:
            message = f"{path} reveals another secret than its plan committed to"
            problems.append(_problem("AKF-I214", message, path, expected=plan["secret_digest"], found=revealed))
        if value["harness_digest"] != plan["harness_digest"]:
            problems.append(_problem("AKF-I214", f"{path} ran another harness than planned", path))
    return problems


def _exactly(files: Mapping[str, bytes], named: Mapping[str, str], folder: str) -> list[Problem]:
    """The named files are there with these bytes, and nothing else stands in the folder."""
    problems = []
    for path, wanted in sorted(named.items()):
        if path not in files:
            problems.append(_problem("AKF-I202", f"{path} is missing", path))
        elif digest(files[path]) != wanted:
            message = f"{path} has other bytes than its artifact names"
            problems.append(_problem("AKF-I211", message, path, expected=wanted, found=digest(files[path])))
    strays = sorted(path for path in files if path.startswith(folder) and path not in named)
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
