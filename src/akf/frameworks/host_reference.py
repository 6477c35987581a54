"""The arm `host_reference`: plain C++ operators on this machine's processor, the reference platform `host`.

Invariants:
- Facts are read from the machine now; nothing is remembered between calls.
- The baseline is compiled from the shipped sources with the flags that candidates get, and is never slowed down.
- Claims about this arm hold for this machine alone.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.canonical import canonical_bytes, digest, digest_file
from akf.contracts.problems import BlockedError, DefectError
from akf.contracts.shipped import shipped
from akf.contracts.tree import tree_digest
from akf.frameworks import host_toolkit
from akf.frameworks.toolkit_tree import Tree
from akf.routes import host_cpp
from akf.routes.launch_spec import LaunchSpec, parse_spec
from akf.store.untrusted import read_tree

ARM = "host_reference"
OPERATOR = "rms_norm"
LIBRARY = "libhost_reference.so"
LAUNCHER = "launcher.so"
COMPILE_S = 120.0


class Baseline(NamedTuple):
    """The arm's operators in one library, with the launcher of one of them."""

    library: Path
    launcher: Path
    spec: LaunchSpec
    digest: str
    launcher_digest: str


def environment(baseline: Baseline) -> dict[str, Any]:
    """The Campaign's `environment`, as read on this machine now.

    Raises:
        BlockedError: there is no compiler.
    """
    identity = compiler()
    return {
        "soc": {"family": "host", "name": host_cpp.soc_name(identity)},
        "toolkit": host_cpp.toolkit(identity),
        "python": platform.python_version(),
        "frameworks": [{"name": ARM, "revision": revision()}],
        "libraries": [{"name": LIBRARY, "digest": baseline.digest}],
        "host": {
            "architecture": platform.machine(),
            "cpu_model": _cpu_model(),
            "cpu_features_digest": digest(canonical_bytes(_cpu_features())),
            "cores": len(os.sched_getaffinity(0)),
            "libc": " ".join(platform.libc_ver()).strip() or "unknown",
            "compiler_digest": _compiler_digest(identity),
            "toolkit_tree_digest": toolkit_tree().digest,
        },
    }


def toolkit_tree() -> Tree:
    """All files of the compiler's own folders.

    Raises:
        BlockedError: there is no compiler, or a file cannot be read.
    """
    try:
        return host_toolkit.tree()
    except host_cpp.ToolMissing as error:
        raise missing_tool(error) from error


def ranks() -> dict[str, Any]:
    """One process on one processor package."""
    return {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "devices": [{"rank": 0, "npu": 0, "die": 0}]}


def compiler() -> dict[str, Any]:
    """Identity of the compiler.

    Raises:
        BlockedError: there is none.
    """
    try:
        return host_cpp.compiler_identity()
    except host_cpp.ToolMissing as error:
        raise missing_tool(error) from error


def missing_tool(error: host_cpp.ToolMissing) -> BlockedError:
    """A missing compiler, as a problem with its remedy."""
    return BlockedError([error.problem()])


def revision() -> str:
    """Revision of the arm: digest of its shipped sources."""
    files = read_tree(_sources(), ARM)
    return tree_digest((file.path, file.executable, digest(file.data)) for file in files)


def operators() -> list[str]:
    """The arm's operators."""
    return sorted(path.stem for path in _sources().glob("*.json"))


def build_baseline(out: Path, op: str = OPERATOR) -> Baseline:
    """Compile the arm's operators, and the launcher of one, into `out`.

    The library is the same whatever is launched, so the incumbent is one.

    Args:
        out: the folder.
        op: the operator that is launched; `OPERATOR` where the arm has none of this name.

    Raises:
        BlockedError: there is no compiler.
        DefectError: the shipped source does not compile.
    """
    folder = _sources()
    own = op if op in operators() else OPERATOR
    spec = parse_spec(orjson.loads((folder / f"{own}.json").read_bytes()))
    names = [path.name for path in sorted(folder.iterdir()) if path.suffix in host_cpp.SOURCE_SUFFIXES]
    library, launcher = out / LIBRARY, out / LAUNCHER
    _compile(folder, names, library)
    (out / "launcher.cpp").write_text(host_cpp.launcher_source(spec), encoding="utf-8")
    _compile(out, ["launcher.cpp"], launcher)
    return Baseline(library, launcher, spec, digest_file(library), digest_file(launcher))


def _compile(folder: Path, names: list[str], out: Path) -> None:
    try:
        result = host_cpp.compile_shared(folder, names, out, COMPILE_S)
    except host_cpp.ToolMissing as error:
        raise missing_tool(error) from error
    if not result:
        message = f"the shipped {out.name} does not compile here: {result.stderr[:400]}"
        raise DefectError.of("AKF-X004", message, hint="please report this with the compiler's version")


def _sources() -> Path:
    return shipped("adapters") / ARM / "src"


def _cpu_lines() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _cpu_field(*names: str) -> str:
    for line in _cpu_lines():
        name, _, value = line.partition(":")
        if name.strip() in names and value.strip():
            return value.strip()
    return ""


def _cpu_model() -> str:
    return _cpu_field("model name", "CPU part", "cpu") or platform.processor() or "unknown"


def _cpu_features() -> list[str]:
    return sorted(set(_cpu_field("flags", "Features").split()))


def _compiler_digest(identity: dict[str, Any]) -> str:
    programs = {name: each["digest"] if each else None for name, each in identity["programs"].items()}
    options = identity["native_options_digest"]
    return digest(canonical_bytes({"driver": identity["digest"], "programs": programs, "native": options}))
