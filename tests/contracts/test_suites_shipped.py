"""What ships under `suites/` is honest: valid, open where only a machine can answer, and true where it speaks."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from akf.contracts.generate import schema_of
from akf.contracts.models import MODELS
from akf.contracts.models.base import Value

ROOT = Path(__file__).parents[2]
SUITES = ROOT / "suites"
ARTIFACTS = sorted(path for path in SUITES.rglob("*.json") if path.parent.name != "model")
A3 = SUITES / "qwen3-8b-a3-bf16"
HOST = SUITES / "host-demo"

# Qwen3-8B's public config, from which every shape of the public Workload follows.
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCAB = 4096, 36, 32, 8, 128, 12288, 151936
EPS, POSITIONS, BLOCK = 1e-6, 40960, 128


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_bytes())
    return loaded


def name(path: Path) -> str:
    return path.relative_to(SUITES).as_posix()


def nulls(value: Any, pointer: str = "") -> Iterator[tuple[str, str | None]]:
    """Every written `null` inside a model, with the command that fills it, if there is one."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from nulls(item, f"{pointer}/{index}")
    if not isinstance(value, Value):
        return
    for field, info in type(value).model_fields.items():
        child = getattr(value, field)
        if child is None and field in value.model_fields_set:
            extra = info.json_schema_extra
            yield f"{pointer}/{field}", str(extra["x-akf-fill"]) if isinstance(extra, dict) else None
        yield from nulls(child, f"{pointer}/{field}")


def placeholders(path: Path) -> dict[str, str | None]:
    value = load(path)
    return dict(nulls(MODELS[value["kind"]].model_validate(value)))


@pytest.mark.parametrize("path", ARTIFACTS, ids=name)
def test_a_shipped_file_holds_for_both_libraries_and_the_model(path: Path) -> None:
    value = load(path)
    schema = schema_of(value["kind"])
    assert [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(value)] == []
    assert [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(value)] == []
    MODELS[value["kind"]].model_validate(value)
    assert (path.parent / value["$schema"]).resolve().is_file()


@pytest.mark.parametrize("path", ARTIFACTS, ids=name)
def test_every_null_is_a_placeholder_with_a_command(path: Path) -> None:
    for pointer, command in placeholders(path).items():
        assert command, pointer
        assert command.startswith("akf "), pointer


@pytest.mark.parametrize("folder", [A3, HOST], ids=lambda folder: folder.name)
def test_a_suite_names_its_files_and_they_name_it_back(folder: Path) -> None:
    suite = load(folder / "suite.json")
    assert suite["id"] == folder.name
    workload = load(folder / suite["workload"]["path"])
    assert workload["id"] == suite["workload"]["id"]
    assert {folder / arm["path"] for arm in suite["required_arms"]} == set((folder / "arms").iterdir())
    ids = set()
    for arm in suite["required_arms"]:
        campaign = load(folder / arm["path"])
        ids.add(campaign["id"])
        assert campaign["arm"] == arm["id"]
        assert campaign["suite"] == {"id": suite["id"], "path": "suite.json"}
        assert campaign["workload"] == suite["workload"]
        assert campaign["lane"] in suite["lanes"]
        assert campaign["model"] == suite["model"]
        assert {key: campaign["ranks"][key] for key in suite["parallel"]} == suite["parallel"]
        assert workload["model"] == suite["model"]["name"]
        assert workload["dtype"] == suite["model"]["dtype"]
        for capability in campaign["capabilities"]:
            assert capability["toolkit"] == campaign["environment"]["toolkit"] == suite["toolkit"]
            assert capability["soc_family"] == campaign["environment"]["soc"]["family"] == suite["soc"]["family"]
    assert len(ids) == len(suite["required_arms"])


@pytest.mark.parametrize("folder", [A3, HOST], ids=lambda folder: folder.name)
def test_every_rule_is_a_kpi_and_every_kpi_has_its_rule(folder: Path) -> None:
    suite = load(folder / "suite.json")
    kpis = {kpi["id"]: kpi for kpi in suite["kpis"]}
    assert len(kpis) == len(suite["kpis"])
    for arm in suite["required_arms"]:
        acceptance = load(folder / arm["path"])["acceptance"]
        for group, primary in (("gains", True), ("guards", False)):
            assert {rule["id"] for rule in acceptance[group]} == {k for k, v in kpis.items() if v["primary"] is primary}
            for rule in acceptance[group]:
                kpi = kpis[rule["id"]]
                assert rule["gate"] == kpi["scope"]
                for key in ("metric", "unit", "better", "statistic", "quantile"):
                    assert rule.get(key) == kpi.get(key), (rule["id"], key)
        assert {rule["gate"] for rule in acceptance["gains"]} == {"operator", "model", "serving"}


@pytest.mark.parametrize("folder", [A3, HOST], ids=lambda folder: folder.name)
def test_callsites_stages_and_baselines_refer_to_each_other(folder: Path) -> None:
    suite = load(folder / "suite.json")
    workload = load(folder / "workload.json")
    sites = {site["id"]: site for site in workload["callsites"]}
    assert len(sites) == len(workload["callsites"])
    assert len({stage["id"] for stage in workload["stages"]}) == len(workload["stages"])
    for arm in suite["required_arms"]:
        campaign = load(folder / arm["path"])
        mine = [site for site in sites.values() if site["arm"] == arm["id"]]
        assert list(dict.fromkeys(site["site"] for site in mine)) == campaign["baseline"]["callsites"]
        assert {capability["op"] for capability in campaign["capabilities"]} <= {site["op"] for site in mine}
    assert {site["arm"] for site in sites.values()} == {arm["id"] for arm in suite["required_arms"]}
    for stage in workload["stages"]:
        for shape in stage["shapes"] or ():
            assert shape["callsite"] in sites


def test_the_a3_suite_is_what_it_says() -> None:
    suite = load(A3 / "suite.json")
    assert suite["platform"] == "ascend"
    assert suite["model"]["name"] == "Qwen3-8B"
    assert suite["model"]["dtype"] == "bfloat16"
    assert suite["soc"] == {"family": "ascend910_93", "name": None}
    assert suite["toolkit"] == {"name": "cann", "version": "9.1.0", "build": None}
    assert suite["parallel"] == {"tp": 1, "pp": 1, "dp": 1, "ep": 1}
    assert [arm["id"] for arm in suite["required_arms"]] == ["xllm", "vllm_ascend", "sglang_ascend"]
    assert suite["lanes"] == ["per_framework_native_ab", "matched_policy", "framework_native_best"]
    metrics = {kpi["metric"] for kpi in suite["kpis"]}
    assert metrics >= {
        "latency", "weighted_latency", "ttft", "tpot", "e2e", "goodput", "peak_hbm", "kv_capacity", "max_concurrency",
    }  # fmt: skip
    assert {limit["metric"] for limit in suite["sla"]} == {"ttft", "tpot", "e2e"}


@pytest.mark.parametrize("arm", ["xllm", "vllm_ascend", "sglang_ascend"])
def test_an_a3_campaign_leaves_open_what_only_a_board_or_a_revision_can_say(arm: str) -> None:
    found = placeholders(A3 / "arms" / f"{arm}.json")
    patterns = (
        r"/capabilities/\d+/(soc|toolkit/build)", r"/environment/(soc/name|toolkit/build|python|libraries)",
        r"/environment/frameworks/\d+/revision", r"/environment/variables/\d+/value",
        r"/environment/ascend/(driver|firmware|image_digest|torch|torch_npu|toolkit_tree_digest)",
        r"/model/(config|weights)_digest", r"/ranks/devices", r"/baseline/incumbent_digest", r"/capture/path",
        r"/acceptance/(gains|guards)/\d+/(threshold|margin)_ratio", r"/acceptance/row_margin_ratio",
        r"/acceptance/accuracy/\d+/(baseline|margin_ratio)", r"/noise/noise_limit_ratio", r"/trust/keys",
    )  # fmt: skip
    for pointer in found:
        assert any(re.fullmatch(pattern, pointer) for pattern in patterns), pointer
    for pattern in patterns:
        assert any(re.fullmatch(pattern, pointer) for pointer in found), pattern


def test_the_public_workload_leaves_open_what_a_trace_must_say() -> None:
    found = placeholders(A3 / "workload.json")
    assert set(found) == {f"/stages/{index}/{field}" for index in range(4) for field in ("weight_ratio", "shapes")}
    assert set(found.values()) == {
        "akf ingest trace TRACE --onto WORKLOAD --out FILE",
        "akf ingest trace TRACE --onto WORKLOAD --capture CAPTURE --out FILE",
    }
    assert set(placeholders(A3 / "suite.json")) == {
        "/owner", "/model/config_digest", "/model/weights_digest", "/soc/name", "/toolkit/build",
        "/sla/0/limit_ms", "/sla/1/limit_ms", "/sla/2/limit_ms",
    }  # fmt: skip


def test_no_measurement_stands_in_an_a3_file() -> None:
    for path in [A3 / "suite.json", A3 / "workload.json", *sorted((A3 / "arms").iterdir())]:
        text = path.read_text()
        assert "sha256:" not in text, "a digest of something that nobody has read"
        assert '"peaks"' not in text
        assert not re.search(r'"(replays|padded_tokens|eager_share_ratio|recompiles|rate_per_s)"', text)
    assert not list(A3.rglob("*capture*"))


@pytest.mark.parametrize("arm", ["xllm", "vllm_ascend", "sglang_ascend"])
def test_an_a3_campaign_names_only_routes_of_a3(arm: str) -> None:
    routes = {capability["backend"] for capability in load(A3 / "arms" / f"{arm}.json")["capabilities"]}
    assert "pypto_pro_cce" not in routes, "950PR and 950DT only"
    assert "catlass_dsl" not in routes, "its compiler knows the 950 line only"
    assert routes <= {"ascendc_direct", "catlass_cpp", "triton_ascend"}
    assert ("triton_ascend" in routes) is (arm != "xllm"), "xLLM is C++ and calls no Triton kernel"


def test_the_stages_cut_every_request_into_exactly_one() -> None:
    stages = [stage["bounds"] for stage in load(A3 / "workload.json")["stages"]]
    longest_in = max(bounds["input_max_tokens"] for bounds in stages)
    longest_out = max(bounds["output_max_tokens"] for bounds in stages)
    assert longest_in + longest_out == POSITIONS
    edges_in = sorted({bounds[key] for bounds in stages for key in ("input_min_tokens", "input_max_tokens")})
    edges_out = sorted({bounds[key] for bounds in stages for key in ("output_min_tokens", "output_max_tokens")})
    for prompt in edges_in:
        for answer in edges_out:
            homes = [
                bounds
                for bounds in stages
                if bounds["input_min_tokens"] <= prompt <= bounds["input_max_tokens"]
                and bounds["output_min_tokens"] <= answer <= bounds["output_max_tokens"]
            ]
            assert len(homes) == 1, (prompt, answer)


def _shapes(site: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        operand["name"]: [size["sym"] if isinstance(size, dict) else size for size in operand["shape"]]
        for operand in site["operands"]
    }


@pytest.mark.parametrize("arm", ["xllm", "vllm_ascend", "sglang_ascend"])
def test_shapes_and_calls_follow_from_the_models_config(arm: str) -> None:
    sites = {
        site["id"].removeprefix(f"{arm}."): site
        for site in load(A3 / "workload.json")["callsites"]
        if site["arm"] == arm
    }
    qkv = (HEADS + 2 * KV_HEADS) * HEAD_DIM
    for step, rows, columns, calls in (
        ("qkv-proj", HIDDEN, qkv, LAYERS),
        ("o-proj", HEADS * HEAD_DIM, HIDDEN, LAYERS),
        ("gate-up-proj", HIDDEN, 2 * INTERMEDIATE, LAYERS),
        ("down-proj", INTERMEDIATE, HIDDEN, LAYERS),
        ("lm-head", HIDDEN, VOCAB, 1),
    ):
        tokens = "B" if step == "lm-head" else "T"
        expected = {"x": [tokens, rows], "weight": [columns, rows], "y": [tokens, columns]}
        assert _shapes(sites[step]) == expected
        assert sites[step]["calls_per_step"] == calls
    assert sites["rms-norm"]["calls_per_step"] + sites["add-rms-norm"]["calls_per_step"] == 2 * LAYERS + 1
    for step in ("kv-write", "prefill-attention", "decode-attention", "swiglu"):
        assert sites[step]["calls_per_step"] == LAYERS
    assert _shapes(sites["swiglu"]) == {"x": ["T", 2 * INTERMEDIATE], "y": ["T", INTERMEDIATE]}
    assert _shapes(sites["kv-write"])["key_cache"] == ["N", BLOCK, KV_HEADS, HEAD_DIM]
    query = _shapes(sites["decode-attention"])["query"]
    assert query == (["B", 1, HEADS * HEAD_DIM] if arm == "sglang_ascend" else ["B", HEADS, HEAD_DIM])
    norms = {"q-norm", "k-norm"} if arm == "xllm" else {"qk-norm-rope"}
    for step in {"rms-norm", "add-rms-norm"} | norms:
        assert {"name": "eps", "value": EPS} in sites[step]["attributes"]
    for step in norms:
        assert sites[step]["calls_per_step"] == LAYERS
    if arm == "xllm":
        assert sites["rms-norm"]["calls_per_step"] == LAYERS + 1, "its layer adds and normalises in one step once"
        assert sites["residual-add"]["calls_per_step"] == LAYERS
        assert _shapes(sites["q-norm"])["x"] == ["T", HEADS, HEAD_DIM]
        assert _shapes(sites["k-norm"])["x"] == ["T", KV_HEADS, HEAD_DIM]
        assert _shapes(sites["qkv-split"])["qkv"] == ["T", qkv]
    else:
        assert sites["rms-norm"]["calls_per_step"] == 1
        assert _shapes(sites["qk-norm-rope"])["qkv"] == ["T", qkv]
    assert set(sites) == norms | {
        "rms-norm", "add-rms-norm", "qkv-proj", "o-proj", "gate-up-proj", "down-proj", "lm-head", "kv-write",
        "prefill-attention", "decode-attention", "swiglu", *(("qkv-split", "rope", "residual-add") * (arm == "xllm")),
    }  # fmt: skip


def test_one_symbol_has_one_domain_across_the_public_workload() -> None:
    domains: dict[str, Any] = {}
    for site in load(A3 / "workload.json")["callsites"]:
        for operand in site["operands"]:
            for size in operand["shape"]:
                if isinstance(size, dict):
                    assert domains.setdefault(size["sym"], size) == size
    blocks_per_request = domains["M"]["max"]
    assert blocks_per_request * BLOCK == POSITIONS
    block_bytes = 2 * LAYERS * KV_HEADS * HEAD_DIM * 2 * BLOCK
    assert domains["N"]["max"] == 64 * 2**30 // block_bytes, "what 64 GiB of memory could hold at most"


def test_the_host_draft_leaves_open_what_its_machine_says_and_nothing_else() -> None:
    assert placeholders(HOST / "workload.json") == {}
    assert set(placeholders(HOST / "suite.json")) == {"/soc/name", "/toolkit/version", "/toolkit/build"}
    assert set(placeholders(HOST / "arms" / "host_reference.json")) == {
        "/capabilities/0/soc", "/capabilities/0/toolkit/version", "/capabilities/0/toolkit/build",
        "/environment/soc/name", "/environment/toolkit/version", "/environment/toolkit/build", "/environment/python",
        "/environment/frameworks/0/revision", "/environment/libraries", "/environment/host/architecture",
        "/environment/host/cpu_model", "/environment/host/cpu_features_digest", "/environment/host/cores",
        "/environment/host/libc", "/environment/host/compiler_digest", "/environment/host/toolkit_tree_digest",
        "/ranks/devices", "/baseline/incumbent_digest",
        "/capture/path", "/noise/noise_limit_ratio", "/trust/keys",
    }  # fmt: skip


def test_the_host_demo_states_its_policy() -> None:
    acceptance = load(HOST / "arms" / "host_reference.json")["acceptance"]
    rules = {rule["id"]: rule for rule in acceptance["gains"]}
    assert rules["op-latency"] == {
        "id": "op-latency", "gate": "operator", "metric": "latency", "unit": "ns", "better": "lower",
        "statistic": "median", "threshold_ratio": 0.2,
    }  # fmt: skip
    assert {rule["metric"] for rule in acceptance["guards"]} == {"ttft", "tpot"}
    assert acceptance["confidence"] == 0.95
    assert acceptance["row_margin_ratio"] == 0.2
    assert acceptance["pairs"]["operator"] == 8
    assert acceptance["pairs"]["blocks"] == 3


def test_the_host_workload_declares_weights_that_add_up() -> None:
    workload = load(HOST / "workload.json")
    assert workload["source"]["kind"] == "declared"
    assert sum(stage["weight_ratio"] for stage in workload["stages"]) == pytest.approx(1)
    for stage in workload["stages"]:
        assert sum(shape["weight_ratio"] for shape in stage["shapes"]) == pytest.approx(1)
        assert {shape["calls"] for shape in stage["shapes"]} == {0}, "nothing was seen"
    (site,) = workload["callsites"]
    assert site["id"] == "rms-norm"
    assert site["calls_per_step"] == 2 * LAYERS + 1


def test_the_host_model_is_the_config_beside_it_and_no_weights() -> None:
    model = load(HOST / "suite.json")["model"]
    config = (HOST / "model" / "config.json").read_bytes()
    assert model["config_digest"] == "sha256:" + hashlib.sha256(config).hexdigest()
    assert model["weights_digest"] == "sha256:" + hashlib.sha256(b"").hexdigest()
    facts = json.loads(config)
    assert (facts["hidden_size"], facts["num_hidden_layers"], facts["rms_norm_eps"]) == (HIDDEN, LAYERS, EPS)
    assert facts["architectures"] == [model["architecture"]]
    assert facts["torch_dtype"] == model["dtype"]
