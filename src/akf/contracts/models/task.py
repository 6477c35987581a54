"""Task: what may be tried, within which domain, and the numbers that justify it. Owner: supervisor.

Invariants:
- A frozen Task carries the text of its reference and of its deliberately wrong ("perturbed") kernels, so that one digest
  covers all of them; the candidate's process never sees them.
- `opportunity: null` means that no triage stands behind the Task; it then cannot lead past inventory. Otherwise the
  Triage is a parent of the Task, and every number is the Triage's.
- A Task whose candidates are Python states a plain module and a deliberately wrong one in the place of routes.
- A `kernel` Task states ABI, rows, tolerance, reference and perturbed kernels; so does an `integration` Task where a
  binding is replaced. Any other Task asks for no kernel: these are empty, and `problem` says what may be changed.
"""

from typing import Literal

from akf.contracts.models.base import (
    AnyRoute,
    Artifact,
    Code,
    Count,
    DType,
    GraphMode,
    Id,
    Name,
    NonNegative,
    Positive,
    Ref,
    RelPath,
    Route,
    Scalar,
    Symbol,
    TaskType,
    Text,
    Value,
    about,
    fill,
    maybe,
    refs,
    sample,
    several,
    stated,
)
from akf.contracts.models.common import Dimension, Operand

OPEN = "akf open-task RUN FILE"


class AttributeDomain(Value):
    name: Symbol = about("Name of the attribute.", "eps")
    dtype: DType = about("Element type of the attribute.", "float32")
    values: tuple[Scalar, ...] = about("Values that the support domain covers.", [1e-6, 1e-5], min_length=1)


class Abi(Value):
    kind: Literal["binary", "python"] = about("How candidates are called.", "binary")
    operands: tuple[Operand, ...] = about(
        "Operands in order.",
        [sample(Operand)],
        min_length=1,
    )
    attributes: tuple[AttributeDomain, ...] = several("Attributes of the operator.", [sample(AttributeDomain)])


class Row(Value):
    """One measured shape. Bytes and operations give the roofline floor."""

    id: Id = about("Name of the row.", "decode-1")
    symbols: dict[Symbol, Positive] = about("Sizes of the symbols, in elements.", {"T": 1})
    attributes: dict[Symbol, Scalar] = about("Values of the attributes.", {"eps": 1e-6})
    weight: NonNegative = about("Weight of the row in the total.", 0.5)
    bytes: Positive = about("Bytes that any correct kernel must move, in bytes.", 49152)
    operations: Positive = about("Arithmetic operations that any correct kernel must do.", 16384)


class Case(Value):
    """One correctness case beyond the rows."""

    id: Id = about("Name of the case.", "tail-3")
    symbols: dict[Symbol, Positive] = about("Sizes of the symbols, in elements.", {"T": 3})
    attributes: dict[Symbol, Scalar] = about("Values of the attributes.", {"eps": 1e-5})
    inputs: Literal["normal", "zeros", "tiny", "large", "mixed", "padded"] = about(
        "Distribution of the inputs; `padded`: zeros after the first quarter of the first operand's rows, and in vectors.",
        "normal",
    )
    misalign: dict[Symbol, Count] | None = maybe(
        "Elements by which operands start beyond an aligned address, by operand; those that are not named are aligned.",
        {"x": 1},
    )


class Product(Value):
    """What lets a large output be checked without computing all of it in double precision."""

    left: Symbol = about("Operand on the left, a matrix.", "x")
    right: Symbol = about("Operand on the right, a matrix.", "weight")


class Tolerance(Value):
    atol: NonNegative = about("Absolute error that is inside the dtype's bound.", 1e-6)
    rtol: NonNegative = about("Error relative to the oracle that is inside the dtype's bound.", 1e-5)


class Reference(Value):
    path: RelPath = about("Reference file in the Task's folder.", "reference.py")
    entry: Symbol = about("Function that computes the oracle in float64.", "reference")
    text: str | None = fill(OPEN, "Text of the file, frozen with the Task.", "def reference(x, weight, eps): ...")


class SourceText(Value):
    path: RelPath = about("File, relative to the kernel's folder.", "kernel.cpp")
    text: str = about("Text of the file.", "// deliberately wrong")


class TaskKernel(Value):
    """A kernel that the Task brings along."""

    route: AnyRoute = about("Route that builds it; `python` for a module `kernel.py`.", "host_cpp")
    path: RelPath = about("Its folder in the Task's folder.", "perturbed/host_cpp")
    files: tuple[SourceText, ...] | None = fill(OPEN, "Its files, frozen with the Task.", [sample(SourceText)])


class TaskBudget(Value):
    attempts: Positive = about("Candidates that may be submitted.", 50)
    evaluation_s: Positive = about("Device time of one evaluation, in seconds.", 600)
    tokens: Count = about("Model tokens that agents may spend; 0 for none.", 0)


class Opportunity(Value):
    triage: Ref = about(
        "Triage that the numbers come from.",
        refs("Triage")[0],
    )
    hotspot: Name | None = stated(
        "The Task is about the whole baseline.", "Hotspot of the Triage that the Task is about.", "rms-norm"
    )
    share_ratio: NonNegative | None = stated("The share is of no single hotspot.", "Share h of the step time.", 0.12)
    share_low_ratio: NonNegative | None = stated("There is no interval over steps.", "Lower end of h over steps.", 0.1)
    share_high_ratio: NonNegative | None = stated(
        "There is no interval over steps.", "Upper end of h over steps.", 0.14
    )
    ceiling_ratio: NonNegative | None = stated(
        "There is no share, or it is the whole step.", "Speed-up of the service if it cost nothing, 1/(1-h).", 1.136
    )
    needed_speedup_ratio: NonNegative | None = stated(
        "No local speed-up reaches the target.", "Local speed-up that the Campaign's target needs.", 1.25
    )
    coverage_ratio: NonNegative | None = stated(
        "There is no callsite.", "Share of calls inside the support domain.", 0.93
    )


class TaskProblem(Value):
    """What a Task that asks for no kernel is about."""

    subject: Name = about("Callsite, kernel family or line of the step; `baseline` for all of it.", "host_gap")
    rule: Code = about("Rule of the triage that answered; `akf explain CODE` tells more.", "HOST_GAP")
    lever: Text = about("What may be changed.", "The host's part of a step: scheduling, launches, sampling.")
    evidence: tuple[Text, ...] = about(
        "What was observed, with its numbers.", ["The line host_gap is 0.4 of the steps."], min_length=1
    )
    allowed_paths: tuple[RelPath, ...] = several(
        "Files of the arm that a change may touch, relative to the framework; empty where only settings may be changed.",
        ["vllm_ascend/ops/layernorm.py"],
    )


class Task(Artifact):
    kind: Literal["Task"] = about("Kind of this artifact.", "Task")
    parents: tuple[Ref, ...] | None = fill(
        OPEN, "The Run that the Task belongs to, and the Triage that justifies it.", refs("Run", "Triage")
    )
    title: Text = about("Title for people.", "RMSNorm at Qwen3-8B's hidden size, small batch")
    type: TaskType = about("What may be changed.", "kernel")
    op: Id | None = stated("The Task is about no single operator.", "Operator that candidates implement.", "rms_norm")
    callsite: Id | None = stated("The Task is about no single callsite.", "Callsite in the Workload.", "rms-norm")
    graph: GraphMode | None = stated(
        "The Task is about no single callsite.",
        "Whether the claim is about eager launches or graph replay.",
        "eager",
    )
    routes: tuple[Route, ...] = about(
        "Routes that candidates may take; empty where no kernel is asked for, or one in Python.", ["host_cpp"]
    )
    abi: Abi | None = stated(
        "No kernel is asked for.",
        "How candidates are called.",
        sample(Abi),
    )
    domain: tuple[Dimension, ...] = about("Support domain of the symbols.", [sample(Dimension)])
    rows: tuple[Row, ...] = about(
        "Measured shapes with weights; empty where no kernel is asked for.",
        [sample(Row)],
    )
    cases: tuple[Case, ...] = several(
        "Correctness cases beyond the rows.",
        [sample(Case)],
    )
    tolerance: Tolerance | None = stated("No kernel is asked for.", "Error bounds of the dtype.", sample(Tolerance))
    reference: Reference | None = stated("No kernel is asked for.", "Reference in float64.", sample(Reference))
    product: Product | None = maybe(
        "The product of two matrices that the only output is, where it is one: timed outputs above 2^20 elements are then "
        "checked at secret places, and as a whole by Freivalds.",
        sample(Product),
    )
    perturbed: tuple[TaskKernel, ...] = about(
        "Deliberately wrong kernels for the perturbation control; empty where no kernel is asked for.",
        [sample(TaskKernel)],
    )
    plain: tuple[TaskKernel, ...] = several(
        "Plain kernels, right and simple, that a trial compares a candidate with; no arm's baseline, and no evidence.",
        [{"route": "host_cpp", "path": "plain/host_cpp", "files": [{"path": "kernel.cpp", "text": "// plain"}]}],
    )
    problem: TaskProblem | None = maybe("What the Task is about, where it asks for no kernel.", sample(TaskProblem))
    budget: TaskBudget = about("What the Task may spend.", sample(TaskBudget))
    write_paths: tuple[RelPath, ...] = about(
        "Where agents may write, relative to the run folder.", ["inbox"], min_length=1
    )
    opportunity: Opportunity | None = stated(
        "No triage stands behind the Task; it cannot lead past inventory.",
        "The numbers that justify the Task.",
        sample(Opportunity),
    )
    owner: Name | None = maybe("Who opened the Task and answers for it.", "kernel-team")
