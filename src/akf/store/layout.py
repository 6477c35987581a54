"""Where everything stands in a run's folder.

Invariants:
- These are pure functions of paths: nothing here reads a disk.
- `ARTIFACTS` is the whole list of canonical artifacts of a run, each with its kind and the role that signs
  it.
- The signature of ``NAME.json`` stands beside it as ``NAME.sig.json``.
"""

import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from akf.trust.roles import OWNERS

GATES = ("environment", "operator", "model", "serving", "reproduction", "release")
"""The gates in the order in which they are judged."""

LEDGER = "ledger.jsonl"
JOURNAL = "journal.jsonl"
INBOX = "inbox"
CAPTURES = "captures"
TRIAGE = "triage"
TASKS = "tasks"
ATTEMPTS = "attempts"

_ID = r"[a-z0-9][a-z0-9._-]{0,62}"
_GATE = "|".join(GATES)
_RULES = {"capture": r"[0-9a-f]{64}", "triage": _ID, "task": _ID, "candidate": _ID, "gate": _GATE}


class Slot(NamedTuple):
    """One place of the run folder that holds an artifact."""

    template: str
    kind: str

    @property
    def role(self) -> str:
        """The role that writes and signs what stands here."""
        return OWNERS[self.kind]


ARTIFACTS = (
    Slot("run.json", "Run"),
    Slot("suite.json", "OptimizationSuite"),
    Slot("campaign.json", "Campaign"),
    Slot("workload.json", "Workload"),
    Slot("capture.json", "Capture"),
    Slot("captures/<capture>.json", "Capture"),
    Slot("triage/<triage>.json", "Triage"),
    Slot("tasks/<task>.json", "Task"),
    Slot("attempts/<candidate>/candidate.json", "Candidate"),
    Slot("attempts/<candidate>/build.json", "Build"),
    Slot("attempts/<candidate>/plan/<gate>.json", "Plan"),
    Slot("attempts/<candidate>/gates/<gate>.json", "Gate"),
    Slot("attempts/<candidate>/decision.json", "Decision"),
)


class Place(NamedTuple):
    """An artifact's path, understood."""

    slot: Slot
    capture: str | None = None
    triage: str | None = None
    task: str | None = None
    candidate: str | None = None
    gate: str | None = None


def _pattern(template: str) -> re.Pattern[str]:
    text = re.escape(template)
    for name, rule in _RULES.items():
        text = text.replace(f"<{name}>", f"(?P<{name}>{rule})")
    return re.compile(text)


_PATTERNS = tuple((slot, _pattern(slot.template)) for slot in ARTIFACTS)


@lru_cache(maxsize=65536)
def place(relative: str | PurePosixPath) -> Place | None:
    """Say what stands under a path relative to the run; None when no artifact does."""
    text = str(relative)
    if text.endswith(".sig.json"):
        return None
    for slot, pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            return Place(slot, **match.groupdict())
    return None


def signature(artifact: Path) -> Path:
    """Return the path of an artifact's signature."""
    return artifact.with_name(artifact.name.removesuffix(".json") + ".sig.json")


def relative(run: Path, path: Path) -> str:
    """Return a path inside the run as the ledger writes it."""
    return path.relative_to(run).as_posix()


def ledger(run: Path) -> Path:
    """Return the append-only, chained record of what was published."""
    return run / LEDGER


def journal(run: Path) -> Path:
    """Return the times and remarks for people, which are not canonical."""
    return run / JOURNAL


def inbox(run: Path) -> Path:
    """Return the only place where agents write."""
    return run / INBOX


def other_capture(digest: str) -> str:
    """Return the relative path of a further Capture, which a Triage looked at, by its digest."""
    return f"{CAPTURES}/{digest.removeprefix('sha256:')}.json"


def triage(run: Path, triage_id: str) -> Path:
    """Return the path of a triage."""
    return run / TRIAGE / f"{triage_id}.json"


def task(run: Path, task_id: str) -> Path:
    """Return the path of a task."""
    return run / TASKS / f"{task_id}.json"


def attempt(run: Path, candidate_id: str) -> Path:
    """Return the folder of an attempt."""
    return run / ATTEMPTS / candidate_id


def candidate(run: Path, candidate_id: str) -> Path:
    """Return the path of a candidate's manifest."""
    return attempt(run, candidate_id) / "candidate.json"


def source(run: Path, candidate_id: str) -> Path:
    """Return the folder of a candidate's frozen source files."""
    return attempt(run, candidate_id) / "source"


def build(run: Path, candidate_id: str) -> Path:
    """Return the path of the build record; its outputs stand in `build_outputs`."""
    return attempt(run, candidate_id) / "build.json"


def build_outputs(run: Path, candidate_id: str) -> Path:
    """Return the folder of a build's outputs."""
    return attempt(run, candidate_id) / "build"


def plan(run: Path, candidate_id: str, gate_name: str) -> Path:
    """Return the path of the plan that precedes a gate."""
    return attempt(run, candidate_id) / "plan" / f"{gate_name}.json"


def samples(run: Path, candidate_id: str, gate_name: str) -> Path:
    """Return the folder of a gate's raw samples."""
    return attempt(run, candidate_id) / "samples" / gate_name


def gates(run: Path, candidate_id: str) -> Path:
    """Return the folder that `judge` is called with."""
    return attempt(run, candidate_id) / "gates"


def gate(run: Path, candidate_id: str, gate_name: str) -> Path:
    """Return the path of a gate's record."""
    return gates(run, candidate_id) / f"{gate_name}.json"


def decision(run: Path, candidate_id: str) -> Path:
    """Return the path of the judge's decision."""
    return attempt(run, candidate_id) / "decision.json"


def attempt_of_gates(folder: Path) -> tuple[Path, str] | None:
    """Split ``RUN/attempts/<id>/gates`` into the run and the candidate's id; None for any other path."""
    candidate_id, attempts = folder.parent.name, folder.parent.parent
    if folder.name != "gates" or attempts.name != ATTEMPTS or not re.fullmatch(_ID, candidate_id):
        return None
    return attempts.parent, candidate_id
