"""`runtime graph`: a task's graph before it runs."""

from __future__ import annotations

from pathlib import Path

from akf.cli.outputs import free, publish
from akf.cli.result import Result
from akf.contracts.files import read_input

_USAGE = "AKF-U001"


def graph(file: Path, out: Path | None) -> Result:
    """Compile a graph, and publish its picture where one is asked for."""
    from akf.runtime.compiler import Compiler  # noqa: PLC0415
    from akf.runtime.draw import columns, svg  # noqa: PLC0415

    free(_USAGE, out=out)
    compiled = Compiler().read(read_input(file), str(file))
    column = columns(compiled)
    steps: list[list[str]] = [[] for _ in range(max(column.values()) + 1)]
    for node in compiled.nodes:
        steps[column[node.id]].append(node.id)
    loops = [{"loop": each.id, "nodes": list(each.nodes), "max_rounds": each.max_rounds} for each in compiled.loops]
    document = {
        "file": str(file),
        "nodes": len(compiled.nodes),
        "edges": sum(len(node.needs) for node in compiled.nodes),
        "roles": sorted({node.action for node in compiled.nodes}),
        "default_role": compiled.default_role,
        "steps": [{"step": number, "nodes": names} for number, names in enumerate(steps, 1)],
        "loops": loops,
        "conditions": [node.id for node in compiled.nodes if node.when is not None],
        "out": None if out is None else str(out),
    }
    publish((out, svg(compiled)))
    return Result(document)
