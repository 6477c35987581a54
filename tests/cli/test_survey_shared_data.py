"""A second pass over real tools' files, where they lie beside the checkout; the project does not need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.cli import inside

ROOT = Path(os.environ.get("AKF_SHARED_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
FACTS: dict[str, tuple[int, set[str]]] = {
    "torch_npu_profiler/level0": (0, set()),
    "torch_npu_profiler/level1": (0, set()),
    "torch_npu_profiler/small_rank1": (1, {"AKF-F114"}),
    "msprof": (1, {"AKF-F113"}),
    "aiperf": (4, {"AKF-F405"}),
    "evalscope": (4, {"AKF-F405"}),
    "sglang_bench": (4, {"AKF-F405"}),
    "vllm_bench": (4, {"AKF-F405"}),
    "models": (4, {"AKF-F405"}),
    "xllm": (4, {"AKF-F405"}),
    "platform": (1, {"AKF-F401"}),
    "traces": (1, {"AKF-F257"}),
}
THERE = sorted(name for name in FACTS if (ROOT / name).is_dir())


if THERE:  # an empty list of parameters would be a skip

    @pytest.mark.parametrize("name", THERE)
    def test_real_files(name: str) -> None:
        status, codes = FACTS[name]
        answer = inside("survey", ROOT / name)
        assert (answer.status, answer.codes) == (status, codes)
        if status == 1 and name in {"torch_npu_profiler/small_rank1", "msprof"}:
            assert all(problem["line"] for problem in answer.problems)
