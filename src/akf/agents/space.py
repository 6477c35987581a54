"""A declared space: a kernel's template and the values that may stand in it.

Invariants:
- Values are data: whole numbers or plain words, substituted for `@name@` and nothing else. No template runs anything.
- Every parameter stands in the template and every `@name@` of the template is a parameter, or the space is refused.
- A point is one value of each parameter, by position; the same point gives the same files on any machine.
- Neighbours of a point differ from it in one parameter by one position.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from akf.agents.files import MANIFEST, SOURCES, Files, capped, file_problems
from akf.contracts.canonical import digest, jcs
from akf.contracts.loader import parse, read_input
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import printable
from akf.store.untrusted import read_tree

SPACE = "space.json"
MAX_POINTS = 1_000_000
_PLACE = re.compile(r"@([A-Za-z_][A-Za-z0-9_]*)@")

Point = tuple[int, ...]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,31}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(_Value):
    """One parameter; its values stand in an order in which neighbours are alike."""

    name: Word
    title: Text
    values: tuple[Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] | Word, ...] = Field(
        min_length=2, max_length=32
    )


class Idea(_Value):
    """What the manifest says of every candidate of the space."""

    hypothesis: dict[str, Any]
    data_flow_change: Text
    failure_boundary: Text
    license: Text
    owner: Text


class Declaration(_Value):
    """`space.json`."""

    kind: Literal["Space"]
    schema_version: Literal[1]
    task: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,31}$")]
    route: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,40}$")]
    title: Text
    launch: Annotated[str, StringConstraints(max_length=200)] = "launch.json"
    parameters: tuple[Parameter, ...] = Field(min_length=1, max_length=16)
    behaviour: tuple[Word, ...] = Field(min_length=1, max_length=4)
    islands: Word
    idea: Idea


class Space(NamedTuple):
    """A declaration with its templates."""

    declared: Declaration
    templates: Files

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(len(each.values) for each in self.declared.parameters)

    @property
    def digest(self) -> str:
        """Digest of declaration and templates."""
        return digest(jcs([self.declared.model_dump(mode="json"), sorted(self.templates.items())]))

    def points(self) -> Iterator[Point]:
        """Every point, in order."""
        return itertools.product(*(range(len(each.values)) for each in self.declared.parameters))

    def neighbours(self, point: Point) -> list[Point]:
        """Points one step away."""
        return [
            (*point[:place], moved, *point[place + 1 :])
            for place, parameter in enumerate(self.declared.parameters)
            for moved in (point[place] - 1, point[place] + 1)
            if 0 <= moved < len(parameter.values)
        ]

    def values(self, point: Point) -> dict[str, int | str]:
        """The values of a point by name."""
        return {each.name: each.values[at] for each, at in zip(self.declared.parameters, point, strict=True)}

    def behaviour(self, point: Point) -> tuple[str, ...]:
        """The cell of the archive that a point belongs to."""
        values = self.values(point)
        return tuple(f"{name}={values[name]}" for name in self.declared.behaviour)

    def name(self, point: Point) -> str:
        """Name of the candidate of a point."""
        return f"{self.declared.task}-{digest(jcs([self.digest, list(point)]))[7:19]}"

    def render(self, point: Point) -> dict[str, str]:
        """The sources of a point, by path relative to `src/`."""
        values = self.values(point)
        return {
            path: _PLACE.sub(lambda place: str(values[place[1]]), text) if path != self.declared.launch else text
            for path, text in self.templates.items()
        }

    def candidate(self, point: Point, note: str = "") -> dict[str, str]:
        """The whole folder of a point: manifest and sources.

        Args:
            point: the point.
            note: a sentence for people, say how many tries led here.
        """
        declared = self.declared
        chosen = ", ".join(f"{name} {value}" for name, value in self.values(point).items())
        change = f"{declared.idea.data_flow_change} Here: {chosen}. {note}".strip()
        manifest = {
            "kind": "CandidateManifest", "schema_version": 1, "id": self.name(point), "task": declared.task,
            "route": declared.route, "abi": "binary", "hypothesis": declared.idea.hypothesis,
            "data_flow_change": change, "failure_boundary": declared.idea.failure_boundary,
            "launch": declared.launch, "license": declared.idea.license, "owner": declared.idea.owner,
        }  # fmt: skip
        text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2).decode() + "\n"
        return {MANIFEST: text} | {f"{SOURCES}{path}": source for path, source in self.render(point).items()}


def load_space(folder: Path) -> Space:
    """Read a space: `space.json` and the templates below `src/`.

    Raises:
        InvalidError: the declaration, a template or a placeholder is wrong; with all of it.
        StorageError: a file cannot be read.
    """
    file = str(folder / SPACE)
    value = parse(read_input(folder / SPACE), file).value
    try:
        declared = Declaration.model_validate(value)
    except ValidationError as error:
        raise InvalidError(_unfit(error, file)) from error
    templates = {each.path: _text(each.data, each.path) for each in read_tree(folder / "src", f"{folder.name}/src")}
    problems = [*_declared_problems(declared, file), *file_problems(templates, f"{folder.name}/src", folder=SOURCES)]
    problems += _place_problems(declared, templates, file)
    if problems:
        raise InvalidError(capped(problems))
    return Space(declared, templates)


def _unfit(error: ValidationError, file: str) -> list[Problem]:
    return capped(
        [
            Problem(
                "AKF-S720",
                f"/{'/'.join(map(str, each['loc']))}: {printable(each['msg'])}",
                file=file,
                hint="docs/agents.md describes a space",
            )
            for each in error.errors(include_url=False, include_input=False, include_context=False)
        ]
    )


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError.of("AKF-S722", f"{path} is no Unicode text", file=path) from error


def _declared_problems(declared: Declaration, file: str) -> list[Problem]:
    names = [each.name for each in declared.parameters]
    messages = [f"the parameter {name!r} stands twice" for name in sorted({n for n in names if names.count(n) > 1})]
    messages += [
        f"/{field} names {name!r}, which is no parameter"
        for field, given in (("behaviour", declared.behaviour), ("islands", (declared.islands,)))
        for name in given
        if name not in names
    ]
    messages += [
        f"a value of {each.name!r} stands twice"
        for each in declared.parameters
        if len(set(each.values)) < len(each.values)
    ]
    if math.prod(len(each.values) for each in declared.parameters) > MAX_POINTS:
        messages.append(f"the space has more than {MAX_POINTS:,} points")
    return [Problem("AKF-S720", message, file=file) for message in messages]


def _place_problems(declared: Declaration, templates: Files, file: str) -> list[Problem]:
    names = {each.name for each in declared.parameters}
    used = {name for path, text in templates.items() if path != declared.launch for name in _PLACE.findall(text)}
    messages = [f"the parameter {name!r} stands in no template" for name in sorted(names - used)]
    messages += [f"@{name}@ of a template is no parameter" for name in sorted(used - names)]
    if declared.launch not in templates:
        messages.append(f"there is no launch spec src/{printable(declared.launch)}")
    return [Problem("AKF-S720", message, file=file) for message in messages]


def words(point: Sequence[int]) -> str:
    """A point as a word for logs."""
    return "-".join(map(str, point))
