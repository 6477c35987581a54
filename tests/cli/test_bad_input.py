"""Bad input of any kind: problems and the right status, at once, without a traceback, and nothing is written."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support import runs
from tests.support.bad import BAD, FEW, HEAVY
from tests.support.cli import Answer, akf, inside
from tests.support.process import NOBODY, in_child
from tests.support.runs import Ready, overwrite, tree

from akf.contracts.schemas import kinds

pytestmark = pytest.mark.usefixtures("state")

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "examples" / "traces" / "chat.jsonl"
EXAMPLES = ROOT / "docs" / "examples" / "artifacts"


class Place(NamedTuple):
    """A command that takes a file: the file, and the words that name it."""

    file: Path
    words: list[str | Path]


class Bench:
    """A ready Suite, a run with an open Task, a Task folder and a submission, all of the test's own."""

    def __init__(self, folder: Path, ready: Ready, run: Path) -> None:
        self.folder = folder
        self.suite = runs.clone(ready.folder, folder / "suite")
        self.keys = ready.keys
        self.run = run
        self.task = runs.task(folder / "task")
        self.agent = runs.submission(folder / "agent")
        self.trust = folder / "trust.json"
        self.model = folder / "config.json"
        shutil.copyfile(ROOT / "examples" / "frameworks" / "qwen3-8b.config.json", self.model)
        shutil.copyfile(ready.keys / "trust.json", self.trust)

    def place(self, name: str) -> Place:
        campaign = self.suite / "arms" / "host_reference.json"
        keys: list[str | Path] = ["--keys", self.keys]
        runs_root: list[str | Path] = ["--runs-root", self.folder / "runs"]
        return {
            "validate": Place(campaign, ["validate", campaign]),
            "validate --kind": Place(campaign, ["validate", campaign, "--kind", "Campaign"]),
            "validate-suite": Place(self.suite / "suite.json", ["validate-suite", self.suite / "suite.json"]),
            "validate-suite arm": Place(campaign, ["validate-suite", self.suite / "suite.json"]),
            "validate-campaign": Place(campaign, ["validate-campaign", campaign]),
            "validate-campaign suite": Place(self.suite / "suite.json", ["validate-campaign", campaign]),
            "validate-campaign workload": Place(self.suite / "workload.json", ["validate-campaign", campaign]),
            "init-run": Place(campaign, ["init-run", campaign, *runs_root, *keys]),
            "init-run suite": Place(self.suite / "suite.json", ["init-run", campaign, *runs_root, *keys]),
            "init-run workload": Place(self.suite / "workload.json", ["init-run", campaign, *runs_root, *keys]),
            "init-run capture": Place(
                self.suite / "captures" / "host_reference.json", ["init-run", campaign, *runs_root, *keys]
            ),
            "fill --set": Place(campaign, ["fill", campaign, "--set", "/arm=x", "--out", self.folder / "filled.json"]),
            "fill --host": Place(campaign, ["fill", campaign, "--host", "--out", self.folder / "filled", *keys]),
            "open-task": Place(self.task, ["open-task", self.run, self.task, *keys]),
            "submit": Place(self.agent / "candidate.json", ["submit", self.run, self.agent, *keys]),
            "audit --trust": Place(self.trust, ["audit", self.run, "--trust", self.trust]),
            "ingest framework": Place(
                self.model, ["ingest", "framework", "--arm", "xllm", "--model-config", self.model]
            ),
            "ingest trace --onto": Place(
                self.suite / "workload.json",
                ["ingest", "trace", TRACE, "--onto", self.suite / "workload.json", "--out", self.folder / "new.json"],
            ),
        }[name]


COMMANDS = (
    "validate", "validate --kind", "validate-suite", "validate-suite arm", "validate-campaign",
    "validate-campaign suite", "validate-campaign workload", "init-run", "init-run suite", "init-run workload",
    "init-run capture", "fill --set", "fill --host", "open-task", "submit", "audit --trust",
    "ingest trace --onto",
)  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path, ready: Ready, open_run: Path) -> Bench:
    return Bench(tmp_path, ready, open_run)


def snapshot(folder: Path) -> dict[str, str]:
    """The tree, without reading what never ends."""
    return {name: what for name, what in tree(folder).items() if not name.startswith("home")}


LIGHT = [kind for kind in BAD if kind not in HEAVY]
every = pytest.mark.parametrize(
    "kinds_of_bad", [FEW, pytest.param(tuple(BAD), marks=pytest.mark.soak)], ids=["few", "all"]
)


@pytest.mark.parametrize(
    ("name", "kinds_of_bad"),
    [
        *((name, LIGHT if name in {"validate", "submit", "init-run"} else FEW) for name in COMMANDS),
        *(pytest.param(name, tuple(BAD), marks=pytest.mark.soak) for name in COMMANDS),
    ],
)
def test_every_command_refuses_every_kind(bench: Bench, name: str, kinds_of_bad: list[str]) -> None:
    """One test per command over all kinds: a fresh file each, the folder the same before and after."""
    place = bench.place(name)
    good = place.file.read_bytes()
    wrong = {}
    for kind in kinds_of_bad:
        place.file.unlink()
        BAD[kind].put(place.file, good)
        before = snapshot(bench.folder)
        answer = inside(*place.words)
        try:
            answer.refused(1)
            assert snapshot(bench.folder) == before, "something was written"
        except AssertionError as error:
            wrong[kind] = str(error)[:400]
        if place.file.is_dir() and not place.file.is_symlink():
            place.file.rmdir()
        elif os.path.lexists(place.file):
            place.file.unlink()
        place.file.write_bytes(good)
    assert not wrong, "\n\n".join(f"{kind}: {what}" for kind, what in wrong.items())


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "symlink loop", "brackets", "too large", "bom"])
@pytest.mark.parametrize("name", ["validate-suite", "validate-campaign", "init-run", "submit"])
def test_by_a_process_of_its_own(bench: Bench, name: str, kind: str) -> None:
    place = bench.place(name)
    good = place.file.read_bytes()
    place.file.unlink()
    BAD[kind].put(place.file, good)
    before = snapshot(bench.folder)
    akf(*place.words).refused(1)
    assert snapshot(bench.folder) == before


@pytest.fixture
def everyones() -> Iterator[Path]:
    """A folder that another user reaches."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def modes(folder: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mode for path in folder.rglob("*") if path.name != ".lock"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_may_not_be_read(everyones: Path, ready: Ready, open_run: Path, name: str) -> None:
    bench = Bench(everyones, ready, runs.clone(open_run, everyones / "run"))
    bench.keys = runs.clone(ready.keys, everyones / "keys")
    for path in [*everyones.rglob("*")]:
        if not path.is_symlink():
            os.chown(path, NOBODY, NOBODY)
    os.chown(everyones, NOBODY, NOBODY)
    place = bench.place(name)
    inside("validate", place.file)  # what is imported late is imported as root
    inside(*[everyones / "nowhere" if isinstance(word, Path) and word.is_file() else word for word in place.words])
    place.file.chmod(0)
    before = modes(everyones)

    def as_another() -> list[Any]:
        answer = inside(*place.words)
        return [answer.status, answer.out.decode(), answer.err]

    status, out, err = in_child(as_another, uid=NOBODY)
    answer = Answer(status, out.encode(), err).refused(7)
    assert {problem["file"] for problem in answer.problems} & {str(place.file), str(place.file.parent)}
    assert modes(everyones) == before


def file_name(kind: str) -> str:
    return kinds()[kind].name.removesuffix(".schema.json")


WRONG: list[Any] = [None, True, 0, -1.5, "x", "", [], ["x"], {}, {"x": 1}]


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", sorted(kinds()))
def test_a_wrong_type_of_any_field_is_said_at_the_field(tmp_path: Path, kind: str, stride: int) -> None:
    name = file_name(kind)
    value = json.loads((EXAMPLES / f"{name}.full.json").read_bytes())
    file = tmp_path / "file.json"
    tried = 0
    for number, field in enumerate(value):
        good = value[field]
        for wrong in WRONG[number % stride :: stride]:
            if type(wrong) is type(good) or {type(wrong), type(good)} <= {int, float}:
                continue
            file.write_text(json.dumps({**value, field: wrong}))
            answer = inside("validate", file, "--kind", kind)
            if answer.status == 0:
                assert wrong is None or field == "$schema", (field, wrong)
                continue
            problems = answer.refused(1).problems
            if kind == "Campaign" and field == "$schema":
                continue
            assert any(
                (problem["pointer"] or "").startswith(f"/{field}") or field in problem["message"]
                for problem in problems
            ), (field, wrong)
            tried += 1
    assert tried > len(value) / stride


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_a_field_that_is_missing_or_unknown_is_named(tmp_path: Path, kind: str) -> None:
    name = file_name(kind)
    value = json.loads((EXAMPLES / f"{name}.minimal.json").read_bytes())
    file = tmp_path / "file.json"
    for field in value:
        file.write_text(json.dumps({each: item for each, item in value.items() if each != field}))
        problems = inside("validate", file, "--kind", kind).refused(1).problems
        assert any(field in problem["message"] for problem in problems), field
        near = f"{field[:-1]}z"
        file.write_text(json.dumps({**value, near: 1}))
        problems = inside("validate", file, "--kind", kind).refused(1).problems
        assert any(near in problem["message"] for problem in problems), near


CANONICAL = ("run.json", "campaign.json", "suite.json", "workload.json", "capture.json", "tasks/rmsnorm.json")
IN_ATTEMPT = ("candidate.json", "build.json", "plan/operator.json", "gates/operator.json", "candidate.sig.json")


@every
@pytest.mark.parametrize("relative", [*CANONICAL, *(f"attempts/fused/{path}" for path in IN_ATTEMPT), "ledger.jsonl"])
def test_bad_canonical_files_are_a_matter_of_integrity(
    whole_run: Path, whole_keys: Path, relative: str, kinds_of_bad: list[str]
) -> None:
    path = whole_run / relative
    good = path.read_bytes()
    gates = whole_run / "attempts" / "fused" / "gates"
    commands: list[list[object]] = [
        ["audit", whole_run],
        ["judge", whole_run, gates, "--keys", whole_keys],
        ["judge", whole_run, gates, "--dry-run"],
    ]
    wrong = {}
    for kind in kinds_of_bad:
        bad = BAD[kind]
        path.unlink()
        if bad.is_file:
            bad.put(path, good if good.startswith(b"{") and good.count(b"\n") == 1 else b'{"kind": "Campaign"}')
        else:
            bad.put(path, good)
        before = snapshot(whole_run)
        for words in commands:
            answer = inside(*words)
            try:
                answer.refused(3)
                assert snapshot(whole_run) == before, "something was written"
            except AssertionError as error:
                wrong[f"{kind}: {words[0]} {words[-1]}"] = str(error)[:600]
        answer = inside("status", whole_run)
        if answer.status not in {0, 1, 3}:
            wrong[f"{kind}: status"] = answer.out.decode()[:600]
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        elif os.path.lexists(path):
            path.unlink()
        overwrite(path, good, 0o644 if relative == "ledger.jsonl" else 0o444)
    assert not wrong, "\n\n".join(f"{kind}: {what}" for kind, what in wrong.items())


RUN_IS: dict[str, Callable[[Path], object]] = {
    "missing": lambda _: None,
    "a file": lambda path: path.touch(),
    "an empty folder": lambda path: path.mkdir(),
    "a fifo": os.mkfifo,
    "a loop": lambda path: path.symlink_to(path.name),
    "under a file": lambda path: path.parent.touch(),
}


@pytest.mark.parametrize("kind", [*RUN_IS, "too long"])
@pytest.mark.parametrize("command", ["status", "audit", "submit", "intake", "build", "evaluate", "open-task", "judge"])
def test_a_run_that_is_none(tmp_path: Path, command: str, kind: str) -> None:
    run = tmp_path / "place" / "run"
    if kind == "too long":
        run = tmp_path / ("r" * 300)
    else:
        if kind != "under a file":
            run.parent.mkdir()
        RUN_IS[kind](run)
    (tmp_path / "agent").mkdir()
    more: dict[str, list[object]] = {
        "submit": [tmp_path / "agent"],
        "build": ["x"],
        "evaluate": ["x"],
        "open-task": [runs.TASK / "task.json"],
        "judge": [run / "attempts" / "x" / "gates"],
    }
    before = snapshot(tmp_path)
    answer = inside(command, run, *more.get(command, []))
    answer.refused(2 if command == "judge" else 1)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["..", "../..", "../../x", "fused/../fused", "", ".", "a" * 300, "FUSED", "f\u0443sed"]
)
@pytest.mark.parametrize("command", ["build", "evaluate", "evaluate --plan"])
def test_a_candidate_that_the_run_does_not_have(whole_run: Path, whole_keys: Path, command: str, name: str) -> None:
    before = snapshot(whole_run)
    words = command.split()
    inside(words[0], whole_run, name, *words[1:], *(["--keys", whole_keys] if len(words) == 1 else [])).refused(4)
    assert snapshot(whole_run) == before


@pytest.mark.parametrize("name", ["", "A", "-x", "x/y", "../x", "x" * 64, "h\u043est", "x\n", "\u2028", "x.r1 "])
def test_a_run_id_that_is_none(ready: Ready, tmp_path: Path, name: str) -> None:
    root = tmp_path / "runs"
    inside("init-run", ready.campaign, "--runs-root", root, "--run-id=" + name, "--keys", ready.keys).refused(2)
    assert not root.exists()


@pytest.mark.parametrize("gate", ["", "operater", "OPERATOR", "../operator", "gates/operator"])
def test_a_gate_that_is_none(whole_run: Path, gate: str) -> None:
    assert inside("evaluate", whole_run, "fused", "--gate", gate).refused(2).codes == {"AKF-U002"}


@pytest.mark.parametrize("gate", ["model", "serving", "reproduction", "release"])
def test_a_gate_that_is_not_measured_here(whole_run: Path, gate: str) -> None:
    assert inside("evaluate", whole_run, "fused", "--gate", gate).refused(4).codes == {"AKF-P116"}
