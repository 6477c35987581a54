"""Objects that g++ makes here, once a session."""

from __future__ import annotations

import pytest
from tests.support.compiled import Objects


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory, compiler: None) -> Objects:
    """What g++ makes."""
    del compiler
    return Objects(tmp_path_factory.mktemp("objects"))
