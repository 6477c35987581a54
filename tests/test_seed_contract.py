"""The contract that the project began with, by its own commands: `python -m unittest discover -s tests -v`.

These tests need nothing but the package: no compiler, no numpy, no test library.
"""

# ruff: noqa: PT009 - written for unittest on purpose
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "suites" / "qwen3-8b-a3-bf16"
ARMS = ("xllm", "vllm_ascend", "sglang_ascend")
LANES = ("per_framework_native_ab", "matched_policy", "framework_native_best")


def akf(*words: object) -> tuple[int, dict[str, Any]]:
    """One command in a process of its own: its exit status and its one JSON document."""
    source = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", "akf", *map(str, words)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source},
        timeout=120,
    )
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, document


def listing(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Draft(unittest.TestCase):
    """A copy of the shipped Suite to change."""

    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)
        shutil.copytree(SUITE, self.folder / "suite")

    def campaign(self, arm: str = "xllm") -> Path:
        return self.folder / "suite" / "arms" / f"{arm}.json"

    def change(self, path: Path, *places: str, to: Any) -> None:
        """Set one field, named part by part."""
        value = json.loads(path.read_bytes())
        here = value
        for place in places[:-1]:
            here = here[int(place)] if isinstance(here, list) else here[place]
        here[places[-1]] = to
        path.write_text(json.dumps(value), encoding="utf-8")

    def problems(self, path: Path, status: int = 1, command: str = "validate-campaign") -> set[tuple[str, str]]:
        """Pointer and code of every problem."""
        found, document = akf(command, path)
        self.assertEqual(found, status, document)
        self.assertFalse(document["valid"])
        return {(problem["pointer"], problem["code"]) for problem in document["problems"]}


class ShippedSuite(unittest.TestCase):
    """The three arms on A3 are recognised, valid, and honest about what only a board can say."""

    def test_validate_suite(self) -> None:
        status, document = akf("validate-suite", SUITE / "suite.json")
        self.assertEqual(status, 0)
        self.assertEqual((document["valid"], document["ready"], document["problems"]), (True, False, []))
        self.assertEqual([arm["id"] for arm in document["arms"]], list(ARMS))
        self.assertTrue(all(arm["recognised"] and arm["valid"] and not arm["ready"] for arm in document["arms"]))

    def test_validate_campaign_of_every_arm(self) -> None:
        for arm in ARMS:
            with self.subTest(arm):
                status, document = akf("validate-campaign", SUITE / "arms" / f"{arm}.json")
                self.assertEqual(status, 0)
                self.assertEqual((document["valid"], document["ready"], document["problems"]), (True, False, []))

    def test_every_blocker_names_field_expectation_and_command(self) -> None:
        _, document = akf("validate-suite", SUITE / "suite.json")
        self.assertGreater(len(document["blockers"]), 50)
        for blocker in document["blockers"]:
            self.assertTrue(blocker["pointer"].startswith("/"))
            self.assertTrue(blocker["expected"])
            self.assertTrue(blocker["command"].startswith("akf "))

    def test_readiness_can_be_required(self) -> None:
        for command, path in (("validate-suite", "suite.json"), ("validate-campaign", "arms/xllm.json")):
            with self.subTest(command):
                status, document = akf(command, SUITE / path, "--require-ready")
                self.assertEqual((status, document["valid"], document["ready"]), (10, True, False))

    def test_it_is_about_qwen3_8b_on_a3_with_cann_9_1_0(self) -> None:
        suite = json.loads((SUITE / "suite.json").read_bytes())
        self.assertEqual((suite["model"]["name"], suite["model"]["dtype"]), ("Qwen3-8B", "bfloat16"))
        self.assertEqual((suite["soc"]["family"], suite["toolkit"]["version"]), ("ascend910_93", "9.1.0"))
        self.assertEqual(sorted(suite["lanes"]), sorted(LANES))

    def test_nothing_in_it_was_measured(self) -> None:
        for arm in ARMS:
            campaign = json.loads((SUITE / "arms" / f"{arm}.json").read_bytes())
            self.assertIsNone(campaign["noise"]["noise_limit_ratio"])
            self.assertIsNone(campaign["capture"]["path"])
            self.assertIsNone(campaign["environment"]["soc"]["name"])


class FailsClosed(Draft):
    """What is unknown, older or elsewhere is refused, never guessed."""

    def test_init_run_of_a_draft_exits_4_and_writes_nothing(self) -> None:
        before = listing(self.folder)
        for arm in ARMS:
            with self.subTest(arm):
                status, document = akf("init-run", self.campaign(arm), "--runs-root", self.folder / "runs")
                self.assertEqual(status, 4)
                self.assertEqual({problem["code"] for problem in document["problems"]}, {"AKF-P101"})
        self.assertEqual(listing(self.folder), before)
        self.assertFalse((self.folder / "runs").exists())

    def test_an_unknown_capability_tuple(self) -> None:
        for field, value in (("backend", "magic"), ("soc", "ascend910_9382"), ("soc_family", "ascend910b")):
            with self.subTest(field):
                shutil.copy(SUITE / "arms" / "xllm.json", self.campaign())
                self.change(self.campaign(), "environment", "soc", "name", to="ascend910_9391")
                self.change(self.campaign(), "capabilities", "0", field, to=value)
                self.assertIn(f"/capabilities/0/{field}", {pointer for pointer, _ in self.problems(self.campaign())})

    def test_pypto_pro_cce_on_a3(self) -> None:
        self.change(self.campaign(), "capabilities", "0", "backend", to="pypto_pro_cce")
        self.assertIn(("/capabilities/0/backend", "AKF-M014"), self.problems(self.campaign()))

    def test_pre_releases_and_older_releases_of_cann(self) -> None:
        for version in ("9.0.0-beta.1", "9.1.0.RC1", "8.5.2", "8.3.RC1.alpha003"):
            with self.subTest(version):
                self.change(self.campaign(), "environment", "toolkit", "version", to=version)
                self.assertIn(("/environment/toolkit/version", "AKF-M006"), self.problems(self.campaign()))

    def test_two_arms_are_not_three(self) -> None:
        suite = self.folder / "suite" / "suite.json"
        arms = json.loads(suite.read_bytes())["required_arms"]
        self.change(suite, "required_arms", to=arms[:2])
        self.assertIn(("/required_arms", "AKF-M002"), self.problems(suite, command="validate-suite"))

    def test_a_threshold_below_the_noise(self) -> None:
        self.change(self.campaign(), "noise", "noise_limit_ratio", to=0.5)
        self.change(self.campaign(), "acceptance", "row_margin_ratio", to=0.01)
        self.assertIn(("/acceptance/row_margin_ratio", "AKF-M019"), self.problems(self.campaign()))

    def test_a_write_path_that_reaches_evidence(self) -> None:
        for path in ("attempts", "ledger.jsonl", "campaign.json"):
            with self.subTest(path):
                self.change(self.campaign(), "write_paths", to=[path])
                self.assertIn(("/write_paths/0", "AKF-M017"), self.problems(self.campaign()))

    def test_a_key_twice(self) -> None:
        text = self.campaign().read_text(encoding="utf-8").replace('"arm":', '"arm": "vllm_ascend", "arm":', 1)
        self.campaign().write_text(text, encoding="utf-8")
        self.assertIn("AKF-S006", {code for _, code in self.problems(self.campaign())})


class Commands(Draft):
    """The four commands keep their argument order, and every way out is one JSON document."""

    def test_judge_takes_a_run_and_its_gates(self) -> None:
        run = self.folder / "run"
        for words, wanted in ((["judge"], 2), (["judge", run], 2), (["judge", run, run / "gates"], 2)):
            status, document = akf(*words)
            self.assertEqual((status, document["status"]), (wanted, wanted))
            self.assertTrue(document["problems"])

    def test_a_missing_file_is_an_answer(self) -> None:
        for command in ("validate-suite", "validate-campaign", "init-run"):
            with self.subTest(command):
                status, document = akf(command, self.folder / "nowhere.json")
                self.assertEqual(status, 1)
                self.assertEqual(document["problems"][0]["code"], "AKF-F001")

    def test_every_refusal_can_be_explained(self) -> None:
        for code in ("AKF-P101", "AKF-M014", "AKF-M006", "AKF-S006", "NO_LOCAL_GAIN"):
            status, document = akf("explain", code)
            self.assertEqual(status, 0)
            self.assertTrue(document["rule"])
            self.assertTrue(document["why"])

    def test_nothing_heavy_stands_behind_the_core(self) -> None:
        code = (
            "import sys; from akf.cli.main import main; main(sys.argv[1:]);"
            "sys.exit(bool({'torch', 'torch_npu', 'triton', 'numpy'} & set(sys.modules)))"
        )
        words = [sys.executable, "-c", code, "validate-suite", str(SUITE / "suite.json")]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self.assertEqual(subprocess.run(words, capture_output=True, check=False, env=env).returncode, 0)


if __name__ == "__main__":
    unittest.main()
