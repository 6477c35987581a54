"""`akf ingest framework`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.arms import FILES, QWEN3_8B, config
from tests.support.cli import inside

pytestmark = pytest.mark.usefixtures("state")
WORDS: list[str | Path] = ["ingest", "framework", "--arm", "vllm_ascend", "--model-config", QWEN3_8B]


def test_the_draft_is_published_whole_and_replaces_nothing(tmp_path: Path) -> None:
    out = tmp_path / "new" / "workload.json"
    words = [*WORDS, "--config", FILES / "vllm_ascend.json", "--revision", "v0.25.1rc1", "--model", "Qwen3-8B"]
    answer = inside(*words, "--out", out, "--id", "my-draft")
    assert answer.status == 0
    assert answer.document["workload"] == str(out)
    workload = json.loads(out.read_text(encoding="utf-8"))
    assert (workload["id"], workload["model"]) == ("my-draft", "Qwen3-8B")
    assert len(answer.document["blockers"]) == 8, "weight and sizes of four stages"
    valid = inside("validate", out)
    assert valid.document["valid"]
    before = out.read_bytes()
    again = inside(*words, "--out", out)
    assert again.status == 5
    assert out.read_bytes() == before


def test_without_a_target_the_draft_is_in_the_answer() -> None:
    answer = inside(*WORDS)
    assert answer.document["workload"]["id"] == "qwen3-vllm_ascend-tp1"
    assert answer.document["revision"]["stated"] is None
    assert answer.document["log"] is None
    origins = {setting["name"]: setting["from"] for setting in answer.document["settings"]}
    assert set(origins.values()) == {"default"}
    names = {site["id"]: site for site in answer.document["callsites"]}
    assert names["vllm_ascend.swiglu"]["kernels"] == ["SwiGlu"]
    assert names["vllm_ascend.kv-write"]["kernels_unverified"] == ["ScatterPaKvCache"]


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    logs: list[str | Path] = ["--log", FILES / "vllm_ascend.log"]
    assert inside(*WORDS, *logs, "--out", first).status == 0
    assert inside(*WORDS, *logs, "--out", second).status == 0
    assert first.read_bytes() == second.read_bytes()


CAMPAIGN = Path(__file__).parents[2] / "examples" / "traffic" / "campaign" / "vllm_ascend.json"


def test_a_campaign_gives_the_names_that_must_fit_it(tmp_path: Path) -> None:
    wanted = json.loads(CAMPAIGN.read_bytes())
    inside(*WORDS, "--campaign", CAMPAIGN, "--out", tmp_path / "w.json").accepted()
    workload = json.loads((tmp_path / "w.json").read_bytes())
    assert (workload["id"], workload["model"]) == (wanted["workload"]["id"], wanted["model"]["name"])
    same = ["--id", wanted["workload"]["id"], "--model", wanted["model"]["name"]]
    inside(*WORDS, *same, "--campaign", CAMPAIGN, "--out", tmp_path / "same.json").accepted()
    assert (tmp_path / "same.json").read_bytes() == (tmp_path / "w.json").read_bytes()


def test_what_contradicts_the_campaign_is_refused_all_at_once(tmp_path: Path) -> None:
    words = ["ingest", "framework", "--arm", "xllm", "--model-config", QWEN3_8B, "--id", "mine", "--model", "Mine"]
    answer = inside(*words, "--campaign", CAMPAIGN, "--out", tmp_path / "w.json").refused(2)
    assert [problem["message"].split(":")[0] for problem in answer.problems] == ["--arm", "--id", "--model"]
    assert answer.codes == {"AKF-F313"}
    assert not (tmp_path / "w.json").exists()


def test_an_id_that_is_none_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    answer = inside(*WORDS, "--id", "No Id", "--out", tmp_path / "out.json")
    assert answer.status == 2
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--model", "/srv/models/Qwen3-8B"), ("--model", "alice@node-7"), ("--model", ""), ("--model", "x" * 257),
        ("--model", "\x1b[31m"), ("--id", ""), ("--tp", "0"), ("--tp", "1" + "0" * 30),
    ],
    ids=lambda words: " ".join(words)[:24],
)  # fmt: skip
def test_a_name_that_is_none_is_a_usage_error(words: tuple[str, str], tmp_path: Path) -> None:
    answer = inside(*WORDS, *words, "--out", tmp_path / "out.json")
    assert answer.status == 2
    assert not (tmp_path / "out.json").exists()


def test_a_refusal_says_all_problems_with_their_lines(tmp_path: Path) -> None:
    broken = config(tmp_path, hidden_size=0, attention_bias=True)
    answer = inside("ingest", "framework", "--arm", "xllm", "--model-config", broken)
    assert answer.status == 1
    assert [problem["pointer"] for problem in answer.document["problems"]] == ["/attention_bias", "/hidden_size"]
    assert all(problem["line"] == 1 for problem in answer.document["problems"])


PROFILE = FILES.parent / "profiles" / "two-ranks"


def test_a_profile_takes_in_the_log_of_its_run(tmp_path: Path) -> None:
    pytest.importorskip("polars", reason="polars is not installed")
    out = tmp_path / "capture.json"
    words: list[str | Path] = ["ingest", "profile", PROFILE, "--arm", "vllm_ascend", "--log", FILES / "vllm_ascend.log"]
    answer = inside(*words, "--out", out)
    assert answer.status == 0
    assert answer.document["health"]["eager_share_ratio"] == 0.05
    capture = json.loads(out.read_text(encoding="utf-8"))
    assert capture["health"] == answer.document["health"]
    assert "framework.log" in [source["name"] for source in capture["sources"]]
    for without in ([], ["--arm", "llama"]):
        assert inside("ingest", "profile", PROFILE, *without, "--log", FILES / "vllm_ascend.log").status == 2
