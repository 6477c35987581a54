"""What a child cannot do to its parent, and what becomes of a parent that is ended all the same."""

from __future__ import annotations

import os
import signal
import zipfile
from pathlib import Path

import pytest

from akf.contracts.problems import BlockedError
from akf.evaluate.program import Program, run
from akf.harness.memory import Arena


@pytest.mark.parametrize("size", [0, 4096, 1 << 20])
def test_the_arena_keeps_its_size(size: int) -> None:
    """A mapping beyond the end of its file would end the parent by SIGBUS."""
    arena = Arena(8192)
    with pytest.raises(PermissionError):
        os.ftruncate(arena.fd, size)
    arena.poison(0, arena.size)
    arena.close()


@pytest.mark.parametrize("number", [signal.SIGBUS, signal.SIGKILL, 40])
def test_a_harness_that_a_signal_ends_blocks(tmp_path: Path, number: int) -> None:
    program = tmp_path / "harness.pyz"
    with zipfile.ZipFile(program, "w") as archive:
        archive.writestr("__main__.py", f"import os\nos.kill(os.getpid(), {int(number)})\n")
    with pytest.raises(BlockedError) as caught:
        run(Program(program, ""), "measure", {"artifacts": {"candidate": {}}}, tmp_path, 20)
    assert caught.value.problems[0].code == "AKF-E103"
