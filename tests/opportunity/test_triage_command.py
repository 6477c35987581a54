"""`akf triage` of a run and of a Campaign, and what it needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import captures, runs
from tests.support.cli import inside
from tests.support.reports import Page

from akf.contracts.canonical import digest

Value = dict[str, Any]


def test_a_run_is_answered_from_its_frozen_inputs(traced_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "triage.json"
    before = runs.tree(traced_run)
    said = inside("triage", traced_run, "--out", out).accepted().document
    assert runs.tree(traced_run) == before
    assert (said["answer"], said["rule"], said["hotspot"]) == ("kernel", "KERNEL_WORTHWHILE", "rms-norm")
    assert [row["name"] for row in said["hotspots"]] == ["rms-norm", "host_gap"]
    value = json.loads(out.read_bytes())
    assert value["kind"] == "Triage"
    assert [parent["digest"] for parent in value["parents"]] == [
        digest((traced_run / f"{name}.json").read_bytes()) for name in ("campaign", "workload", "capture")
    ]


def test_a_campaign_gives_the_bytes_that_its_run_gives(traced: runs.Ready, traced_run: Path, tmp_path: Path) -> None:
    for place, name in ((traced.campaign, "of-campaign"), (traced_run, "of-run")):
        inside("triage", place, "--out", tmp_path / name).accepted()
    assert (tmp_path / "of-campaign").read_bytes() == (tmp_path / "of-run").read_bytes()


def test_a_file_is_never_replaced(traced_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "triage.json"
    out.write_text("mine")
    assert inside("triage", traced_run, "--out", out).refused(5).codes == {"AKF-C101"}
    assert out.read_text() == "mine"


def test_the_answer_as_a_page(traced: runs.Ready, traced_run: Path, tmp_path: Path) -> None:
    for place, name in ((traced.campaign, "campaign.html"), (traced_run, "run.html")):
        said = inside("triage", place, "--html", tmp_path / name).accepted().document
        text = Page((tmp_path / name).read_bytes()).text
        assert said["text"] in text
        assert all(row["rule"] in text for row in said["hotspots"])
        assert "rank 0" in text


@pytest.mark.parametrize("taken", ["triage.json", "page.html"])
def test_triage_and_page_appear_together_or_not_at_all(taken: str, traced_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / taken).write_text("mine")
    words = ("--out", folder / "triage.json", "--html", folder / "page.html")
    assert inside("triage", traced_run, *words).refused(5).codes == {"AKF-C101"}
    assert [path.name for path in folder.iterdir()] == [taken]
    assert (folder / taken).read_text() == "mine"


def test_a_target_from_the_command_line_is_marked(traced_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "triage.json"
    said = inside("triage", traced_run, "--target", "1.05", "--out", out).accepted().document
    assert {"name": "target_ratio", "value": 1.05, "source": "flag", "assumed": False} in said["policy"]
    assert inside("triage", traced_run, "--target", "2.5").accepted().document["answer"] == "no_go"


def test_another_capture_shows_a_faster_provider(traced_run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    kernels = [
        captures.kernel(0.1, "rms-norm", name="fused", tokens=tokens, graph="eager", core_type="cpu")
        for tokens in (1, 4, 8)
    ]
    value = captures.capture(*kernels, id="other", platform="host", health=None)
    other.write_text(json.dumps({name: item for name, item in value.items() if item is not None}))
    said = inside("triage", traced_run, "--capture", other).accepted().document
    assert (said["answer"], said["rule"]) == ("integration", "PROVIDER_WINS")
    value["platform"] = "cuda"
    other.write_text(json.dumps({name: item for name, item in value.items() if item is not None}))
    assert inside("triage", traced_run, "--capture", other).refused(4).codes == {"AKF-F358"}


def test_people_get_the_ranked_table(traced_run: Path) -> None:
    text = inside("triage", traced_run, "--human").text
    assert "rms-norm" in text
    assert "KERNEL_WORTHWHILE" in text
    assert "share ratio" in text


def test_a_draft_needs_nothing_but_workload_and_capture(my_ready: runs.Ready, tmp_path: Path) -> None:
    traced = runs.captured(my_ready, tmp_path / "traced")

    def open_again(campaign: Value) -> None:
        campaign["trust"]["keys"] = None
        campaign["environment"]["python"] = None

    runs.change(traced.campaign, open_again)
    assert not inside("validate-campaign", traced.campaign).document["ready"]
    assert inside("triage", traced.campaign).accepted().document["answer"] == "kernel"
    runs.change(traced.campaign, lambda campaign: campaign["capture"].update(path=None))
    refused = inside("triage", traced.campaign).refused(4)
    assert [(problem["code"], problem["pointer"]) for problem in refused.problems] == [("AKF-F357", "/capture/path")]
    assert "fill it with: akf" in refused.problems[0]["hint"]


def test_what_no_campaign_is_refused(tmp_path: Path) -> None:
    inside("triage", tmp_path / "nothing.json").refused(1)
    inside("triage", tmp_path).refused(1)


EDITS: tuple[tuple[str, Callable[[Value], object], int, str], ...] = (
    ("calls", lambda value: value["completeness"][0].update(seen_calls=1), 4, "AKF-F350"),
    ("no steps", lambda value: value.update(breakdown=None), 4, "AKF-F355"),
    ("lines", lambda value: value["breakdown"][0].update(idle_ns=captures.STEP_NS * 12), 1, "AKF-M025"),
)


@pytest.mark.parametrize(("name", "edit", "status", "code"), EDITS, ids=[name for name, *_ in EDITS])
def test_an_incomplete_capture_is_refused_and_nothing_is_written(
    ready: runs.Ready, tmp_path: Path, name: str, edit: Callable[[Value], object], status: int, code: str
) -> None:
    del name
    traced = runs.captured(ready, tmp_path / "traced", edit)
    out = tmp_path / "triage.json"
    refused = inside("triage", traced.campaign, "--out", out).refused(status)
    assert code in refused.codes
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("--target", "0.9"), 2, "AKF-F359"),
        (("--target", "nan"), 2, "AKF-F359"),
        (("--target", "inf"), 2, "AKF-F359"),
        (("--target", "1e300"), 2, "AKF-F359"),
        (("--stage", "deocde"), 2, "AKF-F359"),
        (("--stage", "long_prefill"), 4, "AKF-F356"),
    ],
)
def test_senseless_values(traced_run: Path, words: tuple[str, ...], status: int, code: str) -> None:
    assert inside("triage", traced_run, *words).refused(status).codes == {code}


@pytest.mark.parametrize("name", ["target_ratio", "local_speedup_ratio"])
def test_a_campaign_that_asks_for_a_slower_service_is_refused(ready: runs.Ready, tmp_path: Path, name: str) -> None:
    traced = runs.captured(ready, tmp_path / "traced")
    runs.change(traced.campaign, lambda value: value["opportunity"].update({name: 0}))
    assert inside("triage", traced.campaign).refused(1).codes == {"AKF-S027"}


def test_a_stage_may_be_named_where_the_capture_names_none(ready: runs.Ready, tmp_path: Path) -> None:
    traced = runs.captured(ready, tmp_path / "traced", lambda value: value.update(stage=None))
    assert inside("triage", traced.campaign).accepted().document["stage"] is None
    assert inside("triage", traced.campaign, "--stage", "decode").accepted().document["stage"] == "decode"
