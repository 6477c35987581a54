"""A triage answer of a run, and what a Task may be opened for.

Invariants:
- The Triage is recomputed from the run's frozen inputs, the further Captures that it names, and the target that it
  says was given by hand; it must be byte-equal.
- Only an answer without blockers becomes a Task; no-go, and what cannot be told yet, never does.
- On an unhealthy baseline there is one Task, about the whole, whatever hotspot is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.contracts.canonical import digest
from akf.contracts.justified import opportunity_of
from akf.contracts.loader import Document, parse
from akf.contracts.problems import ConflictError, PreconditionError, Problem, UsageError
from akf.contracts.text import did_you_mean
from akf.opportunity.artifact import require_recomputed
from akf.store import layout
from akf.store.run import Run, checked, ref, signer_for

Value = dict[str, Any]


class Answered:
    """A triage answer of a run, and the hotspot that a Task is opened for."""

    def __init__(self, run: Run, document: Document, callsite: str | None, captures: Sequence[Document] = ()) -> None:
        self.run = run
        self.document = document
        self.value: Value = document.value
        self._captures = self._named(captures)
        require_recomputed(self.value, run, document.file, self._captures)
        self.data = checked(self.value)
        self.reference = ref(self.value, self.data)
        self.spot = self._chosen(callsite)
        self.type = self.spot["answer"] if self.spot is not None else self.value["answer"]["answer"]
        self._may_be_opened()

    @property
    def capture(self) -> Value:
        """The run's Capture."""
        return parse(self.run.read("capture.json"), "capture.json").value

    @property
    def workload(self) -> Value:
        """The run's Workload."""
        return parse(self.run.read("workload.json"), "workload.json").value

    @property
    def name(self) -> str | None:
        """The hotspot's name, or None for the whole baseline."""
        return None if self.spot is None else str(self.spot["name"])

    def record(self, keys: Path) -> None:
        """Put the further Captures and the Triage into the run, unless they are there; the caller holds the lock."""
        for name, capture in sorted(self._captures.items()):
            if not os.path.lexists(self.run.path / (place := layout.other_capture(name))):
                self.run.record(place, capture.value, signer_for(self.run, "supervisor", keys))
        relative = f"{layout.TRIAGE}/{self.value['id']}.json"
        if (self.run.path / relative).exists():
            found = self.run.load(relative)
            if found.source != self.data:
                message = f"the run has another Triage {self.value['id']!r}"
                raise ConflictError.of(
                    "AKF-F386", message, file=str(self.run.path / relative), found=digest(found.source)
                )
            return
        self.run.record(relative, self.value, signer_for(self.run, "supervisor", keys))

    def parents(self) -> list[dict[str, str]]:
        """Run and Triage, as a Task names them."""
        data = self.run.read("run.json")
        return [ref(parse(data, "run.json").value, data), self.reference]

    def opportunity(self, task: Value) -> Value:
        """The numbers that justify the Task."""
        return opportunity_of(self.value, self.reference, self.name, task, self.capture)

    def _named(self, captures: Sequence[Document]) -> dict[str, Document]:
        """The given Captures by digest; each is one that the Triage names."""
        found = {digest(checked(each.value)): each for each in captures}
        named = [each["digest"] for each in self.value.get("others", ())]
        if strange := [each.file for name, each in found.items() if name not in named]:
            raise UsageError.of("AKF-F389", f"--capture: the triage did not look at {strange[0]}", file=strange[0])
        return found

    def _chosen(self, callsite: str | None) -> Value | None:
        wanted = self.value["answer"]["hotspot"] if callsite is None else callsite
        names = [each["name"] for each in self.value["hotspots"]]
        if wanted is None:
            return None
        if wanted not in names:
            meant = did_you_mean(wanted, names)
            hint = f"did you mean {meant}?" if meant else "akf triage RUN lists the hotspots"
            message = f"--callsite: the triage has no hotspot {wanted!r}"
            raise UsageError.of("AKF-F388", message, expected=names[:20], found=wanted, hint=hint)
        found = next(each for each in self.value["hotspots"] if each["name"] == wanted)
        return found if found["comparable"] else None  # an unhealthy baseline is one Task, whatever is asked for

    def _may_be_opened(self) -> None:
        file = self.document.file
        if self.type == "no_go":
            text = self.spot["text"] if self.spot is not None else self.value["answer"]["text"]
            rule = self.spot["rule"] if self.spot is not None else self.value["answer"]["rule"]
            message = f"{self.name} is no-go ({rule}): {text}"
            hint = f"akf explain {rule}; --callsite names another hotspot"
            raise PreconditionError.of("AKF-F385", message, file=file, pointer="/answer", hint=hint)
        problems = [
            Problem(
                "AKF-F384",
                f"the triage is not ready: {blocker['artifact']} {blocker['pointer']}",
                file=file,
                pointer=f"/blockers/{place}",
                expected=blocker["expected"],
                hint=f"make it with: {blocker['command']}",
            )
            for place, blocker in enumerate(self.value.get("blockers", ()))
        ]
        if self.type is None:
            text = self.spot["text"] if self.spot is not None else self.value["answer"]["text"]
            problems.insert(0, Problem("AKF-F384", f"there is no answer. {text}", file=file, pointer="/answer"))
        if self.type in {"kernel", "integration"} and self.spot is not None and self.spot["callsite"] is None:
            problems.append(Problem("AKF-F384", f"{self.name} has no callsite", file=file, pointer="/hotspots"))
        if problems:
            raise PreconditionError(problems)
