"""Build: source to binary, bound to tools, commands and outputs. Owner: builder. Also the launch spec and Toolchain.

Invariants:
- A Build of route `python` compiles nothing: no tool, no command, stage `source`. Its outputs are the candidate's files
  and those of the Task's deliberately wrong module, as they were frozen.
"""

from typing import Literal

from akf.contracts.models.base import (
    AnyRoute,
    Artifact,
    Code,
    Count,
    Digest,
    DType,
    Isolation,
    Name,
    Positive,
    Ref,
    RelPath,
    Route,
    Scalar,
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
Stage = Literal[
    "source", "host_parts", "frontend_ir", "linalg", "hivm_ir", "lowered_mlir", "ascendc_source", "cpu_sim_so", "shared_object",
    "cubin", "device_object",
]  # fmt: skip
Role = Literal[
    "kernel_object", "host_tiling", "infer_shape", "aclnn", "torch_binding", "module", "meta", "ir", "launcher", "log",
]  # fmt: skip
TrustClass = Literal["device_code", "host_code", "data"]


class LaunchArgument(Value):
    name: Symbol = about("Name of the argument; a tensor's is the operand's.", "x")
    kind: Literal["tensor", "scalar", "workspace", "stream"] = about(
        "What is passed: an operand, a number, scratch memory or the stream.", "tensor"
    )
    dtype: DType | None = maybe(
        "Element type of a tensor or workspace, or type of a scalar; none of a stream.", "float32"
    )
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
    commit: Name | None = maybe("Commit that it was built from, where it says so.", "8796a8ac1508")
    wheel_digest: Digest | None = maybe("SHA-256 of the wheel that it was installed from.", "sha256:" + "0" * 64)
    package: Name | None = maybe("Package and version that provides it, where known.", "g++-12 12.2.0-14+deb12u1")
    stand_in: bool | None = maybe(
        "Whether it only answers for its version in the place of the tool and does none of its work.", True
    )
    files: tuple[ToolFile, ...] = about("Programs that take part, by digest.", [sample(ToolFile)], min_length=1)


class Component(Value):
    name: Name = about("Part of an installed toolkit, with a version of its own.", "toolkit")
    version: Name = about("Its version as it says it.", "9.1.0")
    build: Name | None = maybe("Its inner build, where it says one.", "V100R001C25SPC005B220")
    architecture: Name | None = maybe("Its architecture, where it says one.", "aarch64")
    file: RelPath = about("File that says so, relative to the toolkit.", "aarch64-linux/ascend_toolkit_install.info")
    digest: Digest = about("SHA-256 of that file.", "sha256:" + "0" * 64)


class Package(Value):
    name: Name = about("Distribution in the environment.", "triton-ascend")
    version: Name = about("Its version as installed.", "3.2.0")
    wheel_digest: Digest | None = maybe("SHA-256 of the wheel that it was installed from.", "sha256:" + "0" * 64)


class Lacking(Value):
    tool: Name = about("Tool that is missing.", "hivmc")
    looked_for: Text = about("Where it was looked for.", "no bin/hivmc in the registered toolkit")
    get: Text = about("How it can be had.", "install CANN 9.0.0 or newer")


class Reach(Value):
    route: Route = about("Route that the toolchain serves.", "triton_ascend")
    family: Name = about("SoC family; `any` where the route knows none.", "ascend910b")
    stages: tuple[Name, ...] = about("Stages that it can reach here, in order.", ["hivm_ir"])
    lacking: tuple[Lacking, ...] = several("What keeps the next stage out of reach.", [sample(Lacking)])


class Toolchain(Artifact):
    kind: Literal["Toolchain"] = about("Kind of this artifact.", "Toolchain")
    origin: Literal["installed", "packages"] = about(
        "Whether it was found installed, or made by AKF from pinned packages.", "packages"
    )
    toolkit: ExactToolkit = about("Toolkit identity.", sample(ExactToolkit))
    components: tuple[Component, ...] = several("Parts of an installed toolkit.", [sample(Component)])
    python: Name | None = maybe("Version of the environment's interpreter.", "3.11.7")
    packages: tuple[Package, ...] = several("Distributions of the environment.", [sample(Package)])
    contents_digest: Digest | None = maybe(
        "Digest over every file of the environment's packages; compiled bytecode is never used.", "sha256:" + "0" * 64
    )
    tools: tuple[Tool, ...] = about(
        "Tools with their identity.",
        [sample(Tool)],
        min_length=1,
    )
    reach: tuple[Reach, ...] = about("What each route can reach with it.", [sample(Reach)])


class Command(Value):
    argv: tuple[str, ...] = about(
        "Arguments as used, with paths relative to the build folder.",
        ["g++", "-O3", "-shared", "-o", "kernel.so", "kernel.cpp"],
        min_length=1,
    )
    returncode: Whole = about("Exit status of the command.", 0)
    log_digest: Digest = about("SHA-256 of the kept compiler output.", "sha256:" + "0" * 64)


class BuiltKernel(Value):
    name: Name = about("Kernel of a device object.", "rms_norm")
    bytes: Count = about("Size of its code, in bytes.", 2048)
    digest: Digest | None = maybe("SHA-256 of its code as it lies in the file.", "sha256:" + "0" * 64)


class Output(Value):
    path: RelPath = about("File, relative to the attempt's build folder.", "candidate/kernel.so")
    subject: Literal["candidate", "perturbed", "baseline", "launcher"] = about("Whose object it is.", "candidate")
    role: Role = about("Role of the file.", "kernel_object")
    trust: TrustClass = about("Whether it is device code, code that runs inside the engine, or data.", "host_code")
    digest: Digest = about("SHA-256 of its bytes.", "sha256:" + "0" * 64)
    bytes: Count = about("Its size, in bytes.", 16000)
    format: Name | None = maybe("What an object is, as the inspector reads it.", "shared object")
    kernel_count: Count | None = maybe("Number of kernels of a device object.", 1)
    kernels: tuple[BuiltKernel, ...] = several("Its first kernels, by name.", [sample(BuiltKernel)])
    symbol_count: Count | None = maybe("Number of symbols that a host object offers.", 1)
    symbols: tuple[Name, ...] = several("The first of them, in order.", ["rms_norm"])


class Reproduction(Value):
    reproducible: bool = about("Whether a second build in another folder gave the same bytes.", True)
    first: Digest = about("Digest over the first build's objects.", "sha256:" + "0" * 64)
    second: Digest = about("Digest over the second build's objects.", "sha256:" + "0" * 64)
    address_randomisation: bool = about("Whether address randomisation was on.", True)
    normalised_first: Digest | None = maybe(
        "Digest of the first build's deepest stage in a form free of places.", "sha256:" + "0" * 64
    )
    normalised_second: Digest | None = maybe(
        "Digest of the second build's deepest stage in that form.", "sha256:" + "0" * 64
    )


class Stopped(Value):
    code: Code = about("Why the build goes no deeper than its stage.", "TOOLCHAIN_MISSING")
    message: Text = about("The same in words, from the tool where it said any.", "hivmc is not installed")
    tool: Name | None = maybe("Tool that is missing.", "hivmc")


class Tried(Value):
    level: Isolation = about("Stronger level that was not to be had.", "bwrap")
    why: Text = about("Why it was not to be had.", "bwrap is not installed")


class Shut(Value):
    program: Tool | None = maybe("Program that shut the commands in, where it was not AKF itself.", sample(Tool))
    landlock: Count | None = maybe("Version of Landlock that took the files away, where it was used.", 7)
    system_calls_filtered: bool = about("Whether system calls that no build needs were refused.", True)
    network_namespace: bool = about(
        "Whether the commands had a network namespace of their own, with nothing in it.", True
    )
    tasks_bounded_by: Literal["pid_namespace", "user_namespace"] | None = maybe(
        "By what the kernel itself bounded the commands' processes and threads; absent where it was only watched.",
        "pid_namespace",
    )
    tried: tuple[Tried, ...] = several("Stronger levels that were tried, and why they failed.", [sample(Tried)])


class Specialised(Value):
    id: Name = about("Name of the specialisation; its files lie in a folder of this name.", "s00")
    subject: Literal["candidate", "perturbed"] = about("Whose kernel it is of.", "candidate")
    key: Name | None = maybe(
        "Key by which the arm's compiler looks for it in its cache, where it keeps one.",
        "sSfXJ-PcDqR5KYl95kGbSYD-0XIrtI6J_xz5QDD8pIQ",
    )
    stage: Stage = about("Deepest stage that it reached.", "hivm_ir")
    points: Positive = about("Points of the support domain that it serves.", 256)
    symbols: dict[Symbol, Positive] = about("Sizes of one of these points, in elements.", {"M": 1, "N": 16})
    attributes: dict[Symbol, Scalar] = about("Attributes of that point that the kernel depends on.", {"eps": 1e-6})
    arguments: tuple[Setting, ...] = several(
        "What the compiler looks at in each argument.", [{"name": "n", "value": "i32, divisible by 16"}]
    )
    constexprs: tuple[Setting, ...] = several(
        "Values of the constexpr parameters.", [{"name": "BLOCK", "value": "1024"}]
    )


class Build(Artifact):
    kind: Literal["Build"] = about("Kind of this artifact.", "Build")
    parents: tuple[Ref, ...] = about(
        "Run, Task and Candidate; none for a diagnostic Build, which belongs to no run.",
        refs("Run", "Task", "Candidate"),
        max_length=3,
    )
    diagnostic: bool | None = maybe("Whether it was made outside a run; no gate takes such a Build.", False)
    outcome: Literal["built", "failed"] = about(
        "Whether the candidate compiled; a failed build stays as evidence.", "built"
    )
    reasons: tuple[Text, ...] = several(
        "Why it failed, in the compiler's words.", ["kernel.cpp:3: error: expected ';'"]
    )
    route: AnyRoute = about("Route that the candidate took from source to binary; `python` took none.", "host_cpp")
    soc: Name = about("SoC that it was compiled for.", "x86_64")
    toolkit: ExactToolkit = about("Toolkit that compiled; the arm's where nothing was.", sample(ExactToolkit))
    stopped: Stopped | None = maybe("Why the build goes no deeper than its stage.", sample(Stopped))
    stage: Stage = about(
        "Deepest stage reached; only an object, or a module's `source`, satisfies a gate that runs it.", "shared_object"
    )
    source_digest: Digest | None = maybe("Digest of the source tree of a diagnostic Build.", "sha256:" + "0" * 64)
    options: tuple[Setting, ...] = several("Options that a diagnostic Build was made with.", [sample(Setting)])
    toolchains: tuple[Ref, ...] = several("Registered toolchains that the tools come from.", refs("Toolchain"))
    tools: tuple[Tool, ...] = about(
        "Tools that took part; none where nothing was compiled.",
        [sample(Tool)],
    )
    commands: tuple[Command, ...] = about(
        "Commands in order; none when the route took no source.",
        [sample(Command)],
    )
    variables: tuple[Setting, ...] = about(
        "The whole environment that the commands saw; empty where there were none.", [sample(Setting)]
    )
    inputs_digest: Digest | None = maybe(
        "Digest over sources with their modes, options, commands, environment and tools: all that changes the result.",
        "sha256:" + "0" * 64,
    )
    isolation: Isolation = about("Isolation of the build; `none` where nothing ran.", "userns")
    sandbox: Shut | None = maybe("How the commands were shut in.", sample(Shut))
    outputs: tuple[Output, ...] = about(
        "Files that the build produced.",
        [sample(Output)],
    )
    specialisations: tuple[Specialised, ...] = several(
        "What was compiled so that no call of the support domain compiles anything, for a kernel compiled just in time.",
        [sample(Specialised)],
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
