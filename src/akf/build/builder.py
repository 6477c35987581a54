"""`build`: a Candidate's frozen sources become objects, by the Builder's hand and in its words.

Invariants:
- Sources come from the attempt's folder and are checked against the Candidate's digests before a compiler sees them.
- The launch spec agrees with the Task's ABI, operand by operand.
- SoC, toolkit and compiler are the arm's, as its Campaign names them; a combination that nobody named is not built.
- Candidate, launcher and the Task's deliberately wrong kernel are compiled with the same flags and environment; each
  for every specialisation that the support domain needs.
- The candidate is compiled twice, in two folders; whether the bytes agree is recorded, not assumed.
- A module is compiled by nothing; its Build freezes its files.
- It is shut in at least as the Campaign demands of an evaluation, or it is not begun.
- A candidate that does not compile is a Build with outcome `failed`: it stays as evidence, and no gate takes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.build.arm import CAMPAIGN, choices, compiler_of, require_capability, require_toolkit
from akf.build.engine import Bench, bench
from akf.build.module import module_build
from akf.build.objects import build_subject
from akf.build.record import record
from akf.build.variants import Kernel, build_kernel, described, frozen, kernel
from akf.contracts.canonical import digest
from akf.contracts.gates import PYTHON, routes_of
from akf.contracts.identity import capability_of
from akf.contracts.loader import Document, parse
from akf.contracts.problems import ConflictError, IntegrityError, InvalidError, PreconditionError
from akf.contracts.rules.task import require_kernel
from akf.routes.constexprs import read_rules
from akf.routes.host_cpp import NATIVE
from akf.routes.launch_check import TWIN, checked_launch, needed_specialisations, perturbed
from akf.routes.launch_spec import LaunchSpec
from akf.routes.route import Job, Route, route
from akf.routes.specialisation import call, envelope
from akf.store import layout
from akf.store.publish import StagedFolder
from akf.store.run import Run, ref, signer_for
from akf.store.untrusted import TreeFile, read_tree


def build(run_path: Path, candidate: str, keys: Path, toolchains: Sequence[str] = ()) -> dict[str, Any]:
    """Build one Candidate; returns the Build.

    Args:
        run_path: the run.
        candidate: id of the attempt.
        keys: folder of the role keys; the builder's signs.
        toolchains: ids of registered toolchains, where several would do.

    Raises:
        PreconditionError: there is no such Candidate, it is decided, nothing allows the combination, what is
            registered here is not the arm's compiler, or this machine cannot shut a build in as demanded.
        InvalidError: its launch spec is invalid or disagrees with the Task's ABI; it needs too many specialisations.
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
        value, files = _build(run, document, task, sources, toolchains)
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
    run: Run, candidate: Document, task: Document, sources: Sequence[TreeFile], toolchains: Sequence[str]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    claim = candidate.value["claim"]
    if claim["route"] == PYTHON:
        return _module(run, candidate, task, sources)
    chosen = route(claim["route"])
    require_capability(run.campaign, task.value, chosen)
    shown = f"attempts/{candidate.value['id']}/source"
    spec, text = checked_launch(sources, claim["launch"], task.value, chosen.name, f"{shown}/{claim['launch']}")
    wrong = perturbed(task.value, chosen.name)
    sides = (("candidate", sources, claim["launch"], shown), ("perturbed", wrong, TWIN, "the Task's perturbed kernel"))
    needed = {
        subject: needed_specialisations(files, path, spec, task.value, claim, where)
        for subject, files, path, where in sides
    }
    compiler = compiler_of(run.campaign, chosen, toolchains)
    blank = Job((), {}, *_soc(run.campaign, chosen), spec, choices(run.campaign, chosen))
    least = run.campaign["promotion"]["min_isolation"]
    tools = bench(chosen, _job(blank, sources), compiler.place, compiler.toolkit, least)
    if not compiler.used:
        require_toolkit(run.campaign, tools.toolkit)
    with tempfile.TemporaryDirectory(prefix="akf-build-") as scratch:
        work = Path(scratch)
        kernels = []
        for subject, files, path, where in sides:
            asked = chosen.data.specialises == "classes"
            calls = _calls(files, path, spec, task.value, claim, where) if asked else {}
            job = _job(blank, files)
            kernels.append(kernel(tools, job, files, subject, needed[subject], calls, work / f"{subject}-keys"))
        value, products = _record(run, candidate, task, tools, kernels, blank, text, work)
    if compiler.used:
        value["toolchains"] = [each.ref for each in compiler.used]
    return value, products


def _module(
    run: Run, candidate: Document, task: Document, sources: Sequence[TreeFile]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    if PYTHON not in routes_of(task.value):
        message = f"the Task {task.value['id']!r} does not take modules"
        raise PreconditionError.of("AKF-P404", message, expected=list(routes_of(task.value)), found=PYTHON)
    if capability_of(run.campaign, task.value, PYTHON) is None:
        message = f"no capability tuple of the Campaign covers {task.value['op']} on route {PYTHON} over this domain"
        raise PreconditionError.of("AKF-P404", message, file=CAMPAIGN, pointer="/capabilities", found=PYTHON)
    trees = {"candidate": sources, "perturbed": perturbed(task.value, PYTHON)}
    return module_build(candidate.value, _parents(run, candidate, task), run.campaign["environment"], trees)


def _parents(run: Run, candidate: Document, task: Document) -> list[dict[str, str]]:
    data = run.read("run.json")
    return [
        ref(parse(data, "run.json").value, data),
        ref(task.value, task.source),
        ref(candidate.value, candidate.source),
    ]


def _record(
    run: Run,
    candidate: Document,
    task: Document,
    tools: Bench,
    kernels: Sequence[Kernel],
    blank: Job,
    launch: dict[str, Any],
    work: Path,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Build everything, the candidate twice, and say what came of it."""
    spec = blank.launch
    symbol = spec.symbol if spec is not None and spec.abi == "c" else None
    mine, theirs = kernels
    first = build_kernel(tools, mine, work / "first", symbol)
    whole = mine.refused is None and all(each.built for each in first)
    second = build_kernel(tools, mine, work / "second-build", symbol) if whole else []
    own = _launcher(tools.route, spec)
    twin = build_kernel(tools, theirs, work / "perturbed", symbol)
    launchers = [build_subject(tools, _job(blank, own), own, work / "launcher", "launcher")] if own else []
    parents, products = _parents(run, candidate, task), [*first, *launchers, *twin]
    value, files = record(tools, blank.soc, candidate.value["id"], parents, launch, products, second)
    rows = [*described(mine, first), *described(theirs, twin)]
    if rows:
        value["specialisations"] = rows
    for each, built in ((mine, first), (theirs, twin)):
        manifest = frozen(each, built)
        if manifest is not None:
            row, data = manifest
            value["outputs"].append(row)
            files[row["path"]] = data
    return value, files


def _soc(campaign: dict[str, Any], chosen: Route) -> tuple[str, str]:
    """The Campaign's SoC, and what the tools call it.

    Raises:
        PreconditionError: the route compiles for this machine, and it is not the arm's.
        UsageError: the route does not compile for it.
        BlockedError: what says which machine this is is missing.
    """
    soc = campaign["environment"]["soc"]["name"]
    if not chosen.data.soc.machine:
        return soc, chosen.target(soc)
    here = chosen.target(NATIVE)
    if here != soc:
        pointer, hint = "/environment/soc/name", "build on the arm's own machine"
        message = f"this machine is {here}, the arm's is {soc}"
        raise PreconditionError.of(
            "AKF-P405", message, file=CAMPAIGN, pointer=pointer, expected=soc, found=here, hint=hint
        )
    return here, here


def _job(blank: Job, files: Sequence[TreeFile]) -> Job:
    return blank._replace(sources=tuple(file.path for file in files))


def _launcher(chosen: Route, spec: LaunchSpec | None) -> list[TreeFile]:
    texts = chosen.launcher(spec) if spec is not None else {}
    return [TreeFile(name, text.encode(), False) for name, text in sorted(texts.items())]


def _calls(
    files: Sequence[TreeFile], path: str, spec: LaunchSpec, task: dict[str, Any], claim: dict[str, Any], shown: str
) -> dict[str, dict[str, str]]:
    """Options of every row and case inside the envelope, by name, as a launch of it would have them."""
    inside = envelope(task, claim)
    rules = read_rules(files, path, shown, inside.sizes)
    found = {}
    for kind in ("row", "case"):
        for each in task.get(f"{kind}s", ()):
            if all(size in inside.sizes[name] for name, size in each["symbols"].items()):
                found[f"{kind} {each['id']}"] = call(spec, rules, each["symbols"], each["attributes"])
    return found
