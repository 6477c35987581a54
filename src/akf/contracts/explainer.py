"""Says what an error of jsonschema-rs means, in words and fields that a person can act on.

Invariants:
1. `anyOf` and `oneOf` are explained by the alternative that was probably meant, never by "none of them fits".
2. A message names the value and the field; text from the document is made printable and cut to length.
3. A keyword without a rule here still becomes a finding: nothing is dropped.
"""

from __future__ import annotations

import json

from akf.contracts.ids import ID_PATTERN, SHORT_ID_PATTERN, id_problem, path_problem
from akf.contracts.limits import MAX_ID, MAX_PROBLEMS, MAX_SHORT_ID
from akf.contracts.pointer import pointer_to
from akf.contracts.text import did_you_mean, printable, show
from akf.contracts.wording import article, as_found, describe, is_number, type_of, wants_path

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


class Explainer:
    """Explains the errors of one schema.

    `window` is the place of a list, and the index in the whole document of the first item that stands there now.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self.window: tuple[Sequence[str | int], int] | None = None
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

    def errors(self, errors: Iterable[ValidationError]) -> list[Finding]:
        """Return what errors mean, until there are more than are listed."""
        found: list[Finding] = []
        for error in errors:
            found += self.error(error)
            if len(found) > MAX_PROBLEMS:
                break
        return found

    def error(self, error: ValidationError) -> list[Finding]:
        """Return what one error means."""
        return list(self._rules.get(_keyword(error), self._other)(error))

    def _at(self, error: ValidationError) -> list[str | int]:
        """Return the path of an error in the whole document."""
        steps = list(error.instance_path)
        if self.window is not None and self.in_window(error):
            place, start = self.window
            steps[len(place)] = int(steps[len(place)]) + start
        return steps

    def in_window(self, error: ValidationError) -> bool:
        """Say whether an error lies inside an item of the window's list."""
        place = self.window[0] if self.window else ()
        return len(error.instance_path) > len(place) and list(error.instance_path[: len(place)]) == list(place)

    def _called(self, error: ValidationError) -> str:
        """Name the value that an error is about."""
        steps = self._at(error)
        if not steps:
            return "the document"
        field = next((step for step in reversed(steps) if isinstance(step, str)), None)
        if isinstance(steps[-1], int):
            return f"item {steps[-1]} of {printable(field[:80])}" if field is not None else f"item {steps[-1]}"
        return printable(steps[-1][:80])

    def _required(self, error: ValidationError) -> Iterator[Finding]:
        field = str(error.kind.value)
        about = self._parent(error).get("properties", {}).get(field, {})
        yield Finding(
            "AKF-S022",
            f"the field {show(field)} is missing",
            [*self._at(error), field],
            expected=self._wanted(about),
            hint=describe(about),
        )

    def _unexpected(self, error: ValidationError) -> Iterator[Finding]:
        known = [name for name in self._parent(error).get("properties", {}) if name != "$schema"]
        for field in error.kind.value:
            near = self._near(field, known)
            yield Finding(
                "AKF-S023",
                f"the field {show(field)} is not known here",
                [*self._at(error), field],
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
            hint = "write the number without quotes" if is_number(error.instance) else hint
        return Finding(
            "AKF-S024",
            f"{self._called(error)} is {show(error.instance)}, not {' or '.join(map(article, types))}",
            self._at(error),
            expected=types[0] if len(types) == 1 else types,
            found=type_of(error.instance),
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
            f"{self._called(error)} is {show(error.instance)}, not {'one of ' if len(options) > 1 else ''}{listed}",
            self._at(error),
            expected=options[0] if len(options) == 1 else options,
            found=as_found(error.instance),
            hint=f"did you mean {near}?" if near else None,
        )

    def _pattern(self, error: ValidationError) -> Iterator[Finding]:
        pattern, text = str(error.kind.value), error.instance
        better = None
        if pattern in {ID_PATTERN, SHORT_ID_PATTERN}:
            longest = MAX_ID if pattern == ID_PATTERN else MAX_SHORT_ID
            better = id_problem(text, field=self._called(error), longest=longest)
        elif wants_path(pattern):
            better = path_problem(text, field=self._called(error))
        if better is not None:
            yield Finding(
                better.code,
                better.message,
                self._at(error),
                expected=better.expected,
                found=better.found,
                hint=better.hint,
            )
            return
        wanted = _PATTERNS.get(pattern, f"text that matches {pattern}")
        yield Finding(
            "AKF-S026",
            f"{self._called(error)} is {show(text)}, not {wanted}",
            self._at(error),
            expected=pattern,
            found=as_found(text),
            hint=self._example(error),
        )

    def _format(self, error: ValidationError) -> Iterator[Finding]:
        wanted = str(error.kind.value)
        text = f"{self._called(error)} is {show(error.instance)}, not a valid {wanted}"
        yield Finding("AKF-S026", text, self._at(error), expected=wanted, found=as_found(error.instance))

    def _bound(self, error: ValidationError) -> Iterator[Finding]:
        limit = error.kind.value
        wanted = f"{_BOUNDS[_keyword(error)]} {show(limit)}"
        yield Finding(
            "AKF-S027",
            f"{self._called(error)} is {show(error.instance)}, but must be {wanted}",
            self._at(error),
            expected=wanted,
            found=as_found(error.instance),
        )

    def _length(self, error: ValidationError) -> Iterator[Finding]:
        keyword, limit = _keyword(error), error.kind.value
        noun = _NOUNS.get(keyword, "field") + ("" if limit == 1 else "s")
        wanted = f"{'at least' if keyword.startswith('min') else 'at most'} {limit} {noun}"
        instance = error.instance
        size = len(instance) if isinstance(instance, str | list | dict) else 0
        yield Finding(
            "AKF-S028",
            f"{self._called(error)} has {size}, but must have {wanted}",
            self._at(error),
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
                    f"item {index} repeats item {first} of {self._called(error)}",
                    [*self._at(error), index],
                    found=as_found(item),
                )
                return
        yield Finding("AKF-S029", f"an item of {self._called(error)} is there twice", self._at(error))

    def _name(self, error: ValidationError) -> Iterator[Finding]:
        inner = getattr(error.kind, "error", None)
        key = getattr(inner, "instance", None)
        steps = [*self._at(error), key] if isinstance(key, str) else self._at(error)
        yield Finding(
            "AKF-S030", f"the field name {show(key)} is not allowed here", steps, found=as_found(key), at_key=True
        )

    def _alternatives(self, error: ValidationError) -> Iterator[Finding]:
        branches: list[list[ValidationError]] = [list(b) for b in getattr(error.kind, "context", []) if b]
        if type(error.kind).__name__ == "OneOfMultipleValid" or not branches:
            text = f"{self._called(error)} is {show(error.instance)}, which fits more than one alternative"
            yield Finding("AKF-S031", text, self._at(error))
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
        text = f"{self._called(error)} is {show(error.instance)}, which the schema's {_keyword(error)} rule refuses"
        yield Finding("AKF-S030", text, self._at(error), found=as_found(error.instance))

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
        return describe(self._parent(error))


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
