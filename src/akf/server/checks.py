"""What is refused at submission, before anything is stored.

Invariants:
- Nothing of a submission is imported or run here; the reference is only parsed.
- A refusal names the value, and the values that are allowed.
- A job that passes here can be named by a file: `op_name` holds no separator and no dot.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable

from akf.contracts.text import show
from akf.fabric.platforms import one_of, platform
from akf.server.wire import KNOWN_EXTRAS, Submit

OP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}", re.ASCII)
DSLS = {
    "ascend": (
        "triton_ascend", "triton-russia", "swft", "tilelang_npuir", "ascendc", "torch", "pypto",
    ),
    "cuda": ("triton_cuda", "cuda_c", "tilelang_cuda", "torch"),
    "cpu": ("cpp", "torch"),
}  # fmt: skip
"""Languages of candidates by backend."""
TRITON = {"ascend": "triton_ascend", "cuda": "triton_cuda"}
FRAMEWORKS = ("torch", "numpy")
WORKFLOWS = (
    "coder_only_workflow", "default_workflow", "conductor_connect_all_workflow", "connect_all_workflow",
    "kernelgen_only_workflow", "verifier_only_workflow",
)  # fmt: skip


class Refused(Exception):  # noqa: N818 - the answer of an endpoint, with its status
    """A request that is refused, with the HTTP status and the sentence that says why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def checked(job: Submit, job_types: Iterable[str], *, strict: bool) -> tuple[dict[str, object], list[str]]:
    """What is kept of a submission, and the names of what is not.

    Raises:
        Refused: 400 with everything that is wrong.
    """
    extras = job.model_extra or {}
    unknown = sorted(name for name in extras if name not in KNOWN_EXTRAS)
    dsl = TRITON.get(job.backend, job.dsl) if job.dsl == "triton" else job.dsl
    problems = []
    if not OP_NAME.fullmatch(job.op_name):
        problems.append(f"op_name {show(job.op_name)} is no name: letters, digits, dashes and underscores")
    problems += [
        *one_of("job_type", job.job_type, sorted(job_types)),
        *platform(job.backend, job.arch),
        *(one_of("dsl", dsl, DSLS[job.backend]) if job.backend in DSLS else ()),
        *one_of("framework", job.framework, FRAMEWORKS),
        *one_of("workflow", job.workflow, WORKFLOWS),
        *reference(job.task_desc),
        *(candidate(job.init_code) if job.init_code is not None else ()),
    ]
    if strict and unknown:
        problems.append("unknown fields: " + ", ".join(map(show, unknown)))
    if problems:
        raise Refused(400, "; ".join(problems))
    kept = job.model_dump(exclude=set(extras)) | {name: extras[name] for name in extras if name in KNOWN_EXTRAS}
    return kept | {"dsl": dsl}, unknown


def reference(source: str) -> list[str]:
    """What is wrong with a reference: it must define Model, its inputs and what Model is made with."""
    tree = _parsed("task_desc", source)
    if isinstance(tree, str):
        return [tree]
    classes, functions = _defined(tree)
    problems = [] if "Model" in classes else ["task_desc defines no class Model"]
    if not functions & {"get_inputs", "get_inputs_dyn_list"}:
        problems.append("task_desc defines no function get_inputs")
    if "get_init_inputs" not in functions:
        problems.append("task_desc defines no function get_init_inputs")
    return problems


def candidate(source: str) -> list[str]:
    """What is wrong with a candidate: it must define ModelNew."""
    tree = _parsed("init_code", source)
    if isinstance(tree, str):
        return [tree]
    return [] if "ModelNew" in _defined(tree)[0] else ["init_code defines no class ModelNew"]


def _defined(tree: ast.Module) -> tuple[set[str], set[str]]:
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return classes, functions


def _parsed(name: str, source: str) -> ast.Module | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # the source's own affair
            return ast.parse(source)
    except SyntaxError as error:
        return f"{name} is no Python: line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{name} is no Python: {show(str(error))}"
