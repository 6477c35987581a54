"""The routes of PyPTO with the real package: its graph, and that its simulation computes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support import toolchains

from akf.contracts.problems import PreconditionError
from akf.contracts.shipped import shipped
from akf.evaluate.emulate import emulate

KERNELS = shipped("examples") / "kernels" / "pypto_tensor_ptoas"
SIZES = {
    "rmsnorm": ("symbol.T=8", "symbol.H=4096", "symbol.eps=1e-06"),
    "softmax": ("symbol.M=16", "symbol.N=1024"),
    "matmul": ("symbol.M=128", "symbol.N=128", "symbol.K=128"),
}


@pytest.fixture(autouse=True)
def real(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    del state
    monkeypatch.setenv("AKF_TOOLCHAINS", toolchains.folder_with("pypto"))


def made(source: Path, name: str, out: Path, route: str = "pypto_tensor_ptoas") -> dict[str, Any]:
    return toolchains.build(source, route, "ascend950pr_9599", out, *SIZES[name]).document


@pytest.mark.soak
@pytest.mark.parametrize("name", SIZES)
def test_a_program_becomes_a_graph_and_reproduces(name: str, tmp_path: Path) -> None:
    answer = made(KERNELS / name, name, tmp_path / "out")
    assert (answer["outcome"], answer["stage"], answer["reproducible"]) == ("built", "frontend_ir", True)
    assert (answer["stopped"]["code"], answer["stopped"]["tool"]) == ("TOOLCHAIN_MISSING", "ptoas")
    assert json.loads((tmp_path / "out" / "build" / "candidate" / "program.json").read_bytes())


@pytest.mark.soak
def test_that_nothing_was_computed_is_said_and_nothing_is_compared(tmp_path: Path) -> None:
    answer = made(KERNELS / "softmax", "softmax", tmp_path / "out")
    assert any("computes no results" in note for note in answer["notes"])
    with pytest.raises(PreconditionError):
        emulate(tmp_path / "out", shipped("examples") / "tasks" / "ascend" / "softmax")


@pytest.mark.soak
def test_the_other_route_has_the_same_graph_and_stops_at_its_own_tool(tmp_path: Path) -> None:
    one = made(KERNELS / "matmul", "matmul", tmp_path / "one")
    two = made(KERNELS / "matmul", "matmul", tmp_path / "two", "pypto_pro_cce")
    assert one["reproduction"]["first"] == two["reproduction"]["first"]
    assert two["stopped"]["tool"] == "bisheng"


@pytest.mark.soak
def test_a_program_that_is_wrong_is_refused(tmp_path: Path) -> None:
    shutil.copytree(KERNELS / "softmax", tmp_path / "src")
    file = tmp_path / "src" / "kernel.py"
    file.write_text(file.read_text().replace("pypto.exp(", "pypto.expp("))
    answer = made(tmp_path / "src", "softmax", tmp_path / "out")
    assert (answer["outcome"], answer["stage"], answer["stopped"]["code"]) == ("failed", "source", "SOURCE_REJECTED")
    assert any("expp" in reason for reason in answer["reasons"])
