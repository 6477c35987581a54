"""`init-run`, `submit` and `judge`, stopped anywhere: the old state or the new one, and the next command succeeds.

What is stopped are the commands' own functions, in a fork of this process. The default run takes a slice of all
points, which rotates with the commit; `soak` takes the whole, of which `test_the_whole_is_a_thousand_kills` counts the
kills.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support import evidence, runs, soak
from tests.support.folders import without_renameat2, without_unnamed_files
from tests.support.kill import WRITES, Report, calls_of, fail_points, kill_points
from tests.support.mounts import mounted, remount
from tests.support.process import NOBODY, in_child

from akf.audit import audit
from akf.cli.commands.judge import judge
from akf.cli.commands.run import init, submit
from akf.contracts.canonical import digest
from akf.contracts.gates import GATES
from akf.contracts.problems import AkfError, ConflictError, StorageError
from akf.store import layout
from akf.store.overview import overview
from akf.store.run import Run
from akf.store.verify import signature_path

MEMORY = Path("/dev/shm")  # noqa: S108 - a second file system, not a place for secrets
BASE = Path("runs") / "run"
CANDIDATE = "rmsnorm-fused"
FEW = ("environment", "operator")
PARTS = 40  # of which the default run takes one
PAGE = 4096
THOUSAND = 1000

Value = dict[str, Any]


class Stock:
    """What the commands start from, made once for all workers of a session and never changed."""

    def __init__(self, shared: runs.Shared, ready: runs.Ready) -> None:
        self.ready = ready
        self.unsigned = runs.Ready(shared.make("crash-unsigned", self._unsigned) / "suite", ready.keys)
        self.opened = shared.make("crash-opened", lambda to: runs.opened(ready, to)) / "run"
        self.opened_unsigned = shared.make("crash-opened-unsigned", lambda to: runs.opened(self.unsigned, to)) / "run"
        self.submission = shared.make("crash-submission", lambda to: runs.submission(to / "one")) / "one"
        self.large = shared.make("crash-large", self._large) / "one"
        self.evidence_keys = shared.make("crash-keys", lambda to: runs.evidence_keys(to / "keys")) / "keys"
        self._shared = shared

    def evidence(self, name: str, **changes: Any) -> Path:
        """A run with evidence for one attempt."""
        made = partial(evidence.evidence, **changes)
        return self._shared.make(f"crash-{name}", lambda to: runs.on_disk(made(), to / "run")) / "run"

    def _unsigned(self, folder: Path) -> None:
        shutil.copytree(self.ready.folder, folder / "suite")
        unsigned = runs.Ready(folder / "suite", self.ready.keys)
        runs.change(unsigned.campaign, lambda campaign: campaign.update(trust={"mode": "unsigned", "keys": None}))

    @staticmethod
    def _large(folder: Path) -> None:
        runs.submission(folder / "one")
        for number in range(12):
            path = folder / "one" / "src" / f"part-{number % 3}" / f"{number}.hpp"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"// one of many\n" * 400)


@pytest.fixture(scope="session")
def stock(shared: runs.Shared, ready: runs.Ready) -> Stock:
    return Stock(shared, ready)


class Command(NamedTuple):
    """One command and the state it starts from; a folder holds `runs/run`."""

    prepare: Callable[[Path], object]
    call: Callable[[Path], Value]
    appears: Path
    trust: Path | None

    def run(self, folder: Path) -> Value:
        """Do it; the answer's document."""
        return self.call(folder)

    def completed(self, folder: Path) -> bool:
        """Tell whether what the command makes stands under its name."""
        return os.path.lexists(folder / self.appears)


def untouched(_: Path) -> None:
    """Start from the state as it is."""


def torn(run: Path) -> None:
    """Somebody was killed while adding a line to the ledger."""
    with (run / layout.LEDGER).open("ab") as stream:
        stream.write(b'{"digest":"sha256:00')


def pending(run: Path, lines: int = 2) -> None:
    """Somebody was killed before the last artifacts got their lines."""
    path = run / layout.LEDGER
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))
    torn(run)


def orphan(run: Path) -> None:
    """Somebody was killed between a Decision's signature and the Decision."""
    runs.overwrite(run / "attempts" / "fused" / "decision.sig.json", b"{}\n")


def without_folders(run: Path) -> None:
    """A copy that came without its empty folders."""
    for name in (layout.INBOX, layout.ATTEMPTS):
        (run / name).rmdir()


def init_run(stock: Stock, *, beside: bool = False, signed: bool = True) -> Command:
    source = stock.ready if signed else stock.unsigned

    def prepare(folder: Path) -> None:
        if beside:
            runs.clone(stock.opened, folder / "runs" / "other")

    return Command(
        prepare,
        lambda folder: init(source.campaign, folder / "runs", "run", source.keys).document,
        BASE,
        source.keys / "trust.json" if signed else None,
    )


def submission(
    stock: Stock, start: Callable[[Path], object] = untouched, *, large: bool = False, signed: bool = True
) -> Command:
    def prepare(folder: Path) -> None:
        start(runs.clone(stock.opened if signed else stock.opened_unsigned, folder / BASE))

    what = stock.large if large else stock.submission
    return Command(
        prepare,
        lambda folder: submit(folder / BASE, what, False, stock.ready.keys).document,
        BASE / "attempts" / CANDIDATE,
        stock.ready.keys / "trust.json" if signed else None,
    )


def judgement(
    stock: Stock,
    start: Callable[[Path], object] = untouched,
    *,
    gates: tuple[str, ...] = FEW,
    signed: bool = True,
) -> Command:
    source = stock.evidence(f"{len(gates)}-gates{'' if signed else '-unsigned'}", gates=gates, signed=signed)

    def prepare(folder: Path) -> None:
        start(runs.clone(source, folder / BASE))

    def call(folder: Path) -> Value:
        attempt = folder / BASE / "attempts" / "fused"
        return judge(folder / BASE, attempt / "gates", False, False, None, stock.evidence_keys).document

    return Command(
        prepare,
        call,
        BASE / "attempts" / "fused" / "decision.json",
        stock.evidence_keys / "trust.json" if signed else None,
    )


Make = Callable[[Stock], Command]
Way = Callable[[pytest.MonkeyPatch], None]


def unnamed(_: pytest.MonkeyPatch) -> None:
    """As this file system does it."""


def linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without unnamed files and without renameat2."""
    without_unnamed_files(monkeypatch)
    without_renameat2(monkeypatch)


CASES: dict[str, tuple[Make, Way]] = {
    "init-run": (init_run, unnamed),
    "init-run, another run beside it": (partial(init_run, beside=True), unnamed),
    "init-run, no renameat2": (init_run, linked),
    "init-run, unsigned": (partial(init_run, signed=False), unnamed),
    "submit": (submission, unnamed),
    "submit, a torn line": (partial(submission, start=torn), unnamed),
    "submit, a pending Task": (partial(submission, start=partial(pending, lines=1)), unnamed),
    "submit, no folders": (partial(submission, start=without_folders), unnamed),
    "submit, many files": (partial(submission, large=True), unnamed),
    "submit, no renameat2": (submission, linked),
    "submit, unsigned": (partial(submission, signed=False), unnamed),
    "judge": (partial(judgement, gates=GATES), unnamed),
    "judge, no gates": (partial(judgement, gates=()), unnamed),
    "judge, named temporaries": (judgement, without_unnamed_files),
    "judge, no renameat2": (judgement, linked),
    "judge, a torn line": (partial(judgement, start=torn), unnamed),
    "judge, a pending plan and gate": (partial(judgement, start=pending), unnamed),
    "judge, an orphan": (partial(judgement, start=orphan), unnamed),
    "judge, unsigned": (partial(judgement, signed=False), unnamed),
}
PLAIN = ("init-run", "submit", "judge")


@pytest.fixture
def command(request: pytest.FixtureRequest, stock: Stock, monkeypatch: pytest.MonkeyPatch) -> Command:
    make, way = CASES[request.param]
    made = make(stock)
    way(monkeypatch)
    return made


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


class Folders:
    """Fresh folders in the state that a command starts from."""

    def __init__(self, root: Path, command: Command) -> None:
        self._root = root
        self._command = command
        self._numbers = itertools.count()

    def __call__(self) -> Path:
        folder = self._root / str(next(self._numbers))
        (folder / "runs").mkdir(parents=True)
        self._command.prepare(folder)
        return folder


def stands(run: Path) -> None:
    """Every file under a canonical name verifies, as does every source file that a Candidate names."""
    opened = Run.open(run)
    for base, _, names in os.walk(run):
        for name in names:
            relative = layout.relative(run, Path(base) / name)
            if ".akf-" not in relative and layout.place(relative) is not None:
                value = opened.load(relative).value
                for source in value.get("sources", ()) if value["kind"] == "Candidate" else ():
                    data = (run / relative).with_name("source").joinpath(source["path"]).read_bytes()
                    assert digest(data) == source["digest"]


def temporaries(folder: Path) -> set[Path]:
    """What has a name of a temporary, by our own search; what lies in one is not listed."""
    found = set(folder.rglob(".akf-*"))
    return {path for path in found if not found & set(path.parents)}


def orphans(run: Path) -> set[Path]:
    """Signatures whose artifact is missing, by our own search."""
    found = {path for path in run.rglob("*.sig.json") if not any(".akf-" in part for part in path.parts)}
    return {path for path in found if not path.with_name(path.name.removesuffix(".sig.json") + ".json").exists()}


def named(run: Path, leftovers: list[str]) -> set[Path]:
    return {Path(os.path.normpath(run / each)) for each in leftovers}


def content(folder: Path) -> dict[str, str]:
    """What is canonical of a folder."""
    return {name: what for name, what in runs.tree(folder).items() if Path(name).name != layout.JOURNAL}


def files(tree: dict[str, str]) -> dict[str, str]:
    """A tree without its folders: an empty one may stay."""
    return {name: what for name, what in tree.items() if not what.startswith("4")}


def forgets_the_nonce(tree: dict[str, str]) -> dict[str, str]:
    """The tree of a run that another `init-run` made: what follows from the nonce has a kind and a mode only."""
    random = {"run.json", "run.sig.json", layout.LEDGER}
    return {name: what.partition(" ")[0] if Path(name).name in random else what for name, what in tree.items()}


class Afterwards:
    """What must hold after a command was stopped, wherever that was."""

    def __init__(self, command: Command, folders: Folders) -> None:
        self._command = command
        before, after = folders(), folders()
        command.run(after)
        self.old, self._new = content(before), content(after)
        if (before / BASE).exists():
            audit(before / BASE, command.trust, clean=True)
        self._tidied = content(before)
        for folder in (before, after):
            shutil.rmtree(folder)

    def killed(self, folder: Path) -> None:
        """What stands is whole, what is left is named, the command can be given again, and cleaning cleans."""
        run = folder / BASE
        completed = self._command.completed(folder)
        if run.exists():
            stands(run)
            left = temporaries(folder) | orphans(run)
            assert named(run, audit(run, self._command.trust)["leftovers"]) == left
            assert named(run, overview(run)["leftovers"]) == left
            if int(folder.name) % 2:  # cleaning first hinders nothing
                self._clean(folder)
        self.again(folder, completed=completed)
        self._clean(folder)

    def again(self, folder: Path, *, completed: bool) -> None:
        """The same command makes what is missing, or says that nothing is; then the audit accepts."""
        run = folder / BASE
        try:
            document = self._command.run(folder)
        except ConflictError:
            assert completed
        else:
            assert not completed
            if "leftovers" in document:
                assert {Path(each) for each in document["leftovers"]} == temporaries(folder)
        told = audit(run, self._command.trust)
        assert (told["pending"], named(run, told["leftovers"])) == ([], temporaries(folder))
        stands(run)

    def _clean(self, folder: Path) -> None:
        run = folder / BASE
        completed = self._command.completed(folder)
        audit(run, self._command.trust, clean=True)
        assert audit(run, self._command.trust)["leftovers"] == []
        assert not temporaries(folder)
        assert not orphans(run)
        stands(run)
        found, wanted = content(folder), self._new if completed else self._tidied
        if not completed:
            found, wanted = files(found), files(wanted)
        if self._command.appears == BASE:
            found, wanted = forgets_the_nonce(found), forgets_the_nonce(wanted)
        assert found == wanted

    def refused(self, folder: Path, code: int | None) -> None:
        """Nothing was changed, or the artifact appeared and lacks its line alone; then the command can be given."""
        completed = self._command.completed(folder)
        assert code in (7, None)
        assert not temporaries(folder)
        if code is None:  # who holds the lock, and the journal, may go unsaid
            assert completed
        elif not completed:
            assert content(folder) == self.old
        if completed:
            stands(folder / BASE)
            audit(folder / BASE, self._command.trust)
        self.again(folder, completed=completed)
        self._clean(folder)


def kills(report: Report) -> int:
    """How many kills the whole of these calls is."""
    return sum(3 if call in WRITES else 2 for call in report.calls)


@pytest.mark.parametrize("command", CASES, indirect=True)
class TestKilled:
    """SIGKILL before, in and after every call that changes the disk."""

    @staticmethod
    def check(command: Command, root: Path, cut: soak.Slice) -> Report:
        folders = Folders(root, command)
        return kill_points(
            command.run, folders, Afterwards(command, folders).killed, stride=cut.stride, offset=cut.offset
        )

    def test_somewhere(self, command: Command, root: Path) -> None:
        report = self.check(command, root, soak.part(PARTS))
        assert report.stopped == report.points

    @pytest.mark.soak
    def test_everywhere(self, command: Command, root: Path) -> None:
        report = self.check(command, root, soak.whole())
        assert report.stopped == report.points
        assert {"open", "write", "fsync"} <= set(report.calls)
        assert {"link", "renameat2", "rename"} & set(report.calls)


def test_the_whole_is_a_thousand_kills(stock: Stock, root: Path) -> None:
    counted = dict.fromkeys(PLAIN, 0)
    for name, (make, way) in CASES.items():
        with pytest.MonkeyPatch.context() as patch:
            made = make(stock)
            way(patch)
            calls = calls_of(made.run, Folders(root / name, made))
        counted[name.partition(",")[0]] += kills(Report(calls, 0, 0))
    assert sum(counted.values()) >= THOUSAND, counted
    assert all(count >= THOUSAND // 5 for count in counted.values()), counted


@pytest.mark.parametrize("command", PLAIN, indirect=True)
class TestRefusedCalls:
    """A disk that is full at one call and has room at the next."""

    @staticmethod
    def check(command: Command, root: Path, cut: soak.Slice, number: int) -> Report:
        folders = Folders(root, command)
        after = Afterwards(command, folders)
        return fail_points(command.run, folders, after.refused, number=number, stride=cut.stride, offset=cut.offset)

    def test_somewhere(self, command: Command, root: Path) -> None:
        self.check(command, root, soak.part(PARTS // 8), errno.ENOSPC)

    @pytest.mark.soak
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
    def test_everywhere(self, command: Command, root: Path, number: int) -> None:
        report = self.check(command, root, soak.whole(), number)
        assert report.stopped >= report.points - 4  # who holds the lock (two calls) and the journal (two)


def refusal(step: Callable[[], object]) -> int:
    """The exit status of what must be refused."""
    try:
        step()
    except AkfError as error:
        return error.exit_code
    return 0


@pytest.mark.parametrize("command", PLAIN, indirect=True)
def test_a_disk_with_room_for_a_part_only(command: Command, tmp_path: Path) -> None:
    """A file system of its own, full but for so many pages, until there is room."""
    with mounted(tmp_path / "small", "tmpfs", "size=16m") as small:
        work = Folders(small, command)()
        filler = small / "filler"
        old, refused = content(work), 0
        for pages in range(100):
            fill(filler, small, pages)
            status = refusal(lambda: command.run(work))
            filler.unlink()
            if status == 0 or command.completed(work):
                break
            assert status == StorageError.exit_code
            assert content(work) == old
            assert not temporaries(work)
            refused += 1
        assert refused >= 1
        if status:
            assert refusal(lambda: command.run(work)) == ConflictError.exit_code
        stands(work / BASE)
        told = audit(work / BASE, command.trust)
        assert (told["pending"], told["leftovers"]) == ([], [])


def fill(filler: Path, small: Path, pages: int) -> None:
    """Take all room of a file system but for so many pages."""
    descriptor = os.open(filler, os.O_CREAT | os.O_WRONLY)
    try:
        free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
        os.posix_fallocate(descriptor, 0, free - pages * PAGE)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("command", PLAIN, indirect=True)
def test_a_file_system_that_is_read_only(command: Command, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=16m") as small:
        work = Folders(small, command)()
        old = runs.tree(work)
        remount(small, "ro")
        assert refusal(lambda: command.run(work)) == StorageError.exit_code
        assert runs.tree(work) == old
        remount(small, "rw")
        command.run(work)
        audit(work / BASE, command.trust)


@pytest.mark.parametrize("name", PLAIN)
def test_a_folder_that_may_not_be_written_to(name: str, stock: Stock) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        top.chmod(0o755)
        mine = readable(stock, top)
        command = CASES[name][0](mine)
        work = Folders(top, command)()
        closed = [path for path in (work, *work.rglob("*")) if path.is_dir()]
        for path in closed:
            path.chmod(0o555)
        old = runs.tree(work)
        assert in_child(lambda: refusal(lambda: command.run(work)), uid=NOBODY) == StorageError.exit_code
        assert runs.tree(work) == old
        for path in closed:
            path.chmod(0o755)
        command.run(work)
        audit(work / BASE, command.trust)


def readable(stock: Stock, top: Path) -> Stock:
    """The same stock with inputs and keys that an unprivileged user reads."""
    mine = Stock.__new__(Stock)
    mine.__dict__ |= vars(stock)
    inputs = top / "inputs"
    inputs.mkdir()
    suite = runs.clone(stock.ready.folder, inputs / "suite")
    mine.submission = runs.clone(stock.submission, inputs / "submission")
    mine.evidence_keys = runs.clone(stock.evidence_keys, inputs / "evidence-keys")
    mine.ready = runs.Ready(suite, runs.clone(stock.ready.keys, inputs / "keys"))
    if os.geteuid() == 0:
        for path in (mine.evidence_keys, mine.ready.keys):
            for each in (path, *path.iterdir()):
                os.chown(each, NOBODY, NOBODY)
    return mine


def test_the_ledger_that_a_test_cuts_is_the_ledger(stock: Stock, tmp_path: Path) -> None:
    """`pending` leaves what a crash leaves: the audit names what is pending, and no break."""
    command = judgement(stock, pending)
    work = Folders(tmp_path, command)()
    told = audit(work / BASE, command.trust)
    assert told["pending"] == ["attempts/fused/plan/operator.json", "attempts/fused/gates/operator.json"]
    lines = [json.loads(line) for line in (work / BASE / layout.LEDGER).read_bytes().splitlines()[:-1]]
    assert {line["path"] for line in lines}.isdisjoint(told["pending"])
    assert (work / BASE / signature_path("attempts/fused/gates/operator.json")).is_file()
