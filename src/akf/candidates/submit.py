"""`submit` and `intake`: an agent's folder becomes a Candidate of a run.

Invariants:
- Everything in the folder is data from an untrusted hand; it is read once, checked, and copied under a new name.
- The folder holds `candidate.json` and `src/`, nothing else; the manifest states one hypothesis.
- One source digest is one Candidate; a further try (NAME.rN) needs a blocked or incomparable gate of the last one, or
  that the last one was decided before anything of the candidate was measured.
- The attempt's folder appears whole, signed by the supervisor; then its ledger line is added.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akf.candidates.claim import claim_problems
from akf.contracts.canonical import digest
from akf.contracts.gates import GATES, routes_of
from akf.contracts.loader import Document, parse
from akf.contracts.problems import AkfError, ConflictError, InvalidError, PreconditionError, Problem
from akf.contracts.rules.task import require_kernel
from akf.contracts.schemas import validate
from akf.contracts.tree import tree_digest
from akf.routes.launch_check import checked_launch, needed_specialisations
from akf.store import layout
from akf.store.ledger import Line
from akf.store.run import Run, ref, signer_for
from akf.store.untrusted import TreeFile, read_tree
from akf.trust.keys import Signer

MANIFEST = "candidate.json"
SOURCES = "src/"
_AGAIN = frozenset({"blocked", "incomparable"})


def submit(run_path: Path, folder: Path, keys: Path, *, retry: bool = False) -> dict[str, Any]:
    """Make a Candidate of one folder.

    Args:
        run_path: the run.
        folder: the agent's folder: `candidate.json` and `src/`.
        keys: folder of the role keys; the supervisor's signs.
        retry: take the same sources once more, as NAME.rN.

    Returns:
        The Candidate.

    Raises:
        InvalidError: manifest or files are invalid.
        PreconditionError: no such Task, route, capability or budget; or the sources were tried already.
        ConflictError: the run has a Candidate of this name.
    """
    run = Run.open(run_path)
    manifest, sources = read_submission(folder)
    with run.locked():
        signer = signer_for(run, "supervisor", keys)
        candidate = _candidate(run, manifest, sources, retry=retry)
        _publish(run, candidate, sources, signer)
    return candidate


def intake(run_path: Path, keys: Path) -> list[dict[str, Any]]:
    """Submit every folder that waits in the run's inbox, in order of name; one that is refused hinders no other.

    Returns:
        One entry a folder: its name, and the Candidate's id or the problems. A folder that was taken before keeps its
        Candidate and is no conflict.
    """
    inbox = run_path / layout.INBOX
    run = Run.open(run_path)
    results: list[dict[str, Any]] = []
    for folder in sorted(inbox.iterdir(), key=lambda path: path.name) if inbox.is_dir() else ():
        entry: dict[str, Any] = {"name": folder.name, "candidate": None, "new": False, "status": 0, "problems": []}
        try:
            entry["candidate"] = _taken(run, folder)
            if entry["candidate"] is None:
                entry.update(candidate=submit(run_path, folder, keys)["id"], new=True)
        except AkfError as error:
            entry.update(status=error.exit_code, problems=[problem.to_json() for problem in error.problems])
        results.append(entry)
    return results


def _taken(run: Run, folder: Path) -> str | None:
    """The first Candidate that was made of exactly this manifest and these sources, or None."""
    manifest, sources = read_submission(folder)
    wanted = (digest(manifest.source), tree_digest((f.path, f.executable, digest(f.data)) for f in sources))
    for line in run.lines():
        if line.event == "candidate" and line.facts.get("source_digest") == wanted[1]:
            value = run.load(line.path).value
            if value["manifest_digest"] == wanted[0]:
                return str(value["id"])
    return None


def read_submission(folder: Path) -> tuple[Document, list[TreeFile]]:
    """The manifest and the source files of an agent's folder, paths relative to `src/`.

    Raises:
        InvalidError: lists everything that is wrong with the folder or the manifest.
    """
    files = read_tree(folder, str(folder))
    problems = [
        Problem(
            "AKF-S105",
            f"{file.path} may not be here: a submission holds {MANIFEST} and {SOURCES} only",
            file=str(folder),
            found=file.path,
        )
        for file in files
        if file.path != MANIFEST and not file.path.startswith(SOURCES)
    ]
    sources = [file._replace(path=file.path.removeprefix(SOURCES)) for file in files if file.path.startswith(SOURCES)]
    manifest = next((file for file in files if file.path == MANIFEST), None)
    if manifest is None:
        problems.append(
            Problem(
                "AKF-S106",
                f"{folder} holds no {MANIFEST}",
                file=str(folder),
                hint="see AGENTS.md for what it must hold",
            )
        )
    if not sources:
        problems.append(Problem("AKF-S106", f"{folder} holds no file under {SOURCES}", file=str(folder)))
    if problems or manifest is None:
        raise InvalidError(problems)
    document = parse(manifest.data, str(folder / MANIFEST))
    found = validate(document, "CandidateManifest")
    if not found:
        found = claim_problems(document, [file.path for file in sources])
    if found:
        raise InvalidError(found)
    return document, sources


def _candidate(run: Run, manifest: Document, sources: list[TreeFile], *, retry: bool) -> dict[str, Any]:
    claim = {
        name: item
        for name, item in manifest.value.items()
        if name not in {"$schema", "kind", "schema_version", "id", "task"}
    }
    task_path = f"tasks/{manifest.value['task']}.json"
    if not (run.path / task_path).is_file():
        tasks = sorted(
            path.stem for path in (run.path / layout.TASKS).glob("*.json") if not path.name.endswith(".sig.json")
        )
        hint = "open it first: akf open-task RUN FILE" if not tasks else f"the run has: {', '.join(tasks)}"
        raise PreconditionError.of(
            "AKF-P105",
            f"the run has no Task {manifest.value['task']!r}",
            file=manifest.file,
            pointer="/task",
            expected=tasks,
            hint=hint,
        )
    task = run.load(task_path)
    require_kernel(task.value)
    _allowed(run, task.value, manifest)
    files = [
        {"path": file.path, "digest": digest(file.data), "bytes": len(file.data), "executable": file.executable}
        for file in sources
    ]
    source_digest = tree_digest((each["path"], each["executable"], each["digest"]) for each in files)  # type: ignore[misc]
    candidate_id, number = _name(run, manifest, task.value["id"], source_digest, retry=retry)
    if number == 1 and manifest.value["abi"] == "binary":
        shown = str(Path(manifest.file).with_name("src") / manifest.value["launch"])
        spec, _ = checked_launch(sources, manifest.value["launch"], task.value, manifest.value["route"], shown)
        folder = str(Path(manifest.file).with_name("src"))
        needed_specialisations(sources, manifest.value["launch"], spec, task.value, manifest.value, folder)
    run_data = run.read("run.json")
    return {
        "kind": "Candidate",
        "schema_version": 1,
        "id": candidate_id,
        "parents": [ref(parse(run_data, "run.json").value, run_data), ref(task.value, task.source)],
        "try_number": number,
        "claim": claim,
        "sources": files,
        "source_digest": source_digest,
        "manifest_digest": digest(manifest.source),
    }


def _allowed(run: Run, task: dict[str, Any], manifest: Document) -> None:
    """What the Task and the Campaign allow: route, ABI, domain and budget."""
    claim = manifest.value
    problems = []

    def refuse(pointer: str, message: str, **more: Any) -> None:
        problems.append(Problem("AKF-P106", message, file=manifest.file, pointer=pointer, **more))

    if claim["route"] not in routes_of(task):
        expected = list(routes_of(task))
        refuse("/route", f"the Task does not take route {claim['route']}", expected=expected, found=claim["route"])
    if claim["abi"] != task["abi"]["kind"]:
        refuse("/abi", f"the Task's ABI is {task['abi']['kind']}", expected=task["abi"]["kind"], found=claim["abi"])
    domain = {each["sym"]: each for each in task["domain"]}
    for name, (low, high) in (claim.get("domain") or {}).items():
        bounds = domain.get(name)
        if bounds is None:
            refuse(f"/domain/{name}", f"{name} is no symbol of the Task", expected=sorted(domain), found=name)
        elif low < bounds["min"] or high > bounds["max"]:
            refuse(
                f"/domain/{name}",
                f"{name} is declared beyond the Task's domain",
                expected=[bounds["min"], bounds["max"]],
                found=[low, high],
            )
    spent = sum(line.event == "candidate" and line.facts.get("task") == task["id"] for line in run.lines())
    limit = min(task["budget"]["attempts"], run.campaign["budget"]["attempts"])
    if spent >= limit:
        problems.append(
            Problem(
                "AKF-P107",
                f"the Task's budget of {limit} attempts is spent",
                file=manifest.file,
                expected=limit,
                found=spent,
            )
        )
    if problems:
        raise PreconditionError(problems)


def _name(run: Run, manifest: Document, task: str, source_digest: str, *, retry: bool) -> tuple[str, int]:
    """The Candidate's id and the number of this try of its sources."""
    wanted = manifest.value["id"]
    tries = [
        line
        for line in run.lines()
        if line.event == "candidate"
        and line.facts.get("task") == task
        and line.facts.get("source_digest") == source_digest
    ]
    if not tries:
        if retry:
            raise PreconditionError.of(
                "AKF-P108",
                "there is no earlier try of these sources",
                file=manifest.file,
                hint="submit without --retry",
            )
        if layout.attempt(run.path, wanted).exists():
            raise ConflictError.of(
                "AKF-C107",
                f"the run has a Candidate {wanted!r} already",
                file=manifest.file,
                pointer="/id",
                hint="choose another id",
            )
        return wanted, 1
    first, last = _attempt_of(tries[0]), _attempt_of(tries[-1])
    if not retry:
        message = f"the run has these very sources already, as {last!r}; a source gets one gate of each kind"
        raise ConflictError.of(
            "AKF-C108", message, file=manifest.file, hint="after a blocked or incomparable gate: akf submit --retry"
        )
    if wanted != first:
        raise PreconditionError.of(
            "AKF-P108",
            f"a further try keeps the name of the first: {first!r}",
            file=manifest.file,
            pointer="/id",
            expected=first,
            found=wanted,
        )
    outcomes = _outcomes(run, last)
    unmeasured = layout.decision(run.path, last).is_file() and not set(outcomes) - {"environment"}
    if not unmeasured and not set(outcomes.values()) & _AGAIN:
        message = f"{last!r} has no gate that was blocked or incomparable, so its sources may not be tried again"
        raise PreconditionError.of("AKF-P108", message, file=manifest.file, found=sorted(set(outcomes.values())))
    return f"{first}.r{len(tries) + 1}", len(tries) + 1


def _outcomes(run: Run, candidate: str) -> dict[str, str]:
    """Status of every gate that an attempt has."""
    gates = {gate: f"attempts/{candidate}/gates/{gate}.json" for gate in GATES}
    return {gate: run.load(path).value["status"] for gate, path in gates.items() if (run.path / path).is_file()}


def _attempt_of(line: Line) -> str:
    return line.path.split("/")[1]


def _publish(run: Run, candidate: dict[str, Any], sources: list[TreeFile], signer: Signer | None) -> None:
    """One folder, one rename, one line."""
    files = {f"source/{file.path}": (file.data, 0o555 if file.executable else 0o444) for file in sources}
    run.record_folder(f"attempts/{candidate['id']}/{MANIFEST}", candidate, signer, files)
