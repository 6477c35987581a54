"""`build`: a Candidate's frozen sources become objects, by the Builder's hand and in its words.

Invariants:
- Sources come from the attempt's folder and are checked against the Candidate's digests before a compiler sees them.
- The launch spec agrees with the Task's ABI, operand by operand.
- Candidate, launcher and the Task's deliberately wrong kernel are compiled with the same flags and environment.
- The candidate is compiled twice, in two folders; whether the bytes agree is recorded, not assumed.
- It is shut in at least as the Campaign demands of an evaluation, or it is not begun.
- A candidate that does not compile is a Build with outcome `failed`: it stays as evidence, and no gate takes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.build.engine import bench
from akf.build.objects import build_subject
from akf.build.record import record
from akf.contracts.canonical import digest
from akf.contracts.loader import Document, parse
from akf.contracts.problems import ConflictError, IntegrityError, InvalidError, PreconditionError
from akf.contracts.rules.task import require_kernel
from akf.frameworks import host_reference
from akf.routes.host_cpp import NATIVE, launcher_source
from akf.routes.launch_check import checked_launch, perturbed
from akf.routes.route import Job, route
from akf.routes.tools import Place
from akf.store import layout
from akf.store.publish import StagedFolder
from akf.store.run import Run, ref, signer_for
from akf.store.untrusted import TreeFile, read_tree

BUILDS_HERE = ("host_cpp",)


def build(run_path: Path, candidate: str, keys: Path) -> dict[str, Any]:
    """Build one Candidate; returns the Build.

    Raises:
        PreconditionError: there is no such Candidate, it is decided, or this machine cannot shut a
            build in as demanded.
        InvalidError: its launch spec is invalid or disagrees with the Task's ABI.
        BlockedError: the route's compiler is missing.
        ConflictError: it was built already.
    """
    run = Run.open(run_path)
    with run.locked():
        relative = f"attempts/{candidate}/build.json"
        run.need_candidate(candidate)
        run.need_open(candidate)
        if (run.path / relative).exists():
            raise ConflictError.of("AKF-C104", f"{candidate!r} was built already", file=str(run.path / relative))
        document = run.load(f"attempts/{candidate}/candidate.json")
        task_id = next(parent["id"] for parent in document.value["parents"] if parent["kind"] == "Task")
        task = run.load(f"tasks/{task_id}.json")
        require_kernel(task.value)
        signer = signer_for(run, "builder", keys)
        sources = _sources(run, candidate, document.value)
        value, files = _build(run, document, task, sources)
        with StagedFolder(layout.build_outputs(run.path, candidate), orphan_of=run.path / relative) as stage:
            for path, data in sorted(files.items()):
                stage.write(path, data)
        run.record(relative, value, signer)
    return value


def _sources(run: Run, candidate: str, value: dict[str, Any]) -> list[TreeFile]:
    try:
        files = read_tree(layout.source(run.path, candidate), f"attempts/{candidate}/source")
    except InvalidError as error:  # it was valid when it was frozen
        raise IntegrityError(error.problems) from None
    named = {each["path"]: each["digest"] for each in value["sources"]}
    if {file.path: digest(file.data) for file in files} != named:
        message = f"the source files of {candidate!r} are not the ones that it names"
        raise IntegrityError.of("AKF-I217", message, file=f"attempts/{candidate}/source")
    return files


def _build(
    run: Run, candidate: Document, task: Document, sources: Sequence[TreeFile]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    claim = candidate.value["claim"]
    if claim["route"] not in BUILDS_HERE:
        raise PreconditionError.of(
            "AKF-P110", f"this version builds {', '.join(BUILDS_HERE)} only, not {claim['route']}"
        )
    shown = f"attempts/{candidate.value['id']}/source/{claim['launch']}"
    spec, text = checked_launch(sources, claim["launch"], task.value, claim["route"], shown)
    chosen = route(claim["route"])
    host_reference.compiler()  # says what is missing before anything is asked of the route
    soc = chosen.target(NATIVE)
    wrong = perturbed(task.value, claim["route"])
    launcher = [TreeFile("launcher.cpp", launcher_source(spec).encode(), False)]

    def job(files: Sequence[TreeFile]) -> Job:
        return Job(tuple(file.path for file in files), {}, soc, soc, spec)

    tools = bench(chosen, job(sources), Place(), least=run.campaign["promotion"]["min_isolation"])
    with tempfile.TemporaryDirectory(prefix="akf-build-") as scratch:
        work = Path(scratch)
        first = build_subject(tools, job(sources), sources, work / "first", "candidate", spec.symbol)
        second = build_subject(tools, job(sources), sources, work / "second-build", "candidate", spec.symbol)
        products = [
            first,
            build_subject(tools, job(launcher), launcher, work / "launcher", "launcher"),
            build_subject(tools, job(wrong), wrong, work / "perturbed", "perturbed", spec.symbol),
        ]
    run_data = run.read("run.json")
    parents = [
        ref(parse(run_data, "run.json").value, run_data),
        ref(task.value, task.source),
        ref(candidate.value, candidate.source),
    ]
    return record(tools, soc, candidate.value["id"], parents, text, products, second)
