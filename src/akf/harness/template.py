"""The parent's handle of the template: a process with torch imported, from which every python child is forked.

Invariants:
- It is started once per command, before anything untrusted runs, and never loads a candidate.
- Its environment is an allow-list; libraries below torch get the thread count of the request and sleep when idle.
- Without torch or the device the command is refused with what is missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from typing import Any, Optional

from .outcome import FRAMEWORK_MISSING, HarnessError
from .sources import template_command

LIVE: set[int] = set()
"""Processes that were started on purpose; a child of ours that is not among them was left behind by one of them."""

_PR_SET_CHILD_SUBREAPER = 36
_PACKET = 1 << 16
_START_S = 180.0
_PASSED_ON = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_HOME_PATH")
_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Forked:
    """A child that was forked for this process, with the calls of `subprocess.Popen` that are needed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: Optional[int] = None

    def poll(self) -> Optional[int]:
        """How it ended, or None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.returncode = 0
                return 0
            if pid:
                signalled = os.WIFSIGNALED(status)
                self.returncode = -os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """How it ended.

        Raises:
            subprocess.TimeoutExpired: it runs on.
        """
        deadline, pause = time.monotonic() + timeout, 1e-4
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired([], timeout)
            time.sleep(pause)
            pause = min(0.01, pause * 2)
        return int(self.returncode or 0)

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Template:
    """A running template."""

    def __init__(self, device: str, threads: int) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = mine
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {**dict.fromkeys(_POOLS, str(threads)), "OMP_WAIT_POLICY": "passive", "LANG": "C.UTF-8"}
        with theirs:
            self._process = subprocess.Popen(
                template_command(theirs.fileno()),
                env=environment,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        LIVE.add(self._process.pid)
        mine.settimeout(_START_S)
        try:
            mine.send(json.dumps({"device": device, "threads": threads}).encode())
            self.facts: dict[str, Any] = json.loads(mine.recv(_PACKET) or b"{}")
        except (OSError, ValueError) as error:
            self.close()
            raise HarnessError(FRAMEWORK_MISSING, f"the process that imports torch failed: {error}", 6) from error
        if "missing" in self.facts or "torch" not in self.facts:
            self.close()
            raise HarnessError(FRAMEWORK_MISSING, str(self.facts.get("missing", "torch does not import")), 6)

    def fork(self, fds: list[int]) -> Forked:
        """A pristine child of ours with these descriptors.

        Raises:
            HarnessError: the template cannot fork.
        """
        try:
            socket.send_fds(self._socket, [b"fork"], fds)
            pid = int(self._socket.recv(_PACKET) or b"0")
        except (OSError, ValueError) as error:
            raise HarnessError(FRAMEWORK_MISSING, f"no child can be forked: {error}", 6) from error
        if pid == 0:
            raise HarnessError(FRAMEWORK_MISSING, "no child can be forked", 6)
        return Forked(pid)

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        LIVE.discard(self._process.pid)
