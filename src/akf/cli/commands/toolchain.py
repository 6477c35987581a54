"""`toolchain add|list|check`: the toolchains of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akf.cli.result import Result
from akf.contracts.problems import AkfError, UsageError
from akf.routes.route import route
from akf.toolchains import registry
from akf.toolchains.registry import Entry


def add(path: Path | None, packages: str | None, name: str | None, wheels: Path | None) -> Result:
    """Register an installed toolchain, or make one of pinned packages."""
    if (path is None) == (packages is None):
        message = "name either the FOLDER of an installed toolchain or --packages ROUTE"
        raise UsageError.of("AKF-U404", message, hint="akf toolchain add /usr/local/Ascend/cann")
    if path is not None:
        return Result(_shown(registry.add_installed(path, name)))
    return Result(_shown(registry.add_packages(route(str(packages)), name, wheels)))


def list_all() -> Result:
    """Every registered toolchain, with what it can reach."""
    return Result({"folder": str(registry.store()), "toolchains": [_shown(each) for each in registry.entries()]})


def check(names: list[str]) -> Result:
    """Read toolchains again; the status is the worst of them."""
    problems: list[dict[str, Any]] = []
    checked, status = [], 0
    for each in [registry.entry(name) for name in names] if names else registry.entries():
        try:
            registry.check(each)
            checked.append({"id": each.id, "same": True})
        except AkfError as error:
            checked.append({"id": each.id, "same": False})
            problems += [problem.to_json() for problem in error.problems]
            status = max(status, error.exit_code)
    return Result({"toolchains": checked, "problems": problems}, status)


def _shown(one: Entry) -> dict[str, Any]:
    value = one.value
    return {
        "id": one.id,
        "digest": one.ref["digest"],
        "origin": value["origin"],
        "toolkit": value["toolkit"],
        "tools": [{"tool": tool["name"], "version": tool["version_text"].splitlines()[0]} for tool in value["tools"]],
        "reach": [
            {
                "route": row["route"],
                "family": row["family"],
                "stage": row["stages"][-1] if row["stages"] else None,
                "lacking": [each["tool"] for each in row.get("lacking", ())],
            }
            for row in value["reach"]
        ],
    }
