"""Real campaigns and runs on disk for the tests of the pipeline and of the command line.

What is made here is made by the product's own functions; only the measurement of the baseline, which `fill --host`
takes minutes of quiet for, is replaced by plausible figures, and the Task is cut down to one row.

- `ready` fills the shipped host draft with this machine's facts (made-up ones where there is no compiler).
- `Shared` makes something once for all workers of a test session.
- `on_disk` writes a run that `tests.support.evidence` made in memory: all six gates, without a compiler.
- `resign` edits an artifact as somebody who holds the keys could.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support import captures, evidence

from akf.build import build
from akf.candidates import submit
from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.problems import BlockedError
from akf.contracts.shipped import shipped
from akf.contracts.tree import tree_digest
from akf.evaluate import evaluate
from akf.frameworks import host_reference
from akf.frameworks.fill import Measured, fill_host
from akf.opportunity.tasks import open_task
from akf.routes.launch_spec import parse_spec
from akf.store import ledger
from akf.store.run import checked, facts_of
from akf.store.snapshot import init_run
from akf.store.verify import signature_path
from akf.trust import dsse
from akf.trust.keys import init_keys, load_signer, pinned, trust_root
from akf.trust.roles import OWNERS, ROLES

Value = dict[str, Any]

DRAFT = shipped("suites") / "host-demo" / "arms" / "host_reference.json"
TASK = shipped("examples") / "tasks" / "rmsnorm"
CANDIDATES = shipped("examples") / "candidates"
COMPILER = "needs g++: apt-get install g++"
NUMPY = 'needs numpy: pip install "ascend-kernel-forge[host]"'
MEASURED = Measured(
    tool="akf.harness",
    entries=[
        {"callsite": "rms-norm", "symbols": {"T": 1}, "core_type": "cpu", "calls": 800, "time_ns": 3_000_000},
    ],
    low_ratio=0.996,
    high_ratio=1.005,
    pairs=8,
    source_digest=digest(b"plausible"),
)


class Ready(NamedTuple):
    """A Suite folder that is ready, and the keys that its Campaign pins."""

    folder: Path
    keys: Path

    @property
    def campaign(self) -> Path:
        """The Campaign file."""
        return self.folder / "arms" / "host_reference.json"


class Shared:
    """Things that are made once and then only read, by all workers of a session."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def make(self, name: str, maker: Callable[[Path], object]) -> Path:
        """The folder `name`, filled by `maker` when nobody did it before."""
        folder, done = self._base / name, self._base / f"{name}.done"
        with (self._base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                maker(folder)
                done.touch()
        return folder


def ready(folder: Path, edit: Callable[[Value], object] | None = None) -> Ready:
    """Fill the shipped host draft into `folder/suite`; `edit` changes the Campaign before it is filled."""
    keys = folder / "keys"
    pins = init_keys(keys)
    draft = folder / "draft"
    shutil.copytree(DRAFT.parents[1], draft)
    campaign = draft / "arms" / DRAFT.name
    change(campaign, edit or (lambda _: None))
    with compiled():
        fill_host(campaign, folder / "suite", pins, lambda *_: MEASURED)
    shutil.rmtree(draft)
    return Ready(folder / "suite", keys)


def quick(campaign: Value) -> None:
    """As few pairs and blocks as the confidence allows, and thresholds that a busy machine's noise does not swallow."""
    acceptance = campaign["acceptance"]
    acceptance["pairs"] = {"operator": 6, "model": 6, "serving": 6, "reproduction": 6, "blocks": 1}


@contextmanager
def compiled() -> Iterator[None]:
    """Made-up machine facts while there is no compiler; the real ones otherwise."""
    if shutil.which("g++"):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_reference, "build_baseline", _no_baseline)
        patch.setattr(host_reference, "environment", lambda _: _machine())
        yield


def _no_baseline(out: Path) -> host_reference.Baseline:
    spec = parse_spec(json.loads((host_reference._sources() / "rms_norm.json").read_bytes()))
    return host_reference.Baseline(out / "no.so", out / "no.so", spec, digest(b"baseline"), digest(b"launcher"))


def _machine() -> Value:
    return {
        "soc": {"family": "host", "name": "x86_64-generic"},
        "toolkit": {"name": "gcc", "version": "12.2.0", "build": "g++ 12.2.0"},
        "python": "3.11.0",
        "frameworks": [{"name": host_reference.ARM, "revision": host_reference.revision()}],
        "libraries": [{"name": host_reference.LIBRARY, "digest": digest(b"baseline")}],
        "host": evidence._machine("host"),
    }


def new_run(source: Ready, root: Path, name: str = "run") -> Path:
    """A run without a Task."""
    return init_run(source.campaign, root, source.keys, name)


def opened(source: Ready, root: Path, name: str = "run") -> Path:
    """A run with the shipped Task, cut down to one row and two cases."""
    run = new_run(source, root, name)
    open_task(run, task(root / "task"), source.keys)
    return run


def captured(source: Ready, folder: Path, edit: Callable[[Value], object] | None = None) -> Ready:
    """The same Suite with a Capture of whole steps, half of which is RMSNorm at the Workload's sizes."""
    suite = clone(source.folder, folder)
    campaign = json.loads((suite / "arms" / source.campaign.name).read_bytes())
    kernels = [
        captures.kernel(0.5 * part, "rms-norm", name="rms_norm", tokens=tokens, graph="eager", core_type="cpu")
        for part, tokens in ((0.4, 1), (0.3, 4), (0.3, 8))
    ]
    value = captures.capture(
        *kernels, lines={"host_gap": 0.3}, id=campaign["capture"]["id"], platform="host", health=None, stage="decode"
    )
    (edit or (lambda _: None))(value)
    value.setdefault("stage", None)
    path = suite / campaign["capture"]["path"]
    path.chmod(0o644)
    path.write_text(json.dumps({name: item for name, item in value.items() if item is not None}), encoding="utf-8")
    return Ready(suite, source.keys)


def for_modules(source: Ready, folder: Path, task: str, edit: Callable[[Value], object] | None = None) -> Ready:
    """The same Suite for one shipped Task of the python ABI, whose plain module is the incumbent."""
    suite = clone(source.folder, folder)
    value = json.loads((TASK.parent / task / "task.json").read_bytes())
    plain = TASK.parent / task / "plain" / "python"
    main = value["abi"]["operands"][0]

    def takes_modules(campaign: Value) -> None:
        mine = {"backend": "python", "op": value["op"], "shape": main["shape"], "dtype": main["dtype"]}
        campaign["capabilities"] = [{**campaign["capabilities"][0], **mine}]
        files = [(file.name, False, digest(file.read_bytes())) for file in plain.iterdir()]
        campaign["baseline"] = {
            "provider": f"python.{task}",
            "callsites": [f"examples/tasks/{task}/plain/python/kernel.py run"],
            "incumbent_digest": tree_digest(files),
        }
        (edit or (lambda _: None))(campaign)

    def has_its_callsite(workload: Value) -> None:
        site = {"id": value["callsite"], "op": value["op"], "operands": value["abi"]["operands"]}
        workload["callsites"].append({**workload["callsites"][0], **site, "attributes": []})

    change(suite / "arms" / source.campaign.name, takes_modules)
    change(suite / "workload.json", has_its_callsite)
    return Ready(suite, source.keys)


def module(folder: Path, task: str, name: str, text: str) -> Path:
    """A submission of one module."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "kernel.py").write_text(text, encoding="utf-8")
    value = json.loads((CANDIDATES / "rmsnorm-fused" / "candidate.json").read_bytes())
    for field in ("$schema", "domain", "launch"):
        value.pop(field)
    value |= {"id": name, "task": task, "route": "python", "abi": "python"}
    (folder / "candidate.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def task(folder: Path, edit: Callable[[Value], object] | None = None) -> Path:
    """The shipped Task, cut down, in a new folder; returns its `task.json`."""
    shutil.copytree(TASK, folder)
    path = folder / "task.json"

    def cut(value: Value) -> None:
        value["rows"] = [{**value["rows"][0], "weight": 1.0}]
        value["cases"] = [case for case in value["cases"] if case["id"] in {"tail-3", "large"}]
        if edit is not None:
            edit(value)

    change(path, cut)
    return path


def submission(folder: Path, name: str = "rmsnorm-fused", edit: Callable[[Value], object] | None = None) -> Path:
    """A shipped candidate in a new folder."""
    shutil.copytree(CANDIDATES / name, folder)
    change(folder / "candidate.json", edit or (lambda _: None))
    return folder


def change(path: Path, edit: Callable[[Value], object]) -> None:
    """Change a hand-written JSON file in place; its `$schema` goes."""
    value = json.loads(path.read_bytes())
    value.pop("$schema", None)
    edit(value)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def on_disk(made: evidence.Made, run: Path) -> Path:
    """Write a run that was made in memory, as its own commands would have."""
    for relative, data in made.files.items():
        path = run / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o644 if relative == "ledger.jsonl" else 0o444)
    for name in ("inbox", "tasks", "attempts"):
        (run / name).mkdir(exist_ok=True)
    return run


def evidence_keys(folder: Path) -> Path:
    """The private keys that `tests.support.evidence` signs with, and their trust root."""
    from cryptography.hazmat.primitives import serialization as s  # noqa: PLC0415

    folder.mkdir(mode=0o700)
    for role in ROLES:
        signer = evidence.signer(role)
        data = signer._key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        (folder / f"{role}.key").touch(0o600)
        (folder / f"{role}.key").write_bytes(data)
    root = trust_root({role: evidence.signer(role).public for role in ROLES})
    (folder / "trust.json").write_bytes(canonical_bytes(root))
    return folder


def resign(run: Path, relative: str, edit: Callable[[Value], object], keys: Path, *, ledger_too: bool = True) -> None:
    """Change an artifact and sign it anew with its owner's key; the ledger follows unless told not to."""
    value = json.loads((run / relative).read_bytes())
    edit(value)
    data = checked(value)
    overwrite(run / relative, data)
    signer = load_signer(keys, OWNERS[value["kind"]])
    overwrite(run / signature_path(relative), dsse.sign(relative, data, signer, kind=value["kind"]))
    if ledger_too:
        lines = [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]
        for line in lines:
            if line["path"] == relative:
                line |= {"digest": digest(data)}
                line["facts"] = facts_of(value) if line["event"] != "resume" else line["facts"]
        rechain(run, lines)


def rechain(run: Path, lines: list[Value]) -> None:
    """Write the ledger anew with a chain that holds, as somebody could who writes into the folder."""
    prev, data = digest((run / "run.json").read_bytes()), b""
    for seq, line in enumerate(lines):
        raw = ledger.render(seq, prev, line["event"], path=line["path"], artifact=line["digest"], facts=line["facts"])
        data, prev = data + raw, digest(raw)
    overwrite(run / "ledger.jsonl", data, 0o644)


def overwrite(path: Path, data: bytes, mode: int = 0o444) -> None:
    """Replace a read-only file."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def tree(folder: Path) -> dict[str, str]:
    """Everything below a folder: kind, mode and content of each entry."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(base) / name
            status = path.lstat()
            what = f"{status.st_mode:o}"
            if path.is_symlink():
                what += f" -> {os.readlink(path)}"  # noqa: PTH115 - beside lstat
            elif path.is_file():
                what += " " + digest(path.read_bytes())
            found[path.relative_to(folder).as_posix()] = what
    found.pop(".lock", None)  # says who held the lock last
    return {name: what for name, what in found.items() if not name.endswith("/.lock")}


def clone(run: Path, target: Path) -> Path:
    """A copy of a run or a folder, modes and links as they are."""
    shutil.copytree(run, target, symlinks=True)
    return target


def trusted(keys: Path) -> Value:
    """The pinned keys of a folder, by role."""
    return dict(pinned(json.loads((keys / "trust.json").read_bytes())["keys"]))


def patiently(step: Callable[[], Value], tries: int = 6) -> Value:
    """Measure again while this machine is too busy to be timed; the last refusal is raised."""
    for left in reversed(range(tries)):
        try:
            return step()
        except BlockedError:
            if not left:
                raise
    raise AssertionError


def measured(source: Ready, folder: Path) -> None:
    """A run in `folder/run` as a working day leaves it, without Decisions; needs a compiler and numpy.

    `rmsnorm-fused` and `rmsnorm-wrong` have their operator gates, `rmsnorm-naive` is built, `rmsnorm-broken` does not
    compile. What the gates say of speed depends on the machine; that the wrong one is wrong does not.
    """
    run = opened(source, folder)
    for name in ("rmsnorm-fused", "rmsnorm-wrong", "rmsnorm-naive", "rmsnorm-broken"):
        real = "rmsnorm-naive" if name == "rmsnorm-broken" else name
        agent = submission(run / "inbox" / name, real, lambda value, name=name: value.update(id=name))  # type: ignore[misc]
        if name == "rmsnorm-broken":
            (agent / "src" / "kernel.cpp").write_text("this is no C++;\n", encoding="utf-8")
        submit(run, agent, source.keys)
        build(run, name, source.keys)
    with secrets_in(folder / "state"):
        for name in ("rmsnorm-fused", "rmsnorm-wrong"):
            patiently(lambda name=name: evaluate(run, name, "operator", source.keys))  # type: ignore[misc]


@contextmanager
def secrets_in(folder: Path) -> Iterator[None]:
    """Keep the gates' secrets there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AKF_STATE", str(folder))
        yield
