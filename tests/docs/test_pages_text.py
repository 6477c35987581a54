"""What the pages say in passing: links resolve, codes exist, nothing belongs to somebody's machine."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.generator.markdown import prose
from docs.generator.pages import DOCS, ROOT, pages

from akf.contracts import codes

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"AKF-[A-Z][0-9]{3}")
MACHINE = re.compile(
    r"(?<![\w.~-])/(?:work\b|opt/[a-z]|home/[a-z]|root/)|[\w.-]*py" + r"pi[\w.-]*\.(?:org|io)|pythonhosted"
)
PLACEHOLDERS = {"AKF-S999", "AKF-X999"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def slug(heading: str) -> str:
    """The anchor of a heading: lower case, punctuation gone, spaces as hyphens."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.+)$", prose(path.read_text(encoding="utf-8")), re.MULTILINE)
    return {slug(heading) for heading in headings}


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_links_resolve(path: Path) -> None:
    for link in LINK.findall(prose(path.read_text(encoding="utf-8"))):
        if re.match(r"https?://", link):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{name_of(path)}: {link}"
        assert file.is_relative_to(ROOT), f"{name_of(path)}: {link}"
        if anchor:
            assert anchor in anchors(file), f"{name_of(path)}: {link}"


def test_every_page_is_reached_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        for link in LINK.findall(prose(path.read_text(encoding="utf-8"))):
            target = (path.parent / link.partition("#")[0]).resolve()
            waiting += [target] if target.is_file() else []
    assert [name_of(path) for path in pages() if path not in seen] == []


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_codes_that_are_named_exist(path: Path) -> None:
    named = set(CODE.findall(path.read_text(encoding="utf-8"))) - PLACEHOLDERS
    assert sorted(code for code in named if codes.explain(code) is None) == []


def files() -> Iterator[Path]:
    """What is in the repository; without git, the pages."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = found.stdout.decode().split("\0")[:-1] if found.returncode == 0 else [name_of(path) for path in pages()]
    yield from (ROOT / name for name in names if (ROOT / name).is_file())


def test_no_text_belongs_to_somebodys_machine_or_names_a_package_index() -> None:
    found = []
    for path in files():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{name_of(path)}: {match[0]}" for match in MACHINE.finditer(text) if path != Path(__file__)]
    assert found == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("The run folder", "the-run-folder"), ("Exit status", "exit-status"), ("AKF-S001", "akf-s001")],
)
def test_anchors_are_made_as_the_forges_make_them(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_the_documentation_is_plain() -> None:
    """No dash that is hard to type, no exclamation mark in prose."""
    for path in pages():
        if path.name == "errors.md" or path.parent == DOCS / "artifacts":
            continue
        text = prose(path.read_text(encoding="utf-8"))
        assert "\u2014" not in text, name_of(path)
        assert not re.search(r"[a-z]!(\s|$)", text), name_of(path)
