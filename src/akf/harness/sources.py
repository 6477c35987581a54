"""The child's program as text: it is handed to the interpreter, so the child needs no file of the harness.

Invariant: the last module of a list serves; each may use those before it.
"""

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
    exec(compile(text, "<akf_child " + name + ">", "exec"), module.__dict__)
sys.modules["akf_child." + name].serve(int(sys.argv[1]))
"""
MODULES = ("confine", "child")
TEMPLATE = ("confine", "child", "devices", "swallowed", "python_child", "fork_server")


def _source(name: str) -> str:
    data = pkgutil.get_data(__package__, f"{name}.py")
    if data is None:  # pragma: no cover - a package without its own files
        raise RuntimeError(f"the harness is incomplete: {name}.py is missing")
    return data.decode("utf-8")


def child_command(fd: int) -> list[str]:
    """The child's command line: the interpreter, isolated, with the program's text."""
    return _command(["-I", "-S", "-B"], fd, MODULES)


def template_command(fd: int) -> list[str]:
    """The command line of the template of python children: isolated too, with the interpreter's packages."""
    return _command(["-I", "-B"], fd, TEMPLATE)


def _command(options: list[str], fd: int, modules: tuple[str, ...]) -> list[str]:
    command = [sys.executable, *options, "-c", _BOOTSTRAP, str(fd)]
    for name in modules:
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
    "devices.py",
    "draw.py",
    "dtypes.py",
    "fork_server.py",
    "hit.py",
    "main.py",
    "memory.py",
    "oracle.py",
    "outcome.py",
    "plan.py",
    "pool.py",
    "process.py",
    "product.py",
    "python_child.py",
    "request.py",
    "sources.py",
    "steps.py",
    "swallowed.py",
    "template.py",
    "timing.py",
    "tree.py",
)
