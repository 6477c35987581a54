"""Bytes and operations of a call, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.arms import drafted, sites

from akf.frameworks.costs import Cost, cost


def test_a_product_reads_its_weight_and_its_rows_once(tmp_path: Path) -> None:
    site = sites(drafted("vllm_ascend", tmp_path))["qkv-proj"]
    rows = 16
    moved = 2 * (rows * 4096 + 6144 * 4096 + rows * 6144)
    assert cost(site, {"T": rows}) == Cost(moved, 2 * rows * 4096 * 6144)


def test_a_residual_norm_reads_two_and_writes_two(tmp_path: Path) -> None:
    site = sites(drafted("vllm_ascend", tmp_path))["add-rms-norm"]
    assert cost(site, {"T": 3}).bytes == 4 * 3 * 4096 * 2 + 4096 * 2 + 3 * 4


def test_a_write_to_the_cache_touches_its_own_rows_alone(tmp_path: Path) -> None:
    site = sites(drafted("vllm_ascend", tmp_path))["kv-write"]
    assert cost(site, {"T": 5, "N": 3000}) == Cost(2 * 2 * 5 * 1024 * 2 + 5 * 4, 0)


def test_decode_attention_reads_the_context(tmp_path: Path) -> None:
    """Two requests with 1,000 and 3,000 positions: 144 KiB a token over 36 layers is 4 KiB a token and layer."""
    for name, step in (
        ("vllm_ascend", "decode-attention"),
        ("xllm", "decode-attention"),
        ("sglang_ascend", "decode-attention"),
    ):
        site = sites(drafted(name, tmp_path))[step]
        found = cost(site, {"B": 2, "N": 3000, "M": 320}, context=4000, pairs=4000)
        assert found.bytes == 4000 * 4096 + 2 * 2 * 4096 * 2, name
        assert found.operations == 4 * 4000 * 4096, name


def test_without_its_context_attention_has_no_cost(tmp_path: Path) -> None:
    site = sites(drafted("xllm", tmp_path))["decode-attention"]
    assert cost(site, {"B": 2, "N": 3000, "M": 320}) == Cost(None, None)


def test_an_unknown_operator_or_symbol_has_no_cost(tmp_path: Path) -> None:
    site = sites(drafted("vllm_ascend", tmp_path))["swiglu"]
    assert cost(site, {}) == Cost(None, None)
    assert cost({**site, "op": "something_else"}, {"T": 4}) == Cost(None, None)
    assert cost(site, {"T": 4}) == Cost(2 * 4 * (24576 + 12288), 5 * 4 * 12288)


@pytest.mark.parametrize("name", ["xllm", "vllm_ascend", "sglang_ascend", "transformers"])
def test_every_callsite_has_a_cost_once_all_is_known(name: str, tmp_path: Path) -> None:
    for site in sites(drafted(name, tmp_path)).values():
        sizes = {
            size["sym"]: 4 for operand in site["operands"] for size in operand["shape"] if not isinstance(size, int)
        }
        found = cost(site, sizes, context=64, pairs=64)
        assert found.bytes, site["id"]
        assert found.operations is not None, site["id"]
