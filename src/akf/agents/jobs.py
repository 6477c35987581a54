"""The jobs `single`, `evolve` and `adaptive_search`: graphs of agents on the Kernel runtime, ending in files.

Invariants:
- A job ends in a candidate's files or in none; who calls it puts them into an inbox, where `akf intake` takes them.
- Limits are the Task's. A job that spent one ends with what it has, and says so.
- The same seed, model answers and trials give the same job; children of a round are told of in their order.
- An agent that raises, hangs or answers garbage fails its node; the round goes on without it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from akf.agents.answers import name_of
from akf.agents.files import MANIFEST
from akf.agents.limits import Limits, Meter
from akf.agents.model import Model, Settings, Transcripts
from akf.agents.population import Member, Population, behaviour_of, shown
from akf.agents.prompts import knowledge
from akf.agents.roles import agents_of, paid_by
from akf.agents.search import Search
from akf.agents.space import Point, Space
from akf.agents.trial import Trial, Try, try_files
from akf.agents.tuner import SHARE
from akf.contracts.loader import parse, read_input
from akf.contracts.problems import InvalidError
from akf.contracts.text import did_you_mean
from akf.runtime import AgentRegistry, Compiler, Event, Kernel, Memory, Outcome, Scheduler, TaskQueue, WorkerPool

Type = Literal["single", "evolve", "adaptive_search"]
TYPES: tuple[Type, ...] = ("single", "evolve", "adaptive_search")
DESIGNED = frozenset({"default_workflow", "conductor_connect_all_workflow", "connect_all_workflow"})
WORKFLOWS = frozenset({*DESIGNED, "coder_only_workflow", "kernelgen_only_workflow", "verifier_only_workflow"})
MAX_ROUNDS, MAX_CHILDREN, MAX_ISLANDS = 100, 16, 16
MENDS = 3
NODE_MS = 900_000
NO_CODER = "no coder configured"
TUNER, CODER, FRESH = "tuner", "coder", "coder_fresh"


class Request(NamedTuple):
    """What a job is asked.

    Attributes:
        task: the Task's folder.
        job_type: one of `TYPES`.
        workflow: one of `WORKFLOWS`.
        rounds: of `evolve`; of `single`, tries to mend.
        children: of a round.
        islands: populations.
        seed: chooses what chance decides.
        space: a declared space of the Task, or None.
        model: how a model is asked, or None.
        files: a candidate to begin with, or None.
        limits: lower limits than the Task's, by name.
        knowledge: folder of what is known.
        replay: answer from the transcripts only.
    """

    task: Path
    job_type: Type = "evolve"
    workflow: str = "coder_only_workflow"
    rounds: int = 4
    children: int = 2
    islands: int = 2
    seed: int = 0
    space: Space | None = None
    model: Settings | None = None
    files: Mapping[str, str] | None = None
    limits: Mapping[str, float] = {}
    knowledge: Path | None = None
    replay: bool = False


class Ended(NamedTuple):
    """How a job ended: `completed` with a candidate, `failed` without one, `error` where nobody could try."""

    status: Literal["completed", "failed", "error"]
    files: Mapping[str, str] | None
    name: str | None
    speed: float | None
    detail: dict[str, Any]
    error: str | None = None


Emit = Callable[[str, dict[str, Any]], None]


def run_job(
    request: Request,
    emit: Emit = lambda _kind, _data: None,
    run: Try | None = None,
    task: Mapping[str, Any] | None = None,
) -> Ended:
    """Run a job to its end.

    Args:
        request: what is asked.
        emit: hears of rounds and trials.
        run: tries a candidate; `akf try` where it is None.
        task: the Task, where it is in no folder.

    Raises:
        AkfError: the request or the Task is invalid.
    """
    _check(request)
    task = read_task(request.task) if task is None else task
    meter = Meter(Limits.of(task).within(**request.limits))
    route = str(task["routes"][0])
    model = _model(request, meter)
    run = _metered(run, meter) if run else (lambda files, timed: try_files(request.task, files, meter, timed=timed))
    known = knowledge(request.knowledge, str(task["op"]), route)
    job = _Job(request, meter, emit, agents_of(run, model, task, route, known), coder=model is not None)
    try:
        ended = job.single() if request.job_type == "single" else job.evolve()
    finally:
        job.close()
        if model is not None:
            model.close()
    spent = paid_by(meter)
    emit("spent", spent)
    return ended._replace(detail={**ended.detail, "spent": spent, "limits": meter.limits._asdict()})


def _metered(run: Try, meter: Meter) -> Try:
    """Trials of somebody else, paid like those of `akf try`."""

    def paid(files: Mapping[str, str], timed: bool) -> Trial:
        meter.charge(attempts=1)
        start = time.monotonic()
        try:
            return run(files, timed)
        finally:
            meter.used(board_s=time.monotonic() - start)

    return paid


def read_task(folder: Path) -> dict[str, Any]:
    """A Task's folder with the texts of the kernels that it brings along.

    Raises:
        InvalidError: it is none.
        StorageError: a file cannot be read.
    """
    value: dict[str, Any] = dict(parse(read_input(folder / "task.json"), str(folder / "task.json")).value)
    if value.get("kind") != "Task" or not value.get("routes") or "budget" not in value:
        raise InvalidError.of("AKF-S723", f"{folder.name} is no Task that asks for a kernel", file=str(folder))
    for name in ("plain", "perturbed"):
        value[name] = [
            {**each, "files": [{"path": path.name, "text": read_input(path).decode()} for path in _plain(folder, each)]}
            for each in value.get(name, ())
        ]
    return value


def _plain(folder: Path, kernel: Mapping[str, Any]) -> list[Path]:
    return sorted(path for path in (folder / str(kernel["path"])).iterdir() if path.is_file())


def _model(request: Request, meter: Meter) -> Model | None:
    if request.model is None:
        return None
    folder = request.model.transcripts
    return Model(request.model, meter, None if folder is None else Transcripts(Path(folder), replay=request.replay))


def _check(request: Request) -> None:
    words = (("job_type", request.job_type, TYPES), ("workflow", request.workflow, WORKFLOWS))
    numbers = (
        ("rounds", request.rounds, MAX_ROUNDS), ("children", request.children, MAX_CHILDREN),
        ("islands", request.islands, MAX_ISLANDS),
    )  # fmt: skip
    for name, value, known in words:
        if value not in known:
            near = did_you_mean(value, known)
            hint = f"did you mean {near}?" if near else None
            raise InvalidError.of("AKF-S723", f"{name} {value!r} is not known", expected=sorted(known), hint=hint)
    for name, number, most in numbers:
        if not 1 <= number <= most:
            raise InvalidError.of("AKF-S723", f"{name} is {number}, not 1 to {most}", expected=[1, most], found=number)


class _Job:
    """One job on a Kernel of its own."""

    def __init__(self, request: Request, meter: Meter, emit: Emit, agents: Sequence[Any], *, coder: bool) -> None:
        self._request, self._meter, self._emit, self._has_coder = request, meter, emit, coder
        registry = AgentRegistry()
        for agent in agents:
            registry.register(agent)
        scheduler = Scheduler(registry)
        self._kernel = Kernel(
            Event(), Compiler(), scheduler, WorkerPool(request.children, scheduler, Memory()), TaskQueue()
        )
        self._kernel.start()

    def close(self) -> None:
        """End the runtime."""
        self._kernel.stop()

    def _run(self, nodes: list[dict[str, Any]], loops: Sequence[dict[str, Any]] = ()) -> tuple[Outcome, dict[str, Any]]:
        """Run a graph; its outcome, and the results by node."""
        limited = [{"timeout_ms": NODE_MS, **node} for node in nodes]
        outcome = self._kernel.outcome(self._kernel.submit({"nodes": limited, "loops": list(loops)}, wait_s=None))
        results = dict(zip([node["id"] for node in nodes], outcome.results, strict=True))
        for name, error in outcome.errors.items():
            self._emit("node_failed", {"node": name, **{key: error[key] for key in ("reason", "message")}})
        return outcome, results

    def single(self) -> Ended:
        """Plan, write and mend until every check passes, then time."""
        request = self._request
        if request.files is None and not self._has_coder:
            return Ended("error", None, None, None, {}, NO_CODER)
        nodes: list[dict[str, Any]] = []
        loops: list[dict[str, Any]] = []
        if request.files is not None:
            nodes.append({"id": "verify", "action": "verifier", "input": {"files": dict(request.files)}})
        else:
            designed = request.workflow in DESIGNED
            if designed:
                nodes.append({"id": "design", "action": "designer", "input": {}})
            plan = {"plan": {"$result": "design", "path": "/plan"}} if designed else {}
            nodes.append({"id": "code", "action": "coder", "input": plan})
            nodes.append({"id": "verify", "action": "verifier", "input": {"$result": "code"}})
            done = {"node": "verify", "path": "/outcome", "in": ["pass", "cannot_tell", "spent"]}
            rounds = max(request.rounds, MENDS)
            loops.append(
                {"id": "mend", "nodes": ["code", "verify"], "until": done, "max_rounds": rounds, "exhausted": "go_on"}
            )
        files: Any = {"files": dict(request.files)} if request.files is not None else {"$result": "code"}
        passed = {"node": "verify", "path": "/outcome", "equals": "pass"}
        nodes.append({"id": "profile", "action": "profiler", "input": files, "when": passed})
        outcome, results = self._run(nodes, loops)
        written = dict(request.files) if request.files is not None else (results.get("code") or {}).get("files")
        trial = results.get("profile") or results.get("verify") or {}
        self._emit("tried", {key: trial.get(key) for key in ("outcome", "reasons", "speed")})
        good = trial.get("outcome") == "pass"
        why = None if good else _why(outcome, trial)
        detail = {"trial": trial, "errors": outcome.errors}
        return Ended(
            "completed" if good else "failed", written or None, _name(written), trial.get("speed"), detail, why
        )

    def evolve(self) -> Ended:
        """Rounds of children, bred from what was measured."""
        request = self._request
        population = Population(request.islands)
        strategies = [TUNER] if request.space is not None else []
        strategies += [CODER, FRESH] if self._has_coder else []
        if not strategies:
            return Ended("error", None, None, None, {}, NO_CODER)
        search = None if request.space is None else Search(request.space, request.seed, request.islands)
        one = CODER if self._has_coder else TUNER
        bandit = Bandit(strategies if request.job_type == "adaptive_search" else [one])
        history: list[dict[str, Any]] = []
        stopped = "rounds"
        for number in range(1, request.rounds + 1):
            strategy = bandit.choose()
            before = population.best
            children, spent = self._children(strategy, population, search, number)
            if not children:
                stopped = "spent" if spent else "nothing to try"
                break
            trials = self._tried(children)
            for child, trial in zip(children, trials, strict=True):
                _learn(population, search, child, trial, number, strategy)
            population.after_round(number)
            gained = population.best is not None and (before is None or population.best.speed > before.speed)
            bandit.learn(strategy, 1.0 if gained else 0.0)
            line = {"round": number, "strategy": strategy, "best": shown(population.best)}
            line["trials"] = [{key: trial.get(key) for key in ("outcome", "reasons", "speed")} for trial in trials]
            history.append(line)
            self._emit("round", line)
            if any(trial["outcome"] == "spent" for trial in trials):
                stopped = "spent"
                break
        best = population.best
        tries = sum(len(line["trials"]) for line in history)
        detail = {
            "rounds": history, "tries": tries, "stopped": stopped, "best": shown(best), "bandit": bandit.shown(),
            "archive": {cell: shown(member) for cell, member in sorted(population.archive().items())},
        }  # fmt: skip
        if best is None:
            return Ended("failed", None, None, None, detail, "no candidate passed")
        files = dict(best.files)
        if best.point is not None and request.space is not None:
            files = request.space.candidate(best.point, f"Found in {tries} tries of a space of {request.space.size}.")
        return Ended("completed", files, best.name, best.speed, detail)

    def _children(
        self, strategy: str, population: Population, search: Search | None, number: int
    ) -> tuple[list[tuple[dict[str, Any], int, Point | None]], bool]:
        """The next candidates, each with its island and its point; and whether a limit stopped them."""
        request = self._request
        if strategy == TUNER:
            assert search is not None and request.space is not None  # noqa: S101, PT018 - the strategy needs a space
            space = request.space
            left = max(1, space.size // SHARE) - len(search.tried)
            points = search.ask(min(request.children, left)) if left > 0 else []
            return [({"files": space.candidate(point)}, search.island(point), point) for point in points], False
        islands = [(number * request.children + child) % population.islands for child in range(request.children)]
        nodes: list[dict[str, Any]] = []
        for child, island in enumerate(islands):
            bred = [] if strategy == FRESH else population.parents(island)
            asked: dict[str, Any] = {"parents": [{"source": each.source, "speed": each.speed} for each in bred]}
            if request.workflow in DESIGNED:
                nodes.append({"id": f"design-{child}", "action": "designer", "input": dict(asked)})
                asked["plan"] = {"$result": f"design-{child}", "path": "/plan"}
            nodes.append({"id": f"code-{child}", "action": "coder", "input": asked})
        outcome, results = self._run(nodes)
        written = [(results.get(f"code-{child}"), island, None) for child, island in enumerate(islands)]
        spent = any("AKF-P720" in error["message"] for error in outcome.errors.values())
        return [(answer, island, point) for answer, island, point in written if answer], spent

    def _tried(self, children: Sequence[tuple[dict[str, Any], int, Point | None]]) -> list[dict[str, Any]]:
        nodes = [
            {"id": f"try-{place}", "action": "profiler", "input": answer}
            for place, (answer, _, _) in enumerate(children)
        ]
        _, results = self._run(nodes)
        failed = {"outcome": "cannot_tell", "reasons": ["NODE_FAILED"], "notes": [], "speed": None}
        return [results.get(str(node["id"])) or failed for node in nodes]


class Bandit:
    """Which strategy goes next: the one with the highest upper bound on how often it gains; no chance in it.

    Args:
        names: strategies, in the order in which equals are taken.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._pulls = dict.fromkeys(names, (0, 0.0))

    def choose(self) -> str:
        """The next strategy."""
        total = sum(count for count, _ in self._pulls.values())

        def bound(name: str) -> float:
            count, gained = self._pulls[name]
            return math.inf if count == 0 else gained / count + math.sqrt(2 * math.log(total) / count)

        return max(self._pulls, key=bound)

    def learn(self, name: str, gain: float) -> None:
        """What a round of a strategy gained, 0 to 1."""
        count, gained = self._pulls[name]
        self._pulls[name] = (count + 1, gained + gain)

    def shown(self) -> dict[str, Any]:
        """Rounds and gains by strategy."""
        return {name: {"rounds": count, "gains": gained} for name, (count, gained) in self._pulls.items()}


def _learn(
    population: Population,
    search: Search | None,
    child: tuple[dict[str, Any], int, Point | None],
    trial: Mapping[str, Any],
    number: int,
    strategy: str,
) -> None:
    answer, island, point = child
    passed = trial["outcome"] == "pass" and trial["speed"] is not None
    if search is not None and point is not None and (passed or trial["outcome"] == "fail"):
        search.tell(point, trial["speed"] if passed else None)
    if not passed:
        population.failed += 1
        return
    behaviour = behaviour_of(answer["files"]) if search is None or point is None else " ".join(search.cell(point))
    name = _name(answer["files"]) or f"child-{number}-{island}"
    population.add(Member(name, answer["files"], trial["speed"], island, number, strategy, behaviour, point))


def _name(files: Mapping[str, str] | None) -> str | None:
    if not files:
        return None
    if MANIFEST not in files:
        return name_of("code", files)
    return str(orjson.loads(files[MANIFEST])["id"])


def _why(outcome: Outcome, trial: Mapping[str, Any]) -> str:
    if trial.get("reasons"):
        return " ".join(map(str, trial["reasons"]))
    return next((str(error["message"]) for error in outcome.errors.values()), str(trial.get("outcome") or "no answer"))


__all__ = ["NO_CODER", "TYPES", "WORKFLOWS", "Bandit", "Ended", "Request", "read_task", "run_job"]
