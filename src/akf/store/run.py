"""A run on disk: create it, open it, record artifacts, and bring in what a crash left pending.

Invariants:
- A run appears whole by one rename, or not at all; its five root files are never written again.
- `record` publishes the sidecars, then the artifact, then the ledger line, under the run's lock.
- An artifact without a line is pending: `recover` verifies it and adds the line, or refuses (exit 3); `foreseen` says
  what the ledger will then hold, for those who only read.
- A gate counts only when the ledger held its plan line before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import Any

from akf.contracts.canonical import canonical_bytes, digest, parse_canonical
from akf.contracts.ids import is_id
from akf.contracts.limits import MAX_FILE_BYTES
from akf.contracts.loader import Document, parse
from akf.contracts.problems import ConflictError, IntegrityError, InvalidError, PreconditionError, StorageError
from akf.contracts.schemas import validate
from akf.contracts.text import did_you_mean, show
from akf.store import journal, layout, ledger
from akf.store.collect import read_plain
from akf.store.leftovers import remove
from akf.store.lock import RunLock
from akf.store.publish import StagedFolder, make_folder, publish_file, replace_sidecar, settle
from akf.store.verify import Trust, signature_path, verify
from akf.trust import dsse
from akf.trust.keys import Signer

EVENTS = {
    "Run": "run", "Capture": "capture", "Triage": "triage", "Task": "task", "Candidate": "candidate", "Build": "build",
    "Plan": "plan", "Gate": "gate", "Decision": "decision",
}  # fmt: skip


def ref(value: Mapping[str, Any], data: bytes) -> dict[str, str]:
    """How a child names this artifact."""
    return {"kind": value["kind"], "id": value["id"], "digest": digest(data)}


def facts_of(value: Mapping[str, Any]) -> dict[str, str | int]:
    """What a ledger line binds besides the digest; a function of the artifact alone, so that recovery can repeat it."""
    if value["kind"] not in {"Candidate", "Plan", "Gate"}:
        return {}
    parents = {parent["kind"]: parent["id"] for parent in value["parents"]}
    if value["kind"] == "Candidate":
        return {"task": parents["Task"], "source_digest": value["source_digest"]}
    facts: dict[str, str | int] = {
        "task": parents["Task"],
        "candidate": parents["Candidate"],
        "gate": value["gate"],
    }
    if value["kind"] == "Plan":
        facts["secret_digest"] = value["secret_digest"]
    return facts


class Run:
    """An opened run; hold `locked()` to change it."""

    def __init__(self, path: Path, campaign: dict[str, Any]) -> None:
        self.path = path
        self.campaign = campaign
        self.trust = Trust.of(campaign)

    @classmethod
    def open(cls, path: Path) -> Run:
        """Open a run folder.

        Raises:
            InvalidError: it is not a run.
            IntegrityError: it was one: a root file is missing, or its Campaign does not hold.
        """
        here = [name for name in ("run.json", "campaign.json", layout.LEDGER) if os.path.lexists(path / name)]
        if not here:
            hint = "name the folder that `akf init-run` made: runs/<run-id>"
            raise InvalidError.of(
                "AKF-S101", f"{path} is not a run folder: it holds no run.json", file=str(path), hint=hint
            )
        for name in ("run.json", "campaign.json"):
            if name not in here:
                raise IntegrityError.of("AKF-I202", f"{name} is missing", file=name)
        document = parse_canonical(read_plain(path, "campaign.json", MAX_FILE_BYTES), "campaign.json")
        problems = validate(document, "Campaign")
        if problems:
            raise IntegrityError(problems)
        try:
            return cls(path, document.value)
        except InvalidError as error:  # a pinned key that is none
            raise IntegrityError(error.problems) from None

    @contextmanager
    def locked(self, *, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the run's lock, with the frozen inputs verified and what a crash left pending brought in first."""
        with RunLock(self.path, wait_s=wait_s):
            self.load("run.json")  # its digests bind Suite, Campaign, Workload and Capture
            self.recover()
            yield

    def read(self, relative: str) -> bytes:
        """Bytes of an artifact of this run."""
        return read_plain(self.path, relative, MAX_FILE_BYTES)

    def load(self, relative: str) -> Document:
        """A verified artifact of this run."""
        return verify(relative, self.context(relative), self.trust)

    def lines(self, *, torn: bool = False) -> tuple[ledger.Line, ...]:
        """The verified ledger; with `torn`, without a last line that was never confirmed."""
        data = self._ledger()
        return ledger.read(ledger.complete(data) if torn else data, digest(self.read("run.json")))

    def foreseen(self) -> tuple[bytes, list[str]]:
        """The ledger as the next command will leave it, and the pending artifacts that it will bring in.

        Raises:
            IntegrityError: the ledger or a pending artifact does not hold.
        """
        data, lines = ledger.complete(self._ledger()), self.lines(torn=True)
        prev = ledger.head(lines)
        added: list[str] = []
        for document in self._waiting(lines):
            value = document.value
            raw = ledger.render(
                len(lines) + len(added),
                prev,
                EVENTS[value["kind"]],
                path=document.file,
                artifact=digest(document.source),
                facts=facts_of(value),
            )
            data, prev = data + raw, digest(raw)
            added.append(document.file)
        return data, added

    def context(self, relative: str) -> dict[str, bytes]:
        """The bytes that `verify` needs for one artifact: itself, its signature and its parents."""
        place = layout.place(relative)
        wanted = [relative, signature_path(relative), *(slot.template for slot in layout.ARTIFACTS[:5])]
        if place is not None and place.candidate is not None:
            base = f"attempts/{place.candidate}"
            wanted += [f"{base}/candidate.json", f"{base}/build.json", f"{base}/plan/{place.gate}.json"]
        files = {path: self.read(path) for path in dict.fromkeys(wanted) if os.path.lexists(self.path / path)}
        for folder in (layout.TRIAGE, layout.TASKS):
            for path in sorted((self.path / folder).glob("*.json")) if (self.path / folder).is_dir() else ():
                name = layout.relative(self.path, path)
                if name not in files:
                    files[name] = self.read(name)
        return files

    def need_candidate(self, candidate: str) -> None:
        """Refuse an id that no Candidate of this run has.

        Raises:
            PreconditionError: there is none.
        """
        if not (is_id(candidate) and layout.candidate(self.path, candidate).is_file()):
            message = f"the run has no Candidate {show(candidate)}"
            here = sorted(path.parent.name for path in (self.path / layout.ATTEMPTS).glob("*/candidate.json"))
            meant = did_you_mean(candidate.rstrip("/").rsplit("/", 1)[-1], here)
            hint = f"did you mean {meant}?" if meant else "submit it first: akf submit RUN FOLDER"
            raise PreconditionError.of("AKF-P109", message, expected=here, found=candidate, hint=hint)

    def need_open(self, candidate: str) -> None:
        """Refuse an attempt that is decided: a Decision closes its evidence.

        Raises:
            PreconditionError: it is decided.
        """
        if layout.decision(self.path, candidate).exists():
            message = f"{candidate!r} is decided; its evidence is closed"
            hint = "preview with `akf judge --dry-run` before deciding; the same sources again: akf submit --retry"
            raise PreconditionError.of("AKF-P114", message, hint=hint)

    def record(self, relative: str, value: dict[str, Any], signer: Signer | None) -> bytes:
        """Publish an artifact with its signature and its ledger line; the caller holds the lock.

        Raises:
            ConflictError: it exists.
            InvalidError: it does not satisfy its own schema (a defect of the caller).
        """
        data = checked(value)
        target = self.path / relative
        make_folder(target.parent)
        if target.exists():
            raise ConflictError.of(
                "AKF-C101", f"{relative} exists already", file=str(target), hint="a second try is a new id"
            )
        try:
            if signer is not None:
                envelope = dsse.sign(relative, data, signer, kind=value["kind"])
                replace_sidecar(self.path / signature_path(relative), envelope, target)
            publish_file(target, data)
        except StorageError:
            if not os.path.lexists(target):  # a refusal leaves no signature of what never appeared
                with suppress(OSError):
                    remove(self.path / signature_path(relative))
            raise
        self._append(relative, value, data)
        return data

    def record_folder(
        self, relative: str, value: dict[str, Any], signer: Signer | None, files: Mapping[str, tuple[bytes, int]]
    ) -> bytes:
        """Publish a new folder that holds an artifact and files beside it, by one rename, and add its line.

        Args:
            relative: path of the artifact in the new folder.
            value: the artifact.
            signer: its owner, or None for an unsigned run.
            files: data and mode of the other files, by path in the folder.

        Raises:
            ConflictError: the folder exists.
        """
        data = checked(value)
        target = (self.path / relative).parent
        name = relative.rsplit("/", 1)[1]
        make_folder(target.parent)
        with StagedFolder(target) as stage:
            for path, (content, mode) in files.items():
                stage.write(path, content, mode=mode)
            stage.write(name, data)
            if signer is not None:
                stage.write(signature_path(name), dsse.sign(relative, data, signer, kind=value["kind"]))
        self._append(relative, value, data)
        return data

    def recover(self) -> list[str]:
        """Bring in pending artifacts; the caller holds the lock. Returns their paths.

        Raises:
            IntegrityError: one does not verify.
        """
        lines = self.lines(torn=True)
        ledger.repair(self.path)  # only what is verified is written to
        added = []
        for document in self._waiting(lines):
            settle(self.path / document.file)
            self._append(document.file, document.value, document.source)
            added.append(document.file)
        return added

    def _waiting(self, lines: Sequence[ledger.Line]) -> Iterator[Document]:
        """The pending artifacts, each verified, in the order in which they get their lines."""
        known = {line.path: line.digest for line in lines}
        for relative in self.pending(known):
            document = self.load(relative)
            if document.value["kind"] == "Gate" and relative.replace("/gates/", "/plan/") not in known:
                message = f"{relative} was never planned: the ledger holds no line of its plan"
                raise IntegrityError.of("AKF-I207", message, file=relative)
            known[relative] = digest(document.source)
            yield document

    def pending(self, known: Mapping[str, str]) -> list[str]:
        """Canonical artifacts that have no ledger line, parents before children."""
        found = []
        for folder, names in (
            (layout.CAPTURES, ("*.json",)),
            (layout.TRIAGE, ("*.json",)),
            (layout.TASKS, ("*.json",)),
            (layout.ATTEMPTS, ("*/*.json", "*/plan/*.json", "*/gates/*.json")),
        ):
            base = self.path / folder
            for pattern in names if base.is_dir() else ():
                for name in glob(pattern, root_dir=base):  # noqa: PTH207 - pathlib's fails on a folder that goes away
                    relative = layout.relative(self.path, base / name)
                    if layout.place(relative) is not None and relative not in known:
                        found.append(relative)
        kinds = {slot.kind: index for index, slot in enumerate(layout.ARTIFACTS)}
        return sorted(found, key=lambda path: (kinds[layout.place(path).slot.kind], path))  # type: ignore[union-attr]

    def _ledger(self) -> bytes:
        return read_plain(self.path, layout.LEDGER) if os.path.lexists(layout.ledger(self.path)) else b""

    def _append(self, relative: str, value: Mapping[str, Any], data: bytes) -> None:
        event = EVENTS[value["kind"]]
        ledger.append(self.path, event, relative, digest(data), facts_of(value))
        journal.note(self.path, event, relative)


def checked(value: dict[str, Any]) -> bytes:
    """Canonical bytes of an artifact that satisfies its schema.

    Raises:
        InvalidError: it does not.
    """
    data = canonical_bytes({name: item for name, item in value.items() if name != "$schema"})
    problems = validate(parse(data, value["kind"]), value["kind"])
    if problems:
        raise InvalidError(problems)
    return data


def create(runs_root: Path, run: dict[str, Any], root: Mapping[str, bytes], signer: Signer | None) -> Path:
    """Publish a new run folder whole: the five root artifacts, their signatures, and the ledger's first line.

    Args:
        runs_root: folder of all runs; made when missing.
        run: the Run artifact.
        root: canonical bytes of suite.json, campaign.json, workload.json and capture.json.
        signer: the supervisor, or None for an unsigned run.

    Raises:
        ConflictError: a run of this id exists.
    """
    make_folder(runs_root)
    target: Path = runs_root / run["id"]
    files = {"run.json": checked(run), **root}
    with StagedFolder(target) as stage:
        for relative, data in files.items():
            stage.write(relative, data)
            if signer is not None:
                stage.write(signature_path(relative), dsse.sign(relative, data, signer))
        stage.write(layout.LEDGER, ledger.opening(digest(files["run.json"])), mode=0o644)
        for folder in (layout.INBOX, layout.TASKS, layout.ATTEMPTS):
            stage.folder(folder)
    return target


def signer_for(run: Run, role: str, keys: Path) -> Signer | None:
    """The signer of a role, or None for an unsigned run.

    Raises:
        PreconditionError: the key is not the one that the Campaign pins.
    """
    if run.trust.keys is None:
        return None
    from akf.trust.keys import load_signer  # noqa: PLC0415 - cryptography is loaded only when a signature is touched

    signer = load_signer(keys, role)
    wanted = run.trust.keys[role].key_id
    if signer.key_id != wanted:
        message = f"the {role} key in {os.fspath(keys)} is not the one that the Campaign pins"
        raise PreconditionError.of("AKF-P102", message, file=os.fspath(keys), expected=wanted, found=signer.key_id)
    return signer
