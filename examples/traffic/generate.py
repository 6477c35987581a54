"""Makes the example inputs beside it: a profile, a benchmark, a trace of requests, the config of a model.

The model does not exist, and everything here is invented. The files have the layout that the tools write; the numbers
mean nothing about any board or model. `python examples/traffic/generate.py` writes them anew; a test holds them to be
what this script writes.

A `Case` is one story: which kernels run in a decode step, how long, with which gaps. The committed files are `Case()`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

BATCH, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCABULARY = 16, 1024, 2, 8, 2, 128, 3072, 32000
BLOCKS, BLOCK, TABLE = 64, 128, 8
QKV = (HEADS + 2 * KV_HEADS) * HEAD_DIM
EPOCH_NS = 1_790_000_000_000_000_000
FIRST_STEP = 20
SINGLE_OPERATOR, GRAPH = 4294967295, 7
NO_SCALAR_PLACES = 11  # optional operands of the attention between its tensors and its block table
CUBE_MHZ = 1800

COLUMNS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID,aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,"
    "aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,"
    "aic_fixpipe_time(us),aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),"
    "aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),"
    "aiv_mte3_ratio,aiv_icache_miss_rate,cube_utilization(%)"
)
STEP_COLUMNS = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
CUBE_PIPES = ("mac", "scalar", "mte1", "mte2", "fixpipe")
VECTOR_PIPES = ("vec", "scalar", "mte2", "mte3")
TRANSFER_BOUND = {"mte2": 86, "vec": 30, "scalar": 12, "mte3": 41}
EVEN = {"mac": 44, "scalar": 8, "mte1": 40, "mte2": 55, "fixpipe": 12, "vec": 40, "mte3": 20}


@dataclass(frozen=True)
class Kernel:
    """One launch of a decode step: what the profiler writes of it, and how busy its pipes are in percent."""

    part: str
    name: str
    type: str
    core: str
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    """One story. Times are in nanoseconds; `parts` names the parts of a layer as `kernels` does."""

    steps: int = 8
    graph: bool = True
    between_ns: int = 600
    between_steps_ns: int = 9_000
    times_ns: dict[str, int] = field(
        default_factory=lambda: {
            "rms-norm": 4_100, "qkv-proj": 9_800, "qk-norm-rope": 5_200, "kv-write": 3_300, "attention": 14_900,
            "o-proj": 7_400, "add-rms-norm": 31_000, "gate-up-proj": 19_500, "swiglu": 6_100, "down-proj": 11_200,
            "lm-head": 38_000, "sample": 6_900, "q-norm": 3_000, "k-norm": 2_400, "rope": 4_000,
        }
    )  # fmt: skip
    busy: dict[str, dict[str, int]] = field(default_factory=lambda: {"add-rms-norm": TRANSFER_BOUND})
    host_ns: dict[str, int] = field(default_factory=dict)
    """Host time of one call, by interface, for interfaces of the operators of a layer."""


def kernels(case: Case) -> Iterator[Kernel]:
    """Return the launches of one decode step, in order."""
    hidden, bf16 = f"{BATCH},{HIDDEN}", "DT_BF16"
    norm = (hidden, bf16), (f"{BATCH},1", "FLOAT")
    cache = f"{BLOCKS},{BLOCK},{KV_HEADS},{HEAD_DIM}"
    flat = f"{BLOCKS},{BLOCK},{KV_HEADS * HEAD_DIM}"
    new = f"{BATCH},{KV_HEADS},{HEAD_DIM}"

    def matmul(part: str, inner: int, outer: int) -> Kernel:
        inputs = ((f"{BATCH},{inner}", bf16), (f"{outer},{inner}", bf16))
        return Kernel(part, "aclnnMatmul_MatMulCommon_MatMulV2", "MatMulV2", "AI_CORE", inputs,
                      ((f"{BATCH},{outer}", bf16),))  # fmt: skip

    def add_norm() -> Kernel:
        inputs = ((hidden, bf16), (hidden, bf16), (str(HIDDEN), bf16), ("", "DT_UNDEFINED"))
        return Kernel("add-rms-norm", "aclnnAddRmsNormBias_AddRmsNormBias_AddRmsNormBias", "AddRmsNormBias",
                      "AI_VECTOR_CORE", inputs, (*norm, (hidden, bf16)))  # fmt: skip

    yield Kernel("rms-norm", "aclnnRmsNorm_RmsNorm_RmsNorm", "RmsNorm", "AI_VECTOR_CORE",
                 ((hidden, bf16), (str(HIDDEN), bf16)), norm)  # fmt: skip
    for _ in range(LAYERS):
        yield matmul("qkv-proj", HIDDEN, QKV)
        yield from _norms_and_rope(case.graph)
        yield Kernel("kv-write", "ReshapeAndCacheNdKernel", "ReshapeAndCacheNdKernel", "AI_VECTOR_CORE",
                     ((new, bf16), (new, bf16), (cache, bf16), (cache, bf16), (str(BATCH), "INT32")),
                     ((cache, bf16), (cache, bf16)))  # fmt: skip
        query = (f"{BATCH},{HEADS},{HEAD_DIM}", bf16)
        absent = (("", "DT_UNDEFINED"),) * NO_SCALAR_PLACES
        yield Kernel("attention", "aclnnFusedInferAttentionScoreV3_FusedInferAttentionScore_FusedInferAttentionScore",
                     "FusedInferAttentionScore", "MIX_AIC",
                     (query, (flat, bf16), (flat, bf16), *absent, (f"{BATCH},{TABLE}", "INT32")),
                     (query, ("", "FLOAT")))  # fmt: skip
        yield matmul("o-proj", HIDDEN, HIDDEN)
        yield add_norm()
        yield matmul("gate-up-proj", HIDDEN, 2 * INTERMEDIATE)
        yield Kernel("swiglu", "aclnnSwiGlu_SwiGlu_SwiGlu", "SwiGlu", "AI_VECTOR_CORE",
                     ((f"{BATCH},{2 * INTERMEDIATE}", bf16),), ((f"{BATCH},{INTERMEDIATE}", bf16),))  # fmt: skip
        yield matmul("down-proj", INTERMEDIATE, HIDDEN)
        yield add_norm()
    yield matmul("lm-head", HIDDEN, VOCABULARY)
    yield Kernel("sample", "aclnnArgMax_ArgMaxV2_ArgMaxV2", "ArgMaxV2", "AI_VECTOR_CORE",
                 ((f"{BATCH},{VOCABULARY}", bf16), ("", "INT32")), ((str(BATCH), "INT32"),))  # fmt: skip


def _norms_and_rope(fused: bool) -> Iterator[Kernel]:
    """Norms of query and key, and rotary embedding: one kernel where graphs are compiled, else three."""
    bf16, core, head = "DT_BF16", "AI_VECTOR_CORE", (str(HEAD_DIM), "DT_BF16")
    if fused:
        yield Kernel("qk-norm-rope", "split_qkv_rmsnorm_rope_kernel", "split_qkv_rmsnorm_rope_kernel", core,
                     ((f"{BATCH},{QKV}", bf16), head, head), ((f"{BATCH},{HEADS * HEAD_DIM}", bf16),))  # fmt: skip
        return
    query, key = (f"{BATCH},{heads},{HEAD_DIM}" for heads in (HEADS, KV_HEADS))
    for part, shape, heads in (("q-norm", query, HEADS), ("k-norm", key, KV_HEADS)):
        yield Kernel(part, "aclnnRmsNorm_RmsNorm_RmsNorm", "RmsNorm", core, ((shape, bf16), head),
                     ((shape, bf16), (f"{BATCH},{heads},1", "FLOAT")))  # fmt: skip
    yield Kernel("rope", "_triton_rope", "_triton_rope", core, ((query, bf16), (key, bf16)),
                 ((query, bf16), (key, bf16)))  # fmt: skip


def rows(case: Case) -> Iterator[tuple[int, int, int, Kernel]]:
    """Return step, start and duration of every launch."""
    now, number = EPOCH_NS, 0
    for step in range(FIRST_STEP, FIRST_STEP + case.steps):
        for kernel in kernels(case):
            number += 1
            time = case.times_ns[kernel.part] * (1000 + number * 7919 % 41 - 20) // 1000
            yield step, now, time, kernel
            now += time + case.between_ns
        now += case.between_steps_ns + step * 7 % 5 * 100


def kernel_details(case: Case) -> str:
    """Return kernel_details.csv."""
    lines = [COLUMNS]
    ended = EPOCH_NS
    for number, (step, start, time, kernel) in enumerate(rows(case)):
        model = GRAPH if case.graph else SINGLE_OPERATOR
        head = f"{step},0,{model},{number},2,{kernel.name},{kernel.type},dynamic,{kernel.core}"
        mix = 40 if kernel.core == "MIX_AIC" else 0
        blocks = 16 if kernel.core == "AI_VECTOR_CORE" else 20
        lines.append(
            f"{head},{_us(start)}\t,{_us(time)},{_us(start - ended)},{blocks},{mix},NO,{_operands(kernel.inputs)},"
            f"{_operands(kernel.outputs)},N/A,{_counters(case, kernel, time)}"
        )
        ended = start + time
    return "\n".join(lines) + "\n"


def step_trace_time(case: Case) -> str:
    """Return step_trace_time.csv: a step lasts until the next one begins."""
    lines = [STEP_COLUMNS]
    steps: dict[int, list[tuple[int, int]]] = {}
    for step, start, time, _ in rows(case):
        steps.setdefault(step, []).append((start, time))
    starts = [launches[0][0] for launches in steps.values()]
    ends = [*starts[1:], sum(steps[FIRST_STEP + case.steps - 1][-1])]
    for (step, launches), start, end in zip(steps.items(), starts, ends, strict=True):
        computing = sum(time for _, time in launches)
        free = _us(end - start - computing)
        lines.append(f"0,{step},{_us(computing)},0.0,0.0,0.0,{free},{_us(end - start)},0.0,0.0,0.0")
    return "\n".join(lines) + "\n"


def op_statistic(case: Case) -> str:
    """Return op_statistic.csv."""
    times: dict[tuple[str, str], list[int]] = {}
    for _, _, time, kernel in rows(case):
        times.setdefault((kernel.type, kernel.core), []).append(time)
    everything = sum(map(sum, times.values()))
    lines = ["Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"]
    for (kind, core), found in sorted(times.items(), key=lambda each: -sum(each[1])):
        ratio = sum(found) * 100_000 // everything
        mean = _us(sum(found) // len(found))
        numbers = f"{_us(sum(found))},{_us(min(found))},{mean},{_us(max(found))},{_us(ratio)}"
        lines.append(f"0,{kind},{core},{len(found)},{numbers}")
    return "\n".join(lines) + "\n"


def api_statistic(case: Case) -> str:
    """Return api_statistic.csv."""
    lines = ["Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"]
    launches = 1 if case.graph else sum(1 for _ in kernels(case))
    apis = {"aclmdlRIExecuteAsync" if case.graph else "aclrtLaunchKernel": (launches * case.steps, 4_500)}
    apis |= {name: (case.steps * LAYERS, time) for name, time in case.host_ns.items()}
    for name, (count, time) in sorted(apis.items()):
        level = "acl" if name.endswith("_Tiling") else "runtime"
        lines.append(f"host,{level},{name},{_us(count * time)},{count},{_us(time)},{_us(time)},{_us(time)},0.0")
    return "\n".join(lines) + "\n"


def profiler_info(case: Case) -> str:
    """Return profiler_info_0.json."""
    last = list(rows(case))[-1]
    experimental = {
        "_profiler_level": "Level1", "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION", "_l2_cache": False,
        "_data_simplification": True, "_export_type": ["text"],
    }  # fmt: skip
    common = {
        "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"],
        "schedule": {"wait": 0, "active": case.steps, "warmup": 2, "repeat": 1, "skip_first": FIRST_STEP - 2},
        "record_shapes": True, "profile_memory": False, "with_stack": False, "with_flops": False, "with_modules": False,
    }  # fmt: skip
    return _json(
        {
            "config": {"common_config": common, "experimental_config": experimental},
            "start_info": {"syscnt_enable": True, "freq": 50, "start_cnt": 1, "start_monotonic": 1},
            "end_info": {"collectionTimeEnd": last[1] + last[2], "MonotonicTimeEnd": last[1] + last[2] - EPOCH_NS},
            "rank_id": 0,
            "torch_npu_version": "2.10.0",
            "cann_version": "9.1.0",
        }
    )


def model_config() -> str:
    """Return the model's config.json."""
    return _json(
        {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD_DIM, "intermediate_size": INTERMEDIATE, "vocab_size": VOCABULARY, "hidden_act": "silu",
            "rms_norm_eps": 1e-06, "rope_theta": 1000000, "max_position_embeddings": 4096, "attention_bias": False,
            "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        }
    )  # fmt: skip


def bench(requests: int = 20, concurrency: int = BATCH) -> str:
    """Return what `vllm bench serve` leaves, of requests that nobody sent."""
    lengths = [(180 + at * 53 % 90, 300 + at * 29 % 160) for at in range(requests)]
    ttfts = [48_000_000 + at * 7_919_000 % 9_000_000 for at in range(requests)]
    gaps = [[620_000 + (at * 31 + token * 17) % 60_000 for token in range(out - 1)]
            for at, (_, out) in enumerate(lengths)]  # fmt: skip
    latencies = [ttft + sum(each) for ttft, each in zip(ttfts, gaps, strict=True)]
    duration = sum(latencies) // 10
    tpots = [sum(each) / len(each) for each in gaps]
    flat = [gap for each in gaps for gap in each]
    tokens_in, tokens_out = (sum(pair[side] for pair in lengths) for side in (0, 1))
    value = {
        "date": "20261130-120000", "endpoint_type": "vllm", "backend": "vllm", "label": None,
        "model_id": "example/tiny", "tokenizer_id": "example/tiny", "num_prompts": requests, "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": concurrency, "duration": duration / 1e9, "completed": requests, "failed": 0,
        "total_input_tokens": tokens_in, "total_output_tokens": tokens_out,
        "request_throughput": requests * 1e9 / duration, "request_goodput": None,
        "output_throughput": tokens_out * 1e9 / duration,
        "total_token_throughput": (tokens_in + tokens_out) * 1e9 / duration,
        "latencies": [each / 1e9 for each in latencies], "queue_times": [0.0] * requests,
        "max_output_tokens_per_s": float(tokens_out), "max_concurrent_requests": requests, "rtfx": 0.0,
        **_printed("ttft", ttfts), **_printed("tpot", tpots), **_printed("itl", flat),
    }  # fmt: skip
    return json.dumps(value) + "\n"


def requests(count: int = 24) -> str:
    """Return a trace in the layout of Bailian's: seconds, blocks of 16 tokens, a shared beginning."""
    lines = []
    for at in range(count):
        tokens = 96 + at * 37 % 160
        blocks = [0, 1, 2, *(100 * at + place for place in range(3, -(-tokens // 16)))]
        lines.append(json.dumps({
            "chat_id": at, "parent_chat_id": -1, "timestamp": at * 250 / 1000, "input_length": tokens,
            "output_length": 300 + at * 29 % 160, "type": "text", "turn": 1, "hash_ids": blocks,
        }))  # fmt: skip
    return "\n".join(lines) + "\n"


def files(case: Case) -> dict[str, str]:
    """Return every example file by its path."""
    profile, output = "decode_ascend_pt", "decode_ascend_pt/ASCEND_PROFILER_OUTPUT"
    return {
        f"{profile}/profiler_info_0.json": profiler_info(case),
        f"{profile}/profiler_metadata.json": _json({"ENV_VARIABLES": {"ASCEND_GLOBAL_LOG_LEVEL": "3"}}),
        f"{output}/api_statistic.csv": api_statistic(case),
        f"{output}/kernel_details.csv": kernel_details(case),
        f"{output}/op_statistic.csv": op_statistic(case),
        f"{output}/step_trace_time.csv": step_trace_time(case),
        "bench.json": bench(),
        "config.json": model_config(),
        "requests.jsonl": requests(),
    }


def write(folder: Path, case: Case) -> None:
    """Write every example file into a folder."""
    for name, text in files(case).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _operands(operands: tuple[tuple[str, str], ...]) -> str:
    shapes = ";".join(shape for shape, _ in operands)
    types = ";".join(kind for _, kind in operands)
    return f'"""{shapes}""",{types},{";".join("ND" for _ in operands)}'


def _counters(case: Case, kernel: Kernel, time: int) -> str:
    busy = case.busy.get(kernel.part, EVEN)
    cube = kernel.core != "AI_VECTOR_CORE"
    vector = kernel.core != "AI_CORE"
    mean = time * 94 // 100
    mac = busy.get("mac", 0)
    return ",".join((
        *_pipes(CUBE_PIPES, busy, mean if cube else 0, 20), *_pipes(VECTOR_PIPES, busy, mean if vector else 0, 16),
        f"{mac * 9 // 10}.0" if cube else "0",
    ))  # fmt: skip


def _pipes(pipes: tuple[str, ...], busy: dict[str, int], mean: int, blocks: int) -> Iterator[str]:
    if not mean:
        yield from ("0.0", "0", *("0.0" for _ in pipes for _ in range(2)), "0.0")
        return
    yield from (_us(mean), str(mean * CUBE_MHZ // 1000 * blocks))
    for pipe in pipes:
        percent = busy.get(pipe, 10)
        yield from (_us(mean * percent // 100), f"0.{percent:02d}0")
    yield "0.004"


def _printed(name: str, values: list[int] | list[float]) -> dict[str, float]:
    """Return the figures that the tool prints, in milliseconds; quantiles are linear."""
    ordered = sorted(values)
    mean = sum(ordered) / len(ordered)
    spread = (sum((each - mean) ** 2 for each in ordered) / len(ordered)) ** 0.5

    def quantile(part: int) -> float:
        place = (len(ordered) - 1) * part
        low, rest = divmod(place, 100)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * rest / 100

    shown = {"mean": mean, "median": quantile(50), "std": spread, "p99": quantile(99)}
    return {f"{what}_{name}_ms": value / 1e6 for what, value in shown.items()}


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent, Case())
