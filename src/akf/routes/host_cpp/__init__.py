"""Route `host_cpp`: C++ sources, compiled by g++ or clang++ to a shared object that is called through a C ABI.

Invariants:
- Flags come from the lists below and nowhere else; a candidate, a baseline and a perturbed kernel get the same.
- The command holds no path of this machine, so two builds in two folders give the same bytes.
- The compiler sees the sources that were named, an allow-listed environment and private folders
  (`akf.routes.sandbox`), shut in as well as the machine allows.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from akf.contracts.canonical import digest
from akf.contracts.files import read_input
from akf.contracts.problems import BlockedError, UsageError
from akf.routes.host_cpp.compiler import (
    COMPILER,
    compiler_identity,
    compiler_path,
    record,
    soc_name,
    toolkit,
)
from akf.routes.host_cpp.launcher import launcher_source
from akf.routes.launch_spec import LaunchSpec
from akf.routes.route import Job, Plan, Route, SourceRefused, Step
from akf.routes.sandbox import Limits, Sandbox, layout
from akf.routes.sandbox.outputs import collect
from akf.routes.tools import Found, Place, ToolMissing, search_path

__all__ = [
    "COMPILER",
    "FLAGS",
    "NATIVE",
    "OPTIONAL_FLAGS",
    "PRODUCT",
    "ROUTE",
    "SOURCE_SUFFIXES",
    "CompileResult",
    "SourceRefused",
    "ToolMissing",
    "compile_command",
    "compile_environment",
    "compile_shared",
    "compiler_identity",
    "compiler_path",
    "launcher_source",
    "record",
    "soc_name",
    "toolkit",
]  # fmt: skip

ID = "host_cpp"
NATIVE = "native"
PRODUCT = "kernel.so"
FLAGS = (
    "-std=gnu++17",
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fPIC",
    "-shared",
    "-Wall",
    "-Wl,-z,defs",
    "-Wl,-z,relro",
    "-Wl,-z,now",
)
_CLANG = ("--driver-mode=g++",)
"""clang looks at the name that it is called by, and links C++ only as `clang++`; here it is called by its own path."""
OPTIONAL_FLAGS = frozenset({"-funroll-loops", "-ffast-math", "-fopenmp-simd", "-O2"})
SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"})
TRANSLATED_SUFFIXES = frozenset({".cpp", ".cc", ".cxx"})
MAX_STDERR = 16 * 1024
LIMITS = Limits(wall_s=60.0, memory_bytes=4 * 1024**3, file_bytes=64 * 1024**2)


class HostCpp(Route):
    """C++ on the machine itself."""

    def target(self, soc: str) -> str:
        """The machine itself, by its name or as `native`.

        Raises:
            BlockedError: there is no compiler to ask.
        """
        try:
            here = soc_name(compiler_identity())
        except ToolMissing as error:
            raise BlockedError([error.problem()]) from error
        if soc not in {NATIVE, here}:
            raise UsageError.of(
                "AKF-U401",
                f"route {ID} compiles for this machine only, not for {soc!r}",
                expected=[NATIVE, here],
                found=soc,
                hint="--soc native",
            )
        return here

    def identity(self, place: Place, job: Job) -> tuple[Found, ...]:
        """The compiler that was chosen, with the programs that it runs."""
        del place
        name = job.options.get("compiler", COMPILER)
        path = compiler_path(name)
        return (Found(self.data.program(name), path, record(compiler_identity(name)), str(path)),)

    def toolkit(self, found: Sequence[Found]) -> dict[str, str]:
        """Name, version and build of the compiler."""
        return toolkit(compiler_identity(found[0].program.name))

    def plan(self, job: Job) -> Plan:
        """One command."""
        flags = [job.options["flag"]] if "flag" in job.options else []
        compiler = job.options.get("compiler", COMPILER)
        sources = [source for source in job.sources if PurePosixPath(source).suffix in SOURCE_SUFFIXES]
        command = compile_command(sources, f"out/{PRODUCT}", flags, compiler, "src/")
        return Plan((Step(compiler, tuple(command[1:]), (PRODUCT,), limits=LIMITS),))

    def launcher(self, spec: LaunchSpec) -> Mapping[str, str]:
        """The trusted launcher, compiled like a candidate."""
        return {"launcher.cpp": launcher_source(spec)}


ROUTE = HostCpp(ID)


@dataclass(frozen=True)
class CompileResult:
    """What one run of the compiler did."""

    returncode: int
    command: tuple[str, ...]
    env: Mapping[str, str]
    stderr: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    timed_out: bool = False
    isolation: str = "none"

    def __bool__(self) -> bool:
        """Whether the output exists."""
        return self.returncode == 0 and bool(self.outputs)


def compile_command(
    sources: Sequence[str], output: str, flags: Sequence[str] = (), compiler: str = COMPILER, folder: str = ""
) -> list[str]:
    """The compiler's command line.

    Args:
        sources: paths relative to the folder of the sources; headers may be among them.
        output: the file to write.
        flags: further flags out of `OPTIONAL_FLAGS`.
        compiler: the driver.
        folder: how the folder of the sources is named where the command runs.

    Raises:
        SourceRefused: A path leaves the folder, has another suffix or looks like an option; a flag is not
            in the list.
    """
    for flag in flags:
        if flag not in OPTIONAL_FLAGS:
            raise SourceRefused(f"flag {flag!r} is not one of {', '.join(sorted(OPTIONAL_FLAGS))}")
    translated = []
    for source in sources:
        path = PurePosixPath(source)
        plain = not path.is_absolute() and ".." not in path.parts and re.fullmatch(r"[A-Za-z0-9_./-]+", source)
        if not plain or source.startswith("-") or path.suffix not in SOURCE_SUFFIXES:
            raise SourceRefused(f"source {source!r} is not a plain relative path of C++")
        if path.suffix in TRANSLATED_SUFFIXES:
            translated.append(f"{folder}{source}")
    if not translated:
        raise SourceRefused("no C++ source (.cpp, .cc, .cxx) to compile")
    mode = _CLANG if compiler.startswith("clang") else ()
    return [compiler, *mode, *FLAGS, *flags, "-o", output, *sorted(translated)]


def compile_environment(driver: Path) -> dict[str, str]:
    """The whole environment of the compiler."""
    return {**ROUTE.data.environment.variables, "PATH": search_path(driver)}


def prefix(driver: Path) -> tuple[Path, ...]:
    """The folder of a compiler; it is shown to it where it is not among the system's own."""
    return (driver.parent.parent,)


def compile_shared(
    folder: Path, sources: Sequence[str], out: Path, timeout: float = LIMITS.wall_s, flags: Sequence[str] = ()
) -> CompileResult:
    """Compile sources of `folder` to the shared object `out`.

    Args:
        folder: The folder that the sources are relative to; files that are not named are not seen.
        sources: Relative paths; headers may be among them.
        out: The file to write; it must be outside the sources' names.
        timeout: Seconds before the compiler's process group is killed.
        flags: Further flags out of `OPTIONAL_FLAGS`.

    Raises:
        ToolMissing: There is no compiler.
        SourceRefused: A source or a flag is not taken.
    """
    driver = compiler_path()
    command = compile_command(sources, f"out/{PRODUCT}", flags, folder="src/")
    variables = compile_environment(driver)
    with tempfile.TemporaryDirectory(prefix="akf-cc-") as temporary:
        work = Path(temporary)
        layout(work)
        for source in sources:
            target = work / "src" / source
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(read_input(folder / source))
        sandbox = Sandbox(work, {}, prefix(driver))
        ended = sandbox.run([str(driver), *command[1:]], variables, LIMITS._replace(wall_s=timeout))
        made = collect(work / "out", (PRODUCT,)).files
        outputs: dict[str, str] = {}
        if ended.status == 0 and PRODUCT in made:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_bytes(made[PRODUCT])
            outputs[out.name] = digest(made[PRODUCT])
    text = ended.text[:MAX_STDERR]
    return CompileResult(ended.status, tuple(command), variables, text, outputs, ended.timed_out, ended.isolation)
