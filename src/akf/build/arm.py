"""The arm's own compiler: what a Campaign says of it, held field by field against what is registered here.

Invariants:
- The Campaign's tuple covers Task and route, the route may claim that tuple, and the toolchain reaches the SoC family.
  What none of them names is unknown, and unknown fails closed.
- Name, version and inner build of the toolkit are the Campaign's; so are the releases of the packages that compile, and
  the Python that they were made for. Another identity is refused with every field that differs.
- What was registered is read again before it compiles.
- A toolkit that is not here leaves its stages out of reach. A route that cannot begin without it is blocked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from akf.contracts.identity import capability_of
from akf.contracts.problems import PreconditionError, Problem
from akf.contracts.rules.versions import release
from akf.routes.route import Route
from akf.routes.tools import Place
from akf.toolchains import registry
from akf.toolchains.registry import Entry

CAMPAIGN = "campaign.json"
_TOOLKIT = "/environment/toolkit"


class Compiler(NamedTuple):
    """Where the arm's compiler is on this machine."""

    place: Place
    toolkit: dict[str, str] | None
    """Whose name the Build carries, where it is not the route's own."""
    used: tuple[Entry, ...]


def require_capability(campaign: dict[str, Any], task: dict[str, Any], route: Route) -> None:
    """Refuse a build that nobody said to be possible.

    Raises:
        PreconditionError: the Task does not take the route, no tuple covers it, or the route may not claim the tuple.
    """
    if route.name not in task["routes"]:
        message = f"the Task {task['id']!r} does not take route {route.name}"
        raise PreconditionError.of("AKF-P404", message, expected=task["routes"], found=route.name)
    capability = capability_of(campaign, task, route.name)
    if capability is None:
        message = f"no capability tuple of the Campaign covers {task['op']} on route {route.name} over this domain"
        raise PreconditionError.of("AKF-P404", message, file=CAMPAIGN, pointer="/capabilities", found=route.name)
    claims = route.data.claims
    toolkit = capability["toolkit"]
    oldest = release(claims.minimum) if claims.minimum else None
    mine = release(toolkit["version"] or "")
    wrong = [
        ("soc_family", capability["soc_family"], list(claims.families))
        if not route.data.soc.machine and capability["soc_family"] not in claims.families
        else None,
        ("dtype", capability["dtype"], list(claims.dtypes)) if capability["dtype"] not in claims.dtypes else None,
        ("graph", capability["graph"], list(claims.graph)) if capability["graph"] not in claims.graph else None,
        ("toolkit/name", toolkit["name"], claims.toolkit) if toolkit["name"] != claims.toolkit else None,
        ("toolkit/version", toolkit["version"], f"{claims.minimum} or newer")
        if oldest is not None and (mine is None or mine < oldest)
        else None,
    ]
    index = campaign["capabilities"].index(capability)
    problems = [
        Problem(
            "AKF-P404",
            f"route {route.name} may not claim {each[0].replace('/', '.')} {each[1]}",
            CAMPAIGN,
            f"/capabilities/{index}/{each[0]}",
            expected=each[2],
            found=each[1],
            hint=f"akf capability explain {route.name} lists what it may claim",
        )
        for each in wrong
        if each is not None
    ]
    if problems:
        raise PreconditionError(problems)


def compiler_of(campaign: dict[str, Any], route: Route, named: Sequence[str] = ()) -> Compiler:
    """The arm's compiler on this machine.

    Args:
        campaign: the frozen Campaign.
        route: the route.
        named: ids of registered toolchains, where several would do.

    Raises:
        BlockedError: no toolchain brings the tools of the first stage.
        PreconditionError: what is registered is not the arm's.
        IntegrityError: it is not what was registered.
        UsageError: several would do, and none was named.
    """
    if all(tool.found == "path" for tool in route.data.tools):
        return Compiler(Place(), None, ())
    here = [registry.entry(name) for name in named] or registry.entries()
    kits = [each for each in here if "toolkit" in each.place.roots]
    others = [each for each in here if "toolkit" not in each.place.roots]
    kit = _toolkit(campaign, route, kits)
    used = [] if kit is None else [kit]
    if any(tool.found in {"environment", "headers"} for tool in route.data.tools):
        able = [each for each in others if _serves(each, route)]
        if able or kit is None or not _serves(kit, route):
            used += registry.serving(route, [each.id for each in able][:1] if len(able) == 1 else [])
    place = Place()
    for each in used:
        if each is not kit:
            _packages(campaign, route, each)
        _reaches(campaign, route, each)
        registry.check(each)
        place = place.merged(each.place)
    return Compiler(place, None if kit is None else kit.value["toolkit"], tuple(used))


def require_toolkit(campaign: dict[str, Any], found: dict[str, str]) -> None:
    """Refuse the machine's own compiler where it is not the arm's.

    Raises:
        PreconditionError: with every field that differs.
    """
    problems = _differing(campaign["environment"]["toolkit"], found, "the machine's compiler")
    if problems:
        raise PreconditionError(problems)


def choices(campaign: dict[str, Any], route: Route) -> dict[str, str]:
    """The arm's variables that change what this route's tools generate.

    Raises:
        PreconditionError: one of them names a place of the arm, which is none here.
    """
    found = {}
    for index, each in enumerate(campaign["environment"].get("variables", ())):
        if each["name"] not in route.data.environment.code or each["value"] is None:
            continue
        if "/" in each["value"]:
            message = f"variable {each['name']} names a place of the arm, and no build elsewhere can have it"
            pointer = f"/environment/variables/{index}/value"
            raise PreconditionError.of("AKF-P405", message, file=CAMPAIGN, pointer=pointer, found=each["value"])
        found[each["name"]] = each["value"]
    return found


def _serves(one: Entry, route: Route) -> bool:
    first = route.data.stages[0].name
    return any(row["route"] == route.name and first in row["stages"] for row in one.value["reach"])


def _toolkit(campaign: dict[str, Any], route: Route, kits: Sequence[Entry]) -> Entry | None:
    """The registered toolkit that is the arm's; None where there is none at all, or the route needs none."""
    if not kits or not any(tool.found == "toolkit" for tool in route.data.tools):
        return None
    wanted = campaign["environment"]["toolkit"]
    differing = {each.id: _differing(wanted, each.value["toolkit"], f"toolchain {each.id!r}") for each in kits}
    same = [each for each in kits if not differing[each.id]]
    if not same:
        raise PreconditionError([problem for each in kits for problem in differing[each.id]])
    return same[0]


def _differing(wanted: dict[str, Any], found: dict[str, Any], whose: str) -> list[Problem]:
    return [
        Problem(
            "AKF-P405",
            f"the toolkit's {name} of {whose} is {found[name]!r}, the arm's is {wanted[name]!r}",
            CAMPAIGN,
            f"{_TOOLKIT}/{name}",
            expected=wanted[name],
            found=found[name],
            hint="register the arm's own: akf toolchain add FOLDER",
        )
        for name in ("name", "version", "build")
        if wanted[name] != found[name]
    ]


def _packages(campaign: dict[str, Any], route: Route, one: Entry) -> None:
    """The packages that compile are the arm's releases, made for its Python."""
    named = {_normal(each["name"]): (index, each) for index, each in enumerate(campaign["environment"]["frameworks"])}
    family = campaign["environment"]["soc"]["family"]
    needed = {
        tool.package: tool
        for tool in route.data.programs(family)
        if tool.package and tool.package in one.place.packages
    }
    problems = []
    for package, tool in sorted(needed.items()):
        index, stated = named.get(_normal(package), (None, None))
        here = one.place.packages[package]
        if stated is None:
            message = f"the Campaign does not say which {package} the arm compiles with"
            hint = "name it with its revision among the frameworks: it decides what a kernel becomes"
            problems.append(
                Problem("AKF-P405", message, CAMPAIGN, "/environment/frameworks", expected=package, hint=hint)
            )
            continue
        headers = tool.found == "headers"
        mine = here.wheel_digest if headers else here.version
        theirs = stated.get("digest") if headers else stated["revision"]
        if mine != theirs:
            field = "digest" if headers else "revision"
            message = f"{package} of toolchain {one.id!r} is {mine}, the arm's is {theirs}"
            pointer = f"/environment/frameworks/{index}/{field}"
            problems.append(Problem("AKF-P405", message, CAMPAIGN, pointer, expected=theirs, found=mine))
    python, arm = one.value.get("python"), campaign["environment"]["python"]
    if python is not None and needed and _minor(python) != _minor(arm or ""):
        message = f"toolchain {one.id!r} is made for Python {python}, the arm runs {arm}"
        problems.append(Problem("AKF-P405", message, CAMPAIGN, "/environment/python", expected=arm, found=python))
    if problems:
        raise PreconditionError(problems)


def _reaches(campaign: dict[str, Any], route: Route, one: Entry) -> None:
    family = campaign["environment"]["soc"]["family"]
    rows = [row["family"] for row in one.value["reach"] if row["route"] == route.name]
    if not any(row["route"] == route.name and row["family"] in {family, "any"} for row in one.value["reach"]):
        message = f"toolchain {one.id!r} does not say that it serves {route.name} for the SoC family {family}"
        hint = "akf toolchain list shows what each reaches"
        raise PreconditionError.of("AKF-P404", message, expected=family, found=rows, hint=hint)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])
