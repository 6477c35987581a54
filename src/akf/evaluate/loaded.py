"""What an evaluation loads beside the candidate: the incumbent, as the Campaign froze it.

Invariants:
- The incumbent is the arm's own operator. Where candidates are modules it is the Task's plain module instead, if the
  Campaign's incumbent digest is that module's: the digest decides, nobody's word.
- An incumbent that cannot be called as the Task says is compared with nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akf.contracts.canonical import digest
from akf.contracts.gates import PYTHON, routes_of
from akf.contracts.problems import PreconditionError
from akf.contracts.tree import module_digest, tree_digest
from akf.evaluate.request import Objects, PythonObject, PythonObjects
from akf.evaluate.subject import Subject
from akf.frameworks.host_reference import Baseline
from akf.routes.launch_check import abi_of
from akf.routes.launch_spec import LaunchSpecError, check_against
from akf.store.untrusted import TreeFile

Incumbent = Baseline | PythonObject


def incumbent(subject: Subject, arm: Baseline, work: Path) -> Incumbent:
    """The incumbent of the Task's operator; a module is written below `work`.

    Raises:
        PreconditionError: the arm's operator cannot be called as the Task's.
    """
    task, wanted = subject.task, subject.campaign["baseline"]["incumbent_digest"]
    files = _plain(task) if routes_of(task) == (PYTHON,) else []
    found = tree_digest((file.path, False, digest(file.data)) for file in files)
    if files and found == wanted:
        folder = work / "incumbent"
        for file in files:
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
            path.chmod(0o444)
        return PythonObject(folder, found)
    try:
        check_against(arm.spec, abi_of(task))
    except LaunchSpecError as error:
        message = f"the arm's operator is not the Task's {task['op']}: {error}"
        hint = f"a Campaign whose incumbent is the Task's plain module has the incumbent_digest {found}"
        raise PreconditionError.of("AKF-P119", message, found=wanted, hint=hint if files else None) from error
    return arm


def objects_of(subject: Subject, mine: Incumbent, folder: Path | None) -> Objects | PythonObjects:
    """The objects of one evaluation.

    Args:
        subject: the attempt.
        mine: the incumbent.
        folder: the Build's outputs; None while only the incumbent runs.
    """
    build = subject.build
    if isinstance(mine, Baseline) and build["route"] != PYTHON:
        return Objects(mine, folder, None if folder is None else build)
    if folder is None:
        return PythonObjects(mine)
    candidate, perturbed = (
        PythonObject(folder / name, module_digest(build, name)) for name in ("candidate", "perturbed")
    )
    return PythonObjects(mine, candidate, perturbed)


def _plain(task: dict[str, Any]) -> list[TreeFile]:
    kernels = [each for each in task.get("plain", ()) if each["route"] == PYTHON]
    return [TreeFile(file["path"], file["text"].encode(), False) for each in kernels for file in each["files"] or ()]
