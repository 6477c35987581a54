"""What a device's own tool prints: started without a shell, bounded in time and size."""

from __future__ import annotations

import os
import shutil
import subprocess

MAX_BYTES = 1024 * 1024
TIMEOUT_S = 60.0
_KEPT = ("PATH", "LD_LIBRARY_PATH")


def answer(program: str, *arguments: str) -> str | None:
    """The text, or None when there is no such program on PATH or it fails."""
    path = shutil.which(program)
    if path is None:
        return None
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        done = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, "LANG": "C", "LC_ALL": "C"},
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[:MAX_BYTES].decode("utf-8", "replace") if done.returncode == 0 else None
