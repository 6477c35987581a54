"""`errors.md`: every code of the catalogue."""

from __future__ import annotations

from akf.contracts import codes

from .markdown import page, plain, shown, table, written


def errors() -> str:
    """The page's text."""
    found = [entry for entry in map(codes.explain, codes.all_codes()) if entry is not None]
    refusals = [entry for entry in found if not entry.is_reason]
    lines = [
        "# Codes", "",
        written("the catalogue, `src/akf/contracts/catalogue/*.toml`"), "",
        "A **problem code** (`AKF-S012`) stands in every refusal. A **reason code** (`NO_LOCAL_GAIN`) stands in a",
        "check or in a Decision. Codes are stable. `akf explain CODE` prints what stands here, also of a",
        "[verdict](#verdicts).", "",
        "The letter of a problem code names its family:", "",
        *table(("letter", "family", "codes"), [
            (f"`{letter}`", family, str(sum(entry.code.startswith(f"AKF-{letter}") for entry in refusals)))
            for letter, family in codes.FAMILIES.items()
        ]), "",
        "## Problem codes", "",
    ]  # fmt: skip
    for entry in refusals:
        lines += [f"### {entry.code}", "", f"**{plain(entry.title)}.** Exit status {entry.exit}.", ""]
        lines += [plain(entry.rule), "", f"Why: {plain(entry.why)}", ""]
        lines += [*_sample("Refused", entry.failing or ""), *_sample("Accepted", entry.passing or "")]
    lines += ["## Reason codes", ""]
    for entry in found:
        if entry.is_reason:
            lines += [f"### {entry.code}", "", f"**{plain(entry.title)}.** {plain(entry.rule)}", ""]
            lines += [f"Why: {plain(entry.why)}", ""]
    rows = [(f"`{entry.code}`", entry.rule, entry.why) for entry in map(codes.find, codes.verdicts()) if entry]
    lines += ["## Verdicts", "", *table(("verdict", "given when", "why"), rows), ""]
    return page(lines)


def _sample(label: str, text: str) -> list[str]:
    """A failing or passing example: prose as prose, anything else as it is."""
    if not text:
        return []
    if "`" not in text and ("\n" in text or text.lstrip()[:1] in '[{"'):
        return [f"{label}:", "", *shown(text.rstrip("\n")), ""]
    return [f"{label}: {plain(text)}", ""]
