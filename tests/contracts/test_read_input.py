"""Only regular files are read, without waiting, within the size limit; every refusal says why."""

import errno
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.process import NOBODY, in_child

from akf.contracts.canonical import digest_file
from akf.contracts.limits import MAX_FILE_BYTES
from akf.contracts.loader import open_regular, parse, read_input
from akf.contracts.problems import AkfError, InvalidError, StorageError

AT_ONCE_S = 10.0  # on a busy machine; waiting for a writer takes for ever


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < AT_ONCE_S


def refusal(path: Path | str) -> AkfError:
    with pytest.raises(AkfError) as caught:
        read_input(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    return caught.value


def code(path: Path | str) -> str:
    error = refusal(path)
    assert isinstance(error, InvalidError)
    return error.problems[0].code


def test_reads_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b'{"a": 1}\n')
    assert read_input(file) == b'{"a": 1}\n'
    assert read_input(str(file)) == b'{"a": 1}\n'


def test_follows_links_to_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{}")
    (tmp_path / "b.json").symlink_to("a.json")
    assert read_input(tmp_path / "b.json") == b"{}"


def test_reads_an_empty_file_so_that_parsing_can_say_so(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    assert read_input(tmp_path / "a.json") == b""


def test_reads_files_whose_size_the_system_does_not_know() -> None:
    assert Path("/proc/self/status").stat().st_size == 0
    assert b"Name:" in read_input("/proc/self/status")


def test_missing(tmp_path: Path) -> None:
    assert code(tmp_path / "absent.json") == "AKF-F001"
    (tmp_path / "dangling").symlink_to("absent.json")
    assert code(tmp_path / "dangling") == "AKF-F001"
    (tmp_path / "file").touch()
    assert code(tmp_path / "file" / "below") == "AKF-F001"


def test_directory(tmp_path: Path) -> None:
    problem = refusal(tmp_path).problems[0]
    assert (problem.code, problem.found) == ("AKF-F002", "a directory")


def test_named_pipe_without_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    problem = refusal(tmp_path / "pipe").problems[0]
    assert (problem.code, problem.found) == ("AKF-F002", "a named pipe")


def test_a_file_that_becomes_a_pipe_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    regular = os.stat(tmp_path / "file")  # noqa: PTH116 - the function that is replaced
    monkeypatch.setattr(os, "stat", lambda _: regular)

    def too_long(*_: object) -> None:
        raise TimeoutError("opening the pipe waits for a writer")

    previous = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, AT_ONCE_S / 2)
    try:
        assert code(tmp_path / "pipe") == "AKF-F002"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_socket(tmp_path: Path) -> None:
    os.chdir(tmp_path)  # the name of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        assert code("socket") == "AKF-F002"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_device(device: str) -> None:
    assert code(device) == "AKF-F002"


def test_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert code(tmp_path / "a") == "AKF-F003"


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    assert code(str(tmp_path) + "/a\0b") == "AKF-F007"
    assert code(str(tmp_path) + "/" + "x" * 300) == "AKF-F007"
    assert code(str(tmp_path) + "/x" * 5_000) == "AKF-F007"


def test_largest_file(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_bytes(b'{"a":"' + b"x" * (MAX_FILE_BYTES - 8) + b'"}')
    assert file.stat().st_size == MAX_FILE_BYTES
    assert parse(read_input(file), "large.json").value["a"][:1] == "x"


def test_one_byte_too_large(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    assert code(file) == "AKF-F006"
    with pytest.raises(InvalidError) as caught:
        parse(file.read_bytes(), "large.json")
    assert caught.value.problems[0].code == "AKF-F006"


def test_a_terabyte_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as stream:
        stream.truncate(1 << 40)
    problem = refusal(tmp_path / "hole").problems[0]
    assert (problem.code, problem.expected, problem.found) == ("AKF-F006", MAX_FILE_BYTES, 1 << 40)


def test_a_file_that_grows_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file claims about its size is not trusted: reading stops one byte behind the limit."""
    (tmp_path / "growing").write_bytes(b"x" * 100)
    asked: list[int] = []

    def endless(_: int, size: int) -> bytes:
        asked.append(size)
        return b"x" * size

    monkeypatch.setattr(os, "read", endless)
    assert code(tmp_path / "growing") == "AKF-F006"
    assert sum(asked) == MAX_FILE_BYTES + 1


def test_no_permission(tmp_path: Path) -> None:
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.owner() == Path.home().owner() and str(folder).startswith(str(tmp_path.parents[1])):
            folder.chmod(0o755)
    file = tmp_path / "secret.json"
    file.write_bytes(b"{}")
    file.chmod(0)

    def attempt() -> list[object]:
        try:
            read_input(file)
        except StorageError as error:
            return [error.exit_code, error.problems[0].code]
        return []

    uid = NOBODY if os.geteuid() == 0 else None
    assert in_child(attempt, uid=uid) == [7, "AKF-F004"]


def test_an_error_of_the_device_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"{}")

    def broken(_: int, __: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    error = refusal(tmp_path / "a")
    assert isinstance(error, StorageError)
    assert error.problems[0].code == "AKF-F005"


def test_descriptors_are_closed_and_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"{}")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (tmp_path / "a", tmp_path, "/dev/null"):
        try:
            read_input(path)
        except AkfError:
            continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    descriptor = open_regular(tmp_path / "a")
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_digest_of_a_file_refuses_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert digest_file(tmp_path / "a") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(InvalidError):
        digest_file(tmp_path)
    with pytest.raises(InvalidError):
        digest_file("/dev/zero")
