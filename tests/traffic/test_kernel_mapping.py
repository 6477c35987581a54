"""Device kernels are given to callsites by their name and operands, and to none rather than by a guess."""

from __future__ import annotations

import json
from typing import Any

import pytest

from akf.contracts.shipped import shipped
from akf.frameworks.mapping import Mapper

WORKLOAD: dict[str, Any] = json.loads(
    (shipped("suites") / "qwen3-8b-a3-bf16" / "workload.json").read_text(encoding="utf-8")
)


def seen(*shape: int, dtype: str | None = "bfloat16", layout: str = "ND") -> dict[str, Any]:
    return {"shape": list(shape), "dtype": dtype, "layout": layout}


NOT_RECORDED = {"shape": None, "dtype": None, "layout": None}
QKV = "vllm_ascend.qkv-proj"


@pytest.fixture
def vllm() -> Mapper:
    return Mapper(WORKLOAD, "vllm_ascend")


@pytest.mark.parametrize(
    ("weight", "what"),
    [
        (seen(6144, 4096), "as the module holds it"),
        (seen(4096, 6144), "transposed"),
        (seen(256, 384, 16, 16, layout="FRACTAL_NZ"), "in the cube's storage, [K/16, N/16, 16, 16]"),
        (seen(384, 256, 16, 16, layout="FRACTAL_NZ"), "in the cube's storage, transposed"),
    ],
)
def test_a_product_is_known_by_its_weight_however_stored(vllm: Mapper, weight: dict[str, Any], what: str) -> None:
    found = vllm.of("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", [seen(13, 4096), weight], [seen(13, 6144)])
    assert found == (QKV, {"T": 13}), what


@pytest.mark.parametrize(
    ("inputs", "outputs", "why"),
    [
        ([seen(13, 4096), seen(6144, 4096)], [seen(12, 6144)], "the output has another number of rows"),
        ([seen(13, 4096), seen(6145, 4096)], [seen(13, 6145)], "no weight has this shape"),
        ([seen(13, 4096), seen(6144, 4096), seen(6144)], [seen(13, 6144)], "a bias, which the callsite does not have"),
        ([seen(13, 4096, dtype="float16"), seen(6144, 4096)], [seen(13, 6144)], "another element type"),
        ([seen(0, 4096), seen(6144, 4096)], [seen(0, 6144)], "no rows at all"),
        ([seen(13, 4096)], [seen(13, 6144)], "no weight was recorded"),
        ([seen(13, 4096), seen(256, 384, 16, 16)], [seen(13, 6144)], "four dimensions that are no fractals"),
    ],
)
def test_a_product_that_no_callsite_explains_stays_without_one(
    vllm: Mapper, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]], why: str
) -> None:
    assert vllm.of("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", inputs, outputs) == (None, {}), why


def test_operands_may_be_grouped_otherwise(vllm: Mapper) -> None:
    flat = vllm.of("SwiGlu", "SwiGlu", [seen(1, 7, 24576)], [seen(1, 7, 12288)])
    assert flat == ("vllm_ascend.swiglu", {"T": 7})


def attention(rows: int, requests: int) -> list[dict[str, Any]]:
    empty = seen(dtype=None)
    mask, lengths = seen(2048, 2048, dtype="int8"), seen(requests, dtype="int64")
    cache = seen(3000, 128, 1024)
    table = seen(requests, 512, dtype="int32")
    return [seen(rows, 32, 128), cache, cache, empty, mask, lengths, lengths, *[empty] * 7, table, *[empty] * 16]


def test_one_token_a_request_is_the_decode_step(vllm: Mapper) -> None:
    """The two callsites call the same operator; a step in which requests have more tokens than one is a prefill."""
    decode = vllm.of("x", "FusedInferAttentionScore", attention(16, 16), [seen(16, 32, 128), seen(dtype="float32")])
    assert decode == ("vllm_ascend.decode-attention", {"B": 16, "N": 3000, "M": 512})
    prefill = vllm.of("x", "FusedInferAttentionScore", attention(300, 16), [seen(300, 32, 128), seen(dtype="float32")])
    assert prefill == ("vllm_ascend.prefill-attention", {"T": 300, "B": 16, "N": 3000, "M": 512})


def test_what_only_runs_eagerly_was_not_replayed(vllm: Mapper) -> None:
    operands = (attention(300, 16), [seen(300, 32, 128), seen(dtype="float32")])
    assert vllm.of("x", "FusedInferAttentionScore", *operands, graph=True) == (None, {})
    assert vllm.of("x", "FusedInferAttentionScore", *operands, graph=False)[0] == "vllm_ascend.prefill-attention"


@pytest.mark.parametrize("name", ["split_qkv_rmsnorm_rope_kernel", "split_qkv_rmsnorm_rope_kernel_2"])
def test_a_kernel_that_two_frameworks_name_alike_belongs_to_the_captured_one(name: str) -> None:
    for arm in ("vllm_ascend", "sglang_ascend"):
        for inputs in ([seen(5, 6144), seen(5, 128)], []):
            callsite, _ = Mapper(WORKLOAD, arm).of(name, name, inputs, [])
            assert callsite == f"{arm}.qk-norm-rope"
    assert Mapper(WORKLOAD, None).of(name, name, [seen(5, 6144), seen(5, 128)], []) == (None, {})
    assert Mapper(WORKLOAD, None).of(name, name, [], []) == (None, {})


@pytest.mark.parametrize(
    ("kernel", "op_type", "callsite"),
    [
        ("aclnnSwiGlu_SwiGlu_SwiGlu", None, "vllm_ascend.swiglu"),
        ("aclnnSwiGlu_SwiGlu_SwiGlu", "N/A", "vllm_ascend.swiglu"),
        ("SwiGlu_0d2d43751f81d7f29646a862147967c9_high_performance_210000000", None, "vllm_ascend.swiglu"),
        ("split_qkv_rmsnorm_rope_kernel", None, "vllm_ascend.qk-norm-rope"),
        ("aclnnMatmul_MatMulV3Common_MatMulV3", None, None),
        ("aclnnFusedInferAttentionScore_FusedInferAttentionScore_FusedInferAttentionScore", None, None),
        ("ScatterPaKvCache", "ScatterPaKvCache", None),
        ("aclnnSwiGluGrad_SwiGluGrad_SwiGluGrad", None, None),
        ("SwiGlux", "SwiGlux", None),
    ],
)
def test_without_shapes_only_a_name_of_one_callsite_is_enough(
    vllm: Mapper, kernel: str, op_type: str | None, callsite: str | None
) -> None:
    assert vllm.of(kernel, op_type, [], []) == (callsite, {})
    assert vllm.of(kernel, op_type, [NOT_RECORDED], [NOT_RECORDED]) == (callsite, {})


def test_a_name_that_was_only_read_in_a_source_needs_its_operands(vllm: Mapper) -> None:
    cache = seen(3000, 128, 8, 128)
    inputs = [seen(9, 8, 128), cache, seen(9, dtype="int32"), seen(9, 8, 128), cache]
    assert vllm.of("ScatterPaKvCache", "ScatterPaKvCache", inputs, [cache, cache]) == (
        "vllm_ascend.kv-write",
        {"T": 9, "N": 3000},
    )


def test_an_arm_that_nobody_described_has_no_kernels() -> None:
    foreign = {**WORKLOAD, "callsites": [{**site, "arm": "other"} for site in WORKLOAD["callsites"]]}
    assert Mapper(foreign, "other").of("SwiGlu", "SwiGlu", [seen(7, 24576)], [seen(7, 12288)]) == (None, {})
    assert Mapper(foreign, "vllm_ascend").of("SwiGlu", "SwiGlu", [seen(7, 24576)], [seen(7, 12288)]) == (None, {})
