"""What a route says of itself: the `route.toml` of its folder, read strictly.

Invariants:
- Unknown fields and wrong types are a defect of AKF; nothing in a declaration is guessed or completed.
- Stages stand in the order in which they are reached; each names the file that shows it and the tools that it needs.
- A SoC that no table of the declaration names is one that the route does not compile for.
- Every tool says how to get it, so that a missing one is never a silent fallback.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, ValidationError

from akf.contracts.models.base import DType, GraphMode, Name, Platform, Route, Text, Value
from akf.contracts.models.build import Role, Stage, TrustClass
from akf.contracts.models.common import ToolkitName
from akf.contracts.problems import DefectError
from akf.contracts.rules import soc as soc_names

FOLDER = Path(__file__).parent
FILE = "route.toml"
NAMES: tuple[str, ...] = get_args(Route)


class Program(Value):
    """A tool: where it is looked for, how its identity is read, how to get it."""

    name: Name
    found: Literal["path", "environment", "toolkit", "headers"]
    """By name on the system's path; below the environment's packages; below the toolkit; a folder of headers."""
    places: tuple[Name, ...] = Field(min_length=1)
    """File names (`path`) or relative paths, tried in this order."""
    families: tuple[Name, ...] = ()
    """SoC families that need it; none named: all."""
    package: Name | None = None
    """Distribution that brings it."""
    version: tuple[Name, ...] = ()
    """Arguments that make it print its version; none: it prints none."""
    version_lines: int = Field(default=1, ge=1, le=8)
    commit: Text | None = None
    """Pattern whose first group is the commit in the version text, where name and version alone are ambiguous."""
    get: Text
    """How to get it."""


class StageFile(Value):
    """A stage and the file that shows that it was reached."""

    name: Stage
    file: Name
    normal: Name | None = None
    """File with the same content in a form free of places, made by the plan."""
    needs: tuple[Name, ...]
    """Tools that this stage needs beyond those of the stages before it."""


class RouteOutput(Value):
    """A file that a build keeps."""

    file: Name
    role: Role
    trust: TrustClass


class Part(Value):
    """Host code of an operator. It runs inside the engine that serves, beside the device code."""

    file: Name
    """One of the outputs; a Build that holds parts and no device object says the stage `host_parts`."""
    needs: tuple[Name, ...]
    """Tools that make it."""


class Emulation(Value):
    """How what a route makes is executed without a device: for ranking, never for a gate."""

    stage: Stage
    """Stage that must be reached; its file is executed, or what `Route.emulated` makes of it."""
    convention: Literal["simulator", "memref"]
    """How the object is called; `emulator.py` says what each means."""
    needs: tuple[Name, ...] = ()
    """Tools that make an object of the stage's file, beyond those of the stages."""


class SocSpace(Value):
    """How AKF's SoC names map to what the tools take."""

    space: Text
    names: dict[str, str] = Field(default_factory=dict)
    """By full SoC name."""
    families: dict[str, str] = Field(default_factory=dict)
    """By family, where the tools distinguish no more."""
    machine: bool = False
    """The machine itself is the target."""

    def spelled(self, name: str) -> str | None:
        """What the tools call this SoC, or None when the route does not compile for it."""
        return self.names.get(name) or self.families.get(soc_names.family(name) or "")


class Surroundings(Value):
    """The whole environment of the tools."""

    variables: dict[str, str]
    """Set for every build. `{work}`, `{env}`, `{packages}`, `{toolkit}`, `{headers}` stand for folders."""
    code: tuple[Name, ...] = ()
    """Variables that change what is generated: never inherited, set only by the plan."""
    caches: tuple[Name, ...] = ()
    """Variables that point a tool's cache into the build's own folder."""


class Packages(Value):
    """What the package index offers for this route, pinned by hash in `requirements.txt`."""

    python: Name
    install: bool = True
    """Installed, or only unpacked for its headers."""
    platforms: tuple[Name, ...] = ()
    """Platforms of the wheels, where they are not this machine's."""


class RouteToolkit(Value):
    """Whose name and version a build without CANN carries."""

    name: ToolkitName
    tool: Name


class Claims(Value):
    """Which capability tuples the route may claim once it has reached a binary."""

    families: tuple[Name, ...]
    dtypes: tuple[DType, ...]
    graph: tuple[GraphMode, ...]
    toolkit: Name
    minimum: Name | None = None
    """Oldest toolkit release."""


class Option(Value):
    """An option of a build: a word, or one of a closed list."""

    name: Name
    about: Text
    values: tuple[Name, ...] = ()
    """None: any word that the plan takes."""


class Declaration(Value):
    """The whole `route.toml`."""

    title: Text
    platform: Platform
    language: Text
    suffixes: tuple[Name, ...]
    """File names that are compiled; others stand beside them."""
    abi: Literal["c", "cubin", "ascend"]
    toolkit: RouteToolkit
    soc: SocSpace
    environment: Surroundings
    packages: Packages | None = None
    options: tuple[Option, ...] = ()
    specialises: Literal["classes", "shapes"] | None = None
    """What its compiler tells calls apart by, where it compiles just in time: `akf.routes.specialisation`."""
    tools: tuple[Program, ...] = Field(min_length=1)
    stages: tuple[StageFile, ...] = Field(min_length=1)
    outputs: tuple[RouteOutput, ...] = Field(min_length=1)
    parts: tuple[Part, ...] = ()
    """Host parts of an operator, each made where its own tools are."""
    emulation: Emulation | None = None
    claims: Claims
    without_cann: Text
    """What is real on a machine without CANN, in a sentence."""

    def program(self, name: str) -> Program:
        """The tool of this name."""
        return next(tool for tool in self.tools if tool.name == name)

    def programs(self, family: str | None) -> tuple[Program, ...]:
        """The tools for a SoC family."""
        return tuple(tool for tool in self.tools if not tool.families or family in tool.families)

    def needed(self, stage: StageFile, family: str | None) -> tuple[Program, ...]:
        """The tools that one stage needs for a SoC family."""
        return tuple(tool for tool in self.programs(family) if tool.name in stage.needs)

    def stage_file(self, name: str) -> str:
        """The file that shows a stage."""
        return next(stage.file for stage in self.stages if stage.name == name)

    def output(self, name: str) -> RouteOutput | None:
        """What is declared of an output file."""
        return next((each for each in self.outputs if each.file == name), None)


@cache
def declaration(name: str) -> Declaration:
    """The declaration of a route.

    Raises:
        DefectError: it is missing or malformed.
    """
    path = FOLDER / name / FILE
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
        found = Declaration.model_validate(value)
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise DefectError.of(
            "AKF-X401", f"the declaration of route {name} cannot be used: {error}", file=FILE
        ) from error
    known = {tool.name for tool in found.tools}
    named = {found.toolkit.tool, *(need for stage in found.stages for need in stage.needs)}
    named |= {need for part in found.parts for need in part.needs}
    named |= set(found.emulation.needs) if found.emulation is not None else set()
    if named - known:
        message = f"the declaration of route {name} names tools that it does not declare: {sorted(named - known)}"
        raise DefectError.of("AKF-X401", message, file=FILE)
    return found
