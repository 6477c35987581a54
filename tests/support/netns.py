"""Two machines in one: this thread in a network of its own, a second one beside it, and a link that can be cut.

Nothing of it has a name, and nothing outlives the process that made it: the second network ends with the pipe of the
process that holds it, and with the network go both ends of the link.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

HERE, THERE = "10.77.0.1", "10.77.0.2"
_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Link:
    """The link between this network and the other one."""

    def __init__(self, holder: int) -> None:
        self.there = ("nsenter", f"--net=/proc/{holder}/ns/net")
        """The words before a command that runs in the other network."""

    def cut(self) -> None:
        """From now on nothing passes."""
        _ip("link", "set", "here", "down")

    def mend(self) -> None:
        """It passes again."""
        _ip("link", "set", "here", "up")


@contextmanager
def two_networks() -> Iterator[Link]:
    """Be in a network of its own for a block, beside another one; or skip the test with the reason.

    Whatever this thread starts meanwhile, threads and processes, is in that network too.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.unshare(_NEWNET):
            pytest.skip(f"no network of its own: {os.strerror(ctypes.get_errno())}")
        try:
            with subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
                assert holder.stdin is not None
                assert holder.stdout is not None
                holder.stdin.write(b"x")
                holder.stdin.flush()
                holder.stdout.read(1)  # it is there
                yield _joined(holder.pid)
                holder.stdin.close()
        finally:
            if _libc.setns(home, _NEWNET):
                raise OSError(ctypes.get_errno(), "this thread does not come back to its network")
    finally:
        os.close(home)


def _joined(holder: int) -> Link:
    link = Link(holder)
    try:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(holder))
        _ip("addr", "add", f"{HERE}/24", "dev", "here")
        for words in (("link", "set", "lo", "up"), ("addr", "add", f"{THERE}/24", "dev", "there")):
            subprocess.run([*link.there, "ip", *words], check=True, capture_output=True)
        subprocess.run([*link.there, "ip", "link", "set", "there", "up"], check=True, capture_output=True)
        link.mend()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no link between two networks: {getattr(error, 'stderr', b'') or error}")
    return link


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
