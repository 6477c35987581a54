"""What a trial loads: the candidate, and the Task's plain and wrong kernels, as modules or compiled alike.

Invariants:
- The candidate's files are read once, as data from an untrusted hand; nothing of them is imported here.
- Compiled kernels get the same flags in the same kind of sandbox, each in a folder of its own.
- A candidate that does not compile is an answer; a kernel of the Task that does not is the Task's fault.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from akf.build.engine import bench
from akf.build.objects import build_subject
from akf.candidates.submit import read_submission
from akf.contracts.canonical import digest
from akf.contracts.files import read_input
from akf.contracts.gates import PYTHON
from akf.contracts.problems import PreconditionError
from akf.evaluate.request import Objects, PythonObject, PythonObjects, python_object
from akf.frameworks.host_reference import Baseline
from akf.routes.host_cpp import NATIVE, PRODUCT, launcher_source
from akf.routes.launch_check import checked_launch
from akf.routes.launch_spec import LaunchSpec
from akf.routes.route import Job, route
from akf.routes.tools import Place
from akf.store.untrusted import TreeFile

ROUTE = "host_cpp"


class NotBuilt(Exception):  # noqa: N818 - an answer about the candidate, no fault
    """The candidate does not compile.

    Attributes:
        check: The check that says so.
    """

    def __init__(self, code: str, note: str) -> None:
        super().__init__(note)
        self.check = {
            "name": "build", "category": "evidence", "outcome": "fail", "profiler": "off", "reasons": [code],
            "note": note[:1000],
        }  # fmt: skip


class _Claim(NamedTuple):
    """What a candidate says of itself, and its sources."""

    abi: str
    route: str | None
    launch: str | None
    sources: list[TreeFile]


def objects_of(task: dict[str, Any], candidate: Path, work: Path) -> Objects | PythonObjects:
    """Everything that one trial loads, in folders below `work`.

    Raises:
        NotBuilt: the candidate does not compile.
        InvalidError: its folder, or its launch spec, is invalid.
        PreconditionError: it is of another ABI than the Task's, or of a route that is not compiled here.
        BlockedError: there is no compiler.
    """
    claim = _claim(candidate)
    kind = task["abi"]["kind"]
    if claim.abi != kind:
        message = f"the Task {task['id']!r} is called by the {kind} ABI, the candidate by the {claim.abi} ABI"
        hint = "one Python file is of the python ABI; a folder names its ABI in candidate.json"
        raise PreconditionError.of("AKF-P410", message, file=str(candidate), expected=kind, found=claim.abi, hint=hint)
    if kind == PYTHON:
        return PythonObjects(
            _module(brought(task, "plain", PYTHON), work / "plain"),
            _module(claim.sources, work / "candidate"),
            _module(brought(task, "perturbed", PYTHON), work / "perturbed"),
        )
    return _compiled(task, claim, candidate, work)


def brought(task: dict[str, Any], name: str, by: str) -> list[TreeFile]:
    """Files of a kernel that the Task brings along: its `plain` or its `perturbed` one of a route.

    Raises:
        PreconditionError: it brings none.
    """
    kernel = next((each for each in task.get(name, ()) if each["route"] == by), None)
    if kernel is None:
        message = f"the Task {task['id']!r} brings no {name} kernel of {by}, so nothing can be compared with it"
        raise PreconditionError.of("AKF-P411", message, hint=f"add one to the Task's `{name}`")
    return [TreeFile(each["path"], each["text"].encode(), False) for each in kernel["files"]]


def _claim(candidate: Path) -> _Claim:
    if not candidate.is_dir():
        return _Claim(PYTHON, None, None, [TreeFile("kernel.py", read_input(candidate), False)])
    manifest, sources = read_submission(candidate)
    return _Claim(manifest.value["abi"], manifest.value["route"], manifest.value.get("launch"), sources)


def _module(files: list[TreeFile], folder: Path) -> PythonObject:
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    return python_object(folder)


def _compiled(task: dict[str, Any], claim: _Claim, shown: Path, work: Path) -> Objects:
    if claim.route != ROUTE or claim.launch is None:
        message = f"a trial compiles {ROUTE} only, not {claim.route}"
        hint = "build it outside a run: akf build SOURCE --route ROUTE --soc SOC --out FOLDER"
        raise PreconditionError.of("AKF-P412", message, file=str(shown), found=claim.route, hint=hint)
    spec, launch = checked_launch(claim.sources, claim.launch, task, ROUTE, f"{shown.name}/src/{claim.launch}")
    trees = {
        "candidate": claim.sources,
        "launcher": [TreeFile("launcher.cpp", launcher_source(spec).encode(), False)],
        "perturbed": brought(task, "perturbed", ROUTE),
        "plain": brought(task, "plain", ROUTE),
    }
    paths = {name: _kernel(name, files, spec, work) for name, files in trees.items()}
    digests = {name: digest(path.read_bytes()) for name, path in paths.items()}
    baseline = Baseline(paths["plain"], paths["launcher"], spec, digests["plain"], digests["launcher"])
    outputs = [
        {"subject": name, "role": "kernel_object", "path": str(paths[name].relative_to(work)), "digest": digests[name]}
        for name in trees
    ]
    return Objects(baseline, work, {"outputs": outputs, "launch": launch})


def _kernel(name: str, files: list[TreeFile], spec: LaunchSpec, work: Path) -> Path:
    """Compile one tree; the path of its object."""
    chosen = route(ROUTE)
    soc = chosen.target(NATIVE)
    job = Job(tuple(file.path for file in files), {}, soc, soc, spec)
    symbol = None if name == "launcher" else spec.symbol
    product = build_subject(bench(chosen, job, Place()), job, files, work / f"build-{name}", name, symbol)
    if not product.built:
        note = " ".join(product.made.errors)
        if name == "candidate":
            raise NotBuilt(product.made.outcome.code if product.made.outcome else "BUILD_FAILED", note)
        raise PreconditionError.of("AKF-P411", f"the Task's {name} kernel does not compile here: {note[:300]}")
    path = work / name / PRODUCT
    path.parent.mkdir()
    path.write_bytes(product.made.files[PRODUCT])
    return path
