"""The files of arms and models are whole: every name in them means something."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.arms import drafted, sites

from akf.frameworks.arms import ARMS, arm, kernels
from akf.frameworks.models import ARCHITECTURES, model, operators
from akf.frameworks.revisions import version
from akf.routes.expressions import parse, symbols

FACTS = {"dtype", "eps", "head_dim"}
SITUATIONS: dict[str, list[dict[str, Any]]] = {
    "vllm_ascend": [{}, {"enforce_eager": True}, {"custom_operators": False}],
    "sglang_ascend": [
        {}, {"disable_cuda_graph": True}, {"disable_cuda_graph": True, "env": {"ASCEND_USE_FIA": 1}},
        {"env": {"SGLANG_NPU_USE_SCATTER_PA_KV_CACHE": 1}},
    ],
    "xllm": [
        {"enable_graph": True}, {"enable_split_rmsnorm_rope": True}, {"enable_aclnn_matmul": True},
        {"enable_aclnn_swiglu": True}, {"enable_interlayer_addnorm": True}, {"npu_kernel_backend": "TORCH"},
        {"enable_chunked_prefill": False}, {"enable_chunked_prefill": False, "enable_prefix_cache": False},
    ],
    "transformers": [{}],
}  # fmt: skip
WITHOUT_KERNELS = {"xllm::kernel::npu::batch_decode_acl_graph"}
"""An operator of xLLM's own, whose type no source names."""


def cases(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(entry, case) for entry in arm(name)["operator"] for case in entry["case"]]


@pytest.mark.parametrize("name", ARMS)
def test_operators_are_the_models_and_conditions_name_settings(name: str) -> None:
    known = {spec["name"] for spec in arm(name)["setting"]} | FACTS
    for entry, case in cases(name):
        assert set(entry["ids"]) <= set(operators("Qwen3ForCausalLM"))
        assert case.get("provider"), entry["ids"]
        assert case.get("site") or entry.get("site"), entry["ids"]
        for condition in (*case.get("when", ()), *arm(name)["graph"]["eager"]):
            assert set(condition) <= known
        for bound in ("since", "until"):
            if bound in case:
                assert version(case[bound])
    for first, last in arm(name)["revisions"]["ranges"]:
        assert version(first) <= version(last)
    assert all(re.fullmatch("[0-9a-f]{7,40}", commit) for commit in arm(name)["revisions"]["commits"])


@pytest.mark.parametrize("name", [name for name in ARMS if name != "transformers"])
def test_every_callsite_of_an_ascend_arm_has_kernels_that_name_its_operands(name: str, tmp_path: Path) -> None:
    used = []
    for settings in SITUATIONS[name]:
        for site in sites(drafted(name, tmp_path, settings)).values():
            found = kernels(name, site["op"], site["provider"])
            assert bool(found) is (site["provider"] not in WITHOUT_KERNELS), site["id"]
            names = {operand["name"] for operand in site["operands"]}
            for kernel in found:
                used.append(kernel)
                assert {*kernel["inputs"], *kernel["outputs"]} <= names | {"*", "", "..."}
                assert kernel.get("names") or kernel.get("unverified")
    unused = [kernel for kernel in arm(name)["kernel"] if kernel not in used]
    assert [kernel["providers"] for kernel in unused] == (
        [["torch_npu._npu_reshape_and_cache"]] * (name == "vllm_ascend")
    )


@pytest.mark.parametrize("name", ARMS)
def test_lines_of_a_log_speak_of_settings_that_exist(name: str) -> None:
    known = {spec["name"] for spec in arm(name)["setting"]}
    for rule in arm(name).get("log", ()):
        groups = set(re.compile(rule["pattern"]).groupindex)
        assert rule["tells"] in {"bucket", "captured", "number", "setting", "step", "recompile", "replay", "fallback"}
        if rule["tells"] == "setting":
            assert rule["setting"] in known
            assert "value" in rule or "value" in groups
        if rule["tells"] == "number":
            assert rule["zero"]["setting"] in known


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_expressions_of_a_model_name_what_is_there(architecture: str) -> None:
    data = model(architecture)
    known = {field["name"] for field in data["field"]} | {
        "tp", "block_size", "itemsize", "kv_bytes", "vocab_pad", "max_batch_tokens", "max_batch_requests",
        "max_model_len",
    }  # fmt: skip
    for name, text in data["sizes"].items():
        assert symbols(parse(text)) <= known, name
        known.add(name)
    for text in data["symbols"].values():
        assert symbols(parse(text)) <= known
    for operator in data["operator"]:
        assert symbols(parse(operator["calls"])) <= known
        for operand in operator["operands"]:
            for text in operand["shape"]:
                assert text in data["symbols"] or symbols(parse(text)) <= known
