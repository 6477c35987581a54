"""What makes one artifact of a run hold, as a pure function of bytes.

Invariants, in the order in which they are checked:
- Its bytes are canonical and satisfy the schema of the kind that its place demands.
- Its id is the one that its place demands, so that no file can stand under another's name.
- Its parents are exactly those that its kind demands, each by its id and by the digest of the bytes that stand in its
  place.
- Its owner's signature holds, unless the Campaign says `trust: unsigned`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from akf.contracts.canonical import digest, parse_canonical
from akf.contracts.loader import Document
from akf.contracts.problems import AkfError, IntegrityError, Problem
from akf.contracts.schemas import validate
from akf.store import layout
from akf.store.ledger import Line
from akf.trust import dsse
from akf.trust.keys import PublicKey, pinned

RUN_PARENTS = ("OptimizationSuite", "Campaign", "Workload", "Capture")
PARENTS: dict[str, tuple[str, ...]] = {
    "Run": RUN_PARENTS,
    "Triage": ("Campaign", "Workload", "Capture"),
    "Task": ("Run",),
    "Candidate": ("Run", "Task"),
    "Build": ("Run", "Task", "Candidate"),
    "Plan": ("Run", "Task", "Candidate", "Build"),
    "Gate": ("Run", "Task", "Candidate", "Build", "Plan"),
}
JUSTIFIED = ("Run", "Triage")
"""Parents of a Task that a triage justifies."""
_ROOT = {slot.kind: slot.template for slot in layout.ARTIFACTS if "<" not in slot.template}


class Trust(NamedTuple):
    """How a run is signed; `keys` is None for an unsigned one."""

    keys: Mapping[str, PublicKey] | None

    @classmethod
    def of(cls, campaign: dict[str, Any]) -> Trust:
        """Read mode and pins from a Campaign."""
        if campaign["trust"]["mode"] == "unsigned":
            return cls(None)
        return cls(pinned(campaign["trust"]["keys"], "campaign.json", "/trust/keys"))


def signature_path(path: str) -> str:
    """The run-relative path of an artifact's signature."""
    return path.removesuffix(".json") + ".sig.json"


def parent_path(kind: str, ref_id: str, candidate: str | None, gate: str | None) -> str:
    """Where the parent of this kind stands, seen from an artifact of this attempt and gate."""
    if kind in _ROOT:
        return _ROOT[kind]
    if kind in {"Triage", "Task"}:
        return f"{layout.TRIAGE if kind == 'Triage' else layout.TASKS}/{ref_id}.json"
    name = {"Candidate": "candidate.json", "Build": "build.json"}
    if kind == "Plan":
        return f"attempts/{candidate}/plan/{gate}.json"
    return f"attempts/{candidate}/{name[kind]}"


def tries(lines: Iterable[Line], task: str) -> int:
    """k: evaluations of a Task in these lines of a ledger, each plan of an operator gate and each start again.

    Starting a reproduction again counts too, because it is a second look at the data that the claim is made on.
    """
    return sum(
        line.facts.get("task") == task
        and (
            (line.event == "plan" and line.facts.get("gate") == "operator")
            or (line.event == "resume" and line.facts.get("gate") in {"operator", "reproduction"})
        )
        for line in lines
    )


def verify(path: str, files: Mapping[str, bytes], trust: Trust) -> Document:
    """Verify the artifact at a run-relative path against the bytes of its run.

    Args:
        path: run-relative path of a canonical artifact.
        files: bytes by run-relative path: the artifact, its parents and its signature at least.
        trust: how the run is signed.

    Returns:
        The artifact as a Document.

    Raises:
        IntegrityError: lists what does not hold.
    """
    place = layout.place(path)
    if place is None:
        raise IntegrityError.of("AKF-I201", f"{path} is not a place of an artifact", file=path)
    if path not in files:
        raise IntegrityError.of("AKF-I202", f"{path} is missing", file=path)
    document = parse_canonical(files[path], path)
    shape = validate(document, place.slot.kind)
    if shape:
        raise IntegrityError(shape)
    problems = [
        *_identity(document, place),
        *_parents(document, place, files),
        *_signature(document, place, files, trust),
    ]
    if problems:
        raise IntegrityError(problems)
    return document


def _identity(document: Document, place: layout.Place) -> list[Problem]:
    value = document.value
    wanted = {
        "Triage": place.triage,
        "Task": place.task,
        "Candidate": place.candidate,
        "Build": place.candidate,
        "Decision": place.candidate,
        "Plan": place.gate,
        "Gate": place.gate,
    }.get(place.slot.kind)
    found = []
    if wanted is not None and value["id"] != wanted:
        found.append(
            _problem(document, "/id", "AKF-I203", "it stands under another artifact's name", wanted, value["id"])
        )
    if place.capture is not None and (named := f"sha256:{place.capture}") != (data := digest(document.source)):
        found.append(_problem(document, "", "AKF-I203", "it stands under another artifact's digest", named, data))
    if value.get("diagnostic"):
        found.append(_problem(document, "/diagnostic", "AKF-I401", "a diagnostic Build belongs to no run", False, True))
    if place.gate is not None and value["gate"] != place.gate:
        found.append(
            _problem(
                document,
                "/gate",
                "AKF-I203",
                "it stands under another gate's name",
                place.gate,
                value["gate"],
            )
        )
    return found


def _parents(document: Document, place: layout.Place, files: Mapping[str, bytes]) -> list[Problem]:
    kinds = PARENTS.get(place.slot.kind)
    if kinds is None:
        return []
    refs = document.value["parents"]
    if place.slot.kind == "Task" and document.value["opportunity"] is not None:
        kinds = JUSTIFIED
    if refs is None or tuple(ref["kind"] for ref in refs) != kinds:
        found = None if refs is None else [ref["kind"] for ref in refs]
        return [_problem(document, "/parents", "AKF-I204", "its parents are not those of its kind", list(kinds), found)]
    problems = []
    for index, ref in enumerate(refs):
        pointer = f"/parents/{index}"
        if ref["kind"] in {"Candidate", "Build"} and ref["id"] != place.candidate:
            problems.append(
                _problem(
                    document,
                    pointer,
                    "AKF-I204",
                    "a parent is of another attempt",
                    place.candidate,
                    ref["id"],
                )
            )
            continue
        path = parent_path(ref["kind"], ref["id"], place.candidate, place.gate)
        data = files.get(path)
        if data is None:
            problems.append(_problem(document, pointer, "AKF-I205", f"its parent {path} is missing", path, None))
        elif digest(data) != ref["digest"]:
            message = f"its parent {path} has other bytes than it names"
            problems.append(_problem(document, f"{pointer}/digest", "AKF-I205", message, ref["digest"], digest(data)))
        elif (name := _id_of(data)) != ref["id"]:
            message = f"its parent {path} has another id than it names"
            problems.append(_problem(document, f"{pointer}/id", "AKF-I205", message, name, ref["id"]))
    return problems


def _id_of(data: bytes) -> Any:
    try:
        value = orjson.loads(data)
    except ValueError:
        return None
    return value.get("id") if isinstance(value, dict) else None


def _signature(document: Document, place: layout.Place, files: Mapping[str, bytes], trust: Trust) -> list[Problem]:
    path = document.file
    beside = signature_path(path)
    envelope = files.get(beside)
    if trust.keys is None:
        if envelope is not None:
            return [_problem(document, "", "AKF-I206", "an unsigned run holds a signature", None, beside)]
        return []
    if envelope is None:
        return [_problem(document, "", "AKF-I206", "its signature is missing", beside, None)]
    try:
        dsse.verify(envelope, path, document.source, place.slot.role, trust.keys, kind=place.slot.kind)
    except AkfError as error:
        return list(error.problems)
    return []


def _problem(document: Document, pointer: str, code: str, what: str, expected: Any, found: Any) -> Problem:
    line, column = document.locate(pointer)
    message = f"{document.file}: {what}"
    return Problem(code, message, document.file, pointer, line, column, expected, found)
