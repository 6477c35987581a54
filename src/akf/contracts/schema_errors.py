"""Turns what jsonschema-rs reports into Problems.

Invariants:
1. One problem per fault: every unexpected field has its own, at its own pointer; a wrong type is not said twice.
2. Problems are ordered, at most `MAX_PROBLEMS` and a note; of a large document that is invalid, at least one.
3. Memory is bounded by the document, not by the document times its errors (`akf.contracts.excerpt`).
"""

from __future__ import annotations

from typing import cast

from akf.contracts.excerpt import Excerpt, known_fields
from akf.contracts.explainer import Explainer, Finding
from akf.contracts.limits import MAX_PROBLEMS
from akf.contracts.loader import Document
from akf.contracts.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from jsonschema_rs import Draft202012Validator, ValidationError

_SMALL = 64 * 1024
"""Bytes of a document whose errors fit into memory, however many they are."""


def problems(document: Document, compiled: Draft202012Validator, schema: dict[str, Any]) -> list[Problem]:
    """Return what `schema`, compiled, refuses about an invalid document: in order, each once.

    At most `MAX_PROBLEMS` and a note are listed; of a large document, at least the first problem and a note.
    """
    if len(document.source) <= _SMALL:
        findings, complete = Explainer(schema).errors(compiled.iter_errors(document.value)), True
    else:
        findings, complete = _large(document.value, compiled, schema)
    mistyped = {f.pointer for f in findings if f.code == "AKF-S024"}
    findings = [f for f in findings if f.code != "AKF-S025" or f.pointer not in mistyped]
    document.prefetch([finding.pointer for finding in findings])
    listed = {
        document.problem(f.code, f.message, f.pointer, key=f.at_key, expected=f.expected, found=f.found, hint=f.hint)
        for f in findings[:MAX_PROBLEMS]
    }
    if len(findings) > MAX_PROBLEMS:
        listed.add(document.problem("AKF-S013", f"only the first {MAX_PROBLEMS} problems are listed"))
    elif not complete:
        text = "the document is large: problems deep inside its long lists may be missing here"
        listed.add(document.problem("AKF-S013", text, hint="fix what is listed and validate again"))
    return sorted(listed, key=Problem.sort_key)


def _large(value: Any, compiled: Draft202012Validator, schema: dict[str, Any]) -> tuple[list[Finding], bool]:
    """Return what is wrong with a large document, and whether that is surely all."""
    explain = Explainer(schema)
    excerpt = Excerpt(value, known_fields(schema))

    def errors() -> Iterator[ValidationError]:
        if not compiled.is_valid(excerpt.value):
            yield from (e for e in compiled.iter_errors(excerpt.value) if not excerpt.distorts(e.instance_path))

    found = explain.errors(errors())
    if found or excerpt.complete:
        return found, excerpt.complete
    for place, start in excerpt.windows():
        explain.window = (place, start)
        found += explain.errors(e for e in errors() if explain.in_window(e))
        if len(found) > MAX_PROBLEMS:
            break
    explain.window = None
    if not found:
        try:
            compiled.validate(value)
        except ValueError as first:  # jsonschema_rs.ValidationError
            found = explain.error(cast("ValidationError", first))
    return found, False
