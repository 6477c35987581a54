"""What a kernel compiled just in time has to be built for, counted by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from akf.contracts.problems import InvalidError
from akf.contracts.shipped import shipped
from akf.routes.constexprs import FILE
from akf.routes.launch_check import needed_specialisations
from akf.routes.launch_spec import LaunchSpec, parse_spec
from akf.routes.specialisation import Specialisation
from akf.store.untrusted import TreeFile, read_tree

Value = dict[str, Any]
TASKS = shipped("examples") / "tasks" / "ascend"


def task(**sizes: tuple[int, int, int]) -> Value:
    """A Task as far as its domain goes: smallest, largest, multiple."""
    domain = [{"sym": name, "min": low, "max": high, "multiple_of": step} for name, (low, high, step) in sizes.items()]
    return {"domain": domain, "abi": {"attributes": [{"name": "eps", "values": [1e-6, 1e-5]}]}}


def spec(**scalars: Any) -> LaunchSpec:
    tensor = {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["M"], "access": "inout"}
    numbers = [
        {"name": name, "kind": "scalar", "dtype": "float32" if value == "eps" else "int32", "value": value}
        for name, value in scalars.items()
    ]
    return parse_spec({"abi": "ascend", "symbol": "k", "args": [tensor, *numbers]})


def needed(one: LaunchSpec, of: Value, rules: Any = None, route: str = "triton_ascend", **claim: Any) -> list[Any]:
    files = [] if rules is None else [TreeFile(FILE, json.dumps({"rules": rules}).encode(), False)]
    return list(needed_specialisations(files, "launch.json", one, of, {"route": route, **claim}, "src"))


def seen(found: list[Specialisation], name: str) -> dict[str, int]:
    return {each.classes[name]: each.points for each in found}


def test_an_integer_is_told_apart_by_one_and_sixteen() -> None:
    found = needed(spec(m="M"), task(M=(1, 64, 1)))
    assert seen(found, "m") == {"i32, equal to 1": 1, "i32": 59, "i32, divisible by 16": 4}


def test_what_the_domain_does_not_hold_is_not_needed() -> None:
    assert seen(needed(spec(m="M"), task(M=(16, 256, 16))), "m") == {"i32, divisible by 16": 16}
    assert seen(needed(spec(m="M"), task(M=(2, 15, 1))), "m") == {"i32": 14}


def test_a_candidate_s_own_domain_narrows_it() -> None:
    found = needed(spec(m="M"), task(M=(1, 64, 1)), domain={"M": [30, 33]})
    assert seen(found, "m") == {"i32": 3, "i32, divisible by 16": 1}


def test_arguments_of_one_size_go_together_and_of_different_sizes_multiply() -> None:
    of = task(M=(1, 16, 1), N=(1, 16, 1))
    assert len(needed(spec(m="M", twice="M * 2"), of)) == 4, "1 and 2; 8 and 16; 16 and 32; the others"
    assert len(needed(spec(m="M", n="N"), of)) == 9
    assert sum(each.points for each in needed(spec(m="M", n="N"), of)) == 256
    assert len(needed(spec(both="M * N"), of)) == 3


def test_a_wide_integer_is_another_type() -> None:
    found = needed(spec(m="M * 1048576 * 2048"), task(M=(1, 2, 1)))
    assert seen(found, "m") == {"i64, divisible by 16": 2}


def test_a_floating_argument_and_an_unused_size_add_nothing() -> None:
    (only,) = needed(spec(eps="eps"), task(M=(1, 7, 1)))
    assert (only.points, only.classes["eps"], only.options["argument.eps"]) == (7, "fp32", "1e-06")


def test_constexprs_follow_the_first_rule_that_holds() -> None:
    rules = [{"within": {"M": [1, 4]}, "constexprs": {"BLOCK": 4}}, {"constexprs": {"BLOCK": 16}}]
    found = needed(spec(m="M"), task(M=(1, 16, 1)), rules)
    counts = {(each.options["constexpr.BLOCK"], each.classes["m"]): each.points for each in found}
    assert counts == {
        ("4", "i32, equal to 1"): 1,
        ("4", "i32"): 3,
        ("16", "i32"): 11,
        ("16", "i32, divisible by 16"): 1,
    }


def test_every_shape_is_one_where_the_compiler_takes_sizes_as_constants() -> None:
    found = needed(spec(), task(M=(2, 4, 1)), route="catlass_dsl")
    assert next(each.options for each in found) == {"symbol.M": "2", "symbol.eps": "1e-06"}
    assert len(found) == 6


def test_a_route_that_compiles_ahead_of_time_needs_none() -> None:
    assert needed(spec(m="M"), task(M=(1, 64, 1)), route="pto_isa_direct") == []


@pytest.mark.parametrize(
    ("one", "of", "more", "said"),
    [
        (spec(), task(M=(1, 33, 1)), {"route": "catlass_dsl"}, "66 specialisations are needed, one for each shape"),
        (spec(both="M * N"), task(M=(1, 2048, 1), N=(1, 2048, 1)), {}, "4194304 combinations"),
        (
            spec(**{f"a{n}": name for n, name in enumerate("MNOPQRSTU")}),
            task(**dict.fromkeys("MNOPQRSTU", (1, 16, 1))), {}, "19683 specialisations are needed",
        ),
        (spec(m="M"), task(M=(8, 64, 8)), {"domain": {"M": [9, 15]}}, "nothing to compile"),
    ],
    ids=["shapes", "combinations", "classes", "an empty domain"],
)  # fmt: skip
def test_too_many_are_refused_with_the_count(one: LaunchSpec, of: Value, more: Value, said: str) -> None:
    with pytest.raises(InvalidError) as caught:
        needed(one, of, **more)
    assert caught.value.problems[0].code == "AKF-M049"
    assert said in caught.value.problems[0].message


@pytest.mark.parametrize(
    "rules",
    [
        [],
        {},
        [{"within": {"M": [1, 4]}}],
        [{"constexprs": {"BLOCK": "__import__('os')"}}],
        [{"constexprs": {"a b": 1}}],
        [{"constexprs": {"BLOCK": 1.5}}],
        [{"constexprs": {}, "more": 1}],
        [{"within": {"K": [1, 4]}, "constexprs": {}}],
        [{"within": {"M": [4, 1]}, "constexprs": {}}],
        [{"within": {"M": [True, 4]}, "constexprs": {}}],
        [{"within": {"M": [1, 4]}, "constexprs": {"BLOCK": 4}}],
    ],
)
def test_rules_that_cannot_be_used(rules: Any) -> None:
    with pytest.raises(InvalidError) as caught:
        needed(spec(m="M"), task(M=(1, 16, 1)), rules)
    (problem,) = caught.value.problems
    assert (problem.code, problem.file) == ("AKF-M048", f"src/{FILE}")


@pytest.mark.parametrize(("name", "count"), [("softmax", 4), ("rmsnorm", 2), ("matmul", 6)])
def test_the_shipped_kernels_need_a_few(name: str, count: int) -> None:
    of = json.loads((TASKS / name / "task.json").read_bytes())
    wrong = TASKS / name / "perturbed" / "triton_ascend"
    for folder in (wrong, shipped("examples") / "kernels" / "triton_ascend" / name):
        files = read_tree(folder, name)
        one = parse_spec(json.loads((folder / "launch.json").read_bytes()))
        found = needed_specialisations(files, "launch.json", one, of, {"route": "triton_ascend"}, "src")
        assert len(found) == count
