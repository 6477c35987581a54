"""Runs whose Capture holds whole steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import runs


@pytest.fixture(autouse=True)
def _own_state(state: Path) -> Path:
    return state


@pytest.fixture(scope="session")
def traced(shared: runs.Shared, ready: runs.Ready) -> runs.Ready:
    """A ready Suite with such a Capture; read it, do not change it."""
    return runs.Ready(shared.make("traced", lambda to: runs.captured(ready, to / "suite")) / "suite", ready.keys)


@pytest.fixture
def traced_run(shared: runs.Shared, traced: runs.Ready, tmp_path: Path) -> Path:
    """A run of it without a Task."""
    return runs.clone(shared.make("traced-run", lambda to: runs.new_run(traced, to)) / "run", tmp_path / "run")
