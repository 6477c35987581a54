"""`--human` and `--format github|sarif`: the same content as the JSON document, for people and for CI.

Invariants:
- Every problem of the document is in every format.
- No character of a file reaches the terminal unescaped.
- `--human` cuts no text: long ones go on in the next line. Only fractions and JSON inside a table's cell are shortened.
- Moments are shown as a clock shows them, in UTC; times that the wire counts in microseconds have their unit.
- A column of shares has bars beside its numbers, as long as their part of the largest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from textwrap import wrap
from typing import Any
from urllib.parse import quote

import orjson

from akf import __version__
from akf.cli.result import inert
from akf.contracts.text import printable

_GITHUB = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_GITHUB_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_COLUMNS = 100
_LONGEST_JSON = 100
_STEP = "  "
_MOMENTS = frozenset({"submit_time", "start_time", "end_time"})
_LAST_MOMENT = 253402300800
_MICROSECONDS = frozenset({"gen_time", "base_time"})
"""As the wire of the services names them."""
_MANY = 12
"""Columns that no line holds, except beside bars, which are compared down the column."""
_SHARES, _BAR, _LONGEST_BAR = "share_ratio", "\N{FULL BLOCK}", 20


def render(document: dict[str, Any], name: str) -> str:
    """The document in one of the formats `human`, `github`, `sarif`."""
    if name == "github":
        return "".join(f"{line}\n" for line in _github(document))
    if name == "sarif":
        return inert(orjson.dumps(_sarif(document), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
    return "".join(f"{line}\n" for line in _human(document))


def _github(document: dict[str, Any]) -> Iterator[str]:
    for problem in document.get("problems", ()):
        fields = {"file": problem["file"], "line": problem["line"], "col": problem["column"], "title": problem["code"]}
        where = ",".join(f"{name}={_property(value)}" for name, value in fields.items() if value is not None)
        yield f"::error {where}::{printable(_sentence(problem)).translate(_GITHUB)}"
    for blocker in document.get("blockers", ()):
        where = f"file={_property(blocker['file'])},title=blocker"
        text = f"{blocker['pointer']}: {blocker['expected']} Fill it with: {blocker['command']}"
        yield f"::warning {where}::{printable(text).translate(_GITHUB)}"


def _property(value: Any) -> str:
    return printable(str(value)).translate(_GITHUB_PROPERTY)


def _sarif(document: dict[str, Any]) -> dict[str, Any]:
    problems = document.get("problems", ())
    results = []
    for problem in problems:
        result: dict[str, Any] = {
            "ruleId": problem["code"], "level": "error", "message": {"text": printable(_sentence(problem))},
        }  # fmt: skip
        if problem["file"] is not None:
            place: dict[str, Any] = {"artifactLocation": {"uri": quote(problem["file"])}}
            if problem["line"] is not None:
                place["region"] = {"startLine": problem["line"], "startColumn": problem["column"] or 1}
            result["locations"] = [{"physicalLocation": place}]
        results.append(result)
    rules = [{"id": code} for code in sorted({problem["code"] for problem in problems})]
    driver = {"name": "akf", "version": __version__, "rules": rules}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _sentence(problem: dict[str, Any]) -> str:
    return f"{problem['message']} ({problem['hint']})" if problem["hint"] else str(problem["message"])


def _human(document: dict[str, Any]) -> Iterator[str]:
    """Scalars first; then the lists and objects, in the document's order."""
    for name, value in document.items():
        if not isinstance(value, list | dict) and value is not None:
            yield from _text(f"{_words(name)}: ", _field(name, value))
    for name, value in document.items():
        if name == "problems":
            yield from map(_problem, value)
        elif value and isinstance(value, list | dict):
            yield f"{_words(name)}:"
            yield from _inside(value, _STEP)


def _problem(problem: dict[str, Any]) -> str:
    """One line, however long: `file:line:column: CODE message`, as compilers write it."""
    where = ":".join(printable(str(problem[key])) for key in ("file", "line", "column") if problem[key] is not None)
    return f"{where + ': ' if where else ''}{problem['code']} {printable(_sentence(problem))}"


def _inside(value: list[Any] | dict[str, Any], indent: str, *, inner: bool = False) -> Iterator[str]:
    """What an object or a list holds, all of it but the digests of the parents."""
    if isinstance(value, list):
        yield from _table(value, indent, inner=inner)
        return
    for key, item in value.items():
        if key == "parents":
            continue
        if not item or not isinstance(item, list | dict):
            yield from _text(f"{indent}{_words(key)}: ", _field(key, item))
        elif isinstance(item, list) and not any(isinstance(each, list | dict) for each in item):
            yield from _text(f"{indent}{_words(key)}: ", ", ".join(map(_cell, item)))
        else:
            yield f"{indent}{_words(key)}:"
            yield from _inside(item, indent + _STEP, inner=inner)


def _table(rows: list[Any], indent: str, *, inner: bool) -> Iterator[str]:
    """Rows side by side; one after another where that is too wide and cells hold tables or sentences, or are many.

    A table inside such a row is made narrower if it must: headings are broken at their words, and what every row says
    is said once, above.
    """
    if not all(isinstance(row, dict) for row in rows):
        for row in rows:
            yield from _text(indent, _cell(row))
        return
    names = list(dict.fromkeys(key for row in rows for key in row))
    shown = {name: _bars(rows) if name == _SHARES else [_field(name, row.get(name)) for row in rows] for name in names}
    room = _COLUMNS - len(indent)
    many = len(names) >= _MANY and _SHARES not in names
    if (many or any(map(_holds, rows))) and _width(shown, _words) > room:
        for row in rows:
            name, *_ = row
            yield from _text(indent, _cell(row[name]))
            yield from _inside({key: item for key, item in row.items() if key != name}, indent + _STEP, inner=True)
        return
    broken = inner and _width(shown, _words) > room
    if broken and len(rows) > 1 and _width(shown, _longest_word) > room:
        for name in [name for name, cells in shown.items() if len(set(cells)) == 1]:
            yield from _text(f"{indent}every {_words(name)}: ", shown.pop(name)[0])
    heads = {name: _words(name).split() if broken else [_words(name)] for name in shown}
    tall = max(map(len, heads.values()), default=0)
    columns = [[""] * (tall - len(head)) + head + shown[name] for name, head in heads.items()]
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        yield indent + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def _width(shown: dict[str, list[str]], head: Callable[[str], str]) -> int:
    """How wide a table of these columns is with such headings."""
    return sum(2 + max(len(text) for text in (head(name), *cells)) for name, cells in shown.items()) - 2


def _longest_word(name: str) -> str:
    return max(_words(name).split(), key=len, default="")


def _holds(row: dict[str, Any]) -> bool:
    """Whether a row holds more than a table's cell can show: a table of its own, or sentences."""
    lists = [item for item in row.values() if isinstance(item, list)]
    return any(isinstance(each, dict) or (isinstance(each, str) and " " in each) for item in lists for each in item)


def _bars(rows: list[dict[str, Any]]) -> list[str]:
    """Shares with their bars."""
    shares = [row.get(_SHARES) for row in rows]
    numbers = [share for share in shares if isinstance(share, int | float)]
    most, wide = max(numbers, default=0) or 1, max(len(_cell(share)) for share in shares)
    lengths = [round(_LONGEST_BAR * share / most) if isinstance(share, int | float) else 0 for share in shares]
    return [f"{_cell(share):<{wide}} {_BAR * length}" for share, length in zip(shares, lengths, strict=True)]


def _text(head: str, text: str) -> Iterator[str]:
    """The whole text, over as many lines as it needs; words and paths are never broken."""
    if len(head) + len(text) <= _COLUMNS:
        yield f"{head}{text}"
        return
    indent = " " * (len(head) - len(head.lstrip())) + _STEP
    lines = wrap(
        text, _COLUMNS, initial_indent=head, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    yield from lines or [head.rstrip()]


def _words(name: str) -> str:
    return printable(name.replace("_", " "))


def _field(name: str, value: Any) -> str:
    """A scalar under its name: moments as a clock shows them, a job's times with their unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _cell(value)
    if name in _MOMENTS and 0 <= value < _LAST_MOMENT:
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(value))} UTC"
    return f"{value:.4g} µs" if name in _MICROSECONDS else _cell(value)


def _cell(value: Any) -> str:
    """A scalar whole, a fraction to six digits; a list or an object as JSON, as much of it as a glance takes in."""
    if value is None or (not value and isinstance(value, list | dict)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    shown = printable(orjson.dumps(value).decode())
    return shown if len(shown) <= _LONGEST_JSON else shown[: _LONGEST_JSON - 1] + "…"
