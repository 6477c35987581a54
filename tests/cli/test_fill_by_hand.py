"""`fill --set` and `fill --keys`: placeholders only, into a new file, by the schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.cli import inside
from tests.support.drafts import HOST, Draft
from tests.support.runs import MEASURED, Ready, compiled, tree

from akf.contracts.rules.check import check_campaign
from akf.frameworks.fill import fill_host
from akf.trust.keys import init_keys

pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    return Draft(tmp_path / "suite", HOST)


def test_a_placeholder_is_filled_into_a_new_file(draft: Draft, tmp_path: Path) -> None:
    before = draft.campaign.read_bytes()
    out = tmp_path / "deep" / "filled.json"
    words = ["fill", draft.campaign, "--set", "/noise/noise_limit_ratio=0.02", "--set", "/environment/python=3.12.1"]
    inside(*words, "--out", out).accepted()
    value = json.loads(out.read_bytes())
    assert value["noise"]["noise_limit_ratio"] == 0.02
    assert draft.campaign.read_bytes() == before
    again = tree(tmp_path)
    inside(*words, "--out", out).refused(5)
    assert tree(tmp_path) == again


def test_without_out_it_stands_beside_the_draft(draft: Draft) -> None:
    answer = inside("fill", draft.campaign, "--set", "/baseline/incumbent_digest=sha256:" + "0" * 64).accepted()
    assert Path(answer.document["file"]) == draft.campaign.with_name("host_reference.filled.json")


def test_a_text_that_looks_like_a_number_stays_what_the_schema_wants(draft: Draft, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    inside("fill", draft.campaign, "--set", '/environment/python="3.12"', "--out", out).accepted()
    assert json.loads(out.read_bytes())["environment"]["python"] == "3.12"


@pytest.mark.parametrize(
    "assignment",
    [
        "/arm=x",  # holds a value
        "/environment/host=1",
        "/nowhere=1",
        "/capabilities/9/soc=x",
        "=1",
        "noise_limit_ratio=1",
        "",
        "/noise/noise_limit_ratio",
        "/noise/noise_limit_ratio=",
        "/noise/noise_limit_ratio=-1",
        "/noise/noise_limit_ratio=NaN",
        "/noise/noise_limit_ratio=1e999",
        "/noise/noise_limit_ratio=[1]",
        "/environment/libraries=[{}]",
        "/environment/libraries=" + "[" * 5000,
        "/ranks/devices=[" * 3,
        "/baseline/incumbent_digest=\x1b[2J",
        "/environment/host/cores=99999999999999999999",
        "/capture/path=../../etc/passwd",
        "/trust/keys={}",
    ],
)
def test_what_is_no_placeholder_or_does_not_fit_is_refused(draft: Draft, tmp_path: Path, assignment: str) -> None:
    before = tree(tmp_path)
    answer = inside("fill", draft.campaign, "--set", assignment, "--out", tmp_path / "out.json")
    answer.refused(1)
    assert tree(tmp_path) == before


def test_null_fills_nothing(draft: Draft, tmp_path: Path) -> None:
    inside("fill", draft.campaign, "--set", "/capture/path=null", "--out", tmp_path / "out.json").refused(2)
    assert not (tmp_path / "out.json").exists()


def test_all_faults_are_named(draft: Draft, tmp_path: Path) -> None:
    words = ["--set", "/arm=x", "--set", "/nowhere=1", "--out", tmp_path / "out.json"]
    answer = inside("fill", draft.campaign, *words).refused(1)
    assert {problem["pointer"] for problem in answer.problems} == {"/arm", "/nowhere"}


def test_keys_are_pinned_from_a_folder(draft: Draft, tmp_path: Path, ready: Ready) -> None:
    out = tmp_path / "out.json"
    inside("fill", draft.campaign, "--keys", ready.keys, "--out", out).accepted()
    root = json.loads((ready.keys / "trust.json").read_bytes())
    assert json.loads(out.read_bytes())["trust"]["keys"] == root["keys"]


def test_keys_that_are_not_there(draft: Draft, tmp_path: Path) -> None:
    inside("fill", draft.campaign, "--keys", tmp_path / "nowhere", "--out", tmp_path / "out.json").refused(1)


@pytest.mark.parametrize("words", [[], ["--out", "x"], ["--host", "--set", "/a=1"]])
def test_it_must_be_said_what_to_fill(draft: Draft, words: list[str]) -> None:
    inside("fill", draft.campaign, *words).refused(2)


def test_host_fills_the_host_only(tmp_path: Path) -> None:
    ascend = Draft(tmp_path / "suite")
    before = tree(tmp_path)
    inside("fill", ascend.campaign, "--host", "--out", tmp_path / "out", "--keys", tmp_path / "keys").refused(4)
    assert tree(tmp_path) == before


def test_host_does_not_measure_what_it_could_not_write(draft: Draft, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    before = tree(tmp_path)
    inside("fill", draft.campaign, "--host", "--out", tmp_path / "out", "--keys", tmp_path / "keys").refused(5)
    assert tree(tmp_path) == before


def test_host_takes_a_path_that_goes_up_and_down(draft: Draft, tmp_path: Path) -> None:
    crooked = draft.folder / "arms" / ".." / "arms" / ".." / "arms" / draft.campaign.name
    with compiled():
        fill_host(crooked, tmp_path / "out", init_keys(tmp_path / "keys"), lambda *_: MEASURED)
    assert check_campaign(tmp_path / "out" / "arms" / draft.campaign.name).ready


KEYS = [f"{role}.{end}" for role in ("supervisor", "builder", "evaluator", "judge") for end in ("key", "pub")] + [
    "trust.json"
]


def test_keys_init_makes_them_once(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    document = inside("keys", "init", folder).accepted().document
    assert {each["role"] for each in document["keys"]} == {"supervisor", "builder", "evaluator", "judge"}
    assert sorted(path.name for path in folder.iterdir()) == sorted(KEYS)
    assert {path.name: path.stat().st_mode & 0o077 for path in folder.glob("*.key")} == dict.fromkeys(
        (f"{role}.key" for role in ("supervisor", "builder", "evaluator", "judge")), 0
    )
    before = tree(tmp_path)
    inside("keys", "init", folder).refused(5)
    assert tree(tmp_path) == before


def test_keys_are_found_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKF_KEYS", str(tmp_path / "elsewhere"))
    assert inside("keys", "init").accepted().document["folder"] == str(tmp_path / "elsewhere")
