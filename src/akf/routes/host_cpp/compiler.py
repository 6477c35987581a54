"""The compilers of the host: where they are, what they are, and what `native` stands for.

Invariants:
- A driver is known with the programs that it runs, by digest, its version, its target and its native architecture.
- `-march=native` is a choice of this machine: the target it stands for is part of the compiler's identity.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from akf.contracts.canonical import digest_file
from akf.routes.declaration import declaration
from akf.routes.tools import Place, ask, find, missing

ROUTE = "host_cpp"
COMPILER = "g++"
PROGRAMS = ("cc1plus", "as", "ld", "collect2")


def compiler_path(name: str = COMPILER) -> Path:
    """Where a compiler driver is.

    Raises:
        ToolMissing: There is none on PATH.
    """
    program = declaration(ROUTE).program(name)
    found = find(program, Place())
    if found is None:
        raise missing(program, Place())
    return found[0].resolve()


def compiler_identity(name: str = COMPILER) -> dict[str, Any]:
    """Digests of the driver and of the programs that it runs, its version, target and native architecture."""
    driver = compiler_path(name)
    programs: dict[str, object] = {}
    for each in PROGRAMS:
        answer = ask(driver, f"-print-prog-name={each}").strip()
        resolved = shutil.which(answer) or answer
        path = Path(resolved)
        if path.is_absolute() and path.is_file():
            programs[each] = {"path": str(path.resolve()), "digest": digest_file(path)}
        else:
            programs[each] = None
    options, native = _native(driver, name)
    return {
        "name": name,
        "path": str(driver),
        "digest": digest_file(driver),
        "programs": programs,
        "version": ask(driver, "--version").splitlines()[:1],
        "target": ask(driver, "-dumpmachine").strip(),
        "native": native,
        "native_options_digest": f"sha256:{hashlib.sha256(options.encode()).hexdigest()}",
    }


def _native(driver: Path, name: str) -> tuple[str, dict[str, str]]:
    """The options that `native` stands for, as text, and the architecture that they name."""
    if name == COMPILER:
        options = ask(driver, "-march=native", "-Q", "--help=target")
        found = re.findall(r"^\s+(-m(?:arch|tune|cpu)=)\s+(\S+)\s*$", options, re.MULTILINE)
        return options, {flag.rstrip("="): value for flag, value in found}
    said = ask(driver, "-march=native", "-###", "-E", "-x", "c++", "/dev/null")
    words = re.findall(r'"(-target-cpu|-target-feature)" "([^"]+)"', said)
    cpu = dict(words).get("-target-cpu", "unknown")
    return "\n".join(" ".join(word) for word in words), {"-march": cpu}


def soc_name(identity: dict[str, Any]) -> str:
    """`x86_64-sapphirerapids`: architecture, and what the compiler's `native` stands for."""
    native = identity["native"]
    core = native.get("-march") or native.get("-mcpu") or native.get("-mtune") or "unknown"
    return f"{platform.machine()}-{core}".lower()


def toolkit(identity: dict[str, Any]) -> dict[str, str]:
    """Name, version and exact build of the compiler."""
    text = identity["version"][0]
    if identity["name"] == COMPILER:
        return {"name": "gcc", "version": text.rsplit(" ", 1)[-1], "build": text}
    version = re.search(r"version (\S+)", text)
    return {"name": "clang", "version": version[1] if version else "unknown", "build": text}


def record(identity: dict[str, Any]) -> dict[str, Any]:
    """The compiler as a Build record names it."""
    files = [{"name": identity["name"], "digest": identity["digest"]}]
    files += [{"name": name, "digest": each["digest"]} for name, each in sorted(identity["programs"].items()) if each]
    text = "\n".join(identity["version"])
    return {"name": identity["name"], "version_text": text, "target": identity["target"], "files": files}
