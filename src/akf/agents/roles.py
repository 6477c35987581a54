"""The agents that AKF ships, as the runtime sees them: `designer`, `coder`, `verifier`, `profiler`, `selector`.

Invariants:
- An agent answers a node with JSON and keeps nothing between nodes but what it was made with.
- What an agent wrote is refused as a whole or taken as a whole; a refusal is an answer that the next round reads.
- `verifier` and `profiler` alone cause trials; they and the model pay by the one meter of the job.
- `selector` compares figures of trials and nothing that an agent says of itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akf.agents.answers import candidate_of, files_of
from akf.agents.limits import Meter
from akf.agents.model import Model
from akf.agents.prompts import question
from akf.agents.trial import Trial, Try
from akf.contracts.problems import InvalidError, PreconditionError

Node = dict[str, Any]
Known = Sequence[tuple[str, str]]
OWNER = "akf-coder"
MAX_PLAN = 8000


class Designer:
    """Plans in words, for the coder."""

    role = "designer"

    def __init__(self, model: Model, task: Mapping[str, Any], route: str, known: Known = ()) -> None:
        self._model, self._task, self._route, self._known = model, task, route, known

    def execute(self, node: Node) -> dict[str, Any]:
        """`{plan}`; input: `{parents?}`."""
        parents = (node["input"] or {}).get("parents", ())
        asked = question(self._task, self._route, self._known, parents=parents, planning=True)
        return {"plan": self._model.ask(asked)[:MAX_PLAN]}


class Coder:
    """Writes a kernel, and mends it."""

    role = "coder"

    def __init__(self, model: Model, task: Mapping[str, Any], route: str, known: Known = ()) -> None:
        self._model, self._task, self._route, self._known = model, task, route, known

    def run(self, node: Node, context: Any) -> dict[str, Any]:
        """`{files, refused}`; input: `{plan?, parents?}`. In a loop it mends what became of the last round."""
        asked = node["input"] or {}
        before = context.previous
        failure = None
        if before:
            last, told = before.get("code") or {}, before.get("verify") or {}
            failure = {**told, "source": _shown(last.get("files") or {})}
        messages = question(
            self._task, self._route, self._known, design=asked.get("plan"), parents=asked.get("parents", ()),
            failure=failure,
        )  # fmt: skip
        try:
            answer = self._model.ask(messages)
            sources = files_of(answer)
        except InvalidError as error:
            return {"files": {}, "refused": [f"{each.code} {each.message}" for each in error.problems]}
        return {"files": candidate_of(self._task, self._route, sources, asked.get("plan") or "", OWNER), "refused": []}


class Trier:
    """Tries a candidate: `verifier` without a clock, `profiler` with one."""

    def __init__(self, run: Try, *, timed: bool) -> None:
        self.role = "profiler" if timed else "verifier"
        self._run, self._timed = run, timed

    def execute(self, node: Node) -> dict[str, Any]:
        """A trial as JSON; input: `{files, refused?}`. A limit that is spent is an outcome of its own."""
        asked = node["input"]
        if asked.get("refused"):
            return told(Trial("fail", ("ANSWER_REFUSED",), tuple(asked["refused"]), None, None, None))
        try:
            return told(self._run(asked["files"], self._timed))
        except PreconditionError as error:
            return told(Trial("spent", tuple(each.code for each in error.problems), (str(error),), None, None, None))


class Selector:
    """Names the fastest of some trials."""

    role = "selector"

    def execute(self, node: Node) -> dict[str, Any]:
        """`{order}`: places of the trials that passed, the fastest first; input: `{trials}`."""
        trials = node["input"]["trials"]
        passed = [place for place, each in enumerate(trials) if each["outcome"] == "pass" and each["speed"] is not None]
        return {"order": sorted(passed, key=lambda place: (-trials[place]["speed"], place))}


def told(trial: Trial) -> dict[str, Any]:
    """A trial as JSON."""
    value = trial._asdict()
    return {**value, "reasons": list(trial.reasons), "notes": [note[:2000] for note in trial.notes[:20]]}


def _shown(files: Mapping[str, str]) -> str:
    return "\n".join(f"FILE: {path}\n{text}" for path, text in sorted(files.items()) if path.startswith("src/"))


def agents_of(run: Try, model: Model | None, task: Mapping[str, Any], route: str, known: Known = ()) -> list[Any]:
    """The agents of a job; those of a model only where there is one."""
    own = [Trier(run, timed=False), Trier(run, timed=True), Selector()]
    return own if model is None else [*own, Designer(model, task, route, known), Coder(model, task, route, known)]


def paid_by(meter: Meter) -> dict[str, float]:
    """What a job cost, rounded for people."""
    return {name: round(value, 3) for name, value in meter.spent().items()}
