"""Which pages there are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOP = ("README.md", "AGENTS.md", "REQUIREMENTS.md")


def pages() -> list[Path]:
    """Every page that people read; plans are working notes of an open issue."""
    found = [ROOT / name for name in TOP]
    found += sorted(path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] != "plans")
    return [path for path in found if path.is_file()]
