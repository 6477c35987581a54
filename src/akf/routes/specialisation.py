"""Every specialisation that a kernel compiled just in time needs: enumerated, counted, bounded.

Invariants:
- The envelope is the Task's support domain, narrowed by the Candidate's own; rows and cases lie inside the domain.
- Two points of the envelope share a specialisation only where no rule of such a compiler tells them apart: an integer's
  width, divisibility by 16 and equality with 1 (`classes`), or every size (`shapes`). The compiler itself is asked for
  its key afterwards; equal keys are one specialisation.
- Constexpr parameters have values by rule (`akf.routes.constexprs`); a point without one is refused.
- What is too much is refused with its count; nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from akf.routes.constexprs import FILE, Rule
from akf.routes.expressions import ExpressionError, evaluate, symbols
from akf.routes.launch_spec import Arg, LaunchSpec

MOST_POINTS = 2**20
"""Points of sizes that depend on one another, each looked at."""
MOST_CLASSES = 4096
"""Specialisations that the compiler is asked for."""
MOST = 64
"""Specialisations that are built."""
ALIGNMENT_BYTES = 16

Number = int | float


class Envelope(NamedTuple):
    """Sizes and attributes that calls may have."""

    sizes: Mapping[str, range]
    attributes: Mapping[str, Sequence[Any]]

    def values(self, name: str) -> Sequence[Number]:
        """What a symbol or an attribute may be."""
        return self.sizes[name] if name in self.sizes else self.attributes[name]


class Specialisation(NamedTuple):
    """One of them: how the route is asked for it, and what it stands for."""

    options: Mapping[str, str]
    """Options of the route."""
    classes: Mapping[str, str]
    """By argument, what the compiler looks at."""
    example: Mapping[str, Number]
    """A point that has it."""
    points: int
    """Points of the envelope that have it."""
    sizes: tuple[str, ...]
    """Names in the example that are sizes; the others are attributes."""


class TooMany(ValueError):  # noqa: N818 - the name says what is the case
    """More than the limit; the message holds the count."""


def envelope(task: Mapping[str, Any], claim: Mapping[str, Any] | None = None) -> Envelope:
    """The Task's domain, narrowed by what a Candidate claims."""
    claimed = (claim or {}).get("domain") or {}
    sizes = {}
    for each in task["domain"]:
        low, high = claimed.get(each["sym"], (each["min"], each["max"]))
        step = each["multiple_of"]
        first = -(-max(low, each["min"]) // step) * step
        sizes[each["sym"]] = range(first, min(high, each["max"]) + 1, step)
    attributes = {each["name"]: each["values"] for each in task["abi"].get("attributes", ())}
    return Envelope(sizes, attributes)


def classes(spec: LaunchSpec, inside: Envelope, rules: Sequence[Rule]) -> list[Specialisation]:
    """What a compiler tells apart that looks at integers' width, divisibility by 16 and equality with 1.

    Raises:
        TooMany: with the count.
        ExpressionError: a scalar has no value at some point, or no rule holds there.
    """
    scalars = [arg for arg in spec.args if arg.kind == "scalar"]
    needed = {arg.name: _names(arg) for arg in scalars}
    by_rule = frozenset[str]().union(*(rule.within for rule in rules)) if rules else frozenset()
    groups = _groups([*needed.values(), by_rule])
    parts = []
    for names in groups:
        mine = [arg for arg in scalars if needed[arg.name] and needed[arg.name] <= names]
        parts.append(_seen(names, mine, rules if by_rule and by_rule <= names else (), inside))
    constant = {arg.name: _value(arg, {}, inside) for arg in scalars if not needed[arg.name]}
    used = frozenset[str]().union(*groups) if groups else frozenset()
    unused = prod(len(sizes) for name, sizes in inside.sizes.items() if name not in used)
    count = prod(len(part) for part in parts)
    if count > MOST_CLASSES:
        raise TooMany(f"{count} specialisations are needed, and a compiler is asked for at most {MOST_CLASSES}")
    always = rules[0].values if rules and not by_rule else {}
    found = []
    for chosen in product(*(part.values() for part in parts)):
        arguments, constexprs, points = dict(constant), dict(always), unused
        example: dict[str, Number] = {}
        for one in chosen:
            arguments |= one.arguments
            constexprs |= one.constexprs
            example |= one.example
            points *= one.points
        example |= {name: sizes[0] for name, sizes in inside.sizes.items() if name not in example}
        options = {f"argument.{name}": _text(value) for name, value in arguments.items()}
        options |= {f"constexpr.{name}": value for name, value in constexprs.items()}
        found.append(Specialisation(options, _shown(spec, arguments), example, points, tuple(sorted(inside.sizes))))
    return found


def call(
    spec: LaunchSpec, rules: Sequence[Rule], sizes: Mapping[str, int], attributes: Mapping[str, Any]
) -> dict[str, str]:
    """Options for one row or case, as `classes` gives them for its examples.

    Raises:
        ExpressionError: a scalar has no value, or no rule holds.
    """
    inside = Envelope({name: range(size, size + 1) for name, size in sizes.items()}, _each(attributes))
    (only,) = classes(spec, inside, rules)
    return dict(only.options)


def shapes(inside: Envelope) -> list[Specialisation]:
    """What a compiler tells apart that takes every size and attribute as a constant.

    Raises:
        TooMany: with the count.
    """
    names = [*sorted(inside.sizes), *sorted(inside.attributes)]
    count = prod(len(inside.values(name)) for name in names)
    if count > MOST:
        raise TooMany(f"{count} specialisations are needed, one for each shape, and at most {MOST} are built")
    found = []
    for values in product(*(inside.values(name) for name in names)):
        point = dict(zip(names, values, strict=True))
        texts = {name: _text(value) for name, value in point.items()}
        found.append(
            Specialisation(
                {f"symbol.{name}": text for name, text in texts.items()}, texts, point, 1, tuple(sorted(inside.sizes))
            )
        )
    return found


class _One(NamedTuple):
    arguments: dict[str, Number]
    constexprs: Mapping[str, str]
    example: dict[str, Number]
    points: int


def _seen(
    names: frozenset[str], scalars: Sequence[Arg], rules: Sequence[Rule], inside: Envelope
) -> dict[tuple[Any, ...], _One]:
    """What is told apart over sizes that depend on one another, with an example each."""
    order = sorted(names)
    count = prod(len(inside.values(name)) for name in order)
    if count > MOST_POINTS:
        text = f"{', '.join(order)} have {count} combinations, and at most {MOST_POINTS} are looked at"
        raise TooMany(text)
    found: dict[tuple[Any, ...], _One] = {}
    for point in _points(order, inside):
        values = {arg.name: _value(arg, point, inside) for arg in scalars}
        rule = next((number for number, each in enumerate(rules) if each.holds(_sizes(point, inside))), None)
        if rules and rule is None:
            where = ", ".join(f"{name} = {value}" for name, value in point.items())
            raise ExpressionError(f"{FILE}: no rule holds at {where}")
        chosen = rules[rule].values if rule is not None else {}
        key = (*(_class(value) for value in values.values()), *sorted(chosen.items()))
        before = found.get(key)
        found[key] = _One(values, chosen, point, 1) if before is None else before._replace(points=before.points + 1)
    return found


def _points(order: Sequence[str], inside: Envelope) -> Iterator[dict[str, Number]]:
    for values in product(*(inside.values(name) for name in order)):
        yield dict(zip(order, values, strict=True))


def _sizes(point: Mapping[str, Number], inside: Envelope) -> dict[str, int]:
    return {name: int(value) for name, value in point.items() if name in inside.sizes}


def _names(arg: Arg) -> frozenset[str]:
    """What an integer argument depends on; no compiler looks at the value of a floating one."""
    if arg.dtype.startswith("float") or arg.value is None:
        return frozenset()
    return symbols(arg.value)


def _value(arg: Arg, point: Mapping[str, Number], inside: Envelope) -> Number:
    if arg.dtype.startswith("float"):
        name = next(iter(symbols(arg.value)), "") if arg.value is not None else ""
        return float(inside.attributes[name][0]) if name in inside.attributes else 0.5
    whole = {name: value for name, value in point.items() if isinstance(value, int)}
    return evaluate(arg.value, whole) if arg.value is not None else 0


def _class(value: Number) -> str:
    """What such a compiler looks at, in the order in which it asks."""
    if isinstance(value, float):
        return "fp32"
    width = "i32" if -(2**31) <= value < 2**31 else "i64"
    if value % ALIGNMENT_BYTES == 0:
        return f"{width}, divisible by 16"
    return f"{width}, equal to 1" if value == 1 else width


def _shown(spec: LaunchSpec, values: Mapping[str, Number]) -> dict[str, str]:
    found = {}
    for arg in spec.args:
        if arg.kind == "tensor":
            found[arg.name] = f"{arg.dtype}, aligned to {ALIGNMENT_BYTES} bytes"
        elif arg.name in values:
            found[arg.name] = _class(values[arg.name])
    return found


def _groups(needed: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Sets of names that some scalar or rule sees together."""
    groups: list[frozenset[str]] = []
    for names in needed:
        if names:
            apart = [group for group in groups if not group & names]
            groups = [*apart, names.union(*(group for group in groups if group & names))]
    return sorted(groups, key=sorted)


def _each(attributes: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (value,) for name, value in attributes.items()}


def _text(value: Number) -> str:
    return str(value) if isinstance(value, int) else repr(value)
