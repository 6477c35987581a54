"""Writes the parts of the documentation that follow from the code: `python docs/generate.py [--check]`.

Invariants:
- `errors.md`, `artifacts/*.md` and the plots in `measured/` are written whole. In every other page, what stands between
  `<!-- generated: NAME -->` and `<!-- /generated -->` is written by the section NAME.
- The same checkout gives the same bytes on every machine: no clock, no environment, no network.
- `--check` writes nothing; it names every page that is out of date and exits 1.
"""

# ruff: noqa: INP001, E402 - a script, run by its path
from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT / "src")]  # this checkout is what is documented, whatever is installed

from generator.artifacts import artifact, index, slug
from generator.errors import errors
from generator.measured import plots_of_the_page
from generator.pages import pages
from generator.sections import SECTIONS, usage

from akf.contracts import schemas

SECTION = re.compile(r"<!-- generated: (?P<name>[^>]+?) -->\n.*?<!-- /generated -->", re.DOTALL)


def outputs() -> dict[Path, str]:
    """Every page with generated parts, and the text that it must have."""
    found = {DOCS / "errors.md": errors(), DOCS / "artifacts" / "README.md": index()}
    found |= {DOCS / "artifacts" / f"{slug(kind)}.md": artifact(kind) for kind in schemas.kinds()}
    found |= plots_of_the_page()
    for path in pages():
        if path not in found:
            found[path] = SECTION.sub(_section, path.read_text(encoding="utf-8"))
    return found


def _section(match: re.Match[str]) -> str:
    name = match["name"]
    word, _, argument = name.partition(" ")
    lines = usage(argument) if word == "usage" else SECTIONS[name]()
    return "\n".join([f"<!-- generated: {name} -->", *lines, "<!-- /generated -->"])


def main(arguments: list[str]) -> int:
    """Write what is out of date, or only name it."""
    wanted = outputs()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    gone = [path for path in (DOCS / "artifacts").glob("*.md") if path not in wanted]
    for path in [*stale, *gone]:
        print(path.relative_to(ROOT))
    if "--check" in arguments:
        return 1 if stale or gone else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in gone:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
