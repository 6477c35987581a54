"""Programs in a compiler's place that do what no build needs; each beside something honest of the same kind."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.process import in_child
from tests.support.sandboxes import NAMESPACED, QUICK, Place, as_nobody

from akf.routes.confine import tasks
from akf.routes.sandbox import LEVELS, Level, levels
from akf.routes.sandbox.limits import Bound

MARK = "akf-test-secret-7f3a"


@pytest.fixture(params=NAMESPACED)
def apart(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place with namespaces of its own."""
    return Place(tmp_path, request.param)


@pytest.fixture(params=LEVELS)
def any_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place at each level; Landlock and the filter hold where there are no namespaces."""
    return Place(tmp_path, request.param)


def test_an_honest_build_reads_its_sources_and_leaves_its_output(any_place: Place) -> None:
    (any_place.work / "src" / "text").write_text("hello")
    ended = any_place.sh(
        'tr a-z A-Z <src/text >"$TMPDIR/half" && cp "$TMPDIR/half" out/text && touch "$HOME/x" cache/y'
    )
    assert (ended.status, ended.text, ended.stopped) == (0, "", None)
    assert (any_place.out / "text").read_text() == "HELLO"


@pytest.mark.parametrize("what", ["home", "keys", "run", "other build"])
def test_nothing_of_the_user_can_be_read(any_place: Place, what: str, tmp_path: Path) -> None:
    """The home folder, role keys, run folders and other builds: not one byte and not one name."""
    folder = tmp_path / what
    folder.mkdir()
    (folder / "secret").write_text(MARK)
    ended = any_place.sh('cat "$1/secret"; ls "$1"; cp "$1/secret" out/', str(folder))
    assert ended.status != 0
    assert MARK not in ended.text
    assert "secret\n" not in ended.text.replace("/secret", "")
    assert not (any_place.out / "secret").exists()


def test_the_machines_processes_and_settings_are_not_there(apart: Place) -> None:
    ended = apart.sh("ls / /dev /etc")
    assert ended.status == 0
    names = set(ended.text.split())
    assert not names & {"proc", "sys", "home", "root", "tmp", "run", "var", "opt", "shm", "pts", "tty", "passwd"}


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "/", "/usr/bin", "/dev", "{work}/src"])  # noqa: S108
def test_nothing_outside_the_build_folder_can_be_written(any_place: Place, folder: str) -> None:
    name = f"akf-planted-{os.getpid()}"
    path = folder.replace("{work}", any_place.sandbox.place("work"))
    ended = any_place.sh('cp "$0" "$1/$2" 2>&1 || echo refused; (echo x >"$1/$2") && echo written', path, name)
    assert "written" not in ended.text
    assert not Path(path, name).exists()
    assert not (any_place.work / "src" / name).exists()


def test_a_tool_is_read_only(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    (tool / "bin").mkdir(parents=True)
    (tool / "bin" / "cc").write_text("#!/bin/sh\necho real\n")
    (tool / "bin" / "cc").chmod(0o755)
    for level in LEVELS:
        place = Place(tmp_path / level, level, [tool])
        ended = place.sh('"$1"; echo "#!/bin/sh" >"$1"; rm "$1"; mv "$1" "$1.old"', str(tool / "bin" / "cc"))
        assert ended.text.startswith("real\n")
        assert ended.status != 0
        assert (tool / "bin" / "cc").read_text() == "#!/bin/sh\necho real\n"


CONNECT = """
import socket, sys
kind, where = sys.argv[1:]
families = {"tcp": socket.AF_INET, "unix": socket.AF_UNIX, "abstract": socket.AF_UNIX, "netlink": socket.AF_NETLINK}
address = {"tcp": lambda: ("127.0.0.1", int(where)), "unix": lambda: where, "abstract": lambda: "\\0" + where,
           "netlink": lambda: (0, 0)}[kind]()
with socket.socket(families[kind], socket.SOCK_RAW if kind == "netlink" else socket.SOCK_STREAM) as s:
    s.bind(address) if kind == "netlink" else s.connect(address)
    print("REACHED")
"""


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Real listeners on this machine, and what reaches them."""
    tcp, unix, abstract = (socket.socket(family) for family in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX))
    tcp.bind(("127.0.0.1", 0))
    path = str(tmp_path / "s")
    name = f"akf-{os.getpid()}-{time.monotonic_ns()}"
    unix.bind(path)
    abstract.bind(f"\0{name}")
    for each in (tcp, unix, abstract):
        each.listen(8)
    yield {"tcp": str(tcp.getsockname()[1]), "unix": path, "abstract": name, "netlink": ""}
    for each in (tcp, unix, abstract):
        each.close()


@pytest.mark.parametrize("kind", ["tcp", "unix", "abstract", "netlink"])
def test_no_socket_reaches_anybody(any_place: Place, listeners: dict[str, str], kind: str) -> None:
    ended = any_place.python(CONNECT, kind, listeners[kind])
    assert ended.status == 1
    assert "REACHED" not in ended.text
    assert "PermissionError" in ended.text


@pytest.mark.parametrize("kind", ["tcp", "unix", "abstract", "netlink"])
def test_outside_the_sandbox_the_same_program_connects(listeners: dict[str, str], kind: str) -> None:
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    done = subprocess.run(
        [sys.executable, "-c", CONNECT, kind, listeners[kind]], capture_output=True, text=True, check=False
    )
    assert done.stdout == "REACHED\n", done.stderr


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for n in range(2000):
            open("out/beat", "a").write("x")
            time.sleep(0.01)
    os._exit(0)
os.wait()
time.sleep(0.1)
"""


def test_a_daemon_does_not_outlive_its_build(any_place: Place) -> None:
    """A double fork with a session of its own: when the command is over, nothing of it writes any more."""
    ended = any_place.python(DAEMON)
    assert ended.status == 0, ended.text
    size = (any_place.out / "beat").stat().st_size
    assert size > 0
    time.sleep(0.1)
    assert (any_place.out / "beat").stat().st_size == size


@pytest.mark.parametrize(
    "script",
    [
        "while :; do head -c 4000000 /dev/zero >out/f$((i = i + 1)); done",
        "while :; do head -c 4000000 /dev/zero >tmp/f$((i = i + 1)); done",
        "while :; do : >home/f$((i = i + 1)); done",
        "cat /dev/zero >out/one; sleep 20",
        "cat /dev/zero",
        "exec 7>out/a 8>out/b 9>out/c; rm out/*; for n in 7 8 9; do head -c 12000000 /dev/zero >&$n; done; sleep 20",
        "cd cache; while :; do mkdir d && cd d || exit; done",
    ],
    ids=["outputs", "temporaries", "many files", "one file", "what it says", "files without a name", "levels"],
)
def test_a_full_disk_is_named(any_place: Place, script: str) -> None:
    ended = any_place.sh(script)
    assert ended.stopped == "disk", ended


def test_memory_without_end_is_named(any_place: Place) -> None:
    ended = any_place.python("a = []\nwhile True: a.append(bytearray(b'x' * 4000000))")
    assert ended.stopped == "memory", ended


def test_memory_of_many_processes_counts_together(apart: Place) -> None:
    one = "import time; a = b'x' * 60_000_000; time.sleep(20)"
    ended = apart.python(
        f"import os\nfor _ in range(8):\n if os.fork() == 0:\n  exec({one!r})\n  os._exit(0)\nos.wait()"
    )
    assert ended.stopped == "memory", ended


def test_memory_that_nobody_maps_cannot_be_had(any_place: Place) -> None:
    ended = any_place.python("import os; os.memfd_create('x')")
    assert "PermissionError" in ended.text


def test_memory_that_is_shared_counts_once(apart: Place) -> None:
    """Six processes that share 100 MB stay below 256 MB: no false alarm."""
    ended = apart.python(
        "import os, time\na = b'x' * 100_000_000\nfor _ in range(6):\n if os.fork() == 0:\n  time.sleep(0.3)\n"
        "  os._exit(0)\nfor _ in range(6): os.wait()"
    )
    assert (ended.status, ended.stopped) == (0, None), ended


def test_processes_without_end_are_named(apart: Place) -> None:
    ended = apart.sh("while :; do sleep 60 & done", limits=QUICK._replace(wall_s=60))
    assert ended.stopped == "processes", ended


BOMB = "f() { f | f & f; }; f"
TASKS = """
import threading
threading.stack_size(65536)
hold, made = threading.Event(), 0
try:
    while made < 2000:
        threading.Thread(target=hold.wait, daemon=True).start()
        made += 1
except RuntimeError:
    print(made, flush=True)
import os
os._exit(0)
"""
MOST = 301 + 4 * QUICK.processes


def test_processes_that_double_without_end_are_named(apart: Place) -> None:
    """Where the kernel bounds them they meet its bound; elsewhere they take all of the machine until they are seen."""
    if levels.bound(apart.sandbox.isolation) is None:
        pytest.skip("this kernel bounds no tree's tasks: soak tests watch what happens then")
    ended = apart.sh(BOMB, limits=QUICK._replace(wall_s=60))
    assert ended.stopped == "processes", ended


@pytest.mark.soak
def test_processes_that_double_are_named_where_nothing_bounds_them(
    apart: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "bound", lambda _: None)
    ended = apart.sh(BOMB, limits=QUICK._replace(wall_s=60))
    assert ended.stopped == "processes", ended


def test_the_kernel_refuses_what_comes_before_anybody_looks(apart: Place) -> None:
    """Threads are no processes, so that nothing is watched here: the bound is the kernel's alone."""
    if levels.bound(apart.sandbox.isolation) is None:
        pytest.skip("this kernel bounds no tree's tasks")
    ended = apart.python(TASKS)
    assert (ended.status, ended.stopped) == (0, None), ended
    assert QUICK.processes < int(ended.text) < MOST


@pytest.mark.parametrize("means", ["pid_namespace", "user_namespace"])
@pytest.mark.parametrize("level", NAMESPACED)
def test_an_unprivileged_users_tasks_are_bounded_by_either_means(level: Level, means: Bound) -> None:
    if os.geteuid() != 0:
        pytest.skip("this test drops root; without root all tests run unprivileged")
    able = {"pid_namespace": tasks.pid_max_is_the_namespaces(), "user_namespace": os.uname().release >= "5.14"}
    if not able[means]:
        pytest.skip(f"this kernel has no bound of a {means}")
    status, text, stopped = as_nobody(level, f"exec /usr/bin/python3 -I -S -c '{TASKS}'", means)
    assert (status, stopped) == (0, None), text
    assert QUICK.processes < int(text) < MOST


def test_a_build_that_says_it_cannot_fork_is_stopped_by_the_bound_only_where_it_failed(apart: Place) -> None:
    """The words alone are no limit: what a command prints while it succeeds is its own."""
    assert apart.sh("echo 'sh: Cannot fork'").stopped is None
    assert apart.sh("echo 'cannot open a file'; exit 2").stopped is None


def test_processes_one_after_another_never_meet_the_bound(apart: Place) -> None:
    """Numbers are given again: a build of many short commands is no bomb."""
    ended = apart.sh(f"i=0; while [ $i -lt {2 * MOST} ]; do /bin/true || exit 3; i=$((i + 1)); done; echo $i")
    assert (ended.status, ended.text, ended.stopped) == (0, f"{2 * MOST}\n", None)


def test_the_machines_own_bound_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 6.14 the file is the whole machine's."""
    with monkeypatch.context() as older:
        older.setattr(tasks, "PID_MAX", str(tmp_path / "pid_max"))
        older.setattr(tasks, "_OWN_PID_MAX", (1000, 0))
        (tmp_path / "pid_max").write_text("4194304")
        assert not tasks.pid_max_is_the_namespaces()
        with pytest.raises(OSError, match="whole machine"):
            tasks.bound(1)
        assert (tmp_path / "pid_max").read_text() == "4194304"
    before = Path("/proc/sys/kernel/pid_max").read_text()
    for level in NAMESPACED:
        Place(tmp_path / level, level).sh("true")
    assert Path("/proc/sys/kernel/pid_max").read_text() == before


def test_time_without_end_is_named(any_place: Place) -> None:
    ended = any_place.sh("trap '' TERM; sleep 30 & sleep 30", limits=QUICK._replace(wall_s=0.3))
    assert ended.stopped == "time"


def test_processor_time_without_end_is_named(tmp_path: Path) -> None:
    ended = Place(tmp_path, "bwrap").sh("while :; do :; done", limits=QUICK._replace(cpu_s=1))
    assert ended.stopped == "time"


def test_signals_reach_nobody_else(any_place: Place) -> None:
    """`kill -9 -1` and signals to whoever started the build; this test's own process is still there afterwards."""
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        any_place.sh('kill -USR1 "$1" "$PPID"; kill -9 -1', str(os.getpid()))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not seen
    assert any_place.sh("echo alive").text == "alive\n"


TRACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for pid in (int(sys.argv[1]), os.getppid(), 1):
    for request in (16, 0x4206):
        print(libc.ptrace(request, pid, 0, 0), ctypes.get_errno())
"""


def test_nobody_is_traced(any_place: Place) -> None:
    ended = any_place.python(TRACE, str(os.getpid()))
    assert set(ended.text.splitlines()) == {"-1 1"}


def test_no_descriptor_is_inherited(any_place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(MARK)
    handle = os.open(secret, os.O_RDONLY)
    os.set_inheritable(handle, True)
    try:
        ended = any_place.python(
            "import os\nfor n in range(3, 1024):\n try: print(n, os.fstat(n), os.read(n, 9))\n except OSError: pass"
        )
    finally:
        os.close(handle)
    assert (ended.status, ended.text) == (0, "")


def test_there_is_no_input_and_no_terminal(any_place: Place) -> None:
    ended = any_place.python(
        "import fcntl, os, sys, termios\nprint(repr(sys.stdin.read()))\n"
        "try: os.open('/dev/tty', os.O_RDWR)\nexcept OSError: print('no terminal')\n"
        "try: fcntl.ioctl(0, termios.TIOCSTI, b'x')\nexcept PermissionError: print('nothing is typed')\n"
        "print(os.getsid(0) == os.getpid() or os.getsid(0))"
    )
    assert ended.text.splitlines()[:3] == ["''", "no terminal", "nothing is typed"]


PRIVILEGE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for what, call in {
    "user namespace": lambda: libc.unshare(0x10000000),
    "clone": lambda: libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x10000011, 0, 0, 0, 0),
    "mount": lambda: libc.mount(b"none", b"/", None, 4096 | 32, None),
    "chroot": lambda: libc.chroot(b"out"),
    "keyring": lambda: libc.syscall(250 if os.uname().machine == "x86_64" else 219, 0, -4, 1),
    "device": lambda: libc.mknod(b"out/device", 0o060600, 0x0801),
}.items():
    print(what, call())
"""


def test_no_privilege_is_to_be_had(apart: Place) -> None:
    ended = apart.python(PRIVILEGE)
    assert ended.status == 0, ended.text
    assert {line.rsplit(" ", 1)[1] for line in ended.text.splitlines()} == {"-1"}
    assert not (apart.out / "device").exists()


def test_a_chroot_is_not_a_way_out(apart: Place) -> None:
    """Where a root folder is only changed, the old one is still there; here it was taken away."""
    ended = apart.sh("cd /; for i in 1 2 3 4 5 6 7 8; do cd ..; done; ls; mkdir out/x; chroot out/x /bin/true")
    assert "home" not in ended.text.split()
    assert ended.status != 0


def test_the_environment_is_what_was_given(any_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKF_TEST_SECRET", MARK)
    ended = any_place.run("/usr/bin/env")
    assert set(ended.text.split()) == {
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME={work}/home",
        "TMPDIR={work}/tmp",
    }


@pytest.mark.parametrize("level", NAMESPACED)
def test_an_unprivileged_user_has_the_same_guarantees(level: Level, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this test drops root; without root all tests run unprivileged")
    (tmp_path / "secret").write_text(MARK)
    script = f"echo ok >out/x; cat out/x; cat {tmp_path}/secret; echo x >src/y; ls /proc /home; exec sleep 0"
    status, text, stopped = as_nobody(level, script)
    assert status != -1, text
    assert (status, stopped) == (0, None)
    assert text.startswith("ok\n")
    assert MARK not in text
    assert text.count("No such file or directory") >= 3
    assert "Read-only file system" in text


def test_a_limit_stops_an_unprivileged_users_build_too() -> None:
    if os.geteuid() != 0:
        pytest.skip("this test drops root; without root all tests run unprivileged")
    for level in NAMESPACED:
        _, text, stopped = as_nobody(level, "while :; do head -c 4000000 /dev/zero >out/f$((i = i + 1)); done")
        assert stopped == "disk", text


def test_builds_side_by_side_do_not_meet(tmp_path: Path) -> None:
    """Ten at once: each sees its own source and itself alone."""
    for level in NAMESPACED:
        places = [Place(tmp_path / f"{level}{n}", level) for n in range(10)]
        texts: dict[int, str] = {}

        def work(n: int, place: Place, texts: dict[int, str] = texts) -> None:
            (place.work / "src" / "me").write_text(f"{n}")
            texts[n] = place.sh('cat src/me; cp src/me out/me; echo " $$"').text

        threads = [threading.Thread(target=work, args=each) for each in enumerate(places)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {n: text.split()[0] for n, text in texts.items()} == {n: str(n) for n in range(10)}
        assert all((place.out / "me").read_text() == str(n) for n, place in enumerate(places))


@pytest.mark.parametrize("level", NAMESPACED)
def test_a_killed_builder_takes_its_build_along(level: Level, tmp_path: Path) -> None:
    """kill -9 of the process that builds, at moments from the start of the sandbox on: nothing of the build is left.

    Everything of a build names how long it sleeps, and is found by that.
    """
    Place(tmp_path / "probe", level)
    for n, delay in enumerate((0.0, 0.004, 0.012, 0.03, 0.1)):
        place = Place(tmp_path / f"{n}", level)
        marker = f"6{os.getpid():09d}{NAMESPACED.index(level)}{n}"
        _kill_after(place, marker, delay)
        until = time.monotonic() + 10
        while (left := _running(marker)) and time.monotonic() < until:
            time.sleep(0.01)
        assert not left, (delay, left)


def _kill_after(place: Place, marker: str, delay: float) -> None:
    from tests.support.process import Child  # noqa: PLC0415

    child = Child(lambda: place.sh("setsid sleep $1 & exec sleep $1", marker).status)
    time.sleep(delay)
    child.kill()


def _running(marker: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if marker.encode() in words:
            found.append(words.decode(errors="replace"))
    return found


def test_the_builders_own_thread_may_be_any(tmp_path: Path) -> None:
    """The end of the starter is watched by the kernel per thread: one that waits for its build is the right one."""
    place = Place(tmp_path, "bwrap")
    assert in_child(lambda: place.sh("echo fine").text) == "fine\n"
