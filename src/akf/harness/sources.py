"""The child's program as text: it is handed to the interpreter, so the child needs no file of the harness."""

from __future__ import annotations

import hashlib
import pkgutil
import sys

_BOOTSTRAP = """
import sys, types
package = types.ModuleType("akf_child")
package.__path__ = []
sys.modules["akf_child"] = package
for name, text in zip(sys.argv[2::2], sys.argv[3::2]):
    module = types.ModuleType("akf_child." + name)
    module.__package__ = "akf_child"
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(compile(text, name + ".py", "exec"), module.__dict__)
sys.modules["akf_child.child"].serve(int(sys.argv[1]))
"""
_MODULES = ("confine", "child")


def _source(name: str) -> str:
    data = pkgutil.get_data(__package__, f"{name}.py")
    if data is None:  # pragma: no cover - a package without its own files
        raise RuntimeError(f"the harness is incomplete: {name}.py is missing")
    return data.decode("utf-8")


def child_command(fd: int) -> list[str]:
    """The child's command line: the interpreter, isolated, with the program's text."""
    command = [sys.executable, "-I", "-S", "-B", "-c", _BOOTSTRAP, str(fd)]
    for name in _MODULES:
        command += [name, _source(name)]
    return command


def digest() -> str:
    """SHA-256 over the harness's own modules, names and lengths included."""
    total = hashlib.sha256()
    for name in FILES:
        data = pkgutil.get_data(__package__, name) or b""
        total.update(f"{name} {len(data)}\n".encode())
        total.update(data)
    return f"sha256:{total.hexdigest()}"


FILES = (
    "__init__.py",
    "__main__.py",
    "bench.py",
    "cases.py",
    "child.py",
    "confine.py",
    "correct.py",
    "draw.py",
    "hit.py",
    "main.py",
    "memory.py",
    "oracle.py",
    "outcome.py",
    "plan.py",
    "pool.py",
    "process.py",
    "request.py",
    "sources.py",
    "timing.py",
)
