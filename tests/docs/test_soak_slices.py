"""The slices of the long suites: every test is in one of them, and in one only unless it divides its points itself."""

from __future__ import annotations

import types

import pytest
from tests.support import soak


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_every_test_is_in_one_slice(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module, names = types.ModuleType("plain"), [f"tests/a.py::test[{number}]" for number in range(200)]
    found: list[str] = []
    for part in range(parts):
        monkeypatch.setenv(soak.VARIABLE, f"{part}/{parts}")
        mine = [name for name in names if soak.taken(name, module)]
        assert len(mine) > 100 / parts
        found += mine
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize("held", [soak, soak.whole, soak.part])
def test_one_that_divides_points_is_in_every_slice(held: object, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("divides")
    module.__dict__["held"] = held
    for part in range(8):
        monkeypatch.setenv(soak.VARIABLE, f"{part}/8")
        assert soak.taken("tests/b.py::test", module)


def test_without_a_slice_everything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(soak.VARIABLE, raising=False)
    assert soak.taken("tests/a.py::test", types.ModuleType("plain"))
