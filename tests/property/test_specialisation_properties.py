"""The enumeration of specialisations against the plain definition: look at every point of the domain."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from akf.routes.constexprs import Rule
from akf.routes.expressions import evaluate, parse
from akf.routes.launch_spec import parse_spec
from akf.routes.specialisation import Envelope, call, classes

TEXTS = ("M", "N", "M * 16", "M + N", "ceildiv(N, 3)", "M // 4", "min(M, N)", "1", "16 * N + 1")
SIZES = st.tuples(st.integers(1, 20), st.integers(0, 20), st.integers(1, 3))


def told_apart(value: int) -> str:
    """triton-ascend 3.2.0, `AttrsDescriptor.get_property_key`."""
    return "D" if value % 16 == 0 else "1" if value == 1 else "N"


@given(st.lists(st.sampled_from(TEXTS), max_size=4), SIZES, SIZES, st.booleans())
def test_it_is_the_set_that_every_point_gives(texts: list[str], first: Any, second: Any, ruled: bool) -> None:
    sizes = {name: range(low, low + more + 1, step) for name, (low, more, step) in (("M", first), ("N", second))}
    inside = Envelope(sizes, {})
    rules = [Rule({"N": (1, 10)}, {"B": "1"}), Rule({}, {"B": "2"})] if ruled else []
    tensor = {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["M"], "access": "out"}
    args = [{"name": f"a{n}", "kind": "scalar", "dtype": "int32", "value": text} for n, text in enumerate(texts)]
    spec = parse_spec({"abi": "ascend", "symbol": "k", "args": [tensor, *args]})
    wanted: dict[Any, int] = {}
    for m, n in product(sizes["M"], sizes["N"]):
        values = [evaluate(parse(text), {"M": m, "N": n}) for text in texts]
        block = ("1" if n <= 10 else "2") if ruled else None
        key = (tuple(map(told_apart, values)), block)
        wanted[key] = wanted.get(key, 0) + 1
    found: dict[Any, int] = {}
    for each in classes(spec, inside, rules):
        values = [int(each.options[f"argument.a{n}"]) for n in range(len(texts))]
        key = (tuple(map(told_apart, values)), each.options.get("constexpr.B"))
        assert key not in found, "each once"
        found[key] = each.points
        point = {name: int(value) for name, value in each.example.items()}
        assert call(spec, rules, point, {}) == dict(each.options), "the example is one of its points"
    assert found == wanted
