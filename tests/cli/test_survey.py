"""`akf survey`: any mixture of a user's files becomes one answer, or every problem with its remedy."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support import traffic
from tests.support.cli import akf, inside
from tests.support.folders import names
from tests.support.process import in_child, open_to_others
from tests.support.reports import Page

from akf.contracts.problems import StorageError
from akf.opportunity.survey.kinds import KINDS
from akf.opportunity.survey.paths import MAX_LISTED, MAX_OPENED, walk

Value = dict[str, Any]
NOBODY = 65534


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example inputs; read them, do not change them."""
    return traffic.written(tmp_path_factory.mktemp("survey") / "example")


@pytest.fixture
def mine(example: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return Path(shutil.copytree(example, tmp_path / "mine"))


class TestAnswer:
    @pytest.mark.parametrize("wanted", ["kernel", "integration", "configuration", "pipeline", "no_go"])
    def test_each_answer_has_its_story(self, wanted: str, tmp_path: Path) -> None:
        case, more, words = traffic.variants()[wanted]
        folder = traffic.written(tmp_path / "in", case, **more)
        document = traffic.survey(folder, *words).accepted().document
        assert document["answer"]["answer"] == wanted
        assert document["problems"] == []
        assert document["next"]["command"]

    def test_every_kind_is_recognised_and_taken_into_account(self, example: Path) -> None:
        document = traffic.survey(example).accepted().document
        kinds = {Path(each["path"]).name: (each["kind"], each["layout"]) for each in document["recognised"]}
        assert kinds == {
            "decode_ascend_pt": ("profile", "torch_npu or msprof"),
            "bench.json": ("benchmark", "vllm serve"),
            "requests.jsonl": ("trace", "bailian"),
            "config.json": ("model", "Qwen3ForCausalLM"),
        }
        assert document["captures"][0]["steps"] == 8
        assert document["workload"]["traffic"]["requests"] == 24
        assert document["benchmarks"][0]["completed"] == 20
        assert [each["what"] for each in document["missing"]] == ["target"]

    def test_the_table_is_ranked_and_its_numbers_follow_from_the_files(self, example: Path) -> None:
        """991,907 ns of add-rms-norm in 2,795,956 ns of steps: the ratio of totals, by hand, is 0.35477."""
        document = traffic.survey(example).accepted().document
        first = document["hotspots"][0]
        assert first["name"] == "vllm_ascend.add-rms-norm"
        assert (first["calls"], first["time_ns"]) == (2 * 2 * 8, 991_907)
        assert document["captures"][0]["step_ns"] == 2_795_956
        assert first["low_ratio"] <= 991_907 / 2_795_956 <= first["high_ratio"]
        assert first["active_bound"] == "transfer"
        shares = [each["share_ratio"] for each in document["hotspots"]]
        assert shares == sorted(shares, reverse=True)
        assert sum(line["share_ratio"] for line in document["lines"]) == pytest.approx(1)

    def test_one_profile_and_nothing_else(self, example: Path) -> None:
        document = inside("survey", example / traffic.PROFILE).accepted().document
        assert document["answer"]["answer"] == "kernel"
        assert not document["ready"]
        assert {each["what"] for each in document["hotspots"]} == {"kernel", "line"}
        assert [each["name"] for each in document["hotspots"][:2]] == ["MatMulV2", "AddRmsNormBias"]
        assert [each["what"] for each in document["missing"]] == ["callsites", "traffic", "benchmark", "target"]
        assert "--model-config" in document["next"]["command"]
        assert all(each["remedy"] for each in document["missing"])

    def test_fewer_than_six_steps_give_no_interval(self, tmp_path: Path) -> None:
        folder = traffic.written(tmp_path / "in", traffic.case(steps=5))
        document = traffic.survey(folder).accepted().document
        assert all(each["low_ratio"] is None for each in document["hotspots"])
        assert (document["answer"]["answer"], document["answer"]["rule"]) == (None, "SHARE_UNKNOWN")
        assert "At least 6 steps" in document["next"]["purpose"]
        assert not document["ready"]
        assert any("At least 6 steps" in each["expected"] for each in document["blockers"])

    def test_what_nobody_stated_is_assumed_and_what_somebody_stated_is_not(self, example: Path) -> None:
        words = ("--target", "1.1", "--policy", "noise_ratio=0.002")
        document = traffic.survey(example, *words).accepted().document
        policy = {each["name"]: (each["value"], each["source"], each["assumed"]) for each in document["policy"]}
        assert policy.pop("target_ratio") == (1.1, "flag", False)
        assert policy.pop("noise_ratio") == (0.002, "flag", False)
        assert all(assumed for _, _, assumed in policy.values())
        assert document["missing"] == []

    def test_an_incomplete_capture_gets_no_answer_but_its_ranking(self, mine: Path) -> None:
        table = mine / traffic.PROFILE / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
        lines = [line for line in table.read_text(encoding="utf-8").splitlines() if "FusedInfer" not in line]
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        answer = traffic.survey(mine)
        document = answer.refused(4).document
        assert "AKF-F350" in answer.codes
        assert document["answer"] is None
        assert document["hotspots"][0]["name"] == "vllm_ascend.add-rms-norm"
        assert document["hotspots"][0]["time_ns"] == 991_907
        assert "eager" in document["next"]["purpose"]

    def test_an_unknown_revision_is_unmapped(self, example: Path) -> None:
        words = ("--arm", "vllm_ascend", "--revision", "9.9.9")
        assert "AKF-F304" in inside("survey", example, *words).refused(4).codes

    def test_several_benchmarks_are_compared(self, mine: Path) -> None:
        (mine / "again.json").write_text(traffic.generator().bench(requests=22), encoding="utf-8")
        document = traffic.survey(mine).accepted().document
        assert [each["file"] for each in document["benchmarks"]] == ["again.json", "bench.json"]
        assert len(document["comparisons"]) == 1
        assert document["comparisons"][0]["pairs"]


class TestRecordedApart:
    """Profiles are one Capture if they were recorded alike; else each is one, and the answer says why."""

    @staticmethod
    def again(mine: Path, *levels: str) -> Path:
        """A copy of the profile for each level, recorded a minute after the one before."""
        for rank, level in enumerate(levels, 1):
            other = Path(shutil.copytree(mine / traffic.PROFILE, mine / f"again{rank}_ascend_pt"))
            [info] = other.rglob("profiler_info*.json")
            value = json.loads(info.read_bytes())
            value["config"]["experimental_config"]["_profiler_level"] = level
            info.unlink()
            (info.parent / f"profiler_info_{rank}.json").write_text(json.dumps({**value, "rank_id": rank}))
        return mine

    def test_other_settings_are_another_capture_and_the_answer_says_so(self, mine: Path, tmp_path: Path) -> None:
        alone = traffic.survey(mine).accepted().document
        document = traffic.survey(self.again(mine, "Level2"), "--html", tmp_path / "p.html").accepted().document
        assert [each["id"] for each in document["captures"]] == ["capture", "capture-2"]
        assert {each["steps"] for each in document["captures"]} == {8}
        [apart] = document["apart"]
        assert apart["because"] in {
            f"profiler_level is {a}, not {b}" for a, b in (("Level1", "Level2"), ("Level2", "Level1"))
        }
        assert apart["profiles"] in {"again1_ascend_pt", traffic.PROFILE}
        assert document["answer"]["hotspot"] == alone["answer"]["hotspot"]
        assert apart["because"] in Page((tmp_path / "p.html").read_bytes()).text
        assert alone["apart"] == []

    def test_the_same_settings_are_ranks_of_one(self, mine: Path) -> None:
        document = traffic.survey(self.again(mine, "Level1", "Level1")).accepted().document
        assert [(each["ranks"], each["steps"]) for each in document["captures"]] == [(3, 8)]
        assert document["apart"] == []

    def test_the_order_of_paths_changes_nothing(self, mine: Path) -> None:
        paths = sorted(self.again(mine, "Level2", "Level1").iterdir())
        forward, backward = (traffic.survey(*each).accepted().document for each in (paths, paths[::-1]))
        assert [forward[name] for name in ("captures", "apart", "answer")] == [
            backward[name] for name in ("captures", "apart", "answer")
        ]

    def test_settings_that_cannot_be_read_are_refused_as_ever(self, mine: Path) -> None:
        [info] = self.again(mine, "Level2").rglob("profiler_info_1.json")
        info.write_text('{"rank_id": 1, "rank_id": 1}')
        assert traffic.survey(mine).refused(1).codes == {"AKF-S006"}


def test_without_a_profile_polars_is_not_asked_for(mine: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden" / "polars"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('hidden')")
    env = {"PYTHONPATH": os.pathsep.join([str(hidden.parent), os.environ.get("PYTHONPATH", "")])}
    assert akf("survey", mine, env=env).refused(6).codes == {"AKF-F130"}
    shutil.rmtree(mine / traffic.PROFILE)
    answer = akf("survey", mine, env=env).refused(4)
    assert answer.codes == {"AKF-F405"}
    assert answer.document["benchmarks"][0]["completed"] == 20
    assert answer.document["workload"]["traffic"]["requests"] == 24


class TestPaths:
    def test_files_named_one_by_one_are_the_folder(self, example: Path, tmp_path: Path) -> None:
        paths = sorted(path for path in example.iterdir() if path.name != "generate.py")
        _published(tmp_path / "folder", example)
        _published(tmp_path / "files", *paths)
        _published(tmp_path / "reversed", *reversed(paths))
        assert _bytes(tmp_path / "folder") == _bytes(tmp_path / "files") == _bytes(tmp_path / "reversed")

    def test_the_same_file_twice_counts_once(self, example: Path) -> None:
        once = traffic.survey(example).accepted().document
        link = example.parent / "link"
        if not link.exists():
            link.symlink_to(example / "bench.json")
        twice = traffic.survey(example, example, example / "bench.json", link).accepted().document
        assert twice["benchmarks"] == once["benchmarks"]
        assert twice["recognised"] == once["recognised"]

    @pytest.mark.parametrize(
        ("name", "kind"), [("bench.json", "benchmark"), ("requests.jsonl", "trace"), ("config.json", "model")]
    )
    def test_without_a_profile_there_is_no_answer(self, name: str, kind: str, example: Path) -> None:
        answer = inside("survey", example / name).refused(4)
        assert answer.codes == {"AKF-F405"}
        document = answer.document
        assert [each["kind"] for each in document["recognised"]] == [kind]
        assert bool(document["benchmarks"]) is (kind == "benchmark")
        assert (document["workload"] is not None) is (kind == "trace")
        assert document["missing"][0]["what"] == "profile"

    def test_every_path_that_is_nothing_is_named_at_once(self, example: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "notes.txt").write_text("dear diary\n", encoding="utf-8")
        (tmp_path / "zero.json").write_bytes(b"")
        (tmp_path / "data.zip").write_bytes(b"PK\x03\x04rest")
        (tmp_path / "cut.json").write_text('{"backend": "vllm", ', encoding="utf-8")
        (tmp_path / "capture.json").write_text('{"kind": "Capture", "schema_version": 1}', encoding="utf-8")
        wrong = [
            tmp_path / name
            for name in ("empty", "notes.txt", "zero.json", "data.zip", "cut.json", "capture.json", "missing.json")
        ]
        answer = inside("survey", example, *wrong).refused(1)
        said = {Path(problem["file"]).name: problem for problem in answer.problems}
        assert {name: problem["code"] for name, problem in said.items()} == {
            "empty": "AKF-F401", "notes.txt": "AKF-F400", "zero.json": "AKF-F400", "data.zip": "AKF-F400",
            "cut.json": "AKF-S004", "capture.json": "AKF-F400", "missing.json": "AKF-F001",
        }  # fmt: skip
        assert "akf triage" in said["capture.json"]["hint"]
        assert "unpack" in said["data.zip"]["hint"]
        assert said["cut.json"]["line"] == 1

    def test_a_folder_is_looked_through_and_what_is_nothing_is_passed_over(self, mine: Path) -> None:
        for name in ("a.png", "b.py", "notes.txt", "other.json"):
            (mine / name).write_text("{}", encoding="utf-8")
        before = inside("survey", mine / traffic.PROFILE).accepted().document
        document = traffic.survey(mine).accepted().document
        assert document["passed_over_files"] == 4
        assert len(document["recognised"]) == 4
        assert before["passed_over_files"] == 0

    def test_ten_thousand_other_files_are_passed_over(self, mine: Path) -> None:
        for number in range(10_000):
            (mine / f"{number}.bin").touch()
        assert traffic.survey(mine).accepted().document["passed_over_files"] == 10_000

    def test_a_folder_with_too_many_candidates_is_refused(self, tmp_path: Path) -> None:
        for number in range(MAX_OPENED + 1):
            (tmp_path / f"{number}.json").write_text("{}", encoding="utf-8")
        assert inside("survey", tmp_path).refused(1).codes == {"AKF-F402"}

    def test_a_page_of_problems_is_cut_and_says_so(self, tmp_path: Path) -> None:
        wrong = [tmp_path / f"{number}.json" for number in range(MAX_LISTED + 5)]
        answer = inside("survey", *wrong).refused(1)
        assert len(answer.problems) == MAX_LISTED + 1
        assert any(problem["code"] == "AKF-F403" and "5 more" in problem["message"] for problem in answer.problems)

    def test_links_inside_a_folder_are_not_followed(self, mine: Path, tmp_path: Path) -> None:
        (tmp_path / "box").mkdir()
        (tmp_path / "box" / "way").symlink_to(mine)
        assert inside("survey", tmp_path / "box").refused(1).codes == {"AKF-F401"}

    def test_a_file_that_may_not_be_read(self, tmp_path: Path) -> None:
        open_to_others(tmp_path)
        secret = tmp_path / "bench.json"
        secret.write_bytes(b"{}")
        secret.chmod(0)

        def attempt() -> list[object]:
            try:
                walk([secret], KINDS)
            except StorageError as error:
                return [error.exit_code, error.problems[0].code]
            return []

        assert in_child(attempt, uid=NOBODY if os.geteuid() == 0 else None) == [7, "AKF-F004"]

    def test_two_models(self, mine: Path) -> None:
        (mine / "other").mkdir()
        shutil.copy(mine / "config.json", mine / "other" / "config.json")
        answer = traffic.survey(mine).refused(1)
        assert answer.codes == {"AKF-F404"}
        shutil.rmtree(mine / "other")
        assert traffic.survey(mine, "--model-config", mine / "config.json").status == 0

    def test_a_malformed_table_is_refused_with_its_line(self, mine: Path, tmp_path: Path) -> None:
        table = mine / traffic.PROFILE / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
        lines = table.read_text(encoding="utf-8").splitlines()
        lines[7] = lines[7].rpartition(",")[0]
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        answer = traffic.survey(mine, "--out", tmp_path / "out", "--html", tmp_path / "page.html").refused(1)
        assert [problem["line"] for problem in answer.problems] == [8]
        assert names(tmp_path) == ["mine"]


class TestOptions:
    @pytest.mark.parametrize(
        "words",
        [
            ("--target", "0.9"),
            ("--target", "inf"),
            ("--target", "nan"),
            ("--policy", "noise=0.1"),
            ("--policy", "noise_ratio"),
            ("--policy", "noise_ratio=much"),
            ("--policy", "noise_ratio=-1"),
            ("--policy", "noise_ratio=1e300"),
            ("--policy", "noise_pairs=0"),
            ("--policy", "local_speedup_ratio=0"),
            ("--policy", "candidates=1.5"),
            ("--policy", "confidence=1"),
            ("--policy", "target_ratio=0.5"),
            ("--stage", "decoding"),
            ("--data-class", "secret"),
        ],
    )
    def test_what_makes_no_sense(self, words: tuple[str, str], example: Path) -> None:
        assert inside("survey", example, *words).refused(2).codes == {"AKF-F406"}

    def test_near_misses_are_named(self, example: Path) -> None:
        assert "noise_ratio" in inside("survey", example, "--policy", "noise_ration=1").problems[0]["hint"]
        assert "decode" in inside("survey", example, "--stage", "decoded").problems[0]["hint"]
        assert "noise_ratio=VALUE" in inside("survey", example, "--policy", "noise_ratio").problems[0]["hint"]

    def test_nothing_is_named(self) -> None:
        assert inside("survey").refused(2).problems[0]["code"] == "AKF-U001"


class TestPublished:
    def test_the_folder_holds_artifacts_that_hold(self, example: Path, tmp_path: Path) -> None:
        out = _published(tmp_path / "new" / "out", example)
        assert names(out) == ["benchmark.json", "capture.json", "report.json", "survey.json", "workload.json"]
        for name in ("benchmark.json", "capture.json", "workload.json"):
            assert inside("validate", out / name).status == 0, name
        capture = json.loads((out / "capture.json").read_bytes())
        assert capture["completeness"]
        assert {entry["callsite"] for entry in capture["entries"]} >= {"vllm_ascend.swiglu", None}

    def test_no_folder_of_the_user_is_kept(self, example: Path, tmp_path: Path) -> None:
        out, page = tmp_path / "out", tmp_path / "page.html"
        traffic.survey(example, "--out", out, "--html", page).accepted()
        for path in [*out.iterdir(), page]:
            assert str(tmp_path).encode() not in path.read_bytes(), path.name
            assert str(example.parent).encode() not in path.read_bytes(), path.name

    def test_the_same_files_give_the_same_bytes(self, example: Path, tmp_path: Path) -> None:
        for name in ("a", "b"):
            traffic.survey(example, "--out", tmp_path / name, "--html", tmp_path / f"{name}.html").accepted()
        assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b")
        assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()

    @pytest.mark.parametrize("taken", ["out", "page.html"])
    def test_nothing_is_replaced_and_then_nothing_is_written(self, taken: str, example: Path, tmp_path: Path) -> None:
        (tmp_path / taken).write_text("mine", encoding="utf-8")
        words = ("--out", tmp_path / "out", "--html", tmp_path / "page.html")
        assert traffic.survey(example, *words).refused(5).codes == {"AKF-C101"}
        assert names(tmp_path) == [taken]
        assert (tmp_path / taken).read_text(encoding="utf-8") == "mine"

    def test_one_place_for_both(self, example: Path, tmp_path: Path) -> None:
        words = ("--out", tmp_path / "one", "--html", tmp_path / "one")
        assert traffic.survey(example, *words).refused(2).codes == {"AKF-F406"}

    def test_where_the_folder_cannot_be_made_no_page_is_left(self, example: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("", encoding="utf-8")
        words = ("--out", tmp_path / "file" / "out", "--html", tmp_path / "page.html")
        assert traffic.survey(example, *words).status != 0
        assert names(tmp_path) == ["file"]

    def test_the_page_says_what_the_document_says(self, example: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        document = traffic.survey(example, "--html", page).accepted().document
        text = Page(page.read_bytes()).text
        assert document["answer"]["text"] in text
        for spot in document["hotspots"]:
            assert spot["name"] in text
            assert spot["rule"] in text
        for each in document["missing"]:
            assert each["remedy"] in text
        for title in ("Answer", "Where the time goes", "Benchmarks", "Traffic", "What was read"):
            assert title in text

    def test_a_page_without_an_answer_says_why(self, example: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        answer = inside("survey", example / "bench.json", "--html", page).refused(4)
        text = Page(page.read_bytes()).text
        assert answer.problems[0]["message"] in text
        assert "AKF-F405" in text

    def test_people_get_tables_with_bars(self, example: Path) -> None:
        text = traffic.survey(example, "--human").text
        longest = max(line.count("\N{FULL BLOCK}") for line in text.splitlines())
        assert longest == 20
        line = next(line for line in text.splitlines() if "vllm_ascend.add-rms-norm" in line and "callsite" in line)
        assert line.count("\N{FULL BLOCK}") == longest


def _published(out: Path, *paths: Path) -> Path:
    traffic.survey(*paths, "--out", out).accepted()
    return out


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
