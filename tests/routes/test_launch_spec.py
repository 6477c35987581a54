"""Launch specs: what is refused and where, comparison with the Task's ABI, the resolved call."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akf.routes.launch_check import abi_of
from akf.routes.launch_spec import LaunchSpecError, check_against, parse_spec, resolve_call

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("examples/candidates/**", "examples/tasks/**", "examples/kernels/**", "adapters/**")
TASKS = ROOT / "examples" / "tasks"
SHIPPED = sorted(path for place in PLACES for path in ROOT.glob(f"{place}/launch.json"))
SPEC: dict[str, Any] = json.loads((ROOT / "adapters/host_reference/src/rms_norm.json").read_text(encoding="utf-8"))
ABI: dict[str, Any] = {
    "operands": [
        {"name": "x", "dtype": "float32", "shape": ["T", 4096], "access": "in"},
        {"name": "weight", "dtype": "float32", "shape": [4096], "access": "in"},
        {"name": "out", "dtype": "float32", "shape": ["T", 4096], "access": "out"},
    ],
    "symbols": ["T"],
    "attributes": ["eps"],
}


def task_of(path: Path) -> Path:
    """The Task that a shipped launch spec is for: the folder above a wrong kernel, or that of the kernel's name."""
    above = [folder for folder in path.parents if (folder / "task.json").is_file()]
    if above:
        return above[0]
    return TASKS / "ascend" / path.parent.name if "kernels" in path.parts else TASKS / "rmsnorm"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.parent.name + "/" + path.parent.name)
def test_shipped_specs_agree_with_their_task(path: Path) -> None:
    task = json.loads((task_of(path) / "task.json").read_text(encoding="utf-8"))
    check_against(parse_spec(json.loads(path.read_text(encoding="utf-8"))), abi_of(task))


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        (lambda spec: spec.update(abi="pascal"), "/abi"),
        (lambda spec: spec.update(extra=1), "/extra"),
        (lambda spec: spec.pop("symbol"), ""),
        (lambda spec: spec.update(symbol="rms norm"), "/symbol"),
        (lambda spec: spec.update(symbol="a" * 200), "/symbol"),
        (lambda spec: spec.update(symbol="x\n"), "/symbol"),
        (lambda spec: spec.update(args=[]), "/args"),
        (lambda spec: spec.update(args=spec["args"] * 20), "/args"),
        (lambda spec: spec["args"].append(spec["args"][0]), "/args/6/name"),
        (lambda spec: spec["args"][0].update(kind="pointer"), "/args/0/kind"),
        (lambda spec: spec["args"][0].update(dtype="fp32"), "/args/0/dtype"),
        (lambda spec: spec["args"][0].update(shape="T"), "/args/0/shape"),
        (lambda spec: spec["args"][0].update(shape=["T +"]), "/args/0/shape/0"),
        (lambda spec: spec["args"][0].update(shape=[1.5]), "/args/0/shape/0"),
        (lambda spec: spec["args"][0].update(strides=[1]), "/args/0/strides"),
        (lambda spec: spec["args"][0].update(access="read"), "/args/0/access"),
        (lambda spec: spec["args"][0].update(value="T"), "/args/0/value"),
        (lambda spec: spec["args"][2].update(access="in"), "/args"),
        (lambda spec: spec["args"][3].update(dtype="bfloat16"), "/args/3/dtype"),
        (lambda spec: spec["args"][3].pop("value"), "/args/3"),
        (lambda spec: spec.update(grid=["1/2"]), "/grid/0"),
        (lambda spec: spec.update(graph_safe="yes"), "/graph_safe"),
    ],
)
def test_malformed_spec_is_refused_at_its_place(change: Callable[[dict[str, Any]], Any], pointer: str) -> None:
    spec = copy.deepcopy(SPEC)
    change(spec)
    with pytest.raises(LaunchSpecError) as caught:
        parse_spec(spec)
    assert caught.value.pointer == pointer
    assert caught.value.message


@pytest.mark.parametrize("value", [None, [], "spec", 3])
def test_spec_that_is_no_object(value: Any) -> None:
    with pytest.raises(LaunchSpecError, match="must be an object"):
        parse_spec(value)


@pytest.mark.parametrize(
    ("change", "pointer", "message"),
    [
        (lambda abi: abi["operands"][1].update(dtype="float16"), "/args/1/dtype", "'weight'.*float16"),
        (lambda abi: abi["operands"][0].update(shape=["T", 2048]), "/args/0/shape", "'x'.*T, 2048"),
        (lambda abi: abi["operands"][2].update(access="inout"), "/args/2/access", "'out'.*inout"),
        (lambda abi: abi["operands"].pop(1), "/args/1/name", "no operand 'weight'"),
        (
            lambda abi: abi["operands"].append({"name": "y", "dtype": "float32", "shape": ["T"], "access": "in"}),
            "/args",
            "'y' is not passed",
        ),
        (lambda abi: abi.update(attributes=[]), "/args/5", "'eps' is neither"),
    ],
)
def test_difference_to_the_task_names_the_operand(
    change: Callable[[dict[str, Any]], Any], pointer: str, message: str
) -> None:
    abi = copy.deepcopy(ABI)
    change(abi)
    with pytest.raises(LaunchSpecError, match=message) as caught:
        check_against(parse_spec(SPEC), abi)
    assert caught.value.pointer == pointer


def test_call_holds_numbers_only() -> None:
    assert resolve_call(parse_spec(SPEC), {"T": 3}, {"eps": 1e-6}) == [
        {"kind": "tensor", "operand": "x"},
        {"kind": "tensor", "operand": "weight"},
        {"kind": "tensor", "operand": "out"},
        {"kind": "scalar", "dtype": "int64", "value": 3},
        {"kind": "scalar", "dtype": "int64", "value": 4096},
        {"kind": "scalar", "dtype": "float32", "value": 1e-6},
    ]


def test_workspace_and_stream_are_resolved() -> None:
    spec = copy.deepcopy(SPEC)
    spec["args"] += [
        {"name": "scratch", "kind": "workspace", "dtype": "float32", "shape": ["ceildiv(T, 4)", 64]},
        {"name": "stream", "kind": "stream"},
    ]
    assert resolve_call(parse_spec(spec), {"T": 9}, {"eps": 1e-6})[-2:] == [
        {"kind": "workspace", "bytes": 3 * 64 * 4},
        {"kind": "stream"},
    ]


def test_fraction_where_an_integer_is_needed_is_refused() -> None:
    spec = copy.deepcopy(SPEC)
    spec["args"][3]["value"] = "eps"
    with pytest.raises(LaunchSpecError, match="no value"):
        resolve_call(parse_spec(spec), {"T": 3}, {"eps": 1e-6})
