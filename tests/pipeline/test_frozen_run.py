"""`init-run` freezes its four inputs: canonical, signed, read-only, named by both digests; no two runs are the same."""

import json
from pathlib import Path

import pytest
from tests.support import runs

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.problems import PreconditionError
from akf.store.snapshot import init_run
from akf.trust.keys import init_keys

ROOT = ("suite.json", "campaign.json", "workload.json", "capture.json")


@pytest.fixture
def run(ready: runs.Ready, tmp_path: Path) -> Path:
    return init_run(ready.campaign, tmp_path / "runs", ready.keys)


def test_every_input_is_canonical_signed_and_read_only(run: Path) -> None:
    for name in (*ROOT, "run.json"):
        data = (run / name).read_bytes()
        assert data == canonical_bytes(json.loads(data))
        for path in (run / name, run / name.replace(".json", ".sig.json")):
            assert path.stat().st_mode & 0o777 == 0o444


def test_the_run_names_its_inputs_as_frozen_and_as_written(run: Path, ready: runs.Ready) -> None:
    value = json.loads((run / "run.json").read_bytes())
    assert [ref["digest"] for ref in value["parents"]] == [digest((run / name).read_bytes()) for name in ROOT]
    written = {digest(path.read_bytes()) for path in ready.folder.rglob("*.json")}
    assert {source["digest"] for source in value["sources"]} <= written
    assert len(value["sources"]) == len(ROOT)


def test_what_is_written_is_not_changed(ready: runs.Ready, tmp_path: Path) -> None:
    before = runs.tree(ready.folder)
    init_run(ready.campaign, tmp_path / "runs", ready.keys)
    assert runs.tree(ready.folder) == before


def test_no_two_runs_of_one_campaign_are_the_same(run: Path, ready: runs.Ready) -> None:
    other = init_run(ready.campaign, run.parent, ready.keys)
    mine, theirs = (json.loads((path / "run.json").read_bytes()) for path in (run, other))
    assert mine["nonce"] != theirs["nonce"]
    assert len(bytes.fromhex(mine["nonce"])) == 32
    campaign = json.loads((run / "campaign.json").read_bytes())["id"]
    assert [run.name, other.name] == [f"{campaign}-{value['nonce'][:12]}" for value in (mine, theirs)]


def test_a_new_run_holds_nothing_else_but_the_places_to_work_in(run: Path) -> None:
    names = {name for base in (*ROOT, "run.json") for name in (base, base.replace(".json", ".sig.json"))}
    assert {path.name for path in run.iterdir()} == names | {"ledger.jsonl", "inbox", "tasks", "attempts"}
    assert (run / "ledger.jsonl").read_bytes().count(b"\n") == 1


def test_only_the_supervisor_that_the_campaign_pins_makes_a_run(ready: runs.Ready, tmp_path: Path) -> None:
    init_keys(tmp_path / "keys")
    with pytest.raises(PreconditionError) as caught:
        init_run(ready.campaign, tmp_path / "runs", tmp_path / "keys")
    assert {problem.code for problem in caught.value.problems} == {"AKF-P102"}
    assert not (tmp_path / "runs").exists()
