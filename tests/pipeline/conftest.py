"""Every test here has keys and secrets of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_state(state: Path) -> Path:
    return state
