"""A published file is whole, durable, never replaced; a refusal says what and why and leaves nothing."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from tests.support import strace
from tests.support.folders import names, without_renameat2, without_unnamed_files
from tests.support.kill import hooked
from tests.support.mounts import mounted, remount
from tests.support.process import NOBODY, in_child, together

from akf.contracts.problems import AkfError, ConflictError, StorageError
from akf.store.publish import StagedFolder, make_folder, publish_file, replace_sidecar, settle

RACERS = 8


@pytest.fixture(params=["unnamed", "named and renamed", "named and linked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "unnamed":
        without_unnamed_files(monkeypatch)
    if request.param == "named and linked":
        without_renameat2(monkeypatch)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.usefixtures("way")
def test_publishes_the_bytes_with_the_mode(tmp_path: Path) -> None:
    publish_file(tmp_path / "a.json", b"{}\n")
    publish_file(tmp_path / "b.key", b"", mode=0o600)
    assert (tmp_path / "a.json").read_bytes() == b"{}\n"
    assert [(tmp_path / name).stat().st_mode & 0o7777 for name in ("a.json", "b.key")] == [0o444, 0o600]
    assert names(tmp_path) == ["a.json", "b.key"]


@pytest.mark.parametrize("there", ["file", "folder", "link to a file", "link to nothing"])
@pytest.mark.usefixtures("way")
def test_never_replaces_whatever_is_there(tmp_path: Path, there: str) -> None:
    target = tmp_path / "a.json"
    match there:
        case "file":
            target.write_bytes(b"old")
        case "folder":
            target.mkdir()
        case "link to a file":
            (tmp_path / "b").write_bytes(b"old")
            target.symlink_to("b")
        case _:
            target.symlink_to("b")
    before = {name: (tmp_path / name).lstat().st_mtime_ns for name in names(tmp_path)}
    with pytest.raises(ConflictError) as refused:
        publish_file(target, b"new")
    assert refused.value.exit_code == 5
    assert refused.value.problems[0].file == str(target)
    assert {name: (tmp_path / name).lstat().st_mtime_ns for name in names(tmp_path)} == before


def stage(target: Path, files: Sequence[bytes]) -> None:
    with StagedFolder(target) as staged:
        for number, data in enumerate(files):
            staged.write(f"part/{number}", data)


def outcome(action: Callable[[], None]) -> int:
    try:
        action()
    except AkfError as error:
        return error.exit_code
    return 0


@pytest.mark.usefixtures("way")
def test_of_eight_publishers_one_wins_and_seven_change_nothing(tmp_path: Path) -> None:
    for turn in range(12):
        folder = tmp_path / str(turn)
        folder.mkdir()
        data = [bytes([65 + racer]) * 200_000 for racer in range(RACERS)]
        codes = together([partial(outcome, partial(publish_file, folder / "a.json", bytes_)) for bytes_ in data])
        assert sorted(codes) == [0, *[5] * (RACERS - 1)]
        assert (folder / "a.json").read_bytes() == data[codes.index(0)]
        assert names(folder) == ["a.json"]


@pytest.mark.usefixtures("way")
def test_of_eight_staged_folders_one_wins_and_seven_change_nothing(tmp_path: Path) -> None:
    for turn in range(6):
        folder = tmp_path / str(turn)
        folder.mkdir()
        files = [[bytes([65 + racer]) * 1000] * 4 for racer in range(RACERS)]
        codes = together([partial(outcome, partial(stage, folder / "run", own)) for own in files])
        assert sorted(codes) == [0, *[5] * (RACERS - 1)]
        assert names(folder) == ["run"]
        assert [(folder / "run" / "part" / str(n)).read_bytes() for n in range(4)] == files[codes.index(0)]


@pytest.mark.usefixtures("way")
def test_a_full_disk_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=64k") as small:
        publish_file(small / "fits.json", b"x" * 1000)
        with pytest.raises(StorageError) as refused:
            publish_file(small / "big.json", b"x" * 100_000)
        problem = refused.value.problems[0]
        assert (refused.value.exit_code, problem.code, problem.file) == (7, "AKF-F101", str(small / "big.json"))
        assert "the disk is full" in problem.message
        assert problem.hint
        with pytest.raises(StorageError, match="the disk is full"):
            stage(small / "run", [b"x" * 1000, b"x" * 100_000])
        assert names(small) == ["fits.json"]
        publish_file(small / "next.json", b"x" * 1000)  # nothing of what failed takes room


@pytest.mark.usefixtures("way")
def test_no_free_inode_is_a_full_disk(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=1m,nr_inodes=4") as small:
        with pytest.raises(StorageError, match="the disk is full"):
            stage(small / "run", [b"{}\n"] * 8)
        assert names(small) == []


def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=64k") as small:
        remount(small, "ro")
        for action in (
            lambda: publish_file(small / "a.json", b"{}\n"),
            lambda: make_folder(small / "b" / "c"),
            lambda: StagedFolder(small / "run").__enter__(),
        ):
            with pytest.raises(StorageError, match="the file system is read-only") as refused:
                action()
            assert refused.value.problems[0].code == "AKF-F103"


def test_a_folder_of_somebody_else_is_named(open_folder: Path) -> None:
    def refusals() -> list[list[str | int]]:
        told: list[list[str | int]] = []
        for action in (
            lambda: publish_file(open_folder / "a.json", b"{}\n"),
            lambda: make_folder(open_folder / "b"),
            lambda: StagedFolder(open_folder / "run").__enter__(),
        ):
            try:
                action()
            except AkfError as error:
                told.append([error.exit_code, error.problems[0].code, str(error.problems[0].file)])
        return told

    wanted = [[7, "AKF-F104", str(open_folder / name)] for name in ("a.json", "b", "run")]
    if os.geteuid() == 0:
        assert in_child(refusals, uid=NOBODY) == wanted
    else:
        open_folder.chmod(0o555)
        assert refusals() == wanted
        open_folder.chmod(0o755)
    assert names(open_folder) == []


def test_an_unprivileged_user_publishes_without_a_named_temporary(open_folder: Path) -> None:
    """Linux may refuse hard links to what a user does not own (fs.protected_hardlinks); its own are fine."""
    own = open_folder / "own"
    own.mkdir()
    if os.geteuid() == 0:
        os.chown(own, NOBODY, NOBODY)

    def publish() -> list[str]:
        with hooked(lambda _n, _name, real, args, kwargs: real(*args, **kwargs)) as calls:
            publish_file(own / "a.json", b"{}\n")
        return calls

    assert in_child(publish, uid=NOBODY) == ["open", "write", "fchmod", "fsync", "link", "fsync"]
    assert names(own) == ["a.json"]


def test_a_missing_folder_and_a_file_in_the_way_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for target in (tmp_path / "missing" / "a.json", tmp_path / "file" / "a.json"):
        with pytest.raises(StorageError) as refused:
            publish_file(target, b"{}\n")
        assert refused.value.problems[0].code == "AKF-F106"
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(StorageError) as refused:
            make_folder(folder)
        assert refused.value.problems[0].code == "AKF-F106"


def test_a_name_that_is_too_long_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="file name too long"):
        publish_file(tmp_path / ("a" * 300), b"{}\n")
    assert names(tmp_path) == []


REFUSED = """
import sys
from pathlib import Path
from akf.contracts.problems import StorageError
from akf.store.publish import publish_file
try:
    publish_file(Path(sys.argv[1]), b"{}\\n")
except StorageError as error:
    print(error.problems[0].code)
"""


@pytest.mark.parametrize(
    ("inject", "code", "left"),
    [
        ("write:error=EDQUOT:when=1", "AKF-F102", []),
        ("write:error=EIO:when=1", "AKF-F105", []),
        ("fsync:error=EIO:when=1", "AKF-F105", []),
        ("fsync:error=EIO:when=2", "AKF-F108", ["a.json"]),
    ],
)
def test_what_the_kernel_refuses_is_named(tmp_path: Path, inject: str, code: str, left: list[str]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    _, said = strace.run(REFUSED, [str(folder / "a.json")], tmp_path, names="write,fsync", inject=[inject])
    assert said.split() == [code]
    assert names(folder) == left


KERNEL = """
import sys
from pathlib import Path
from akf.contracts.problems import AkfError
from akf.store.publish import StagedFolder, publish_file
root = Path(sys.argv[1])
for _ in range(2):
    try:
        publish_file(root / "a.json", b"{}\\n")
        print("published")
    except AkfError as error:
        print(error.problems[0].code)
    try:
        with StagedFolder(root / "run") as stage:
            stage.write("b.json", b"{}\\n")
        print("published")
    except AkfError as error:
        print(error.problems[0].code)
"""


@pytest.mark.parametrize(
    ("inject", "said"),
    [
        (["renameat2:error=ENOSYS"], "published published AKF-C101 AKF-C101"),
        (["renameat2:error=EINVAL", "linkat:error=EPERM"], "AKF-F109 published AKF-F109 AKF-C101"),
        (["linkat:error=EPERM"], "published published AKF-C101 AKF-C101"),
        (["linkat:error=EXDEV"], "published published AKF-C101 AKF-C101"),
    ],
)
def test_a_kernel_that_lacks_a_call_gets_the_fallback(tmp_path: Path, inject: list[str], said: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    _, output = strace.run(KERNEL, [str(folder)], tmp_path, names="renameat2,linkat", inject=inject)
    assert output.split() == said.split()
    assert names(folder) == (["run"] if "F109" in said else ["a.json", "run"])


def test_publishes_where_proc_is_not_mounted(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    script = 'umount -l /proc && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-B", "-c", KERNEL, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "umount" in done.stderr:
        pytest.skip(f"a mount namespace is not permitted: {done.stderr.strip()}")
    assert done.stdout.split() == ["published", "published", "AKF-C101", "AKF-C101"], done.stderr
    assert names(folder) == ["a.json", "run"]


def test_an_orphan_sidecar_is_replaced_and_a_counted_one_is_not(tmp_path: Path) -> None:
    artifact, sidecar = tmp_path / "a.json", tmp_path / "a.sig.json"
    replace_sidecar(sidecar, b"first", artifact)
    replace_sidecar(sidecar, b"second", artifact)
    assert (sidecar.read_bytes(), names(tmp_path)) == (b"second", ["a.sig.json"])
    publish_file(artifact, b"{}\n")
    with pytest.raises(ConflictError) as refused:
        replace_sidecar(sidecar, b"third", artifact)
    assert refused.value.problems[0].code == "AKF-C102"
    assert sidecar.read_bytes() == b"second"


def test_a_failed_replacement_leaves_the_orphan(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=64k") as small:
        replace_sidecar(small / "a.sig.json", b"first", small / "a.json")
        with pytest.raises(StorageError, match="the disk is full"):
            replace_sidecar(small / "a.sig.json", b"x" * 100_000, small / "a.json")
        assert ((small / "a.sig.json").read_bytes(), names(small)) == (b"first", ["a.sig.json"])


def test_settle_and_make_folder_accept_what_is_there(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b" / "c")
    make_folder(tmp_path / "a" / "b" / "c")
    publish_file(tmp_path / "a" / "b" / "c" / "d.json", b"{}\n")
    settle(tmp_path / "a" / "b" / "c" / "d.json")
    settle(tmp_path / "a" / "b" / "c" / "d.json", tmp_path / "a")
    with pytest.raises(StorageError):
        settle(tmp_path / "a" / "missing.json")
