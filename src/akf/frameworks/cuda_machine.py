"""A machine with NVIDIA GPUs: what its tool, and the interpreter that measures, say of it.

Invariants:
- The SoC is the compute capability of all GPUs of the ranks, as `triton_cuda` names it; it is its own family.
- Python and the revisions of frameworks are those of this interpreter, which the harness runs under. Their metadata is
  read; nothing is imported.
- The toolkit is the package that compiles. Which wheel it was installed from is not kept by an installation.
- What is not read is named with the tool that is missing, or with who would know it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from akf.frameworks import nvidia_smi
from akf.frameworks.machine import Reading

TOOLKIT, COMPILER = "cuda", "triton"
ADAPTER = "only the arm's own process knows it, and no adapter reads it yet"
BY_ADAPTER = ("libraries", "model_runner", "variables", "binding")
NO_TOOL = f"{nvidia_smi.PROGRAM} is not on PATH or does not answer"
NO_WHEEL = "an installed package does not keep its wheel's digest"


def read(gpus: Iterable[int], wanted: Mapping[str, Any]) -> Reading:
    """Read the machine.

    Args:
        gpus: which GPUs are looked at.
        wanted: the Campaign's `environment`; its frameworks are looked for by name.
    """
    numbers = sorted(set(gpus))
    unread = {f"/environment/{name}": ADAPTER for name in BY_ADAPTER}
    name = _soc(numbers, unread)
    environment: dict[str, Any] = {
        "soc": {"family": name, "name": name},
        "toolkit": {"name": TOOLKIT, "version": _version(COMPILER, "toolkit/version", unread), "build": None},
        "python": platform.python_version(),
        "frameworks": [_framework(index, each, unread) for index, each in enumerate(wanted.get("frameworks", ()))],
    }
    unread["/environment/toolkit/build"] = NO_WHEEL
    return Reading({"environment": environment}, unread, nvidia_smi.dies(numbers))


def _soc(gpus: list[int], unread: dict[str, str]) -> str | None:
    """The one compute capability of all these GPUs."""
    found = nvidia_smi.capabilities()
    said = {found.get(number) for number in gpus} if found is not None else set()
    name = said.pop() if len(said) == 1 else None
    if name is None:
        unread["/environment/soc"] = NO_TOOL if found is None else "the GPUs have different or unknown capabilities"
    return name


def _framework(index: int, stated: Mapping[str, Any], unread: dict[str, str]) -> dict[str, Any]:
    pointer = f"frameworks/{index}"
    if "digest" in stated:
        unread[f"/environment/{pointer}/digest"] = NO_WHEEL
    return {"name": stated["name"], "revision": _version(stated["name"], f"{pointer}/revision", unread)}


def _version(package: str, pointer: str, unread: dict[str, str]) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        unread[f"/environment/{pointer}"] = f"{package} is not installed in the interpreter that measures"
        return None
