"""Turns what jsonschema-rs reports into Problems that a person can act on.

Invariants:
1. One problem per fault: every unexpected field has its own, at its own pointer.
2. `anyOf` and `oneOf` are explained by the alternative that was probably meant, never by "none of them fits".
3. A message names the value and the field; text from the document is made printable and cut to length.
4. A keyword without a rule here still becomes a problem: nothing is dropped.
"""

from __future__ import annotations

import json
import re
from functools import cache

from akf.contracts.ids import ID_PATTERN, SHORT_ID_PATTERN, id_problem, path_problem
from akf.contracts.limits import MAX_ID, MAX_PROBLEMS, MAX_SHORT_ID
from akf.contracts.loader import Document
from akf.contracts.problems import Problem
from akf.contracts.scanner import pointer_to
from akf.contracts.text import did_you_mean, printable, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from jsonschema_rs import ValidationError

    Steps = Sequence[str | int]

_NOUNS = {"maxLength": "character", "minLength": "character", "maxItems": "item", "minItems": "item"}
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
_HOPS = 8
_PATTERNS = {
    "^sha256:[0-9a-f]{64}$": "sha256: and 64 digits 0-9 a-f",
    "^[0-9a-f]{64}$": "64 digits 0-9 a-f",
}


class Finding:
    """A problem that still lacks its place in the file."""

    __slots__ = ("at_key", "code", "expected", "found", "hint", "message", "pointer")

    def __init__(
        self,
        code: str,
        message: str,
        steps: Steps,
        *,
        expected: Any = None,
        found: Any = None,
        hint: str | None = None,
        at_key: bool = False,
    ) -> None:
        self.code = code
        self.message = message
        self.pointer = pointer_to(steps)
        self.expected = expected
        self.found = found
        self.hint = hint
        self.at_key = at_key


def problems(document: Document, errors: Iterable[ValidationError], schema: dict[str, Any]) -> list[Problem]:
    """Return the problems behind `errors`, in order and without repetition, at most `MAX_PROBLEMS` and a note."""
    explain = _Explainer(schema)
    findings: list[Finding] = []
    for error in errors:
        findings += explain.error(error)
        if len(findings) > MAX_PROBLEMS:
            break
    mistyped = {f.pointer for f in findings if f.code == "AKF-S024"}
    findings = [f for f in findings if f.code != "AKF-S025" or f.pointer not in mistyped]
    document.prefetch([finding.pointer for finding in findings])
    listed = {
        document.problem(f.code, f.message, f.pointer, key=f.at_key, expected=f.expected, found=f.found, hint=f.hint)
        for f in findings[:MAX_PROBLEMS]
    }
    if len(findings) > MAX_PROBLEMS:
        listed.add(document.problem("AKF-S013", f"only the first {MAX_PROBLEMS} problems are listed"))
    return sorted(listed, key=Problem.sort_key)


class _Explainer:
    """Explains the errors of one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._meant: dict[tuple[str, ...], str | None] = {}
        self._rules: dict[str, Callable[[ValidationError], Iterator[Finding]]] = {
            "required": self._required,
            "unevaluatedProperties": self._unexpected,
            "additionalProperties": self._unexpected,
            "type": self._type,
            "enum": self._choice,
            "const": self._choice,
            "pattern": self._pattern,
            "format": self._format,
            "anyOf": self._alternatives,
            "oneOf": self._alternatives,
            "uniqueItems": self._unique,
            "propertyNames": self._name,
            **dict.fromkeys(_BOUNDS, self._bound),
            **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), self._length),
            **dict.fromkeys(("minProperties", "maxProperties"), self._length),
        }

    def error(self, error: ValidationError) -> list[Finding]:
        """Return what one error means."""
        return list(self._rules.get(_keyword(error), self._other)(error))

    def _required(self, error: ValidationError) -> Iterator[Finding]:
        field = str(error.kind.value)
        about = self._parent(error).get("properties", {}).get(field, {})
        yield Finding(
            "AKF-S022",
            f"the field {show(field)} is missing",
            [*error.instance_path, field],
            expected=self._wanted(about),
            hint=_describe(about),
        )

    def _unexpected(self, error: ValidationError) -> Iterator[Finding]:
        known = [name for name in self._parent(error).get("properties", {}) if name != "$schema"]
        for field in error.kind.value:
            near = self._near(field, known)
            yield Finding(
                "AKF-S023",
                f"the field {show(field)} is not known here",
                [*error.instance_path, field],
                expected=sorted(known) or None,
                found=printable(field[:200]),
                hint=f"did you mean {near}?" if near else None,
                at_key=True,
            )

    def _near(self, field: str, known: list[str]) -> str | None:
        """Look a near miss up once: the same slip tends to be in every row."""
        question = (field, *known)
        if question not in self._meant:
            self._meant[question] = did_you_mean(field, known)
        return self._meant[question]

    def _type(self, error: ValidationError) -> Iterator[Finding]:
        yield self._wrong_type(error, list(error.kind.value))

    def _wrong_type(self, error: ValidationError, types: list[str]) -> Finding:
        hint = self._example(error)
        if isinstance(error.instance, str) and error.instance.strip() and {"integer", "number"} & set(types):
            hint = "write the number without quotes" if _is_number(error.instance) else hint
        return Finding(
            "AKF-S024",
            f"{_name(error)} is {show(error.instance)}, not {' or '.join(map(_article, types))}",
            error.instance_path,
            expected=types[0] if len(types) == 1 else types,
            found=_type_of(error.instance),
            hint=hint,
        )

    def _choice(self, error: ValidationError) -> Iterator[Finding]:
        yield self._wrong_choice(error, _options(error))

    def _wrong_choice(self, error: ValidationError, options: list[Any]) -> Finding:
        near = None
        if isinstance(error.instance, str):
            near = did_you_mean(error.instance, [option for option in options if isinstance(option, str)])
        listed = ", ".join(show(option) for option in options[:12]) + (", …" if len(options) > 12 else "")  # noqa: PLR2004
        return Finding(
            "AKF-S025",
            f"{_name(error)} is {show(error.instance)}, not {'one of ' if len(options) > 1 else ''}{listed}",
            error.instance_path,
            expected=options[0] if len(options) == 1 else options,
            found=_found(error.instance),
            hint=f"did you mean {near}?" if near else None,
        )

    def _pattern(self, error: ValidationError) -> Iterator[Finding]:
        pattern, text = str(error.kind.value), error.instance
        better = None
        if pattern in {ID_PATTERN, SHORT_ID_PATTERN}:
            longest = MAX_ID if pattern == ID_PATTERN else MAX_SHORT_ID
            better = id_problem(text, field=_name(error), longest=longest)
        elif _wants_path(pattern):
            better = path_problem(text, field=_name(error))
        if better is not None:
            yield Finding(
                better.code,
                better.message,
                error.instance_path,
                expected=better.expected,
                found=better.found,
                hint=better.hint,
            )
            return
        wanted = _PATTERNS.get(pattern, f"text that matches {pattern}")
        yield Finding(
            "AKF-S026",
            f"{_name(error)} is {show(text)}, not {wanted}",
            error.instance_path,
            expected=pattern,
            found=_found(text),
            hint=self._example(error),
        )

    def _format(self, error: ValidationError) -> Iterator[Finding]:
        wanted = str(error.kind.value)
        text = f"{_name(error)} is {show(error.instance)}, not a valid {wanted}"
        yield Finding("AKF-S026", text, error.instance_path, expected=wanted, found=_found(error.instance))

    def _bound(self, error: ValidationError) -> Iterator[Finding]:
        limit = error.kind.value
        wanted = f"{_BOUNDS[_keyword(error)]} {show(limit)}"
        yield Finding(
            "AKF-S027",
            f"{_name(error)} is {show(error.instance)}, but must be {wanted}",
            error.instance_path,
            expected=wanted,
            found=_found(error.instance),
        )

    def _length(self, error: ValidationError) -> Iterator[Finding]:
        keyword, limit = _keyword(error), error.kind.value
        noun = _NOUNS.get(keyword, "field") + ("" if limit == 1 else "s")
        wanted = f"{'at least' if keyword.startswith('min') else 'at most'} {limit} {noun}"
        instance = error.instance
        size = len(instance) if isinstance(instance, str | list | dict) else 0
        yield Finding(
            "AKF-S028",
            f"{_name(error)} has {size}, but must have {wanted}",
            error.instance_path,
            expected=wanted,
            found=size,
        )

    def _unique(self, error: ValidationError) -> Iterator[Finding]:
        seen: dict[str, int] = {}
        for index, item in enumerate(error.instance if isinstance(error.instance, list) else []):
            first = seen.setdefault(json.dumps(item, sort_keys=True), index)
            if first != index:
                yield Finding(
                    "AKF-S029",
                    f"item {index} repeats item {first} of {_name(error)}",
                    [*error.instance_path, index],
                    found=_found(item),
                )
                return
        yield Finding("AKF-S029", f"an item of {_name(error)} is there twice", error.instance_path)

    def _name(self, error: ValidationError) -> Iterator[Finding]:
        inner = getattr(error.kind, "error", None)
        key = getattr(inner, "instance", None)
        steps = [*error.instance_path, key] if isinstance(key, str) else error.instance_path
        yield Finding(
            "AKF-S030", f"the field name {show(key)} is not allowed here", steps, found=_found(key), at_key=True
        )

    def _alternatives(self, error: ValidationError) -> Iterator[Finding]:
        branches: list[list[ValidationError]] = [list(b) for b in getattr(error.kind, "context", []) if b]
        if type(error.kind).__name__ == "OneOfMultipleValid" or not branches:
            text = f"{_name(error)} is {show(error.instance)}, which fits more than one alternative"
            yield Finding("AKF-S031", text, error.instance_path)
            return
        base = list(error.instance_path)
        close = [b for b in branches if not _errors_at(b, base, {"type"})]
        if not close:
            types = [t for b in branches for e in _errors_at(b, base, {"type"}) for t in e.kind.value]
            yield self._wrong_type(error, list(dict.fromkeys(types)))
            return
        merged = self._no_option(close, base)
        if merged is not None:
            yield merged
            return
        likely = [b for b in close if not _tag_errors(b, base)] or close
        best = min(likely, key=lambda b: (len(b), -max(len(e.instance_path) for e in b)))
        for inner in best:
            yield from self.error(inner)

    def _no_option(self, branches: list[list[ValidationError]], base: list[str | int]) -> Finding | None:
        """Return one finding when every alternative asks for another constant in the same place."""
        tagged = [_errors_at(b, base, {"const", "enum"}) or _tag_errors(b, base) for b in branches]
        places = [{tuple(e.instance_path) for e in errors} for errors in tagged]
        shared = set.intersection(*places)
        if not shared:
            return None
        place = min(shared, key=lambda steps: [str(step) for step in steps])
        chosen = [e for errors in tagged for e in errors if tuple(e.instance_path) == place]
        options = [option for e in chosen for option in _options(e)]
        return self._wrong_choice(chosen[0], [o for i, o in enumerate(options) if o not in options[:i]])

    def _other(self, error: ValidationError) -> Iterator[Finding]:
        text = f"{_name(error)} is {show(error.instance)}, which the schema's {_keyword(error)} rule refuses"
        yield Finding("AKF-S030", text, error.instance_path, found=_found(error.instance))

    def _parent(self, error: ValidationError) -> dict[str, Any]:
        """Return the schema object whose keyword failed, or an empty one where it cannot be found."""
        node: Any = self._schema
        for step in error.schema_path[:-1]:
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                return {}
        return node if isinstance(node, dict) else {}

    def _wanted(self, about: Any) -> Any:
        """Return the type, or the choice, that a field's schema asks for."""
        for _ in range(_HOPS):
            reference = about.get("$ref", "") if isinstance(about, dict) else ""
            if not reference.startswith("#/$defs/"):
                break
            about = self._schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
        if not isinstance(about, dict):
            return None
        alternatives = about.get("anyOf") or about.get("oneOf")
        if alternatives:
            types = [self._wanted(alternative) for alternative in alternatives]
            return [t for i, t in enumerate(types) if t is not None and t not in types[:i]] or None
        return next((about[keyword] for keyword in ("const", "enum", "type") if keyword in about), None)

    def _example(self, error: ValidationError) -> str | None:
        return _describe(self._parent(error))


def _keyword(error: ValidationError) -> str:
    return str(error.kind.name)


def _options(error: ValidationError) -> list[Any]:
    value = error.kind.value
    return list(value) if _keyword(error) == "enum" else [value]


def _errors_at(errors: list[ValidationError], base: list[str | int], keywords: set[str]) -> list[ValidationError]:
    return [e for e in errors if _keyword(e) in keywords and list(e.instance_path) == base]


def _tag_errors(errors: list[ValidationError], base: list[str | int]) -> list[ValidationError]:
    """Return the errors of constants in fields of the object itself: what tells alternatives apart."""
    return [
        e
        for e in errors
        if _keyword(e) in {"const", "enum"}
        and len(e.instance_path) == len(base) + 1
        and list(e.instance_path[: len(base)]) == base
    ]


def _name(error: ValidationError) -> str:
    steps = error.instance_path
    if not steps:
        return "the document"
    field = next((step for step in reversed(steps) if isinstance(step, str)), None)
    if isinstance(steps[-1], int):
        return f"item {steps[-1]} of {printable(field[:80])}" if field is not None else f"item {steps[-1]}"
    return printable(steps[-1][:80])


def _describe(about: Any) -> str | None:
    """Return a hint from a schema's description and example."""
    if not isinstance(about, dict):
        return None
    parts = [about["description"]] if isinstance(about.get("description"), str) else []
    examples = about.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], str | int | float):
        parts.append(f"For example {show(examples[0])}")
    return " ".join(parts) or None


def _found(value: Any) -> Any:
    """Return a value as `found`: scalars as they are, containers by their size."""
    if isinstance(value, str):
        return printable(value[:200])
    return show(value) if isinstance(value, dict | list) else value


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names[type(value)]


def _article(name: str) -> str:
    if name == "null":
        return name
    return f"an {name}" if name[0] in "aio" else f"a {name}"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text.strip()) is not None


@cache
def _wants_path(pattern: str) -> bool:
    """Say whether a pattern accepts relative paths and refuses the ones that leave their folder."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return False
    accepted = all(compiled.search(path) for path in ("a/b.c", "src/x_y-1.cpp"))
    return accepted and not any(compiled.search(path) for path in ("../a", "/a", "a//b", "a/../b"))
