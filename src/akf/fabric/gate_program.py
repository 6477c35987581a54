"""The program of an AKF package: it runs the harness that lies beside it, and says how that ended and where.

It is packed, never imported: Python 3.9 and newer, the standard library.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Run the harness once; what it leaves and how it ended are the package's artifacts."""
    Path("out").mkdir()
    command = Path("command").read_text(encoding="ascii")
    argv = [sys.executable, "-I", "-B", "harness.pyz", command, "request", "out"]
    env = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    ended = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    machine = {
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }
    said = {"status": ended.returncode, "errors": ended.stderr.decode("utf-8", "replace")[-8000:], "machine": machine}
    Path("ended.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main()
