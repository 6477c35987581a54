"""What a framework's log tells of the baseline's health, and nothing that is nobody's business."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from tests.support.arms import FILES, drafted, sites

from akf.contracts.problems import InvalidError
from akf.frameworks.health import MAX_LINE_BYTES, MAX_REMARK, MAX_REMARKS, Evidence, read_logs, with_health


def log(folder: Path, *lines: str, name: str = "service.log") -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


ROW = "(APIServer pid=1) INFO 11-30 [x.py:1] | {0:<15} | {1:<13} | {2:<12} | {3:<12} | {4:<5} |"


def read_log(path: Path, arm: str) -> dict[str, Any]:
    """What one log tells."""
    return read_logs([path], arm)[0].health()


def test_vllms_table_counts_replays_padding_and_what_ran_eagerly(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        "INFO - Capture sizes: [32, 16, 8]",
        ROW.format("Unpadded Tokens", "Padded Tokens", "Num Paddings", "Runtime Mode", "Count"),
        ROW.format(13, 16, 3, "FULL", 90),
        ROW.format(30, 32, 2, "CUDAGraphMode.PIECEWISE", 9),
        ROW.format(7, 7, 0, "NONE", 1),
        ROW.format(13, 16, 3, "FULL", 100),
        ROW.format(5000, 5000, 0, "NONE", 40),
    )
    assert read_log(path, "vllm_ascend") == {
        "eager_share_ratio": 1 / 200,
        "buckets": [
            {"size_tokens": 16, "replays": 190, "padded_tokens": 570},
            {"size_tokens": 32, "replays": 9, "padded_tokens": 18},
        ],
        "remarks": ["40 steps of more tokens than every captured size ran without a graph"],
    }


def test_sglangs_decode_batches_are_counted_and_its_prefills_are_not(tmp_path: Path) -> None:
    line = "[2026-11-30 10:00:00 TP0] {} batch, #running-req: 4, token usage: 0.01, npu graph: {}, gen throughput: 9"
    path = log(
        tmp_path, *[line.format("Decode", True)] * 19, line.format("Decode", False), line.format("Prefill", False)
    )
    assert read_log(path, "sglang_ascend") == {"eager_share_ratio": 0.05}


def test_xllms_fallbacks_are_quoted_once_and_its_back_end_is_known(tmp_path: Path) -> None:
    reason = "Falling back to eager mode because decode batch_size (global=32, local=32) > 16; logged only once."
    path = log(
        tmp_path,
        "I20261130 10:00:00 master.cpp:370] Resolved npu_kernel_backend=TORCH for model_type=qwen3",
        f"W20261130 10:00:00.123 77 acl_graph_executor_impl.cpp:958] {reason}",
        f"W20261130 10:00:01.123 78 acl_graph_executor_impl.cpp:958] {reason}",
    )
    assert read_log(path, "xllm") == {"remarks": [reason]}
    made = sites(drafted("xllm", tmp_path, {"npu_kernel_backend": "AUTO"}, logs=[path]))
    assert made["swiglu"]["provider"] == "at_npu::native::custom_ops::npu_swiglu", "the log outweighs the configuration"


def test_custom_operators_that_failed_to_load_are_said_and_acted_upon(tmp_path: Path) -> None:
    path = log(tmp_path, "WARNING Failed to register custom ops, all custom ops will be disabled. no module")
    assert read_log(path, "vllm_ascend")["custom_operators"] is False
    made = sites(drafted("vllm_ascend", tmp_path, {"custom_operators": True}, logs=[path]))
    assert made["add-rms-norm"]["provider"] == "torch_npu.npu_add_rms_norm"


@pytest.mark.parametrize(("counts", "fused"), [((0, 0), False), ((0, 36), True), ((36,), True)])
def test_a_pass_that_matched_nothing_anywhere_left_the_operators_apart(
    counts: tuple[int, ...], fused: bool, tmp_path: Path
) -> None:
    lines = [f"DEBUG 11-30 Fused {count} QKNorm and Rope patterns" for count in counts]
    made = drafted("vllm_ascend", tmp_path, logs=[log(tmp_path, *lines)])
    assert ("qk-norm-rope" in sites(made)) is fused
    assert ("remarks" in made.evidence.health()) is not fused


def test_recompilations_are_counted_and_a_replay_is_noticed(tmp_path: Path) -> None:
    evidence = Evidence("vllm_ascend")
    evidence.read(
        log(tmp_path, "Recompiling function forward in /a/b.py:1", "x", "Recompiling function f", "Replaying aclgraph")
    )
    assert evidence.health() == {"recompiles": 2}
    assert evidence.replay_seen
    assert (evidence.lines, evidence.told) == (4, 3)


def test_what_no_line_tells_is_not_stated(tmp_path: Path) -> None:
    quiet = log(tmp_path, "INFO started", "INFO stopped")
    for arm in ("xllm", "vllm_ascend", "sglang_ascend", "transformers"):
        assert read_log(quiet, arm) == {}


def test_the_shipped_sample_tells_what_its_page_says() -> None:
    assert read_log(FILES / "vllm_ascend.log", "vllm_ascend")["eager_share_ratio"] == 0.05


def test_several_logs_tell_what_one_of_all_lines_would(tmp_path: Path) -> None:
    lines = [ROW.format(13, 16, 3, "FULL", 90), ROW.format(7, 7, 0, "NONE", 1), "Recompiling function f"]
    parts = [log(tmp_path, line, name=f"{name}.log") for name, line in zip("cab", lines, strict=True)]
    whole = log(tmp_path, *lines, name="whole.log")
    first, second = read_logs(parts, "vllm_ascend"), read_logs(parts[::-1], "vllm_ascend")
    assert first[0].health() == second[0].health() == read_log(whole, "vllm_ascend")
    assert first[1] == second[1]
    assert [source["name"] for source in first[1]] == ["framework.log", "framework.2.log", "framework.3.log"]


def test_a_capture_takes_in_what_the_log_tells(tmp_path: Path) -> None:
    path = log(tmp_path, "Recompiling function f")
    capture = {"sources": [{"name": "a", "digest": "sha256:" + "0" * 64}], "health": {"jit_compiles": 2}}
    found = with_health(capture, [path], "vllm_ascend")
    assert found["health"] == {"jit_compiles": 2, "recompiles": 1}
    assert [source["name"] for source in found["sources"]] == ["a", "framework.log"]
    assert with_health(capture, [], "vllm_ascend") == capture
    quiet = log(tmp_path, "nothing", name="quiet.log")
    assert "health" not in with_health({"sources": []}, [quiet], "vllm_ascend")


# ---- nobody's business ----


@pytest.mark.parametrize(
    "secret",
    [
        "/srv/alice/models/qwen",
        "~/weights/x",
        "alice@build-7.corp.example",
        "10.20.30.40:8000",
        "fe80::1ff:fe23:4567:890a",
        "https://alice:pw@registry.corp.example/v1",
        "C:\\Users\\alice\\x",
        "hostname=build-7",
    ],
)
def test_a_remark_names_no_host_no_user_and_no_path(secret: str, tmp_path: Path) -> None:
    path = log(
        tmp_path, f"alice@build-7 W1130 77 /srv/x.cpp:9] Falling back to eager mode because of {secret} and more"
    )
    (remark,) = read_log(path, "xllm")["remarks"]
    assert remark.startswith("Falling back to eager mode because of <")
    assert remark.endswith("> and more")
    for word in ("alice", "build-7", "corp", "srv", "weights", "10.20", "4567", "Users"):
        assert word not in remark


def test_remarks_are_few_short_and_cannot_paint(tmp_path: Path) -> None:
    many = [f"\x1b[31mFalling back to eager mode because {number} \x1b[2J\u202e{'x' * 900}" for number in range(99)]
    remarks = read_log(log(tmp_path, *many), "xllm")["remarks"]
    assert len(remarks) == MAX_REMARKS
    assert max(map(len, remarks)) == MAX_REMARK
    assert all(remark.isprintable() for remark in remarks)


def test_a_log_named_twice_counts_once(tmp_path: Path) -> None:
    path = log(tmp_path, ROW.format(13, 16, 3, "FULL", 90))
    once, twice = read_logs([path], "vllm_ascend"), read_logs([path, path], "vllm_ascend")
    assert (twice[0].health(), twice[1]) == (once[0].health(), once[1])


def test_a_remark_is_not_looked_at_beyond_what_is_kept(tmp_path: Path) -> None:
    """What stands behind may be long; an account that is cut in two would be none any more."""
    words = "/srv/alice/" + "x" * 1100 + " alice@node-7 on node-7"
    (remark,) = read_log(log(tmp_path, f"Falling back to eager mode: {words}"), "xllm")["remarks"]
    assert "alice" not in remark
    dots = log(tmp_path, *["Falling back to eager mode: " + "a." * 8000] * 500, name="dots.log")
    assert read_log(dots, "xllm")["remarks"]


@pytest.mark.parametrize("sizes", ["1 2", "9" * 5000, ",,", "4, " + "8" * 10])
def test_sizes_that_are_none_are_passed_over(sizes: str, tmp_path: Path) -> None:
    path = log(tmp_path, f"INFO - Capture sizes: [{sizes}]", ROW.format(7, 7, 0, "NONE", 2))
    assert set(read_log(path, "vllm_ascend")) <= {"remarks"}


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"y" * (3 * MAX_LINE_BYTES) + b" Recompiling function f\nRecompiling function g\n")
    evidence = Evidence("vllm_ascend")
    evidence.read(path)
    assert evidence.health() == {"recompiles": 1}
    assert evidence.lines == 2


def test_bytes_that_are_no_text_are_no_error(tmp_path: Path) -> None:
    path = tmp_path / "odd.log"
    path.write_bytes(b"\xff\xfe Falling back to eager mode because \xff\n")
    assert read_log(path, "xllm")["remarks"] == ["Falling back to eager mode because \ufffd"]


def test_a_packed_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "service.log.gz"
    path.write_bytes(gzip.compress(b"Falling back to eager mode because\n" * 9, mtime=0))
    with pytest.raises(InvalidError) as caught:
        read_log(path, "xllm")
    assert caught.value.problems[0].code == "AKF-F310"
