"""Callsites follow from a model's config, a framework's settings and its revision; what is not known is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.arms import FILES, QWEN3_8B, config, drafted, shapes, sites, written

from akf.contracts.problems import AkfError, InvalidError, PreconditionError, UsageError
from akf.contracts.shipped import shipped
from akf.frameworks.arms import ARMS, arm
from akf.frameworks.draft import draft
from akf.frameworks.revisions import NEWEST, placed, version

ASCEND = ("xllm", "vllm_ascend", "sglang_ascend")
SHARED = Path(os.environ.get("AKF_SHARED_DATA") or Path(__file__).parents[3] / "shared" / "data")
"""Public configs, where they lie beside the checkout."""


def codes(error: AkfError) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.pointer) for problem in error.problems]


# ---- counts and shapes, by hand ----

LAYER = 36


@pytest.mark.parametrize("name", ["vllm_ascend", "sglang_ascend"])
def test_a_step_of_qwen3_8b_calls_what_one_counts_by_hand(name: str, tmp_path: Path) -> None:
    """144 products of layers and one of the head, 36 of each other step of a layer, 73 norms of which 72 add."""
    calls = {step: site["calls_per_step"] for step, site in sites(drafted(name, tmp_path)).items()}
    assert calls == {
        "rms-norm": 1, "add-rms-norm": 72, "qkv-proj": LAYER, "o-proj": LAYER, "gate-up-proj": LAYER,
        "down-proj": LAYER, "qk-norm-rope": LAYER, "kv-write": LAYER, "prefill-attention": LAYER,
        "decode-attention": LAYER, "swiglu": LAYER, "lm-head": 1,
    }  # fmt: skip


def test_xllm_adds_and_normalises_in_one_step_after_attention_alone(tmp_path: Path) -> None:
    calls = {step: site["calls_per_step"] for step, site in sites(drafted("xllm", tmp_path)).items()}
    assert calls == {
        "rms-norm": 37, "add-rms-norm": 36, "qkv-proj": LAYER, "o-proj": LAYER, "gate-up-proj": LAYER,
        "down-proj": LAYER, "qkv-split": LAYER, "q-norm": LAYER, "k-norm": LAYER, "rope": LAYER, "kv-write": LAYER,
        "prefill-attention": LAYER, "decode-attention": LAYER, "swiglu": LAYER, "residual-add": LAYER, "lm-head": 1,
    }  # fmt: skip
    fused = sites(drafted("xllm", tmp_path, {"enable_interlayer_addnorm": True}))
    assert {step: fused[step]["calls_per_step"] for step in ("rms-norm", "add-rms-norm", "residual-add")} == {
        "rms-norm": 2, "add-rms-norm": 71, "residual-add": 1,
    }  # fmt: skip


def test_transformers_calls_its_modules_one_by_one(tmp_path: Path) -> None:
    made = sites(drafted("transformers", tmp_path))
    calls = {step: site["calls_per_step"] for step, site in made.items()}
    assert calls == {
        "rms-norm": 73, "q-proj": LAYER, "k-proj": LAYER, "v-proj": LAYER, "o-proj": LAYER, "gate-proj": LAYER,
        "up-proj": LAYER, "down-proj": LAYER, "q-norm": LAYER, "k-norm": LAYER, "rope": LAYER, "attention": LAYER,
        "silu": LAYER, "gate-mul": LAYER, "residual-add": 72, "lm-head": 1,
    }  # fmt: skip
    assert shapes(made["k-proj"]) == {"x": ["T", 4096], "weight": [1024, 4096], "y": ["T", 1024]}
    assert shapes(made["attention"])["key"] == ["R", 8, "C", 128]
    assert {site["graph"]["mode"] for site in made.values()} == {"eager"}
    eager = sites(drafted("transformers", tmp_path, {"attn_implementation": "eager"}))
    assert eager["attention"]["provider"] == "transformers eager_attention_forward"


@pytest.mark.parametrize(
    ("tp", "qkv", "o", "gate_up", "down", "head", "kv_heads"),
    [
        (1, 6144, 4096, 24576, 12288, 151936, 8),
        (2, 3072, 2048, 12288, 6144, 75968, 4),
        (4, 1536, 1024, 6144, 3072, 37984, 2),
        (8, 768, 512, 3072, 1536, 18992, 1),
        (16, 512, 256, 1536, 768, 9496, 1),  # every KV head on two ranks
    ],
)
def test_ranks_share_the_matrices(
    tp: int, qkv: int, o: int, gate_up: int, down: int, head: int, kv_heads: int, tmp_path: Path
) -> None:
    for name in ("vllm_ascend", "sglang_ascend", *(["xllm"] if tp <= 8 else [])):
        made = sites(drafted(name, tmp_path, tp=tp))
        assert shapes(made["qkv-proj"]) == {"x": ["T", 4096], "weight": [qkv, 4096], "y": ["T", qkv]}
        assert shapes(made["o-proj"]) == {"x": ["T", o], "weight": [4096, o], "y": ["T", 4096]}
        assert shapes(made["gate-up-proj"])["weight"] == [gate_up, 4096]
        assert shapes(made["down-proj"])["weight"] == [4096, down]
        assert shapes(made["lm-head"])["weight"] == [head, 4096]
        assert shapes(made["kv-write"])["key_cache"] == ["N", 128, kv_heads, 128]
        assert shapes(made["swiglu"]) == {"x": ["T", gate_up], "y": ["T", gate_up // 2]}
        assert made["add-rms-norm"]["calls_per_step"] == (36 if name == "xllm" else 72), "calls are each rank's"


@pytest.mark.parametrize(
    ("name", "tp", "why"),
    [
        ("vllm_ascend", 3, "32 heads"),
        ("vllm_ascend", 64, "32 heads"),
        ("xllm", 16, "8 KV heads, which the ATB layer does not copy"),
        ("transformers", 2, "more ranks are not mapped"),
        ("xllm", 0, "no rank"),
    ],
)
def test_ranks_that_cannot_share_the_model_are_refused(name: str, tp: int, why: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidError, UsageError)) as caught:
        drafted(name, tmp_path, tp=tp)
    assert caught.value.problems[0].code in {"AKF-F306", "AKF-F309"}, why


def test_a_vocabulary_is_padded_as_the_arm_pads_it(tmp_path: Path) -> None:
    odd = config(tmp_path, vocab_size=151937)
    heads = {
        (name, tp): shapes(sites(drafted(name, tmp_path, tp=tp, model_config=odd))["lm-head"])["weight"][0]
        for name, tp in (("vllm_ascend", 1), ("vllm_ascend", 4), ("sglang_ascend", 2), ("xllm", 2), ("xllm", 1))
    }
    assert heads == {
        ("vllm_ascend", 1): 152000,  # 2375 * 64
        ("vllm_ascend", 4): 38000,
        ("sglang_ascend", 2): 76000,
        ("xllm", 2): 75969,
        ("xllm", 1): 151937,
    }
    three = config(tmp_path, vocab_size=151937, num_attention_heads=48, num_key_value_heads=48)
    with pytest.raises(InvalidError, match="padded to 152000, cannot be shared by 3 ranks"):
        drafted("vllm_ascend", tmp_path, tp=3, model_config=three)
    wide = sites(drafted("sglang_ascend", tmp_path, tp=3, model_config=three))
    assert shapes(wide["lm-head"])["weight"][0] == 152064 // 3, "792 * 192: SGLang pads further where 64 does not do"


# ---- the Suite ----


def test_the_suites_callsites_are_the_generated_ones(tmp_path: Path) -> None:
    """Written into the Suite once, compared for ever: whichever changes alone is wrong."""
    suite = json.loads((shipped("suites") / "qwen3-8b-a3-bf16" / "workload.json").read_text(encoding="utf-8"))
    made = [
        *draft("xllm", QWEN3_8B, FILES / "xllm.json").workload["callsites"],
        *drafted("vllm_ascend", tmp_path).workload["callsites"],
        *drafted("sglang_ascend", tmp_path).workload["callsites"],
    ]
    assert [site["id"] for site in suite["callsites"]] == [site["id"] for site in made]
    for theirs, ours in zip(suite["callsites"], made, strict=True):
        assert theirs == ours
    assert [stage["bounds"] for stage in suite["stages"]] == [
        stage["bounds"] for stage in drafted("vllm_ascend", tmp_path).workload["stages"]
    ]


# ---- who answers, by condition ----


def provider(made: dict[str, dict[str, Any]], step: str) -> str:
    return str(made[step]["provider"]).rpartition(".")[2]


def test_vllm_without_custom_operators_adds_and_normalises_by_torch_npu(tmp_path: Path) -> None:
    assert provider(sites(drafted("vllm_ascend", tmp_path)), "add-rms-norm") == "npu_add_rms_norm_bias"
    for settings in ({"env": {"VLLM_BATCH_INVARIANT": "1"}}, {"custom_operators": False}):
        assert provider(sites(drafted("vllm_ascend", tmp_path, settings)), "add-rms-norm") == "npu_add_rms_norm"


UNFUSED = {"q-norm", "k-norm", "rope"}


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({"enforce-eager": True}, {}),
        ({"compilation_config": '{"cudagraph_mode": "NONE"}'}, {}),
        ({"additional_config": {"ascend_compilation_config": {"fuse_qknorm_rope": False}}}, {}),
        ({}, {"torch_dtype": "float16"}),
        ({}, {"head_dim": 64}),
        ({}, {"rms_norm_eps": 1e-4}),
    ],
)
def test_vllm_fuses_norm_and_rope_only_where_its_pass_matches(
    settings: dict[str, Any], changes: dict[str, Any], tmp_path: Path
) -> None:
    fused = sites(drafted("vllm_ascend", tmp_path))
    assert "qk-norm-rope" in fused
    assert not UNFUSED & fused.keys()
    made = sites(drafted("vllm_ascend", tmp_path, settings, model_config=config(tmp_path, **changes)))
    assert "qk-norm-rope" not in made
    assert made.keys() >= UNFUSED


def test_an_eager_service_has_no_callsite_in_a_graph(tmp_path: Path) -> None:
    for name, settings in (
        ("vllm_ascend", {"enforce_eager": True}),
        ("sglang_ascend", {"disable-cuda-graph": True}),
        ("xllm", {"enable_graph": False}),
    ):
        made = sites(drafted(name, tmp_path, settings))
        assert {site["graph"]["mode"] for site in made.values()} == {"eager"}, name


def test_vllm_in_pieces_attends_outside_the_graph(tmp_path: Path) -> None:
    sizes = [1, 2, 4]
    settings = {"compilation-config": {"cudagraph-mode": "PIECEWISE", "cudagraph_capture_sizes": sizes}}
    made = sites(drafted("vllm_ascend", tmp_path, settings))
    assert made["decode-attention"]["graph"] == {"mode": "eager"}
    assert made["decode-attention"]["site"].endswith("forward_fused_infer_attention")
    assert made["swiglu"]["graph"] == {"mode": "graph", "capture_sizes_tokens": sizes}


@pytest.mark.parametrize(
    ("env", "graph", "prefill", "decode", "write", "writes"),
    [
        ({}, True, "_npu_flash_attention_qlens", "npu_fused_infer_attention_score", "_npu_reshape_and_cache", 36),
        ({}, False, "_npu_flash_attention_qlens", "_npu_paged_attention", "_npu_reshape_and_cache", 36),
        (
            {"ASCEND_USE_FIA": "1"}, False, "npu_fused_infer_attention_score", "npu_fused_infer_attention_score",
            "npu_scatter_nd_update_", 72,
        ),
        (
            {"ASCEND_USE_FIA": True, "SGLANG_NPU_USE_SCATTER_PA_KV_CACHE": "true"}, True,
            "npu_fused_infer_attention_score", "npu_fused_infer_attention_score", "npu_scatter_pa_kv_cache", 36,
        ),
    ],
)  # fmt: skip
def test_sglangs_switches_choose_attention_and_the_write(
    env: dict[str, Any], graph: bool, prefill: str, decode: str, write: str, writes: int, tmp_path: Path
) -> None:
    made = sites(drafted("sglang_ascend", tmp_path, {"disable_cuda_graph": not graph, "env": env}))
    found = [provider(made, step) for step in ("prefill-attention", "decode-attention", "kv-write")]
    assert found == [prefill, decode, write]
    assert made["kv-write"]["calls_per_step"] == writes
    if graph:
        assert shapes(made["decode-attention"])["query"] == ["B", 1, 4096], (
            "BSH under a graph, whatever the switch says"
        )


def test_xllms_back_end_decides_who_answers(tmp_path: Path) -> None:
    atb = sites(drafted("xllm", tmp_path, {"npu_kernel_backend": "AUTO"}))
    assert {site["provider"] for site in atb.values()} == {"atb_speed::qwen::QwenDecoderLayer", "atb_speed LmHead"}
    torch = sites(drafted("xllm", tmp_path, {"npu_kernel_backend": "TORCH", "enable_graph": True}))
    assert torch["add-rms-norm"]["calls_per_step"] == 72
    assert "residual-add" not in torch
    assert torch["rope"]["provider"] == "at_npu::native::custom_ops::npu_apply_rotary_pos_emb"
    assert torch["decode-attention"]["provider"] == "xllm::kernel::npu::batch_decode_acl_graph"
    assert torch["prefill-attention"]["op"] == "fused_infer_attention"


@pytest.mark.parametrize(
    ("settings", "op"),
    [
        ({}, "paged_attention"),
        ({"enable_chunked_prefill": False}, "prefix_attention"),
        ({"enable_chunked_prefill": False, "enable_prefix_cache": False}, "flash_attention"),
        ({"enable_chunked_prefill": False, "block_size": 64}, "flash_attention"),
    ],
)
def test_xllms_prefill_attends_by_its_scheduler(settings: dict[str, Any], op: str, tmp_path: Path) -> None:
    assert sites(drafted("xllm", tmp_path, settings))["prefill-attention"]["op"] == op


def test_xllms_fused_norm_and_rope_answers_in_decode_only_since_a_revision(tmp_path: Path) -> None:
    settings = {"enable_split_rmsnorm_rope": True}
    old = sites(drafted("xllm", tmp_path, settings, revision="v0.10.1"))
    assert "qk-norm-rope" in old
    assert not any("q-norm" in step for step in old)
    new = sites(drafted("xllm", tmp_path, settings, revision="3906f5a91"))
    assert {"decode-qk-norm-rope", "prefill-qkv-split", "prefill-q-norm", "prefill-k-norm", "prefill-rope"} <= set(new)


# ---- revisions ----


@pytest.mark.parametrize(
    ("name", "revision", "write"),
    [
        ("vllm_ascend", "0.20.2rc1", "_npu_reshape_and_cache"),
        ("vllm_ascend", "v0.23.0", "_npu_reshape_and_cache"),
        ("vllm_ascend", "0.22.0.post1", "_npu_reshape_and_cache"),
        ("vllm_ascend", "0.24.0-rc.1", "_npu_reshape_and_cache"),
        ("vllm_ascend", "v0.25.1rc1", "npu_scatter_pa_kv_cache"),
        ("vllm_ascend", "182b75ea84aa", "npu_scatter_pa_kv_cache"),
        ("vllm_ascend", "0.25.2.dev7+g182b75ea84", "npu_scatter_pa_kv_cache"),
        ("vllm_ascend", None, "npu_scatter_pa_kv_cache"),
    ],
)
def test_a_known_revision_has_its_own_map(name: str, revision: str | None, write: str, tmp_path: Path) -> None:
    assert provider(sites(drafted(name, tmp_path, revision=revision)), "kv-write") == write


@pytest.mark.parametrize(
    ("name", "revision"),
    [
        ("vllm_ascend", "0.20.1"),
        ("vllm_ascend", "0.20.2b3"),
        ("vllm_ascend", "0.24.0"),
        ("vllm_ascend", "0.25.1"),
        ("vllm_ascend", "0.23.1.dev3+gabcdef0"),
        ("vllm_ascend", "deadbeef"),
        ("sglang_ascend", "0.5.2"),
        ("sglang_ascend", "0.5.230"),
        ("xllm", "0.9.1"),
        ("transformers", "4.50.3"),
    ],
)
def test_an_unknown_revision_is_unmapped(name: str, revision: str, tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match="unmapped") as caught:
        drafted(name, tmp_path, revision=revision)
    (problem,) = caught.value.problems
    assert problem.code == "AKF-F304"
    assert problem.expected


@pytest.mark.parametrize("revision", ["main", "", "1", "0.5.x", "latest", "0." * 40 + "1", "v"])
def test_what_is_no_revision_is_a_usage_error(revision: str) -> None:
    with pytest.raises(UsageError) as caught:
        placed(arm("xllm"), revision)
    assert caught.value.problems[0].code == "AKF-F305"


def test_versions_are_compared_as_versions() -> None:
    order = ["0.9.1", "0.10.0a1", "0.10.0b1", "0.10.0rc1", "0.10.0rc2", "0.10.0", "0.10.0.post1", "0.10.1", "1.0"]
    assert sorted(order, key=version) == order
    assert version("0.10") == version("v0.10.0")
    assert version("999999.0") < NEWEST


# ---- refusals ----


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"architectures": ["Qwen3MoeForCausalLM"]}, [("AKF-F301", "/architectures")]),
        ({"architectures": None}, [("AKF-F301", "/architectures")]),
        ({"architectures": ["Qwen3ForCausalLM", "Qwen3ForCausalLM"]}, [("AKF-F301", "/architectures")]),
        ({"architectures": "Qwen3ForCausalLM"}, [("AKF-F301", "/architectures")]),
        ({"hidden_size": None}, [("AKF-F302", "/hidden_size")]),
        ({"num_hidden_layers": 0}, [("AKF-F302", "/num_hidden_layers")]),
        ({"vocab_size": 151936.0}, [("AKF-F302", "/vocab_size")]),
        ({"num_key_value_heads": True}, [("AKF-F302", "/num_key_value_heads")]),
        ({"num_hidden_layers": 2**31}, [("AKF-F302", "/num_hidden_layers")]),
        ({"rms_norm_eps": "1e-6"}, [("AKF-F302", "/rms_norm_eps")]),
        ({"torch_dtype": "auto"}, [("AKF-F302", "/torch_dtype")]),
        ({"torch_dtype": None, "dtype": "float8"}, [("AKF-F302", "/dtype")]),
        ({"head_dim": None, "hidden_size": 5120}, [("AKF-F302", "/head_dim")]),
        ({"attention_bias": True}, [("AKF-F303", "/attention_bias")]),
        ({"use_sliding_window": True}, [("AKF-F303", "/use_sliding_window")]),
        ({"hidden_act": "gelu"}, [("AKF-F303", "/hidden_act")]),
        ({"quantization_config": {"quant_method": "fp8"}}, [("AKF-F303", "/quantization_config")]),
        (
            {"attention_bias": True, "hidden_size": -1, "torch_dtype": 1},
            [("AKF-F303", "/attention_bias"), ("AKF-F302", "/hidden_size"), ("AKF-F302", "/torch_dtype")],
        ),
    ],
)
def test_a_config_that_is_not_understood_is_refused_at_its_field(
    changes: dict[str, Any], found: list[tuple[str, str]], tmp_path: Path
) -> None:
    with pytest.raises(InvalidError) as caught:
        drafted("xllm", tmp_path, model_config=config(tmp_path, **changes))
    assert codes(caught.value) == sorted(found, key=lambda pair: pair[1])
    assert all(problem.file and problem.line for problem in caught.value.problems)


@pytest.mark.parametrize(
    "changes",
    [
        {"tie_word_embeddings": True},
        {"head_dim": None},
        {"attention_bias": None, "use_sliding_window": None},
        {"torch_dtype": None, "dtype": "bfloat16"},
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        {"quantization_config": None},
    ],
)
def test_what_changes_no_operator_changes_no_callsite(changes: dict[str, Any], tmp_path: Path) -> None:
    made = drafted("vllm_ascend", tmp_path, model_config=config(tmp_path, **changes))
    assert made.workload["callsites"] == drafted("vllm_ascend", tmp_path).workload["callsites"]


@pytest.mark.parametrize(
    ("name", "settings", "found"),
    [
        ("vllm_ascend", {"max-num-seqs": "many"}, ("AKF-F307", "/max-num-seqs")),
        ("vllm_ascend", {"max_num_seqs": 0}, ("AKF-F307", "/max_num_seqs")),
        ("vllm_ascend", {"enforce_eager": "perhaps"}, ("AKF-F307", "/enforce_eager")),
        (
            "vllm_ascend", {"compilation_config": {"cudagraph_mode": "SOME"}},
            ("AKF-F307", "/compilation_config/cudagraph_mode"),
        ),
        (
            "vllm_ascend", {"compilation_config": {"cudagraph_capture_sizes": [1, -2]}},
            ("AKF-F307", "/compilation_config/cudagraph_capture_sizes"),
        ),
        ("vllm_ascend", {"quantization": "ascend"}, ("AKF-F308", "/quantization")),
        ("vllm_ascend", {"pipeline_parallel_size": 2}, ("AKF-F308", "/pipeline_parallel_size")),
        (
            "vllm_ascend", {"additional_config": {"pa_shape_list": [4]}},
            ("AKF-F308", "/additional_config/pa_shape_list"),
        ),
        ("sglang_ascend", {"speculative-algorithm": "EAGLE"}, ("AKF-F308", "/speculative-algorithm")),
        ("sglang_ascend", {"env": {"ASCEND_USE_FIA": "2"}}, ("AKF-F307", "/env/ASCEND_USE_FIA")),
        ("vllm_ascend", {"max-num-seqs": 8, "max_num_seqs": 9}, ("AKF-F307", "/max_num_seqs")),
        ("vllm_ascend", {"max_num_seqs": 2**53 - 1}, ("AKF-F307", "/max_num_seqs")),
        ("vllm_ascend", {"compilation-config": '{"cudagraph_mode": '}, ("AKF-F307", "/compilation-config")),
        ("vllm_ascend", {"compilation_config": '{"a": 1, "a": 2}'}, ("AKF-F307", "/compilation_config")),
        ("vllm_ascend", {"compilation_config": ["FULL"]}, ("AKF-F307", "/compilation_config")),
        ("vllm_ascend", {"compilation_config": 0}, ("AKF-F307", "/compilation_config")),
        (
            "vllm_ascend", {"compilation_config": '{"cudagraph-mode": "FULL", "cudagraph_mode": "NONE"}'},
            ("AKF-F307", "/compilation_config"),
        ),
        ("xllm", {"npu_kernel_backend": "CUDA"}, ("AKF-F307", "/npu_kernel_backend")),
        ("xllm", {"dp_size": 2}, ("AKF-F308", "/dp_size")),
    ],
)  # fmt: skip
def test_a_setting_that_is_not_understood_is_refused_at_its_place(
    name: str, settings: dict[str, Any], found: tuple[str, str], tmp_path: Path
) -> None:
    with pytest.raises(InvalidError) as caught:
        drafted(name, tmp_path, settings)
    assert codes(caught.value) == [found]


def test_sizes_from_which_no_shape_follows_are_refused(tmp_path: Path) -> None:
    most = 2**31 - 1
    broken = config(tmp_path, num_attention_heads=most, head_dim=most, num_key_value_heads=1)
    with pytest.raises(InvalidError) as caught:
        drafted("xllm", tmp_path, model_config=broken)
    assert codes(caught.value) == [("AKF-F302", None)]


def test_config_and_settings_are_refused_together(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        drafted("xllm", tmp_path, {"dp_size": 2}, model_config=config(tmp_path, hidden_size=None))
    assert {code for code, _ in codes(caught.value)} == {"AKF-F302", "AKF-F308"}


def test_settings_that_say_nothing_are_defaults(tmp_path: Path) -> None:
    nothing = {"quantization": None, "max_num_seqs": None, "pipeline_parallel_size": 1, "served_model_name": "x"}
    assert (
        drafted("vllm_ascend", tmp_path, nothing).workload["callsites"]
        == (drafted("vllm_ascend", tmp_path).workload["callsites"])
    )


def test_the_number_of_ranks_is_said_once(tmp_path: Path) -> None:
    assert drafted("vllm_ascend", tmp_path, {"tensor-parallel-size": "2"}, tp=2).settings["tp"].value == 2
    with pytest.raises(UsageError) as caught:
        drafted("vllm_ascend", tmp_path, {"tensor-parallel-size": 4}, tp=2)
    assert codes(caught.value) == [("AKF-F309", None)]


def test_an_unknown_arm_is_a_usage_error() -> None:
    with pytest.raises(UsageError) as caught:
        draft("vllm", QWEN3_8B)
    assert codes(caught.value) == [("AKF-F300", None)]


# ---- the draft ----


def test_the_draft_names_its_files_by_digest_and_leaves_open_what_a_trace_must_say(tmp_path: Path) -> None:
    secret = tmp_path / "secret-folder"
    secret.mkdir()
    made = drafted("vllm_ascend", secret, {"max_num_seqs": 8}, model_config=config(secret)).workload
    assert [named["name"] for named in made["source"]["files"]] == ["config.json", "settings.json"]
    assert "secret-folder" not in json.dumps(made)
    assert {stage["weight_ratio"] for stage in made["stages"]} == {None}
    assert {stage["shapes"] for stage in made["stages"]} == {None}
    assert max(stage["concurrency"] for stage in made["stages"]) == 8
    again = drafted("vllm_ascend", secret, {"max_num_seqs": 8}, model_config=config(secret)).workload
    assert again == made


@pytest.mark.parametrize("longest", [8, 100, 4097, 32768, 131072])
def test_stages_cut_every_request_that_fits_into_exactly_one(longest: int, tmp_path: Path) -> None:
    made = drafted("vllm_ascend", tmp_path, {"max_model_len": longest}).workload["stages"]
    bounds = [stage["bounds"] for stage in made]
    prompt = max(bound["input_max_tokens"] for bound in bounds)
    answer = max(bound["output_max_tokens"] for bound in bounds)
    assert prompt + answer == longest
    edges = {bound[key] for bound in bounds for key in bound}
    for asked in {edge for edge in edges if edge <= prompt} | {prompt}:
        for said in {edge for edge in edges if edge <= answer}:
            homes = [
                bound
                for bound in bounds
                if bound["input_min_tokens"] <= asked <= bound["input_max_tokens"]
                and bound["output_min_tokens"] <= said <= bound["output_max_tokens"]
            ]
            assert len(homes) == 1, (asked, said)


def test_a_sequence_too_short_for_stages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError) as caught:
        drafted("vllm_ascend", tmp_path, {"max_model_len": 3})
    assert codes(caught.value) == [("AKF-F311", None)]


if SHARED.is_dir():  # a second pass over public files, where they are

    @pytest.mark.parametrize("path", sorted((SHARED / "models").glob("*.json")), ids=lambda path: path.name)
    def test_public_configs_give_the_same_callsites(path: Path) -> None:
        for name in ARMS:
            assert draft(name, path).workload["callsites"] == draft(name, QWEN3_8B).workload["callsites"]

    @pytest.mark.parametrize("path", sorted((SHARED / "xllm").glob("*.json")), ids=lambda path: path.name)
    def test_the_public_configuration_of_xllm_is_understood(path: Path) -> None:
        ours = draft("xllm", QWEN3_8B, FILES / "xllm.json").workload["callsites"]
        assert draft("xllm", QWEN3_8B, path).workload["callsites"] == ours


def test_a_file_that_is_no_json_is_refused_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "config.json"
    broken.write_text('{\n  "hidden_size": 4096,\n  "hidden_size": 4096\n}', encoding="utf-8")
    with pytest.raises(InvalidError) as caught:
        draft("xllm", broken)
    assert caught.value.problems[0].line == 3
    with pytest.raises(InvalidError):
        draft("xllm", QWEN3_8B, written(tmp_path / "list.json", []))
