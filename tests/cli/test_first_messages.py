"""What somebody meets who types a command for the first time: the answer names what was probably meant."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support import runs
from tests.support.cli import Answer, inside
from tests.support.drafts import Draft
from tests.support.process import NOBODY, in_child

from akf.cli.app import command
from akf.cli.start import LATER
from akf.contracts.problems import AkfError
from akf.contracts.shipped import shipped
from akf.store.run import Run

pytestmark = pytest.mark.usefixtures("state")

SPEC = json.loads((shipped("examples") / "candidates" / "rmsnorm-fused" / "src" / "launch.json").read_bytes())


def hint(answer: Answer, code: str) -> str:
    """The hint of the one problem of this code."""
    (found,) = [problem["hint"] for problem in answer.problems if problem["code"] == code]
    return str(found)


class TestManifest:
    @pytest.fixture
    def agent(self, tmp_path: Path) -> Path:
        return runs.submission(tmp_path / "agent")

    def edited(self, agent: Path, **fields: Any) -> Answer:
        file = agent / "candidate.json"
        value = json.loads(file.read_bytes())
        value["hypothesis"] |= fields.pop("hypothesis", {})
        file.write_text(json.dumps({**value, **fields}))
        return inside("validate", file)

    def test_a_good_one(self, agent: Path) -> None:
        assert self.edited(agent).accepted().document["kind"] == "CandidateManifest"

    def test_a_metric_that_the_bound_does_not_move(self, agent: Path) -> None:
        answer = self.edited(agent, hypothesis={"active_bound": "compute", "metric": "traffic"}).refused(1)
        assert hint(answer, "AKF-M040") == "one of latency, activity, utilization"

    def test_an_empty_range(self, agent: Path) -> None:
        answer = self.edited(agent, hypothesis={"size_low_ratio": 0.7, "size_high_ratio": 0.2}).refused(1)
        assert answer.codes == {"AKF-M044"}

    @pytest.mark.parametrize(
        ("launch", "meant"),
        [
            ("src/launch.json", "did you mean launch.json?"),
            ("lanch.json", "did you mean launch.json?"),
            ("x", "the file is not there"),
        ],
    )
    def test_a_launch_spec_that_is_not_there(self, agent: Path, launch: str, meant: str) -> None:
        answer = self.edited(agent, launch=launch).refused(1)
        assert hint(answer, "AKF-M041") == f"paths are relative to src/; {meant}"
        submitted = inside("submit", agent.parent, agent)
        assert submitted.status == 1

    def test_without_sources_beside_it_that_is_left_open(self, agent: Path) -> None:
        (agent / "src").rename(agent / "elsewhere")
        self.edited(agent, launch="src/launch.json").accepted()
        self.edited(agent, launch=None).refused(1)

    def test_a_file_named_src_is_no_folder_of_sources(self, agent: Path) -> None:
        (agent / "src").rename(agent / "elsewhere")
        (agent / "src").touch()
        self.edited(agent).accepted()

    def test_links_below_the_sources_lead_nowhere(self, agent: Path) -> None:
        (agent / "src" / "loop").symlink_to(".")
        self.edited(agent).accepted()
        self.edited(agent, launch="loop/launch.json").refused(1)


class TestLaunchSpec:
    def said(self, folder: Path, value: Any, *more: str) -> Answer:
        file = folder / "launch.json"
        file.write_text(json.dumps(value))
        return inside("validate", file, *more)

    def test_a_good_one(self, tmp_path: Path) -> None:
        document = self.said(tmp_path, SPEC, "--kind", "LaunchSpec").accepted().document
        assert (document["valid"], document["kind"], document["problems"]) == (True, "LaunchSpec", [])

    @pytest.mark.parametrize(
        ("change", "pointer", "words"),
        [
            ({"gird": []}, "/gird", ['"gird"', "did you mean grid?"]),
            ({"a/b~": 1}, "/a~1b~0", ['"a/b~"', "its fields are"]),
            ({"abi": "pascal"}, "/abi", ["/abi: must be one of ascend, c, cubin"]),
            ({"args": []}, "/args", ["1 to 64"]),
        ],
    )
    def test_a_bad_one(self, tmp_path: Path, change: dict[str, Any], pointer: str, words: list[str]) -> None:
        (problem,) = self.said(tmp_path, {**SPEC, **change}, "--kind", "LaunchSpec").refused(1).problems
        assert (problem["code"], problem["pointer"]) == ("AKF-M043", pointer)
        assert problem["line"]
        assert problem["column"]
        assert all(word in problem["message"] for word in words), problem["message"]

    def test_a_field_of_an_argument(self, tmp_path: Path) -> None:
        args = [{**SPEC["args"][0], "stride": [1]}, *SPEC["args"][1:]]
        args[0].pop("strides")
        (problem,) = self.said(tmp_path, {**SPEC, "args": args}, "--kind", "LaunchSpec").refused(1).problems
        assert problem["pointer"] == "/args/0/stride"
        assert "a tensor argument; did you mean strides?" in problem["message"]

    def test_without_a_kind_the_option_is_named(self, tmp_path: Path) -> None:
        assert "--kind LaunchSpec" in hint(self.said(tmp_path, SPEC).refused(1), "AKF-S020")
        assert "--kind" not in hint(self.said(tmp_path, {"abi": "c", "symbol": "x"}).refused(1), "AKF-S020")

    @pytest.mark.parametrize("value", [[], "x", None])
    def test_what_is_no_object(self, tmp_path: Path, value: Any) -> None:
        self.said(tmp_path, value, "--kind", "LaunchSpec").refused(1)

    def test_a_kind_that_is_none(self, tmp_path: Path) -> None:
        assert hint(self.said(tmp_path, SPEC, "--kind", "launchspec").refused(2), "AKF-U002") == (
            "did you mean LaunchSpec?"
        )
        assert "--kind LaunchSpec" in hint(inside("schema", "LaunchSpec").refused(2), "AKF-U002")


class TestCommands:
    @pytest.mark.parametrize("name", sorted(LATER - set(command().commands)))
    def test_a_command_of_a_later_version(self, name: str) -> None:
        for words in ([name], [name, "x"], [name, "--what"], ["--human", name]):
            answer = inside(*words)
            assert answer.status == 2
            assert f"this version does not have `akf {name}` yet" in answer.text
            assert "did you mean" not in answer.text.lower()

    @pytest.mark.parametrize("words", [[], ["judge"], ["validate"], ["keys"], ["keys", "init"], ["validate-suite"]])
    def test_short_help(self, words: list[str]) -> None:
        short, long = inside(*words, "-h"), inside(*words, "--help")
        assert short == long
        assert short.status == 0
        assert "-h, --help" in short.text


class TestFiles:
    @pytest.mark.parametrize("name", ["suite.json", "task.json", "candidate.json", "trust.json"])
    @pytest.mark.parametrize("words", [["validate"], ["validate-suite"], ["validate-campaign"], ["fill", "--set=/a=1"]])
    def test_a_folder_in_the_place_of_its_file(self, tmp_path: Path, name: str, words: list[str]) -> None:
        (tmp_path / name).touch()
        answer = inside(words[0], tmp_path, *words[1:]).refused(1)
        assert hint(answer, "AKF-F002") == f"did you mean {tmp_path / name}?"

    def test_a_folder_that_holds_none(self, tmp_path: Path) -> None:
        (tmp_path / "suite.json").mkdir()
        assert hint(inside("validate", tmp_path).refused(1), "AKF-F002") == "None"

    def test_how_far_a_path_leads(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "campaign.json").touch()
        (tmp_path / "link").symlink_to("gone")
        monkeypatch.chdir(tmp_path)
        last = "the last folder of its path that exists is"
        for path, wanted in (
            (tmp_path / "a" / "b" / "c.json", f"{tmp_path / 'a'} does not exist; {last} {tmp_path}"),
            (tmp_path / "campaign.json" / "x", f"{tmp_path / 'campaign.json'} is no folder; {last} {tmp_path}"),
            (tmp_path / "zzz", f"the folder {tmp_path} holds no zzz"),
            (tmp_path / "campain.json", f"did you mean {tmp_path / 'campaign.json'}?"),
            (Path("campain.json"), "did you mean campaign.json?"),
            (Path("zzz"), "the current folder holds no zzz"),
            (Path("zzz/y/x"), f"zzz does not exist; {last} the current one"),
            (Path("link"), "it is a symbolic link to a file that does not exist"),
        ):  # fmt: skip
            assert hint(inside("validate", path).refused(1), "AKF-F001") == wanted

    @pytest.mark.parametrize("name", ["", "/", "//x", "./", "../../../../../../../../nowhere"])
    def test_odd_paths_are_refused_like_any(self, name: str) -> None:
        inside("validate", name).refused(1)

    def test_a_kind_that_another_command_takes(self, tmp_path: Path) -> None:
        draft = Draft(tmp_path / "suite")
        answer = inside("validate-suite", draft.campaign).refused(1)
        assert answer.problems[0]["message"] == "this is a Campaign, but an OptimizationSuite is expected"
        assert "akf validate-campaign" in hint(answer, "AKF-S020")
        answer = inside("validate-campaign", draft.suite).refused(1)
        assert answer.problems[0]["message"] == "this is an OptimizationSuite, but a Campaign is expected"
        assert "akf validate-suite" in hint(answer, "AKF-S020")


class TestRuns:
    @pytest.fixture
    def run(self, tmp_path: Path, whole_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A run at `work/runs/run`, seen from `work`."""
        target = tmp_path / "work" / "runs" / "run"
        target.parent.mkdir(parents=True)
        whole_run.rename(target)
        monkeypatch.chdir(target.parents[1])
        return target

    def test_a_folder_above_below_or_beside_a_run(self, run: Path) -> None:
        for typed, meant in (
            (run.parent, run),
            (run.parents[1], run),
            (run / "attempts", run),
            (run / "attempts" / "fused" / "gates", run),
            (run / "run.json", run),
            ("runs", "runs/run"),
            (".", "runs/run"),
            ("run", "runs/run"),
        ):
            for words in (["status", typed], ["audit", typed], ["build", typed, "fused"]):
                assert hint(inside(*words).refused(1), "AKF-S101") == f"did you mean {meant}?", words

    def test_many_runs(self, run: Path) -> None:
        for number in range(5):
            runs.clone(run, run.parent / f"s{number}")
        assert hint(inside("status", "runs").refused(1), "AKF-S101") == (
            "did you mean one of runs/run, runs/s0, runs/s1, …?"
        )

    def test_a_folder_with_no_run_near(self, tmp_path: Path) -> None:
        (tmp_path / "x").mkdir()
        assert "akf init-run" in hint(inside("status", tmp_path / "x").refused(1), "AKF-S101")

    def test_a_folder_that_may_not_be_read(self, tmp_path: Path) -> None:
        closed = tmp_path / "x"
        closed.mkdir(0)
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o055)

        def attempt() -> int:
            try:
                Run.open(closed)
            except AkfError as error:
                return error.exit_code
            return 0

        assert in_child(attempt, uid=NOBODY if os.geteuid() == 0 else None) in {1, 7}

    def test_a_candidate_in_the_place_of_its_gates(self, run: Path) -> None:
        wanted = f"did you mean {run / 'attempts' / 'fused' / 'gates'}?"
        for typed in (
            "fused",
            "fusd",
            "attempts/fused",
            run / "attempts" / "fused",
            run / "attempts" / "fusd" / "gates",
            run / "attempts" / "fused" / "gates" / "operator.json",
            Path("elsewhere") / "attempts" / "fused" / "gates",
        ):
            assert hint(inside("judge", run, typed).refused(2), "AKF-U005") == wanted, typed
        assert "akf status" in hint(inside("judge", run, "nothing").refused(2), "AKF-U005")
        assert "akf status" in hint(inside("judge", run.parent / "none", "fused").refused(2), "AKF-U005")
