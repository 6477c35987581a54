"""A wall clock that jumps, for one process: a small library that is preloaded into it."""

import shutil
import subprocess
from pathlib import Path

import pytest


class WallClock:
    """The wall clock of the processes that are started with `env`."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("no C compiler for the clock")
        library, self._offset = folder / "clock.so", folder / "offset"
        self._offset.write_text("0")
        source = Path(__file__).with_name("clock.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self.env = {"LD_PRELOAD": str(library), "AKF_TEST_CLOCK": str(self._offset)}

    def jump(self, seconds: int) -> None:
        """From now on the clock is off by so much."""
        fresh = self._offset.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(self._offset)
