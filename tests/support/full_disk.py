"""A small disk of a service's own, which can be filled: a tmpfs in a mount namespace that ends with the service."""

import os
import subprocess
from pathlib import Path

import pytest

_MOUNTED = 'mount -t tmpfs -o size=$0,mode=0700 tmpfs "$1" && shift && exec "$@"'


def own_disk(folder: Path, mib: int) -> tuple[str, ...]:
    """The words before a command to which a folder is a disk of this size; or skip the test with the reason."""
    folder.mkdir()
    words = ("unshare", "-m", "--propagation", "private", "sh", "-c", _MOUNTED, f"{mib}m", str(folder))
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no disk of its own: {tried.stderr.strip()}")
    return words


class Disk:
    """The disk of a running service, seen from outside."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.folder = Path(f"/proc/{pid}/root{folder}")
        self._filler = self.folder / "filler"

    def fill(self, but_kib: int = 0) -> None:
        """Leave no room on it, or this much."""
        with self._filler.open("ab", buffering=0) as stream:
            for size in (1 << 16, 1 << 12):
                while True:
                    try:
                        written = stream.write(bytes(size))
                    except OSError:
                        break
                    if written < size:
                        break
            if but_kib:
                stream.truncate(max(0, os.fstat(stream.fileno()).st_size - but_kib * 1024))

    def clear(self) -> None:
        """There is room again."""
        self._filler.unlink()

    def files(self, below: str) -> list[str]:
        """What lies in one of its folders."""
        return sorted(path.name for path in (self.folder / below).iterdir())
