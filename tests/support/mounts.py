"""Small file systems of their own, where mounting is permitted."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, kind: str, options: str) -> Iterator[Path]:
    """Mount a file system without a device, or skip the test with the reason."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", kind, "-o", options, kind, str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"mounting {kind} ({options}) is not permitted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    """Change the options of a mounted file system."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
