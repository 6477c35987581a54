"""What is generated is up to date, and nothing that must have a page lacks one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from docs.generator.artifacts import ABOUT, UNSIGNED
from docs.generator.markdown import blocks
from docs.generator.pages import DOCS, ROOT

from akf.contracts import codes, schemas
from akf.trust.roles import OWNERS

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # typer imports what click 8 has and click 9 will not
    from docs.generator.sections import DEMO, SECTIONS, command_names

SECTION = re.compile(r"<!-- generated: ([^>]+?) -->")


def test_pages_are_what_the_code_says() -> None:
    result = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, f"run `python docs/generate.py`; out of date:\n{result.stdout}{result.stderr}"


def test_every_command_has_a_page_with_its_usage_and_its_exit_status() -> None:
    wanted = {name.replace(" ", "-") for name in command_names()}
    assert {path.stem for path in (DOCS / "commands").glob("*.md")} == wanted | {"README"}
    for name in command_names():
        text = (DOCS / "commands" / f"{name.replace(' ', '-')}.md").read_text(encoding="utf-8")
        assert text.count(f"<!-- generated: usage {name} -->") == 1, name
        assert [line for line in text.splitlines() if line.startswith("## Exit status")], name
        assert [block for block in blocks(text) if "run" in block.marks or "needs" in block.marks], name


def test_every_kind_has_a_page_and_every_owner_is_said() -> None:
    assert set(ABOUT) == set(schemas.kinds())
    assert set(OWNERS) | set(UNSIGNED) == set(schemas.kinds())
    pages = {path.stem for path in (DOCS / "artifacts").glob("*.md")}
    assert pages == {path.name.removesuffix(".schema.json") for path in schemas.kinds().values()} | {"README"}


def test_every_code_is_on_the_page_of_codes() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    assert [code for code in codes.all_codes() if f"\n### {code}\n" not in text] == []


def test_every_section_is_used() -> None:
    pages = [ROOT / "README.md", ROOT / "AGENTS.md", *DOCS.rglob("*.md")]
    used = {name for path in pages for name in SECTION.findall(path.read_text(encoding="utf-8"))}
    assert set(SECTIONS) == {name for name in used if not name.startswith("usage ")} - {"NAME"}


@pytest.mark.parametrize("name", ["folder", "run", "candidates"])
def test_the_recorded_demo_names_no_folder_of_the_machine(name: str) -> None:
    answer = json.loads(Path(DEMO).read_text(encoding="utf-8"))
    assert '"/' not in json.dumps(answer[name])


def test_the_recorded_demo_ends_as_the_readme_says() -> None:
    answer = json.loads(Path(DEMO).read_text(encoding="utf-8"))
    verdicts = {row["candidate"].split(".")[0]: row["verdict"] for row in answer["candidates"]}
    cheats = {"rmsnorm-replay": "rejected", "rmsnorm-later": "rejected"}
    assert verdicts == cheats | {
        "rmsnorm-fused": "incomplete", "rmsnorm-naive": "rejected", "rmsnorm-wrong": "rejected",
    }  # fmt: skip
    assert answer["audit"]["trust"] == "pinned"
