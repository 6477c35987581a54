"""The launch spec: how a compiled kernel is called, declared and never inferred from code.

Invariants:
- Unknown fields, unknown words and malformed expressions are refused with a JSON pointer.
- Every operand named here can be compared with the Task's ABI; a difference names the operand.
- What is handed to the harness (`resolve_call`) holds integers and numbers only, no expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from akf.contracts.pointer import pointer_to
from akf.contracts.text import did_you_mean, show
from akf.routes.expressions import Expression, ExpressionError, Symbol, evaluate, normal, parse, symbols

ITEM_BYTES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "int64": 8,
}
SCALAR_DTYPES = frozenset({"int32", "int64", "float32", "float64"})
ACCESS = frozenset({"in", "out", "inout"})
ABIS = ("c", "cubin", "ascend")
MAX_ARGS = 64
MAX_RANK = 8
MAX_SYMBOL_LENGTH = 128

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SPEC_FIELDS = frozenset({"abi", "symbol", "args", "grid", "block", "shared_bytes", "graph_safe"})
_ARG_FIELDS = {
    "tensor": frozenset({"name", "kind", "dtype", "shape", "strides", "access"}),
    "scalar": frozenset({"name", "kind", "dtype", "value"}),
    "workspace": frozenset({"name", "kind", "dtype", "shape"}),
    "stream": frozenset({"name", "kind"}),
}


class LaunchSpecError(ValueError):
    """A launch spec that cannot be used; `pointer` is the JSON pointer of the place."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or '/'}: {message}")
        self.pointer = pointer
        self.message = message


@dataclass(frozen=True)
class Arg:
    """One argument of the kernel, in call order."""

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[Expression, ...] = ()
    shape_text: tuple[str, ...] = ()
    strides: tuple[Expression, ...] | None = None
    access: str = ""
    value: Expression | None = None


@dataclass(frozen=True)
class LaunchSpec:
    """A parsed launch spec."""

    abi: str
    symbol: str
    args: tuple[Arg, ...]
    grid: tuple[Expression, ...] = ()
    block: tuple[Expression, ...] = ()
    shared_bytes: Expression | None = None
    graph_safe: bool = False

    @property
    def scalars(self) -> tuple[Arg, ...]:
        """The scalar arguments, in call order."""
        return tuple(arg for arg in self.args if arg.kind == "scalar")


def _object(value: Any, allowed: frozenset[str], required: Iterable[str], pointer: str, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LaunchSpecError(pointer, "must be an object")
    for name in value:
        if name not in allowed:
            near = did_you_mean(name, allowed)
            question = f"; did you mean {near}?" if near else f"; its fields are {', '.join(sorted(allowed))}"
            message = f"{show(name)} is not a field of {what}{question}"
            raise LaunchSpecError(f"{pointer}{pointer_to([name])}", message)
    for name in required:
        if name not in value:
            raise LaunchSpecError(pointer, f"the field {name!r} is missing")
    return value


def _identifier(value: Any, pointer: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_SYMBOL_LENGTH or not _IDENTIFIER.match(value):
        raise LaunchSpecError(pointer, "must be a C identifier")
    return value


def _word(value: Any, words: Iterable[str], pointer: str) -> str:
    known = sorted(words)
    if not isinstance(value, str) or value not in known:
        raise LaunchSpecError(pointer, f"must be one of {', '.join(known)}")
    return value


def _expression(value: Any, pointer: str) -> Expression:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise LaunchSpecError(pointer, "must be an integer or an expression")
    try:
        return parse(value)
    except ExpressionError as error:
        raise LaunchSpecError(pointer, str(error)) from error


def _expressions(value: Any, pointer: str) -> tuple[Expression, ...]:
    items = value if isinstance(value, list) else [value]
    if len(items) > MAX_RANK:
        raise LaunchSpecError(pointer, f"has more than {MAX_RANK} entries")
    return tuple(_expression(item, f"{pointer}/{index}") for index, item in enumerate(items))


def _arg(value: Any, pointer: str) -> Arg:
    if not isinstance(value, dict):
        raise LaunchSpecError(pointer, "must be an object")
    kind = _word(value.get("kind"), _ARG_FIELDS, f"{pointer}/kind")
    optional = {"strides"}
    body = _object(value, _ARG_FIELDS[kind], sorted(_ARG_FIELDS[kind] - optional), pointer, f"a {kind} argument")
    name = _identifier(body["name"], f"{pointer}/name")
    if kind == "stream":
        return Arg(name, kind)
    dtypes = SCALAR_DTYPES if kind == "scalar" else ITEM_BYTES
    dtype = _word(body["dtype"], dtypes, f"{pointer}/dtype")
    if kind == "scalar":
        expression = _expression(body["value"], f"{pointer}/value")
        return Arg(name, kind, dtype, value=expression)
    if not isinstance(body["shape"], list):
        raise LaunchSpecError(f"{pointer}/shape", "must be a list")
    shape = _expressions(body["shape"], f"{pointer}/shape")
    shape_text = tuple(normal(item) for item in body["shape"])
    if kind == "workspace":
        return Arg(name, kind, dtype, shape, shape_text)
    access = _word(body["access"], ACCESS, f"{pointer}/access")
    strides = None
    if body.get("strides") is not None:
        strides = _expressions(body["strides"], f"{pointer}/strides")
        if len(strides) != len(shape):
            raise LaunchSpecError(f"{pointer}/strides", "must have one entry per dimension")
    return Arg(name, kind, dtype, shape, shape_text, strides, access)


def parse_spec(value: Any) -> LaunchSpec:
    """Parse and validate the JSON value of a `launch.json`.

    Raises:
        LaunchSpecError: At the first place that cannot be used.
    """
    body = _object(value, _SPEC_FIELDS, ("abi", "symbol", "args"), "", "a launch spec")
    abi = _word(body["abi"], ABIS, "/abi")
    symbol = _identifier(body["symbol"], "/symbol")
    if not isinstance(body["args"], list) or not 0 < len(body["args"]) <= MAX_ARGS:
        raise LaunchSpecError("/args", f"must be a list of 1 to {MAX_ARGS} arguments")
    args = tuple(_arg(item, f"/args/{index}") for index, item in enumerate(body["args"]))
    seen: set[str] = set()
    for index, arg in enumerate(args):
        if arg.name in seen:
            raise LaunchSpecError(f"/args/{index}/name", f"the name {arg.name!r} is used twice")
        seen.add(arg.name)
    if not any(arg.access in {"out", "inout"} for arg in args):
        raise LaunchSpecError("/args", "no argument is written: one tensor needs access out or inout")
    graph_safe = body.get("graph_safe", False)
    if not isinstance(graph_safe, bool):
        raise LaunchSpecError("/graph_safe", "must be true or false")
    return LaunchSpec(
        abi=abi,
        symbol=symbol,
        args=args,
        grid=_expressions(body.get("grid", []), "/grid"),
        block=_expressions(body.get("block", []), "/block"),
        shared_bytes=_expression(body.get("shared_bytes", 0), "/shared_bytes"),
        graph_safe=graph_safe,
    )


def check_against(spec: LaunchSpec, task_abi: Mapping[str, Any]) -> None:
    """Compare the spec's tensors and names with the Task's ABI.

    Args:
        spec: The parsed launch spec.
        task_abi: `{"operands": [{"name", "dtype", "shape": [expr], "access"}], "symbols": [name],
            "attributes": [name]}`.

    Raises:
        LaunchSpecError: Naming the operand that disagrees.
    """
    operands = {operand["name"]: operand for operand in task_abi["operands"]}
    known = set(task_abi["symbols"]) | set(task_abi["attributes"])
    for index, arg in enumerate(spec.args):
        pointer = f"/args/{index}"
        used = frozenset().union(*(symbols(item) for item in arg.shape), symbols(arg.value) if arg.value else ())
        for name in sorted(used - known):
            raise LaunchSpecError(pointer, f"{name!r} is neither a shape symbol nor an attribute of the Task")
        if arg.kind != "tensor":
            continue
        operand = operands.pop(arg.name, None)
        if operand is None:
            raise LaunchSpecError(f"{pointer}/name", f"the Task has no operand {arg.name!r}")
        shape = tuple(normal(item) for item in operand["shape"])
        for field, mine, theirs in (
            ("dtype", arg.dtype, operand["dtype"]),
            ("shape", arg.shape_text, shape),
            ("access", arg.access, operand["access"]),
        ):
            if mine != theirs:
                shown = f"[{', '.join(theirs)}]" if isinstance(theirs, tuple) else theirs
                raise LaunchSpecError(f"{pointer}/{field}", f"operand {arg.name!r}: the Task says {shown}")
    for name in sorted(operands):
        raise LaunchSpecError("/args", f"the Task's operand {name!r} is not passed")


def resolve_shape(arg: Arg, values: Mapping[str, int]) -> list[int]:
    """The argument's shape for these symbols."""
    return [evaluate(item, values) for item in arg.shape]


def _number(arg: Arg, integers: Mapping[str, int], attributes: Mapping[str, int | float]) -> int | float:
    """A scalar's value: a floating argument may name an attribute, everything else is an integer expression."""
    if arg.dtype.startswith("float") and isinstance(arg.value, Symbol) and arg.value.name in attributes:
        return float(attributes[arg.value.name])
    return evaluate(arg.value, integers) if arg.value is not None else 0


def resolve_call(
    spec: LaunchSpec, shape_symbols: Mapping[str, int], attributes: Mapping[str, int | float]
) -> list[dict[str, Any]]:
    """The call of one row as the harness takes it: names, bytes and numbers only.

    Raises:
        LaunchSpecError: An expression has no value here, or an integer argument reads a fraction.
    """
    whole = {name: value for name, value in attributes.items() if isinstance(value, int)}
    integers = {**whole, **shape_symbols}
    call: list[dict[str, Any]] = []
    for index, arg in enumerate(spec.args):
        try:
            if arg.kind == "tensor":
                call.append({"kind": "tensor", "operand": arg.name})
            elif arg.kind == "stream":
                call.append({"kind": "stream"})
            elif arg.kind == "workspace":
                count = ITEM_BYTES[arg.dtype]
                for length in resolve_shape(arg, integers):
                    count *= length
                call.append({"kind": "workspace", "bytes": count})
            else:
                call.append({"kind": "scalar", "dtype": arg.dtype, "value": _number(arg, integers, attributes)})
        except ExpressionError as error:
            raise LaunchSpecError(f"/args/{index}", str(error)) from error
    return call
