"""AGENTS.md says what AKF takes: its manifest and launch spec are taken, and its codes are those of the refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from docs.generator.markdown import blocks
from docs.generator.pages import ROOT
from tests.support import runs

from akf.candidates import submit
from akf.contracts.problems import AkfError

PAGE = ROOT / "AGENTS.md"


def block(kind: str) -> dict[str, object]:
    """The page's block of a kind."""
    found = [each for each in blocks(PAGE.read_text(encoding="utf-8")) if each.marks.get("valid") == kind]
    assert len(found) == 1
    value: dict[str, object] = json.loads("\n".join(found[0].lines))
    return value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission as the page says, around the shipped kernel."""
    made = runs.submission(tmp_path / "candidate")
    (made / "candidate.json").write_text(json.dumps(block("CandidateManifest")), encoding="utf-8")
    (made / "src" / "launch.json").write_text(json.dumps(block("LaunchSpec")), encoding="utf-8")
    return made


def test_the_manifest_of_the_contract_is_taken(folder: Path, open_run: Path, ready: runs.Ready) -> None:
    candidate = submit(open_run, folder, ready.keys)
    assert candidate["id"] == block("CandidateManifest")["id"]


def test_the_launch_spec_of_the_contract_is_the_shipped_one() -> None:
    shipped = json.loads((runs.CANDIDATES / "rmsnorm-fused" / "src" / "launch.json").read_bytes())
    assert block("LaunchSpec") == shipped


def change(folder: Path, **changes: object) -> None:
    path = folder / "candidate.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes), encoding="utf-8")


def test_refusals_have_the_codes_of_the_page(folder: Path, open_run: Path, ready: runs.Ready) -> None:
    hypothesis = {**json.loads((folder / "candidate.json").read_bytes())["hypothesis"], "metric": "traffic"}
    found = set()
    for changes in (
        {"hypothesis": hypothesis},
        {"task": "another"},
        {"route": "triton_cuda"},
        {"domain": {"T": [1, 64]}},
    ):
        manifest = (folder / "candidate.json").read_text(encoding="utf-8")
        change(folder, **changes)
        with pytest.raises(AkfError) as caught:
            submit(open_run, folder, ready.keys)
        found |= {problem.code for problem in caught.value.problems}
        (folder / "candidate.json").write_text(manifest, encoding="utf-8")
    (folder / "README").touch()
    with pytest.raises(AkfError) as caught:
        submit(open_run, folder, ready.keys)
    found |= {problem.code for problem in caught.value.problems}
    (folder / "README").unlink()
    submit(open_run, folder, ready.keys)
    with pytest.raises(AkfError) as caught:
        submit(open_run, folder, ready.keys)
    found |= {problem.code for problem in caught.value.problems}
    named = set(re.findall(r"AKF-[A-Z][0-9]{3}", PAGE.read_text(encoding="utf-8")))
    assert sorted(found - named) == []
    assert len(found) > 4
