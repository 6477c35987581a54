"""Route `host_cpp`: C++ sources, compiled by g++ to a shared object that is called through a C ABI.

Invariants:
- Flags come from the lists below and nowhere else; a candidate, a baseline and a perturbed kernel get the same.
- The command holds no absolute path of the source folder, so two builds in two folders give the same bytes.
- The compiler sees an allow-listed environment and a private temporary folder; where the machine allows it, it runs
  in a jail that holds the system's files and the sources only (`akf.routes.jail`).
- `-march=native` is a choice of this machine: the target it stands for is part of the compiler's identity.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from akf.routes import jail
from akf.routes.launch_spec import LaunchSpec

ID = "host_cpp"
COMPILER = "g++"
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
OPTIONAL_FLAGS = frozenset({"-funroll-loops", "-ffast-math", "-fopenmp-simd", "-O2"})
SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"})
TRANSLATED_SUFFIXES = frozenset({".cpp", ".cc", ".cxx"})
MAX_STDERR = 16 * 1024
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
MAX_MEMORY_BYTES = 4 * 1024 * 1024 * 1024
SOURCE_DATE_EPOCH = "0"

_C_TYPES = {"int32": "std::int32_t", "int64": "std::int64_t", "float32": "float", "float64": "double"}
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


class ToolMissing(RuntimeError):  # noqa: N818 - a result that is raised: the name says what is the case
    """A tool that this route needs is not on this machine."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"{name} is not installed: {hint}")
        self.name = name
        self.hint = hint


class SourceRefused(ValueError):  # noqa: N818 - as above
    """A source path or a flag that this route does not take."""


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


def compiler_path() -> Path:
    """Where the compiler driver is.

    Raises:
        ToolMissing: There is none on PATH.
    """
    found = shutil.which(COMPILER)
    if found is None:
        raise ToolMissing(COMPILER, "install g++ 11 or newer (Debian, Ubuntu: apt-get install g++)")
    return Path(found).resolve()


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _ask(driver: Path, *arguments: str) -> str:
    result = subprocess.run(
        [str(driver), *arguments],
        capture_output=True,
        check=False,
        env={"PATH": _search_path(driver), "LANG": "C", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=30,
    )
    return result.stdout


def _search_path(driver: Path) -> str:
    """Where the driver looks for its programs: its own folder and the system's, not the user's PATH."""
    folder = str(driver.parent)
    return _SYSTEM_PATH if folder in _SYSTEM_PATH.split(":") else f"{folder}:{_SYSTEM_PATH}"


def compiler_identity() -> dict[str, object]:
    """Digests of the driver and of the programs that it runs, its version, target and native architecture."""
    driver = compiler_path()
    programs: dict[str, object] = {}
    for name in ("cc1plus", "as", "ld", "collect2"):
        answer = _ask(driver, f"-print-prog-name={name}").strip()
        resolved = shutil.which(answer) or answer
        path = Path(resolved)
        if path.is_absolute() and path.is_file():
            programs[name] = {"path": str(path.resolve()), "digest": _file_digest(path)}
        else:
            programs[name] = None
    options = _ask(driver, "-march=native", "-Q", "--help=target")
    native = re.findall(r"^\s+(-m(?:arch|tune|cpu)=)\s+(\S+)\s*$", options, re.MULTILINE)
    return {
        "name": COMPILER,
        "path": str(driver),
        "digest": _file_digest(driver),
        "programs": programs,
        "version": _ask(driver, "--version").splitlines()[:1],
        "target": _ask(driver, "-dumpmachine").strip(),
        "native": {name.rstrip("="): value for name, value in native},
        "native_options_digest": f"sha256:{hashlib.sha256(options.encode()).hexdigest()}",
    }


def compile_command(sources: Sequence[str], output: str, flags: Sequence[str] = ()) -> list[str]:
    """The compiler's command line, relative to the source folder.

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
            translated.append(source)
    if not translated:
        raise SourceRefused("no C++ source (.cpp, .cc, .cxx) to compile")
    return [COMPILER, *FLAGS, *flags, "-o", output, *sorted(translated)]


def compile_environment(driver: Path, temporary: str) -> dict[str, str]:
    """The whole environment of the compiler."""
    return {
        "PATH": _search_path(driver),
        "LANG": "C",
        "LC_ALL": "C",
        "TMPDIR": temporary,
        "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH,
    }


def _limit() -> None:
    """Bound the compiler's process; runs between fork and exec."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def compile_shared(
    folder: Path, sources: Sequence[str], out: Path, timeout: float = 60.0, flags: Sequence[str] = ()
) -> CompileResult:
    """Compile sources of `folder` to the shared object `out`.

    Args:
        folder: The folder that the sources are relative to; the compiler runs in it.
        sources: Relative paths; headers may be among them.
        out: The file to write; it must be outside the sources' names.
        timeout: Seconds before the compiler's process group is killed.
        flags: Further flags out of `OPTIONAL_FLAGS`.

    Raises:
        ToolMissing: There is no compiler.
        SourceRefused: A source or a flag is not taken.
    """
    driver = compiler_path()
    extra = _prefix(driver)
    isolation = "userns" if jail.works(extra) else "none"
    with tempfile.TemporaryDirectory(prefix="akf-cc-") as temporary, tempfile.TemporaryDirectory() as root:
        product = Path(temporary) / "out.so"
        command = compile_command(sources, str(product), flags)
        recorded = tuple(out.name if part == str(product) else part for part in command)
        env = compile_environment(driver, temporary)
        shown = {**env, "TMPDIR": "private"}
        argv = [str(driver), *command[1:]]
        if isolation != "none":
            argv = jail.jailed(argv, folder.absolute(), Path(temporary), Path(root), extra)
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                argv,
                cwd=folder,
                env=env,
                preexec_fn=_limit,  # noqa: PLW1509 - limits must hold before the compiler reads hostile sources
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
            timed_out = False
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                returncode = process.wait()
            log.seek(0)
            stderr = log.read(MAX_STDERR).decode("utf-8", "replace").replace(str(temporary), "TMPDIR")
        outputs: dict[str, str] = {}
        if returncode == 0 and product.is_file():
            out.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(product, out)
            outputs[out.name] = _file_digest(out)
        return CompileResult(returncode, recorded, shown, stderr, outputs, timed_out, isolation)


def _prefix(driver: Path) -> tuple[str, ...]:
    """The folder of a compiler that is not installed among the system's own."""
    inside = any(driver.is_relative_to(folder) for folder in jail.SYSTEM)
    return () if inside else (str(driver.parent.parent),)


def exports(path: Path, symbol: str) -> bool:
    """Whether a shared object exports a symbol under exactly this name.

    Raises:
        ToolMissing: There is no `nm`; it comes with the compiler.
    """
    tool = shutil.which("nm", path=_search_path(compiler_path()))
    if tool is None:
        raise ToolMissing("nm", "install binutils (Debian, Ubuntu: apt-get install binutils)")
    result = subprocess.run(
        [tool, "--dynamic", "--defined-only", "--format=posix", str(path)],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=30,
    )
    return any(line.split(" ", 1)[0] == symbol for line in result.stdout.splitlines())


def launcher_source(spec: LaunchSpec) -> str:
    """C++ of the trusted launcher: one call of `akf_batch` does `count` launches on `count` pointer tuples.

    The table holds, launch by launch, one pointer per argument that is not a scalar, in call order.
    Integers and floating scalars come in two arrays, each in call order.
    """
    parameters: list[str] = []
    values: list[str] = []
    pointers = integers = floats = 0
    for arg in spec.args:
        if arg.kind != "scalar":
            qualifier = "const void*" if arg.kind == "tensor" and arg.access == "in" else "void*"
            parameters.append(qualifier)
            values.append(f"row[{pointers}]")
            pointers += 1
        elif arg.dtype.startswith("int"):
            parameters.append(_C_TYPES[arg.dtype])
            values.append(f"static_cast<{_C_TYPES[arg.dtype]}>(integers[{integers}])")
            integers += 1
        else:
            parameters.append(_C_TYPES[arg.dtype])
            values.append(f"static_cast<{_C_TYPES[arg.dtype]}>(floats[{floats}])")
            floats += 1
    return f"""// Written by akf from the launch spec. Do not edit.
#include <cstdint>

using Kernel = void (*)({", ".join(parameters)});

extern "C" std::int64_t akf_batch(void* function, void* const* table, const std::int64_t* integers,
                                  const double* floats, std::int64_t count) {{
    const Kernel kernel = reinterpret_cast<Kernel>(function);
    (void)integers;
    (void)floats;
    std::int64_t done = 0;
    for (; done < count; ++done) {{
        void* const* row = table + done * {pointers};
        kernel({", ".join(values)});
    }}
    return done;
}}
"""
