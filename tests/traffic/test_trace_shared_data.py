"""A second pass over published traces, where they lie beside the checkout; the project does not need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.request_traces import draft, made

ROOT = Path(os.environ.get("AKF_SHARED_DATA") or Path(__file__).parents[2].parent / "shared" / "data") / "traces"
FACTS = {
    "azure_llm_2023_conv.head.csv": ("azure", 5092, None),
    "mooncake_conversation_trace.head.jsonl": ("mooncake", 784, 512),
    "qwen_bailian_first_rows.jsonl": ("bailian", 1, 16),
}
THERE = sorted(name for name in FACTS if (ROOT / name).is_file())


if THERE:  # an empty list of parameters would be a skip

    @pytest.mark.parametrize("name", THERE)
    def test_a_published_trace_is_read_whole(name: str) -> None:
        layout, requests, block_size = FACTS[name]
        workload = made(draft(), ROOT / name).workload
        traffic = workload["traffic"]
        assert workload["source"]["layout"] == layout
        assert traffic["requests"] + traffic["outside"] == requests
        assert traffic["failures"] == 0
        assert workload.get("prefix", {}).get("block_size_tokens") == block_size
        assert workload["source"]["tokenizer_matches"] is (layout == "bailian")
