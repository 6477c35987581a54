"""`akf demo` as a newcomer types it: one process, real measurements, a run that holds wherever it is copied.

Figures are the machine's; on a busy one a timed candidate may be incomparable, which is the truth about it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import runs

from akf.audit import audit

TIMED = {"rmsnorm-fused": "incomplete", "rmsnorm-naive": "rejected"}
CAUGHT = {"rmsnorm-wrong": "WRONG_RESULT", "rmsnorm-replay": "RESULT_REPLAY", "rmsnorm-later": "ASYNCHRONOUS_WORK"}


def akf(work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(work), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "akf", *words]
    return subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.soak
@pytest.mark.usefixtures("compiler")
def test_the_demo_ends_with_true_verdicts_and_a_run_that_holds(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason=runs.NUMPY)
    said = akf(tmp_path, "demo")
    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    verdicts = {row["candidate"].split(".")[0]: row["verdict"] for row in answer["candidates"]}
    caught = [row for row in answer["candidates"] if row["candidate"] in CAUGHT]
    assert {row["candidate"]: (row["verdict"], row["reasons"][0]) for row in caught} == {
        name: ("rejected", reason) for name, reason in CAUGHT.items()
    }
    assert all(verdicts.pop(name) == "rejected" for name in CAUGHT)
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "incomparable"}.items() <= TIMED.items()
    assert "gain against the baseline" in said.stderr
    copy = runs.clone(tmp_path / answer["run"], tmp_path / "copy")
    assert audit(copy, tmp_path / "akf-demo" / "keys" / "trust.json")["ledger_head"] == answer["audit"]["ledger_head"]
    for row in answer["candidates"]:
        gates = copy / "attempts" / row["candidate"] / "gates"
        rechecked = akf(tmp_path, "judge", str(copy), str(gates), "--recheck", "--require", row["verdict"])
        assert rechecked.returncode == 0, rechecked.stdout
    again = akf(tmp_path, "demo")
    assert again.returncode == 5, "a folder that is not empty is left as it is"


def test_what_it_needs_is_said_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-m", "akf", "demo"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    answer = json.loads(said.stdout)
    assert (said.returncode, answer["status"]) == (6, 6)
    assert answer["problems"][0]["hint"]
    assert not (tmp_path / "akf-demo").exists()
