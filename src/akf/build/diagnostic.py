"""`build SOURCE --route R`: a build outside a run. It shows what a route makes of a source; no gate takes it.

Invariants:
- The Build says `diagnostic`, has no parents and is not signed; what it binds is the digest of the source tree.
- Its tools are named: the system's, those of the toolchains that were asked for, or of the only one that serves.
- Two builds in two folders, without address randomisation where the machine allows that; both digests are kept.
- The folder appears whole or not at all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.build.engine import bench
from akf.build.objects import build_subject
from akf.build.record import record
from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.files import read_input
from akf.contracts.loader import parse
from akf.contracts.problems import InvalidError, UsageError
from akf.contracts.text import did_you_mean
from akf.contracts.tree import tree_digest
from akf.routes.launch_spec import LaunchSpec, LaunchSpecError, parse_spec
from akf.routes.route import Job, Route, route
from akf.routes.tools import Place
from akf.store.publish import StagedFolder, make_folder
from akf.store.untrusted import TreeFile, read_tree
from akf.toolchains import registry

LAUNCH = "launch.json"
ID = "diagnostic"


def build_diagnostic(
    source: Path, name: str, soc: str, out: Path, toolchains: Sequence[str], options: Sequence[str]
) -> dict[str, Any]:
    """Build a source by a route into a new folder; returns the Build.

    Args:
        source: a file, or a folder of sources; `launch.json` in it is the launch spec.
        name: the route.
        soc: AKF's name of the SoC.
        out: the new folder.
        toolchains: ids of registered toolchains.
        options: `NAME=VALUE`.

    Raises:
        UsageError: there is no such route, SoC or option.
        InvalidError: the source or its launch spec cannot be read.
        BlockedError: not even the first stage can be reached here.
        ConflictError: `out` exists.
    """
    chosen = route(name)
    given = _options(chosen, options)
    files = _files(source)
    launch, spec = _launch(chosen, files, source.name)
    used = registry.serving(chosen, list(toolchains))
    place = Place()
    for each in used:
        place = place.merged(each.place)
    job = Job(tuple(file.path for file in files), given, soc, chosen.target(soc), spec)
    job = job._replace(soc=job.target if chosen.data.soc.machine else soc)
    toolkit = next((each.value["toolkit"] for each in used if each.value["toolkit"]["name"] == "cann"), None)
    tools = bench(chosen, job, place, toolkit)
    symbol = spec.symbol if spec is not None and chosen.data.abi == "c" else None
    make_folder(out.absolute().parent)
    with StagedFolder(out) as stage, tempfile.TemporaryDirectory(prefix="akf-build-") as scratch:
        first = build_subject(tools, job, files, Path(scratch, "first"), "candidate", symbol)
        second = build_subject(tools, job, files, Path(scratch, "second-build"), "candidate", symbol)
        value, products = record(tools, job.soc, ID, (), launch, [first], [second])
        value |= {
            "diagnostic": True,
            "source_digest": tree_digest((file.path, file.executable, digest(file.data)) for file in files),
            "options": [{"name": key, "value": each} for key, each in sorted(given.items())],
            "toolchains": [each.ref for each in used],
        }
        for path, data in sorted(products.items()):
            stage.write(f"build/{path}", data, mode=0o644)
        stage.write("build.json", canonical_bytes(value), mode=0o644)
    return value


def _files(source: Path) -> list[TreeFile]:
    if source.is_dir() and not source.is_symlink():
        return read_tree(source, source.name)
    return [TreeFile(source.name, read_input(source), False)]


def _options(chosen: Route, options: Sequence[str]) -> dict[str, str]:
    """Options by name; each one is declared by the route."""
    found: dict[str, str] = {}
    declared = {each.name: each for each in chosen.data.options}
    prefixes = {name.removesuffix("NAME"): name for name in declared if name.endswith(".NAME")}
    for text in options:
        name, equals, value = text.partition("=")
        known = declared.get(name) or next(
            (declared[full] for head, full in prefixes.items() if name.startswith(head)), None
        )
        if not equals or known is None or name in found or (known.values and value not in known.values):
            near = did_you_mean(name, declared)
            hint = (
                f"did you mean {near}?" if near and near != name else f"akf capability explain {chosen.name} lists them"
            )
            message = f"route {chosen.name} takes no option {text!r}"
            if known is not None and known.values:
                message += f"; {known.name} is one of {', '.join(known.values)}"
            raise UsageError.of("AKF-U405", message, expected=sorted(declared), found=text, hint=hint)
        found[name] = value
    return found


def _launch(chosen: Route, files: Sequence[TreeFile], shown: str) -> tuple[dict[str, Any] | None, LaunchSpec | None]:
    data = next((file.data for file in files if file.path == LAUNCH), None)
    if data is None:
        return None, None
    file = f"{shown}/{LAUNCH}"
    value = parse(data, file).value
    try:
        spec = parse_spec(value)
    except LaunchSpecError as error:
        raise InvalidError.of("AKF-M043", f"launch spec: {error}", file=file, pointer=error.pointer) from error
    if spec.abi != chosen.data.abi:
        message = f"launch spec: route {chosen.name} makes an object of the abi {chosen.data.abi}, not {spec.abi}"
        raise InvalidError.of("AKF-M043", message, file=file, pointer="/abi", expected=chosen.data.abi, found=spec.abi)
    return value, spec
