"""`capability list` and `capability explain`: what each route declares of itself."""

from __future__ import annotations

from typing import Any

from akf.cli.result import Result
from akf.routes.declaration import Declaration
from akf.routes.route import Route, route, routes


def list_all() -> Result:
    """Every route in a line."""
    return Result({"routes": [_line(each) for each in routes()]})


def explain(name: str, soc: str | None) -> Result:
    """All that a route declares, and how its tools spell a SoC."""
    found = route(name)
    data = found.data
    document: dict[str, Any] = {
        **_line(found),
        "language": data.language,
        "suffixes": list(data.suffixes),
        "toolkit": data.toolkit.name,
        "soc_space": data.soc.space,
    }
    if soc is not None:
        document["soc"] = {"name": soc, "tools_say": found.target(soc)}
    else:
        document["socs"] = data.soc.names or data.soc.families or {"native": "this machine"}
    document |= {
        "tools": [
            {
                "tool": tool.name,
                "found": tool.found,
                "places": list(tool.places),
                "families": list(tool.families),
                "package": tool.package,
                "version": list(tool.version),
                "needed_for": _needed_for(data, tool.name),
                "get": tool.get,
            }
            for tool in data.tools
        ],
        "emulated": None if data.emulation is None else data.emulation.model_dump(mode="json"),
        "stage_files": [{"stage": stage.name, "file": stage.file} for stage in data.stages],
        "options": [{"name": each.name, "about": each.about, "values": list(each.values)} for each in data.options],
        "host_parts": [
            {"file": each.file, "needs": list(each.needs), "runs": "inside the engine"} for each in data.parts
        ],
        "outputs": [{"file": each.file, "role": each.role, "trust": each.trust} for each in data.outputs],
        "environment": {
            "set": data.environment.variables,
            "change_code": list(data.environment.code),
            "caches": list(data.environment.caches),
        },
        "may_claim": data.claims.model_dump(mode="json"),
    }
    return Result(document)


def _needed_for(data: Declaration, tool: str) -> str | None:
    """The stage that needs a tool first, or the host part, or `emulation`."""
    needing: list[tuple[str, tuple[str, ...]]] = [(stage.name, stage.needs) for stage in data.stages]
    needing += [(part.file, part.needs) for part in data.parts]
    needing += [("emulation", data.emulation.needs)] if data.emulation is not None else []
    return next((name for name, needs in needing if tool in needs), None)


def _line(found: Route) -> dict[str, Any]:
    data = found.data
    return {
        "route": found.name,
        "platform": data.platform,
        "title": data.title,
        "abi": data.abi,
        "stages": [stage.name for stage in data.stages],
        "families": list(data.claims.families),
        "without_cann": data.without_cann,
    }
