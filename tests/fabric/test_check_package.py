"""The package of a candidate and its reference, run as a worker runs it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.services import GOOD, REFERENCE, WRONG

from akf.fabric.package import Content, packed

pytest.importorskip("numpy", reason="references are written in it")
TORCH = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.line = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.line(x))


def get_inputs():
    return [torch.rand(4, 8)]


def get_init_inputs():
    return [8]
"""
CANDIDATES = {
    "good": (GOOD, 0, "ok"),
    "wrong": (WRONG, 1, "candidate_failed"),
    "ends_at_once": ("import os\nos._exit(0)\n", 1, "candidate_failed"),
    "ends_well": ("import sys\nsys.exit(0)\n", 1, "candidate_failed"),
    "raises": ("class ModelNew:\n    def __call__(self, x):\n        raise ValueError\n", 1, "candidate_failed"),
    "is_no_python": ("def (", 1, "candidate_failed"),
    "other_shape": ("class ModelNew:\n    def __call__(self, x):\n        return x[:1]\n", 1, "candidate_failed"),
    "patches_the_comparison": (
        "import check_program\ncheck_program.compared = lambda *a: ''\n" + WRONG, 1, "candidate_failed",
    ),
    "leaves_a_pickle": (
        "import os, pickle\nopen('check_outputs.bin', 'wb').write(pickle.dumps([[1]]))\nos._exit(0)\n",
        1, "candidate_failed",
    ),
    "changes_its_input": (
        "class ModelNew:\n    def __call__(self, x):\n        x[x < 0] = 0\n        return x\n", 0, "ok",
    ),
}  # fmt: skip

QUICK = ("good", "wrong", "ends_at_once", "patches_the_comparison")


def content(candidate: str, reference: str = REFERENCE, framework: str = "numpy", dsl: str = "cpp") -> Content:
    return Content("relu", reference, candidate, "cpu", "x86_64", dsl, framework)


def run(folder: Path, one: Content, script: str = "verify_relu.py") -> tuple[int, dict[str, Any]]:
    with tarfile.open(fileobj=io.BytesIO(packed(one, 0, run_times=3, warmup_times=1))) as tar:
        tar.extractall(folder, filter="data")
    done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, check=False, timeout=120)
    result = folder / "check_result.json"
    return done.returncode, json.loads(result.read_text()) if result.exists() else {}


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.soak) for each in CANDIDATES]
)
def test_candidates(name: str, tmp_path: Path) -> None:
    source, status, outcome = CANDIDATES[name]
    found = run(tmp_path, content(source))
    assert (found[0], found[1]["outcome"]) == (status, outcome), found


def test_both_are_timed(tmp_path: Path) -> None:
    for which, name in (("base", "base"), ("generation", "generation")):
        assert run(tmp_path, content(GOOD), f"profile_relu_{which}.py")[0] == 0
        result = json.loads((tmp_path / f"{name}_profile_result.json").read_text())
        assert len(result["block_times_us"]) == 3
        assert 0 < min(result["block_times_us"]) <= result["avg_time_us"] <= max(result["block_times_us"])


def test_a_reference_that_does_not_run_is_not_the_candidate_s_fault(tmp_path: Path) -> None:
    found = run(tmp_path, content(GOOD, REFERENCE.replace("numpy.maximum", "numpy.nothing")))
    assert found[1]["outcome"] == "reference_failed"


def test_what_the_machine_lacks_is_said(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    found = run(tmp_path, content(WRONG, TORCH, "torch", "torch"))
    assert found[1]["outcome"] == "infra_error"
    assert "no torch here" in found[1]["detail"]


def test_torch_with_weights_from_the_same_seed(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the reference is written in it")
    candidate = TORCH.replace("class Model(", "class ModelNew(")
    assert run(tmp_path, content(candidate, TORCH, "torch", "torch")) == (
        0, {"outcome": "ok", "detail": "all results agree"},
    )  # fmt: skip
    wrong = candidate.replace("torch.relu", "")
    assert run(tmp_path, content(wrong, TORCH, "torch", "torch"))[1]["outcome"] == "candidate_failed"


def test_the_same_inputs_give_the_same_bytes_and_the_device_is_inside() -> None:
    one = content(GOOD)._replace(backend="cuda", dsl="triton_cuda")
    assert packed(one, 3) == packed(one, 3)
    assert packed(one, 3) != packed(one, 4)
    with tarfile.open(fileobj=io.BytesIO(packed(one, 3))) as tar:
        assert tar.getnames() == [
            "check_program.py", "profile_relu_base.py", "profile_relu_generation.py", "relu_numpy.py",
            "relu_triton_cuda_impl.py", "verify_relu.py",
        ]  # fmt: skip


def test_a_name_with_a_quote_stays_data(tmp_path: Path) -> None:
    text = content(GOOD, REFERENCE + '\n# \'""" \\u0000 \\')
    assert run(tmp_path, text)[0] == 0
