"""Which share of a callsite's calls a support domain covers.

Invariants:
- A call is covered when each size of its callsite's main operand lies inside the domain; a call whose sizes are not
  known is outside: unknown fails closed.
- Counted are launches and device time that were seen, never shapes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    Value = Mapping[str, Any]
    Inside = Callable[[Value], bool]


def covered(entries: Iterable[Value], inside: Inside) -> tuple[float, float]:
    """Share of calls and of device time for whose symbols `inside` says yes."""
    calls = time = calls_inside = time_inside = 0
    for entry in entries:
        calls += entry["calls"]
        time += entry["time_ns"]
        if inside(entry["symbols"]):
            calls_inside += entry["calls"]
            time_inside += entry["time_ns"]
    return (calls_inside / calls if calls else 0.0, time_inside / time if time else 0.0)


def by_domain(domain: Iterable[Value]) -> Inside:
    """Inside a Task's support domain, or the bounds of a callsite's operands: every symbol, and no unknown one."""
    bounds = {each["sym"]: each for each in domain}
    return lambda symbols: all(name in symbols and within(symbols[name], each) for name, each in bounds.items())


def by_capabilities(site: Value, capabilities: Iterable[Value]) -> Inside:
    """Inside a capability tuple of the callsite's operator, element type and graph mode."""
    operand = site["operands"][0]
    shapes = [
        each["shape"]
        for each in capabilities
        if each["op"] == site["op"]
        and each["dtype"] == operand["dtype"]
        and each["graph"] == site["graph"]["mode"]
        and len(each["shape"]) == len(operand["shape"])
    ]

    def inside(symbols: Value) -> bool:
        sizes = concrete(operand["shape"], symbols)
        return sizes is not None and any(
            all(within(size, bound) for size, bound in zip(sizes, shape, strict=True)) for shape in shapes
        )

    return inside


def concrete(shape: Sequence[Any], symbols: Value) -> list[int] | None:
    """The sizes of a shape for these symbols; None when one is not given."""
    sizes = [size if isinstance(size, int) else symbols.get(size["sym"], 0) for size in shape]
    return sizes if all(sizes) else None


def dimensions(site: Value) -> list[Value]:
    """Every dimension of a callsite's operands that varies, by its symbol."""
    found = {size["sym"]: size for operand in site["operands"] for size in operand["shape"] if isinstance(size, dict)}
    return [found[name] for name in sorted(found)]


def within(size: int, bound: int | Value) -> bool:
    """Whether a size is the fixed one, or lies in the bounded dimension."""
    if isinstance(bound, int):
        return size == bound
    return bool(bound["min"] <= size <= bound["max"] and size % bound["multiple_of"] == 0)
