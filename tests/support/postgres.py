"""A PostgreSQL of a test's own: a new cluster in a folder of its own, reached by a Unix socket, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.support.services import until

_PLACES = (*os.get_exec_path(), *(str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"))))


def program(name: str) -> str:
    """One of PostgreSQL's programs, or a skip that names it."""
    found = shutil.which(name, path=os.pathsep.join(_PLACES))
    if found is None:
        pytest.skip(f"needs {name} of PostgreSQL")
    return os.path.realpath(found)


def _as_nobody(words: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *words] if os.geteuid() == 0 else words


@contextmanager
def cluster() -> Iterator[str]:
    """The address of an empty database."""
    initdb = program("initdb")
    postgres = str(Path(initdb).with_name("postgres"))
    folder = Path(tempfile.mkdtemp(prefix="akf-pg-"))
    process = None
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        data = folder / "data"
        made = ["-A", "trust", "-U", "akf", "--no-sync", "--no-locale", "-E", "UTF8", "-D", str(data)]
        subprocess.run(_as_nobody([initdb, *made]), check=True, capture_output=True, cwd="/", timeout=120)
        words = [postgres, "-D", str(data), "-k", str(folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(_as_nobody(words), stdout=log, stderr=log, cwd="/")
        until(lambda: "ready to accept connections" in (folder / "log").read_text(), within_s=60)
        yield f"postgresql://akf@/postgres?host={quote(str(folder), safe='')}"
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)
