"""From what was recognised to artifacts: each kind by its own importer.

Invariants:
- The problems of all files are listed at once, and nothing is kept of a survey with one.
- Profiles of one format that were recorded alike are ranks, or parts in time, of one Capture. The Capture with the most
  steps is the one that is asked about; others are looked at for faster providers, and what they were recorded with is
  kept (`Group`).
- Without model and arm there are no callsites, and none are guessed; kernels then stand for themselves.
- What a framework's log tells of the baseline's health is the Capture's health.
- Stages that no request of the trace falls into are left out of the Workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import canonical_bytes, digest, parse_canonical
from akf.contracts.loader import Document, parse
from akf.contracts.problems import AkfError, DefectError, Problem
from akf.contracts.schemas import validate
from akf.frameworks.draft import Draft, draft
from akf.frameworks.health import with_health
from akf.opportunity.survey.paths import Found
from akf.store.draft import render
from akf.traffic import bench, formats
from akf.traffic.profiles import Complaints, Shown
from akf.traffic.profiles import Options as ProfileOptions
from akf.traffic.traces import reader
from akf.traffic.traces import workload as traced
from akf.traffic.traces.recognise import confirm, recognised

Value = dict[str, Any]
MOST_COMPARED = 8


@dataclass(frozen=True)
class Asked:
    """What a person says beside the files.

    Attributes:
        arm: the framework's arm.
        revision: its revision.
        tp: tensor parallel size, where the configuration does not say it.
        model: the model's name, which its config does not hold.
        stage: stage of the Workload that was profiled.
        step_kernel: kernel that cuts the steps.
        policy: values of the policy, by name.
        data_class: how the artifacts may travel.
    """

    arm: str | None = None
    revision: str | None = None
    tp: int | None = None
    model: str | None = None
    stage: str | None = None
    step_kernel: str | None = None
    policy: Mapping[str, float] = field(default_factory=dict)
    data_class: str = "internal"


class Group(NamedTuple):
    """Profiles of one Capture, and how they were recorded as far as that is known before they are read."""

    paths: tuple[Path, ...]
    recorded: Mapping[str, str]


@dataclass
class Gathered:
    """The artifacts, canonical but for the Workload, and what has no artifact."""

    captures: list[Value] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    workload: Value | None = None
    benchmark: Value | None = None
    comparisons: list[Value] = field(default_factory=list)
    traffic: Value | None = None
    framework: Draft | None = None

    def refs(self) -> list[Value]:
        """How a Triage names the Captures."""
        return [
            {"kind": "Capture", "id": capture["id"], "digest": digest(canonical_bytes(capture))}
            for capture in self.captures
        ]


def gather(found: Sequence[Found], asked: Asked, shown: Shown = lambda _done, _all: None) -> Gathered:
    """Ingest everything.

    Args:
        found: what was recognised.
        asked: what the person says.
        shown: told of bytes of profiles read, and to be read.

    Raises:
        InvalidError: a file is malformed, or two stand where one may; with every problem.
        PreconditionError: the framework's revision is not mapped.
        StorageError: a file cannot be read.
    """
    of = {kind: [each for each in found if each.kind == kind] for kind in ("profile", "trace", "benchmark", "log")}
    result, complaints = Gathered(), Complaints()
    model, framework = (_only(found, kind, complaints) for kind in ("model", "framework"))
    logs = [each.path for each in of["log"]]
    if asked.arm is not None and model is not None:
        with complaints.noted():
            result.framework = draft(
                asked.arm, model, framework, logs, revision=asked.revision, tp=asked.tp, name=asked.model
            )
    with complaints.noted():
        _benchmarks(result, of["benchmark"], asked)
    for place, group in enumerate(_together(of["profile"])):
        with complaints.noted():
            result.captures.append(_capture(group.paths, place, result.framework, logs, asked, shown))
            result.groups[result.captures[-1]["id"]] = group
    result.captures.sort(key=lambda capture: (-_steps(capture), capture["id"]))
    with complaints.noted():
        _traffic(result, of["trace"], asked)
    complaints.refuse()
    return result


def _only(found: Sequence[Found], kind: str, complaints: Complaints) -> Path | None:
    paths = [each.path for each in found if each.kind == kind]
    for path in paths[1:]:
        message = f"a survey is about one {kind}, and this is a further one beside {paths[0].name}"
        complaints.add(Problem("AKF-F404", message, str(path), hint=f"name one, with --{kind}-config"))
    return paths[0] if paths else None


def _together(profiles: Sequence[Found]) -> Iterable[Group]:
    """Profiles that are parts of one Capture: of one format, and recorded alike."""
    groups: dict[tuple[str, str], Group] = {}
    for each in profiles:
        recorded = _recorded(each.path)
        key = each.layout, repr(sorted(recorded.items()))
        before = groups.get(key, Group((), recorded))
        groups[key] = before._replace(paths=(*before.paths, each.path))
    return groups.values()


def _recorded(path: Path) -> dict[str, str]:
    """How a profile was recorded; nothing where that is malformed, which is said when it is read."""
    try:
        return formats.recorded(path)
    except AkfError:
        return {}


def _capture(
    paths: Sequence[Path], place: int, framework: Draft | None, logs: list[Path], asked: Asked, shown: Shown
) -> Value:
    options = ProfileOptions(
        id="capture" if place == 0 else f"capture-{place + 1}",
        title=None,
        data_class=asked.data_class,
        stage=asked.stage,
        step_kernel=asked.step_kernel,
        workload=None if framework is None else framework.workload,
        arm=asked.arm if framework is not None else None,
    )
    capture = with_health(formats.ingest(paths, options, shown), logs, asked.arm)
    return dict(_document(capture, "Capture").value)


def _document(value: Value, kind: str) -> Document:
    document = parse_canonical(canonical_bytes(value), f"{value['id']}.json")
    if problems := validate(document, kind):
        raise DefectError(problems)
    return document


def _steps(capture: Value) -> int:
    return min((line["steps"] for line in capture.get("breakdown", ())), default=0)


def _benchmarks(result: Gathered, files: Sequence[Found], asked: Asked) -> None:
    if not files:
        return
    result.benchmark = bench.ingest([each.path for each in files], data_class=asked.data_class).artifact
    first, *others = result.benchmark["results"]
    result.comparisons = [bench.compare(first, other) for other in others[:MOST_COMPARED]]


def _traffic(result: Gathered, files: Sequence[Found], asked: Asked) -> None:
    """Fill the draft from the trace; without a draft the trace is only summed up."""
    if result.framework is not None:
        result.workload = result.framework.workload
    if not files:
        return
    paths = [each.path for each in files]
    layout = recognised(paths)
    trace = reader.read(paths, layout)
    confirm(layout, max(trace.requests.inputs))
    if result.framework is None:
        result.traffic = traced.summed(trace)
        return
    captures = [
        _document(capture, "Capture")
        for capture in result.captures
        if capture.get("stage") is not None and any(entry["callsite"] for entry in capture["entries"])
    ]
    options = traced.Options(data_class=asked.data_class, captures=captures[:1])
    start = parse(render(result.framework.workload), "workload.json")
    made = traced.make(traced.draft_of(start, options), trace, options, "the draft of the Workload")
    result.workload = made.workload
    result.workload["stages"] = [stage for stage in made.workload["stages"] if stage["requests"]]
    result.traffic = made.workload["traffic"]


def artifacts(gathered: Gathered) -> dict[str, bytes]:
    """The artifacts as files, by name."""
    files = {f"{capture['id']}.json": canonical_bytes(capture) for capture in gathered.captures}
    if gathered.workload is not None:
        files["workload.json"] = render(gathered.workload)
    if gathered.benchmark is not None:
        files["benchmark.json"] = canonical_bytes(gathered.benchmark)
    return files
