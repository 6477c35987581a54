"""Build: source to binary, bound to tools, commands and outputs. Owner: builder. Also the launch spec and Toolchain."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Count,
    Digest,
    DType,
    Isolation,
    Name,
    Ref,
    RelPath,
    Route,
    Symbol,
    Text,
    Value,
    Whole,
    about,
    maybe,
    refs,
    sample,
    several,
)
from akf.contracts.models.common import ExactToolkit, Setting

Expr = Whole | str


class LaunchArgument(Value):
    name: Symbol = about("Name of the argument; a tensor's is the operand's.", "x")
    kind: Literal["tensor", "scalar", "workspace", "stream"] = about(
        "What is passed: an operand, a number, scratch memory or the stream.", "tensor"
    )
    dtype: DType = about("Element type of the tensor, or type of the scalar.", "float32")
    shape: tuple[Expr, ...] = several("Sizes as integers or expressions over the Task's symbols.", ["T", 4096])
    strides: tuple[Expr, ...] | None = maybe("Strides in elements; absent for contiguous.", [4096, 1])
    access: Literal["in", "out", "inout"] | None = maybe("Access of a tensor or workspace.", "in")
    value: Expr | None = maybe("Value of a scalar: an expression over symbols, or an attribute's name.", "T")


class LaunchSpec(Value):
    abi: Literal["c", "cubin", "ascend"] = about("Calling convention of the symbol.", "c")
    symbol: Symbol = about("Exported symbol of the kernel.", "rms_norm")
    args: tuple[LaunchArgument, ...] = about(
        "Arguments in the order of the call.",
        [sample(LaunchArgument)],
        min_length=1,
    )
    grid: tuple[Expr, ...] = several("Launch grid, as expressions over symbols.", ["ceildiv(T, 8)"])
    block: tuple[Expr, ...] = several("Threads of a block.", [256])
    shared_bytes: Count | None = maybe("Dynamic shared memory, in bytes.", 0)
    graph_safe: bool = about("Whether a captured graph may hold it.", True)


class ToolFile(Value):
    name: Name = about("Program, without its folder.", "cc1plus")
    digest: Digest = about("SHA-256 of the program as resolved.", "sha256:" + "0" * 64)


class Tool(Value):
    name: Name = about("Name that the tool was called by.", "g++")
    version_text: Text = about("First lines of its version output.", "g++ (Debian 12.2.0-14+deb12u1) 12.2.0")
    target: Name | None = maybe("Target triple that the tool compiles for.", "x86_64-linux-gnu")
    package: Name | None = maybe("Package and version that provides it, where known.", "g++-12 12.2.0-14+deb12u1")
    files: tuple[ToolFile, ...] = about("Programs that take part, by digest.", [sample(ToolFile)], min_length=1)


class Toolchain(Artifact):
    kind: Literal["Toolchain"] = about("Kind of this artifact.", "Toolchain")
    route: Route = about("Route that it serves.", "host_cpp")
    toolkit: ExactToolkit = about("Toolkit identity.", sample(ExactToolkit))
    tools: tuple[Tool, ...] = about(
        "Tools with their identity.",
        [sample(Tool)],
        min_length=1,
    )
    stages: tuple[Name, ...] = about("Stages that it can reach here.", ["shared_object"])


class Command(Value):
    argv: tuple[str, ...] = about(
        "Arguments as used, with paths relative to the build folder.",
        ["g++", "-O3", "-shared", "-o", "kernel.so", "kernel.cpp"],
        min_length=1,
    )
    returncode: Whole = about("Exit status of the command.", 0)
    log_digest: Digest = about("SHA-256 of the kept compiler output.", "sha256:" + "0" * 64)


class Output(Value):
    path: RelPath = about("File, relative to the attempt's build folder.", "candidate/kernel.so")
    subject: Literal["candidate", "perturbed", "baseline", "launcher"] = about("Whose object it is.", "candidate")
    role: Literal[
        "kernel_object", "host_tiling", "infer_shape", "aclnn", "torch_binding", "meta", "launcher", "log"
    ] = about("Role of the file.", "kernel_object")
    trust: Literal["device_code", "host_code", "data"] = about(
        "Whether it is device code, code that runs inside the engine, or data.", "host_code"
    )
    digest: Digest = about("SHA-256 of its bytes.", "sha256:" + "0" * 64)
    bytes: Count = about("Its size, in bytes.", 16000)


class Reproduction(Value):
    reproducible: bool = about("Whether a second build in another folder gave the same bytes.", True)
    first: Digest = about("Digest over the first build's objects.", "sha256:" + "0" * 64)
    second: Digest = about("Digest over the second build's objects.", "sha256:" + "0" * 64)
    address_randomisation: bool = about("Whether address randomisation was on.", True)


class Build(Artifact):
    kind: Literal["Build"] = about("Kind of this artifact.", "Build")
    parents: tuple[Ref, ...] = about(
        "Run, Task and Candidate.",
        refs("Run", "Task", "Candidate"),
        min_length=3,
        max_length=3,
    )
    outcome: Literal["built", "failed"] = about(
        "Whether the candidate compiled; a failed build stays as evidence.", "built"
    )
    reasons: tuple[Text, ...] = several(
        "Why it failed, in the compiler's words.", ["kernel.cpp:3: error: expected ';'"]
    )
    route: Route = about("Route that the candidate took from source to binary.", "host_cpp")
    soc: Name = about("SoC that it was compiled for.", "x86_64")
    toolkit: ExactToolkit = about("Toolkit that compiled.", sample(ExactToolkit))
    stage: Literal[
        "source",
        "frontend_ir",
        "linalg",
        "hivm_ir",
        "lowered_mlir",
        "ascendc_source",
        "cpu_sim_so",
        "shared_object",
        "cubin",
        "device_object",
    ] = about("Deepest stage reached; only an object satisfies a gate that needs a binary.", "shared_object")
    tools: tuple[Tool, ...] = about(
        "Tools that took part.",
        [sample(Tool)],
        min_length=1,
    )
    commands: tuple[Command, ...] = about(
        "Commands in order.",
        [sample(Command)],
        min_length=1,
    )
    variables: tuple[Setting, ...] = about("The whole environment that the commands saw.", [sample(Setting)])
    isolation: Isolation = about("Isolation of the build.", "userns")
    outputs: tuple[Output, ...] = about(
        "Files that the build produced.",
        [sample(Output)],
    )
    launch: LaunchSpec | None = maybe(
        "Launch spec of the kernel.",
        sample(LaunchSpec),
    )
    reproduction: Reproduction | None = maybe(
        "Result of building twice.",
        sample(Reproduction),
    )
    notes: tuple[Text, ...] = several("Silent changes that the compiler reported.", ["[NOTE] code motion disabled"])
