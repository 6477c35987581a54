"""`validate-suite` and `validate-campaign`: structure, meaning, readiness, in this order and all at once.

Invariants:
- A file that does not satisfy its schema is not judged further; its other files still are.
- `ready` is true only when the inputs are valid and nothing is a placeholder.
- The same files give the same result, whatever folder the command runs in.
"""

from __future__ import annotations

import os
from pathlib import Path

from akf.contracts.documents import load
from akf.contracts.loader import Document
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.rules.campaign import campaign_problems, membership_problems
from akf.contracts.rules.finding import at
from akf.contracts.rules.placeholders import blockers
from akf.contracts.rules.suite import suite_problems
from akf.contracts.rules.workload import capture_problems, workload_problems
from akf.contracts.schemas import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from akf.contracts.rules.placeholders import Blocker

_LEVELS = 4  # folders above a Campaign in which its Suite is looked for


class Inputs:
    """The documents behind one Campaign, as far as they could be read."""

    __slots__ = ("campaign", "capture", "root", "suite", "workload")

    def __init__(
        self,
        root: Path,
        campaign: Document,
        suite: Document | None,
        workload: Document | None,
        capture: Document | None,
    ) -> None:
        self.root = root
        self.campaign = campaign
        self.suite = suite
        self.workload = workload
        self.capture = capture


class Result:
    """What a validation found; made by hand because `typing` costs start-up time."""

    __slots__ = ("arms", "blockers", "inputs", "problems")

    def __init__(
        self,
        problems: tuple[Problem, ...],
        blockers: tuple[Blocker, ...],
        arms: tuple[dict[str, Any], ...] = (),
        inputs: Inputs | None = None,
    ) -> None:
        self.problems = problems
        self.blockers = blockers
        self.arms = arms
        self.inputs = inputs

    @property
    def valid(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def ready(self) -> bool:
        """Whether a Run may be made."""
        return self.valid and not self.blockers

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {
            "valid": self.valid,
            "ready": self.ready,
            "problems": [problem.to_json() for problem in self.problems],
            "blockers": list(self.blockers),
            "arms": list(self.arms),
        }


def check_suite(path: Path) -> Result:
    """Check a Suite and the Campaign of every arm that it names."""
    problems: list[Problem] = []
    suite = _load(path, "OptimizationSuite", problems)
    if suite is None:
        return Result(_ordered(problems), ())
    problems += suite_problems(suite)
    first = os.fspath(path.parent / suite.value["required_arms"][0]["path"])
    found = [*_blockers(suite, first), *_suite_inputs(path.parent, suite, first, problems)]
    arms = []
    for index, arm in enumerate(suite.value["required_arms"]):
        file = path.parent / arm["path"]
        campaign = _load(file, "Campaign", problems)
        mine: list[Problem] = []
        blocking: list[Blocker] = []
        if campaign is not None:
            if campaign.value["arm"] != arm["id"]:
                message = f"the file of arm {arm['id']!r} is the Campaign of arm {campaign.value['arm']!r}"
                mine.append(at(suite, f"/required_arms/{index}/id", "AKF-M011", message))
            _, more, blocking = _campaign(path.parent, campaign, suite)
            mine += more
        arms.append(
            {
                "id": arm["id"],
                "path": arm["path"],
                "recognised": campaign is not None,
                "valid": campaign is not None and not mine,
                "ready": campaign is not None and not mine and not blocking,
                "blockers": len(blocking),
            }
        )
        problems += mine
        found += blocking
    return Result(_ordered(problems), _unique(found), tuple(arms))


def check_campaign(path: Path) -> Result:
    """Check a Campaign with the Suite, the Workload and the Capture that it names."""
    problems: list[Problem] = []
    campaign = _load(path, "Campaign", problems)
    if campaign is None:
        return Result(_ordered(problems), ())
    root = suite_root(path, campaign.value["suite"]["path"])
    suite = None
    found: list[Blocker] = []
    if root is None:
        name = campaign.value["suite"]["path"]
        message = f"no {name} stands at or above the Campaign's folder"
        problems.append(at(campaign, "/suite/path", "AKF-M009", message, found=name))
        root = path.parent
    else:
        suite = _load(root / campaign.value["suite"]["path"], "OptimizationSuite", problems)
    if suite is not None:
        problems += suite_problems(suite)
        found += _blockers(suite, campaign.file)
    inputs, more, blocking = _campaign(root, campaign, suite)
    return Result(_ordered([*problems, *more]), _unique([*found, *blocking]), (), inputs)


def suite_root(path: Path, suite: str) -> Path | None:
    """The nearest folder at or above the Campaign file that holds the Suite it names."""
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100 - links are not followed on purpose
    for candidate in [folder, *folder.parents][:_LEVELS]:
        if os.path.isfile(candidate / suite):  # noqa: PTH113 - a path that no system takes is no file either
            return candidate if path.is_absolute() else Path(os.path.relpath(candidate))
    return None


def _campaign(root: Path, campaign: Document, suite: Document | None) -> tuple[Inputs, list[Problem], list[Blocker]]:
    problems = campaign_problems(campaign)
    found = _blockers(campaign)
    if suite is not None:
        problems += membership_problems(campaign, suite)
    workload = _linked(root, campaign, "workload", "Workload", problems)
    capture = _linked(root, campaign, "capture", "Capture", problems)
    if workload is not None:
        problems += workload_problems(workload, campaign)
        found += _blockers(workload, campaign.file)
    if capture is not None:
        problems += capture_problems(capture, campaign, workload)
        found += _blockers(capture, campaign.file)
    return Inputs(root, campaign, suite, workload, capture), problems, found


def _linked(root: Path, campaign: Document, name: str, kind: str, problems: list[Problem]) -> Document | None:
    link = campaign.value[name]
    if link["path"] is None:
        return None
    document = _load(root / link["path"], kind, problems)
    if document is not None and document.value["id"] != link["id"]:
        message = f"the {name} file is {document.value['id']!r}, the Campaign names {link['id']!r}"
        hint = f"name it by the id that stands in the file, or give the file's artifact the id {link['id']}"
        problems.append(
            at(campaign, f"/{name}/id", "AKF-M010", message, expected=link["id"], found=document.value["id"], hint=hint)
        )
    return document


def _suite_inputs(root: Path, suite: Document, campaign: str, problems: list[Problem]) -> list[Blocker]:
    path = suite.value["workload"]["path"]
    if path is None:
        return []
    workload = _load(root / path, "Workload", problems)
    return _blockers(workload, campaign) if workload is not None else []


def _load(path: Path, kind: str, problems: list[Problem]) -> Document | None:
    try:
        return load(path, kind)
    except InvalidError as error:
        problems.extend(error.problems)
        return None


def _blockers(document: Document, campaign: str | None = None) -> list[Blocker]:
    value = document.value
    found = blockers(schema(value["kind"]), value, document.file, campaign)
    if value["kind"] != "Campaign":
        return found
    open_now = {blocker["pointer"] for blocker in found}
    return [blocker for blocker in found if not _said_elsewhere(blocker["pointer"], value, open_now)]


def _said_elsewhere(pointer: str, campaign: dict[str, Any], open_now: set[str]) -> bool:
    """A capability tuple repeats the environment's SoC and toolkit; an unsigned Campaign pins no keys."""
    if pointer == "/trust/keys":
        return bool(campaign["trust"]["mode"] == "unsigned")
    _, place, *rest = pointer.split("/")
    if place != "capabilities":
        return False
    same = "/environment/soc/name" if rest[1:] == ["soc"] else "/environment/" + "/".join(rest[1:])
    return same in open_now


def _ordered(problems: list[Problem]) -> tuple[Problem, ...]:
    unique = {(p.file, p.pointer, p.code, p.message): p for p in problems}
    return tuple(sorted(unique.values(), key=Problem.sort_key))


def _unique(found: list[Blocker]) -> tuple[Blocker, ...]:
    unique = {(blocker["file"], blocker["pointer"]): blocker for blocker in found}
    return tuple(unique[key] for key in sorted(unique))
