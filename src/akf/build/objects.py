"""One compilation: files in, one shared object and its log out, with what a Build record binds.

Invariants:
- Every compilation happens in a folder of its own that holds the given files and nothing else.
- Commands are recorded as used, with paths relative to that folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.text import printable
from akf.frameworks import host_reference
from akf.routes import host_cpp
from akf.store.untrusted import TreeFile

COMPILE_S = 120.0
_REASON_LINES = 8
_REASON_CHARACTERS = 1000


class Product(NamedTuple):
    """What one compilation gave."""

    subject: str
    built: bool
    command: dict[str, Any]
    variables: Mapping[str, str]
    log: str
    outputs: tuple[dict[str, Any], ...]
    files: Mapping[str, bytes]
    isolation: str

    @property
    def object_digest(self) -> str:
        """Digest of the object; of nothing when there is none."""
        return next((each["digest"] for each in self.outputs if each["role"] != "log"), digest(b""))


def compile_object(
    files: Sequence[TreeFile], folder: Path, path: str, subject: str, symbol: str | None = None
) -> Product:
    """Compile plain files to one shared object.

    Args:
        files: sources and headers; other files stand beside them.
        folder: a new folder to work in.
        path: name of the object among the Build's outputs.
        subject: whose object it is.
        symbol: a function that the object must export; without it the build failed.

    Raises:
        BlockedError: there is no compiler.
    """
    sources = folder / "src"
    for file in files:
        target = sources / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
    names = [file.path for file in files if Path(file.path).suffix in host_cpp.SOURCE_SUFFIXES]
    out = folder / Path(path).name
    try:
        result = host_cpp.compile_shared(sources, names, out, COMPILE_S)
    except host_cpp.ToolMissing as error:
        raise host_reference.missing_tool(error) from error
    except host_cpp.SourceRefused as error:
        result = host_cpp.CompileResult(2, (host_cpp.COMPILER,), {}, f"error: {error}")
    log_path = f"logs/{subject}.txt"
    built, text = bool(result), result.stderr
    if built and symbol is not None and not _exports(out, symbol):
        built = False
        text += f'error: the object exports no function {symbol!r}; declare it extern "C"\n'
    log = text.encode()
    made = {log_path: log}
    outputs = [_output(log_path, subject, "log", "data", log)]
    if built:
        role = "launcher" if subject == "launcher" else "kernel_object"
        made[path] = out.read_bytes()
        outputs.append(_output(path, subject, role, "host_code", made[path]))
    command = {"argv": list(result.command), "returncode": result.returncode, "log_digest": digest(log)}
    return Product(subject, built, command, dict(result.env), text, tuple(outputs), made, result.isolation)


def _exports(path: Path, symbol: str) -> bool:
    try:
        return host_cpp.exports(path, symbol)
    except host_cpp.ToolMissing as error:
        raise host_reference.missing_tool(error) from error


def failed_reasons(products: Sequence[Product]) -> list[str]:
    """The compilers' own error lines, printable and bounded."""
    lines = [
        f"{product.subject}: {line}"
        for product in products
        if not product.built
        for line in (
            [text for text in product.log.splitlines() if re.search(r"\berror\b", text)] or ["no object and no message"]
        )
    ]
    return [printable(line)[:_REASON_CHARACTERS] for line in lines[:_REASON_LINES]]


def tools(identity: dict[str, Any]) -> list[dict[str, Any]]:
    """The compiler as a Build record names it."""
    files = [{"name": identity["name"], "digest": identity["digest"]}]
    files += [{"name": name, "digest": each["digest"]} for name, each in sorted(identity["programs"].items()) if each]
    text = "\n".join(identity["version"])
    return [{"name": identity["name"], "version_text": text, "target": identity["target"], "files": files}]


def _output(path: str, subject: str, role: str, trust: str, data: bytes) -> dict[str, Any]:
    return {
        "path": path, "subject": subject, "role": role, "trust": trust, "digest": digest(data), "bytes": len(data),
    }  # fmt: skip
