"""`akf ingest profile`: a whole, valid Capture or nothing."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import akf, inside
from tests.support.profiles import KERNEL_DETAILS, Ran, kernel_table, torch_npu

from akf.contracts.canonical import parse_canonical
from akf.contracts.schemas import validate

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "suites" / "qwen3-8b-a3-bf16" / "workload.json"
START = 1736408883704643212
NORM = Ran(
    "aclnnRmsNorm_RmsNorm_RmsNorm", "RmsNorm", "AI_VECTOR_CORE", START, 1000, shapes=("16,4096;4096", "16,4096;16,1"),
    dtypes=("DT_BF16;DT_BF16", "DT_BF16;FLOAT"),
)  # fmt: skip
SWIGLU = Ran(
    "aclnnSwiGlu_SwiGlu_SwiGlu", "SwiGlu", "AI_VECTOR_CORE", START + 2000, 1000, shapes=("16,24576", "16,12288")
)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return torch_npu(tmp_path, [NORM, SWIGLU], stages={1: 5_000})


def test_a_capture_is_written_whole_and_canonical(profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "capture.json"
    answer = inside("ingest", "profile", profile, "--out", out, "--id", "decode-1", "--stage", "decode").accepted()
    document = parse_canonical(out.read_bytes(), str(out))
    assert validate(document, "Capture") == []
    assert (document.value["id"], document.value["stage"]) == ("decode-1", "decode")
    assert answer.document["capture"] == str(out)
    assert answer.document["hotspots"][0]["exposed_ns"] == 1000


def test_without_out_nothing_is_written(profile: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    document = inside("ingest", "profile", profile).accepted().document
    assert document["capture"] is None
    assert sorted(tmp_path.rglob("*")) == before


def test_the_answer_is_that_of_the_file(profile: Path, tmp_path: Path) -> None:
    dry = inside("ingest", "profile", profile).document
    wet = inside("ingest", "profile", profile, "--out", tmp_path / "capture.json").document
    assert dry["digest"] == wet["digest"]


def test_what_is_refused_leaves_nothing(profile: Path, tmp_path: Path) -> None:
    table = profile / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    table.write_text(table.read_text() + "1,2,3\n")
    answer = inside("ingest", "profile", profile, "--out", tmp_path / "capture.json").refused(1)
    assert [(problem["code"], problem["line"]) for problem in answer.problems] == [("AKF-F113", 4)]
    assert not (tmp_path / "capture.json").exists()


def test_a_file_is_never_replaced(profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "capture.json"
    out.write_text("mine")
    assert inside("ingest", "profile", profile, "--out", out).refused(5).codes == {"AKF-C101"}
    assert out.read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ("--data-class", "secret"),
        ("--stage", "warmup"),
        ("--platform", "tpu"),
        ("--platform", "cuda"),
        ("--arm", "vllm_ascend"),
    ],
)
def test_options_that_do_not_fit(profile: Path, words: tuple[str, ...]) -> None:
    assert inside("ingest", "profile", profile, *words).refused(2).codes == {"AKF-F135"}


def test_an_id_is_refused_as_everywhere(profile: Path) -> None:
    assert inside("ingest", "profile", profile, "--id", "No").refused(2).codes == {"AKF-S032"}


def test_kernels_are_given_to_callsites_and_calls_counted(profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "capture.json"
    words = ("--workload", SUITE, "--arm", "vllm_ascend")
    answer = inside("ingest", "profile", profile, *words, "--out", out).accepted().document
    mapped = {entry["op_type"]: entry["callsite"] for entry in json.loads(out.read_text())["entries"]}
    sites = {site["id"]: site for site in json.loads(SUITE.read_text())["callsites"]}
    assert mapped["SwiGlu"] is not None
    assert "swiglu" in sites[mapped["SwiGlu"]]["op"].replace("_", "") or "silu" in sites[mapped["SwiGlu"]]["op"]
    seen = {line["callsite"]: (line["expected_calls"], line["seen_calls"]) for line in answer["completeness"]}
    assert seen[mapped["SwiGlu"]] == (sites[mapped["SwiGlu"]]["calls_per_step"], 1)


def test_without_polars_it_says_how_to_get_it(profile: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden" / "polars"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('hidden')")
    path = os.pathsep.join([str(hidden.parent), os.environ.get("PYTHONPATH", "")])
    answer = akf("ingest", "profile", profile, env={"PYTHONPATH": path}).refused(6)
    assert [(p["code"], "ascend-kernel-forge[traffic]" in p["hint"]) for p in answer.problems] == [("AKF-F130", True)]


def errors_on_a_terminal(*words: object) -> bytes:
    """What a person sees on standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "akf", *map(str, words)], stdout=subprocess.DEVNULL, stderr=theirs
    ) as child:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65_536):
                seen += part
        except OSError:  # the other end is closed
            pass
        assert child.wait() == 0
    os.close(ours)
    return seen


def test_a_bar_for_who_watches_and_no_trace_of_it(profile: Path) -> None:
    seen = errors_on_a_terminal("ingest", "profile", profile)
    assert b"100 %" in seen
    assert seen.endswith(b"\r\x1b[K")
    assert errors_on_a_terminal("ingest", "profile", profile, "--quiet") == b""
    assert akf("ingest", "profile", profile).err == ""


def test_a_table_by_any_name(tmp_path: Path) -> None:
    table = tmp_path / "profile of today.csv"
    table.write_text(kernel_table([NORM], KERNEL_DETAILS["2026"]))
    assert inside("ingest", "profile", table).accepted().document["entries"] == 1
