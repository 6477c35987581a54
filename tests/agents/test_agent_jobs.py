"""Jobs of agents: a stand-in endpoint plays a conversation, and a stand-in machine judges by what is written."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.endpoint import endpoint

from akf.agents.executors import Conclusion, evolve, handed_in, single
from akf.agents.jobs import Bandit, Request, run_job
from akf.agents.model import Settings
from akf.agents.space import load_space
from akf.agents.trial import Trial
from akf.contracts.problems import InvalidError

pytest.importorskip("openai")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SPACE = load_space(EXAMPLES / "spaces" / "matmul")


def kernel(text: str) -> str:
    return f"FILE: src/kernel.cpp\n```cpp\n{text}\n```\n"


def machine(files: Mapping[str, str], timed: bool) -> Trial:
    """`speed 3.5` in a source is its speed; what says `wrong` is wrong."""
    source = files["src/kernel.cpp"]
    if "wrong" in source:
        return Trial("fail", ("WRONG_RESULT",), ("case one",), None, None, None)
    found = re.search(r"speed ([0-9.]+)", source)
    speed = float(found[1]) if found else 1.0
    return Trial("pass", (), (), speed if timed else None, None, None)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return copied(tmp_path / "rmsnorm")


def copied(folder: Path, name: str = "rmsnorm", budget: Mapping[str, int] | None = None) -> Path:
    shutil.copytree(EXAMPLES / "tasks" / name, folder)
    value = json.loads((folder / "task.json").read_text())
    value["budget"] |= {"tokens": 500_000} | dict(budget or {})
    (folder / "task.json").write_text(json.dumps(value))
    return folder


def request(task: Path, url: str, **fields: Any) -> Request:
    return Request(task, model=Settings("stand-in", url), **fields)


def test_single_plans_writes_and_mends_until_it_passes(task: Path) -> None:
    events: list[str] = []
    with endpoint(["Use lanes.", "no file", kernel("wrong"), kernel("speed 2.5")]) as stand_in:
        asked = request(task, stand_in.url, job_type="single", workflow="default_workflow", rounds=4)
        ended = run_job(asked, lambda kind, _: events.append(kind), machine)
    assert (ended.status, ended.speed) == ("completed", 2.5)
    assert ended.files is not None
    assert "speed 2.5" in ended.files["src/kernel.cpp"]
    assert ended.detail["spent"]["attempts"] == 3
    asked_last = stand_in.questions[-1]["messages"][1]["content"]
    assert "Use lanes." in asked_last
    assert "WRONG_RESULT" in asked_last
    assert events == ["tried", "spent"]


def test_single_ends_failed_when_nothing_passes(task: Path) -> None:
    with endpoint([kernel("wrong")]) as stand_in:
        ended = run_job(request(task, stand_in.url, job_type="single", rounds=3), run=machine)
    assert (ended.status, ended.error) == ("failed", "WRONG_RESULT")
    assert len(stand_in.questions) == 3


def test_evolve_breeds_from_the_fastest(task: Path) -> None:
    answers = [kernel(text) for text in ("speed 1.5", "wrong", "speed 2.0", "speed 1.2")]
    with endpoint(answers) as stand_in:
        ended = run_job(request(task, stand_in.url, rounds=4, children=1, islands=1), run=machine)
    assert (ended.status, ended.speed) == ("completed", 2.0)
    second, fourth = (stand_in.questions[place]["messages"][1]["content"] for place in (1, 3))
    assert "speed 1.5" in second
    assert "2.000 times as fast" in fourth
    assert [line["trials"][0]["outcome"] for line in ended.detail["rounds"]] == ["pass", "fail", "pass", "pass"]


def test_evolve_without_a_model_searches_the_space(tmp_path: Path) -> None:
    def by_tile(files: Mapping[str, str], timed: bool) -> Trial:
        rows = int(re.findall(r"kRows = (\d+)", files["src/kernel.cpp"])[0])
        return Trial("pass", (), (), float(rows) if timed else None, None, None)

    asked = Request(copied(tmp_path / "matmul", "matmul"), space=SPACE, rounds=10, children=2, islands=2)
    ended = run_job(asked, run=by_tile)
    assert (ended.status, ended.speed) == ("completed", 8.0)
    assert ended.detail["tries"] <= SPACE.size // 4
    assert ended.files is not None
    assert f"Found in {ended.detail['tries']} tries" in ended.files["candidate.json"]
    assert ended == run_job(asked, run=by_tile)._replace(detail=ended.detail)


def test_adaptive_search_leaves_the_strategy_that_gains_nothing(tmp_path: Path) -> None:
    with endpoint([kernel("wrong")]) as stand_in:
        task = copied(tmp_path / "matmul", "matmul")
        asked = request(task, stand_in.url, job_type="adaptive_search", rounds=12, children=1, space=SPACE)
        count = iter(range(1, 100))

        def faster(files: Mapping[str, str], timed: bool) -> Trial:
            return machine({"src/kernel.cpp": f"{files['src/kernel.cpp']} speed {next(count)}"}, timed)

        ended = run_job(asked, run=faster)
    rounds = {name: each["rounds"] for name, each in ended.detail["bandit"].items()}
    assert rounds["tuner"] > max(rounds["coder"], rounds["coder_fresh"]) >= 1


def test_a_bandit_tries_each_first_and_then_the_better() -> None:
    bandit = Bandit(["a", "b"])
    chosen = []
    for _ in range(20):
        name = bandit.choose()
        chosen.append(name)
        bandit.learn(name, 1.0 if name == "b" else 0.0)
    assert chosen[:2] == ["a", "b"]
    assert chosen.count("b") > 12


@pytest.mark.parametrize(("budget", "limit"), [({"attempts": 2}, 2), ({"tokens": 20_000}, None)])
def test_a_job_ends_where_the_task_s_limit_is_and_keeps_what_it_has(
    tmp_path: Path, budget: dict[str, int], limit: int | None
) -> None:
    task = copied(tmp_path / "t", budget=budget)
    with endpoint([kernel(f"speed {n}") for n in range(1, 40)], tokens=3000) as stand_in:
        asked = request(
            task, stand_in.url, rounds=30, children=1, islands=1, limits={"attempts": 10**9, "tokens": 10**9}
        )
        ended = run_job(asked, run=machine)
    spent = ended.detail["spent"]
    assert ended.status == "completed"
    assert ended.detail["stopped"] == "spent"
    assert spent["attempts"] <= ended.detail["limits"]["attempts"] <= budget.get("attempts", 50)
    assert spent["tokens"] <= ended.detail["limits"]["tokens"] <= budget.get("tokens", 500_000)
    assert limit is None or spent["attempts"] == limit


def test_a_shipped_task_has_no_tokens_so_no_model_is_asked() -> None:
    with endpoint([kernel("speed 9")]) as stand_in:
        ended = run_job(request(EXAMPLES / "tasks" / "rmsnorm", stand_in.url, job_type="single"), run=machine)
    assert ended.status == "failed"
    assert stand_in.questions == []


@pytest.mark.parametrize("harm", ["raises", "exits", "garbage", "huge"])
def test_an_agent_that_does_harm_harms_its_node_only(tmp_path: Path, harm: str) -> None:
    calls = iter(range(100))

    def bad(files: Mapping[str, str], timed: bool) -> Trial:
        if next(calls) % 2 == 0:
            if harm == "raises":
                raise RuntimeError("no")
            if harm == "exits":
                raise SystemExit(3)
            if harm == "huge":
                return Trial("pass", (), ("x" * 2**27,), 9.0, None, None)
            return Trial({1, 2}, (), (), 9.0, None, None)  # type: ignore[arg-type]
        return machine(files, timed)

    asked = Request(copied(tmp_path / "matmul", "matmul"), space=SPACE, rounds=2, children=2)
    ended = run_job(asked, run=bad)
    assert ended.status == "completed"
    assert ended.detail["tries"] == 4


@pytest.mark.parametrize("field", [{"job_type": "nonsense"}, {"workflow": "nonsense"}, {"rounds": 0}, {"children": 99}])
def test_what_is_not_known_is_refused(task: Path, field: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match="AKF-S723"):
        run_job(Request(task, **field), run=machine)


class WireJob:
    """A Server's job: code is verified by what it says."""

    def __init__(self, **fields: Any) -> None:
        self.request = {
            "op_name": "relu", "task_desc": "class Model: ...", "backend": "cuda", "arch": "a100", "dsl": "triton_cuda",
            "workflow": "coder_only_workflow", "max_rounds": 3, "parallel_num": 1, "num_islands": 1, **fields,
        }  # fmt: skip
        self.events: list[str] = []

    def emit(self, kind: str, data: dict[str, Any]) -> None:
        assert threading.current_thread() is threading.main_thread()
        json.dumps(data)
        self.events.append(kind)

    async def tried(self, code: str) -> Conclusion:
        trial = machine({"src/kernel.cpp": code}, timed=True)
        if not trial.passed:
            return Conclusion("failed", {"success": False, "detail": "differs"}, "differs", "candidate_failed")
        return Conclusion("completed", {"success": True, "profile": {"speedup": trial.speed}}, None, "ok")


@pytest.mark.parametrize("job", [single, evolve])
def test_a_server_s_job_writes_code_and_verifies_it_on_a_worker(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = WireJob()
    with endpoint([kernel("wrong"), kernel("speed 1.7"), kernel("speed 1.1")]) as stand_in:
        monkeypatch.setenv("AKF_MODEL", "stand-in")
        monkeypatch.setenv("AKF_MODEL_URL", stand_in.url)
        ended = asyncio.run(job(wire))
    assert ended.status == "completed"
    assert ended.result is not None
    assert ended.result["success"] is True
    assert ended.result["code"] == "speed 1.7\n"
    assert ended.result["profile"] == {"speedup": 1.7}
    assert "class Model: ..." in stand_in.questions[0]["messages"][1]["content"]


@pytest.mark.parametrize("job", [single, evolve])
def test_without_a_model_nobody_writes(job: Any) -> None:
    ended = asyncio.run(job(WireJob()))
    assert (ended.status, ended.error) == ("error", "no coder configured")


def test_what_a_job_found_lands_in_the_inbox_and_nowhere_else(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("AKF_JOBS_RUN", str(tmp_path / "run"))
    with endpoint([kernel("speed 2")]) as stand_in:
        asked = request(task, stand_in.url, job_type="single")
        ended = run_job(asked, run=machine)
    assert handed_in(asked, ended) == {"inbox": ended.name}
    files = sorted(
        path.relative_to(tmp_path / "run").as_posix() for path in (tmp_path / "run").rglob("*") if path.is_file()
    )
    assert files == [f"inbox/{ended.name}/{each}" for each in ("candidate.json", "src/kernel.cpp", "src/launch.json")]
