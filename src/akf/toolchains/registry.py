"""The toolchains of this machine: one folder each, published as a whole.

Invariants:
- `toolchain.json` is the identity, canonical, without a path of this machine; `place.json` beside it says where the
  toolchain stands here, and which wheels it was made of.
- A toolchain appears whole or not at all, and is never changed: another identity is another id.
- `check` reads everything again and names every field that differs.
- Nothing is chosen silently: a route takes the toolchain that is named, or the only one that serves it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.documents import load
from akf.contracts.ids import id_problem
from akf.contracts.problems import BlockedError, IntegrityError, InvalidError, PreconditionError, Problem, UsageError
from akf.contracts.text import did_you_mean
from akf.contracts.tree import tree_digest
from akf.routes.declaration import Program
from akf.routes.route import Route, route, routes
from akf.routes.tools import Package, Place, find, missing, need, record, tree
from akf.store.publish import StagedFolder, make_folder
from akf.toolchains.environment import SKIP, make_environment, place_of, python_version
from akf.toolchains.installed import read_installed

VARIABLE = "AKF_TOOLCHAINS"
IDENTITY, PLACE = "toolchain.json", "place.json"
OWN = {"env": "env", "headers": "headers"}
_ANY = "any"
_PYTHON = "python"
"""Every environment has one; what an environment lacks is something else."""


class Entry(NamedTuple):
    """A registered toolchain."""

    id: str
    folder: Path
    value: dict[str, Any]
    where: dict[str, Any]

    @property
    def place(self) -> Place:
        """Its roots here and its packages."""
        return _place(self.where, self.folder)

    @property
    def ref(self) -> dict[str, str]:
        """A reference to its identity."""
        return {"kind": "Toolchain", "id": self.id, "digest": digest(canonical_bytes(self.value))}


def store() -> Path:
    """The folder of all toolchains of this user."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME")
    return Path(data) / "akf" / "toolchains" if data else Path.home() / ".local" / "share" / "akf" / "toolchains"


def add_installed(path: Path, name: str | None) -> Entry:
    """Register an installed CANN, or an environment that is there.

    Raises:
        InvalidError: the folder is neither.
        BlockedError: CANN is too old or a pre-release; no tool of any route is in it.
        ConflictError: there is a toolchain of this id.
    """
    if (path / "bin" / "python").exists() and (path / "pyvenv.cfg").is_file():
        env = {"roots": {"env": str(path.absolute())}, "wheels": {}, "origin": "installed"}
        return _publish(name or "environment", env, None)
    found = read_installed(path)
    where = {"roots": {"toolkit": str(found.root)}, "wheels": {}, "origin": "installed"}
    return _publish(name or f"cann-{found.toolkit['version']}", where, None)


def add_packages(chosen: Route, name: str | None, wheels: Path | None) -> Entry:
    """Make a route's own environment of pinned packages.

    Raises:
        PreconditionError: nothing of the route is in packages.
        BlockedError: they cannot be had.
        ConflictError: there is a toolchain of this id.
    """
    packages = chosen.data.packages
    if packages is None:
        message = f"no packages bring the tools of route {chosen.name}"
        raise PreconditionError.of("AKF-P402", message, hint=chosen.data.without_cann)
    where = {"roots": {}, "wheels": {}, "origin": "packages", "route": chosen.name}
    return _publish(name or chosen.name.replace("_", "-"), where, (chosen, wheels))


def entries() -> list[Entry]:
    """All of them, in order of their ids."""
    folder = store()
    if not folder.is_dir():
        return []
    return [entry(each.name) for each in sorted(folder.iterdir()) if (each / IDENTITY).is_file()]


def entry(name: str) -> Entry:
    """The toolchain of this id.

    Raises:
        PreconditionError: there is none.
    """
    folder = store() / name
    if id_problem(name) is not None or not (folder / IDENTITY).is_file():
        known = [each.name for each in sorted(store().iterdir())] if store().is_dir() else []
        near = did_you_mean(name, known)
        hint = f"did you mean {near}?" if near else "akf toolchain list names what is registered"
        raise PreconditionError.of("AKF-P403", f"no toolchain {name!r} is registered", found=name, hint=hint)
    value = load(folder / IDENTITY, "Toolchain", file=f"{name}/{IDENTITY}").value
    where: dict[str, Any] = orjson.loads((folder / PLACE).read_bytes())
    return Entry(name, folder, value, where)


def check(one: Entry) -> None:
    """Read a toolchain again.

    Raises:
        IntegrityError: with every field that differs.
        BlockedError: it is gone.
    """
    for name, path in one.place.roots.items():
        if not path.is_dir():
            message = f"the {name} of toolchain {one.id!r} is gone: {path}"
            raise BlockedError.of("AKF-E403", message, hint="install it again, or register what is there now")
    now = _identity(one.id, one.where, one.folder)
    problems = [
        Problem(
            "AKF-I403",
            f"{one.id}: {pointer} is not what was registered",
            f"{one.id}/{IDENTITY}",
            pointer,
            expected=before,
            found=after,
            hint="builds with it would carry a wrong identity: register it under another id",
        )
        for pointer, before, after in _differences(one.value, now)
    ]
    if problems:
        raise IntegrityError(problems)


def serving(chosen: Route, named: list[str]) -> list[Entry]:
    """The toolchains for a build by a route.

    Args:
        chosen: the route.
        named: ids that were asked for; none: the only one that serves the route.

    Raises:
        BlockedError: none is registered.
        UsageError: several are, and none was named.
        PreconditionError: one that was named is not registered.
    """
    if named:
        return [entry(name) for name in named]
    if all(tool.found == "path" for tool in chosen.data.tools):
        return []
    first = chosen.data.stages[0].name
    able = [
        each
        for each in entries()
        if any(row["route"] == chosen.name and first in row["stages"] for row in each.value["reach"])
    ]
    if len(able) > 1:
        names = [each.id for each in able]
        message = f"several toolchains serve route {chosen.name}: {', '.join(names)}"
        raise UsageError.of("AKF-U403", message, expected=names, hint="name one: --toolchain ID")
    if not able:
        own = [tool for tool in chosen.data.tools if tool.found != "path"]
        program = next((tool for tool in own if tool.name != _PYTHON), own[0])
        raise BlockedError([missing(program, Place()).problem()])
    return able


def _publish(name: str, where: dict[str, Any], made: tuple[Route, Path | None] | None) -> Entry:
    problem = id_problem(name)
    if problem is not None:
        raise InvalidError([problem])
    folder = store() / name
    make_folder(store())
    with StagedFolder(folder) as stage:
        if made is not None:
            chosen, wheels = made
            packages = chosen.data.packages
            if packages is None:
                raise ValueError(chosen.name)
            where = {**where, "wheels": make_environment(chosen, packages, stage.path, wheels)}
        value = _identity(name, where, stage.path)
        stage.write(IDENTITY, canonical_bytes(value))
        stage.write(PLACE, canonical_bytes(where))
    return entry(name)


def _place(where: dict[str, Any], folder: Path) -> Place:
    roots = {name: Path(path) for name, path in where["roots"].items()}
    roots |= {name: folder / own for name, own in OWN.items() if (folder / own).is_dir()}
    packages = place_of(roots["env"], where["wheels"]) if "env" in roots else Place()
    found = packages.merged(Place(roots))
    if "headers" in roots and where["wheels"]:
        wheels = {name: Package("unpacked", each) for name, each in where["wheels"].items()}
        found = Place(found.roots, {**wheels, **found.packages})
    return found


def _identity(name: str, where: dict[str, Any], folder: Path) -> dict[str, Any]:
    place = _place(where, folder)
    programs = _programs(place)
    if not programs:
        hint = "akf capability explain ROUTE names the tools of a route and how to get them"
        raise BlockedError.of("AKF-E404", "no tool of any route is in it", hint=hint)
    value: dict[str, Any] = {
        "kind": "Toolchain",
        "schema_version": 1,
        "id": name,
        "origin": where["origin"],
        "toolkit": {},
        "tools": [record(program, path, place) for program, path in programs],
        "reach": _reach(place),
    }
    if "toolkit" in place.roots:
        installed = read_installed(place.roots["toolkit"])
        value["components"] = installed.components
        value["toolkit"] = installed.toolkit
    else:
        value["toolkit"] = _toolkit(place, value, where)
    site = place.roots.get("packages")
    if site is not None:
        value["contents_digest"] = tree_digest(tree(site, SKIP))
        value["packages"] = [
            {"name": each, "version": package.version}
            | ({"wheel_digest": package.wheel_digest} if package.wheel_digest else {})
            for each, package in sorted(place.packages.items())
        ]
        python = python_version(place.roots["env"])
        if python is not None:
            value["python"] = python
    return value


def _toolkit(place: Place, value: dict[str, Any], where: dict[str, Any]) -> dict[str, str]:
    """Whose name an environment carries: that of the route that it was made for, or of the first that it serves."""
    name = where.get("route") or next(row["route"] for row in value["reach"])
    chosen = route(str(name))
    if chosen.data.packages is not None and not chosen.data.packages.install:
        package, wheel = next(iter(sorted(where["wheels"].items())))
        return {"name": "headers", "version": package, "build": str(wheel)}
    found = [tool for tool in chosen.data.tools if find(tool, place) is not None]
    return chosen.toolkit([need(tool, place) for tool in found])


def _programs(place: Place) -> list[tuple[Program, Path]]:
    """Every tool of every route that stands in these roots, once."""
    found: dict[Path, tuple[Program, Path]] = {}
    for each in routes():
        for program in each.data.tools:
            where = find(program, place) if program.found != "path" else None
            if where is not None:
                found.setdefault(where[0], (program, where[0]))
    return [found[path] for path in sorted(found, key=lambda path: (found[path][0].name, path))]


def _reach(place: Place) -> list[dict[str, Any]]:
    """What each route reaches with these roots, by SoC family."""
    rows = []
    for each in routes():
        for family in each.data.claims.families or (_ANY,):
            mine = each.data.programs(family)
            own = [tool for tool in mine if tool.package or tool.found in {"toolkit", "headers"}]
            if not any(find(tool, place) for tool in own if tool.found != "path"):
                continue
            stages, lacking = [], []
            for stage in each.data.stages:
                absent = [tool for tool in each.data.needed(stage, family) if find(tool, place) is None]
                if absent:
                    lacking = [missing(tool, place) for tool in absent]
                    break
                stages.append(stage.name)
            row: dict[str, Any] = {"route": each.name, "family": family, "stages": stages}
            if lacking:
                row["lacking"] = [{"tool": one.name, "looked_for": one.looked, "get": one.hint} for one in lacking]
            rows.append(row)
    return rows


def _differences(before: Any, after: Any, pointer: str = "") -> list[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            each
            for key in sorted(before.keys() | after.keys())
            for each in _differences(before.get(key), after.get(key), f"{pointer}/{key}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            each
            for index, (one, other) in enumerate(zip(before, after, strict=True))
            for each in _differences(one, other, f"{pointer}/{index}")
        ]
    return [] if before == after else [(pointer, before, after)]
