"""Operands of modules: element types that numpy lacks, strides, misalignment, several outputs, attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.builder import seed
from tests.harness.modules import asked, checked, codes, operand, outcomes, timed, written

from akf.harness.outcome import HarnessError
from akf.harness.request import parse
from akf.harness.template import Template

SOAK = pytest.mark.soak
PASSES = dict.fromkeys(("sensitivity", "correctness", "isfinite", "hit_proof"), "pass")


def request(folder: Path, reference: str, texts: dict[str, str], case: dict[str, Any], **more: Any) -> dict[str, Any]:
    artifacts = {role: written(folder, role, f"import torch\n{text}\n") for role, text in texts.items()}
    full = {"seed": seed("small"), "id": "small", **case}
    return asked(artifacts, reference=f"import numpy as np\n{reference}\n", cases=[full], rows=[full], **more)


@pytest.mark.parametrize("dtype", ["bfloat16", *(pytest.param(name, marks=SOAK) for name in ("float16", "float64"))])
def test_floating_types(template: Template, tmp_path: Path, dtype: str) -> None:
    case = {"operands": [operand("x", [9, 33], dtype=dtype), operand("out", [9, 33], "out", dtype=dtype)]}
    texts = {
        "baseline": "def run(x): return (x.double() * 3 + 1).to(x.dtype)",
        "candidate": "def run(x):\n    assert x.dtype is torch."
        + dtype
        + "\n    return (x.double() * 3 + 1).to(x.dtype)",
        "perturbed": "def run(x): return x * 2",
    }
    half = 2.0**-8 if dtype == "bfloat16" else 2.0**-11 if dtype == "float16" else 2.0**-53
    tolerances = {dtype: {"rtol": half, "atol": half}}
    reference = "def reference(x): return (x.astype(np.float64) * 3 + 1,)"
    made = request(tmp_path, reference, texts, case, tolerances=tolerances)
    assert outcomes(checked(template, made)) == PASSES
    assert timed(template, made).facts["taken"] == 4
    made["artifacts"]["candidate"] = written(tmp_path, "off", "def run(x): return x * 3 + 1.05")
    assert "WRONG_RESULT" in codes(checked(template, made))


@pytest.mark.parametrize(
    "dtype", ["int32", "bool", *(pytest.param(name, marks=SOAK) for name in ("int8", "uint8", "int16", "int64"))]
)
def test_exact_types(template: Template, tmp_path: Path, dtype: str) -> None:
    case = {"operands": [operand("x", [5, 7], dtype=dtype), operand("out", [5, 7], "out", dtype=dtype)]}
    texts = {"baseline": "def run(x): return x.flip(0)", "candidate": "def run(x): return torch.flip(x, (0,))"}
    texts["perturbed"] = "def run(x): return x.flip(1)"
    reference = "def reference(x): return (x[::-1],)"
    made = request(tmp_path, reference, texts, case, tolerances={dtype: {"rtol": 0.0, "atol": 0.0}})
    assert outcomes(checked(template, made)) == PASSES


@pytest.mark.parametrize(
    ("shape", "strides"), [([6, 4], [1, 6]), ([6, 4], [9, 2]), ([3, 4], [0, 1]), ([2, 3, 4], [4, 8, 1])]
)
def test_inputs_have_the_strides_that_are_stated(
    template: Template, tmp_path: Path, shape: list[int], strides: list[int]
) -> None:
    case = {"operands": [operand("x", shape, strides=strides), operand("out", shape, "out")]}
    texts = {
        "baseline": "def run(x): return x.contiguous() + 1",
        "candidate": f"def run(x):\n    assert list(x.stride()) == {strides}\n    return torch.add(x, 1).contiguous()",
        "perturbed": "def run(x): return x.contiguous() - 1",
    }
    made = request(tmp_path, "def reference(x): return (x.astype(np.float64) + 1,)", texts, case)
    assert outcomes(checked(template, made)) == PASSES
    assert timed(template, made).facts["taken"] == 4


def test_outputs_have_the_strides_that_are_stated(template: Template, tmp_path: Path) -> None:
    case = {"operands": [operand("x", [6, 4]), operand("out", [6, 4], "out", strides=[1, 6])]}
    texts = {
        "baseline": "def run(x): return (x + 1).t().contiguous().t()",
        "candidate": "def run(x): return (x.t().contiguous() + 1).t()",
        "perturbed": "def run(x): return x.t().contiguous().t() - 1",
    }
    made = request(tmp_path, "def reference(x): return (x.astype(np.float64) + 1,)", texts, case)
    assert outcomes(checked(template, made)) == PASSES
    assert timed(template, made).facts["taken"] == 4
    made["artifacts"]["candidate"] = written(tmp_path, "plain", "def run(x): return x + 1")
    assert "STRIDE_MISMATCH" in codes(checked(template, made))


def test_an_operator_that_copies_has_a_copy_as_its_answer(template: Template, tmp_path: Path) -> None:
    case = {"operands": [operand("x", [31, 17]), operand("out", [31, 17], "out")]}
    texts = {
        "baseline": "def run(x): return x.clone()",
        "candidate": "def run(x): return torch.empty_like(x).copy_(x)",
        "perturbed": "def run(x): return x.clone().roll(1)",
    }
    made = request(tmp_path, "def reference(x): return (x.astype(np.float64),)", texts, case)
    assert outcomes(checked(template, made)) == PASSES
    for body in ("x", "x.view(31, 17)"):
        made["artifacts"]["candidate"] = written(tmp_path, "alias", f"def run(x): return {body}")
        assert "OUTPUT_ALIASED" in codes(checked(template, made)), body


def test_several_outputs_attributes_and_misalignment(template: Template, tmp_path: Path) -> None:
    case = {
        "operands": [
            operand("x", [12, 10], misalign=1),
            operand("top", [12], "out"),
            operand("place", [12], "out", dtype="int64"),
        ],
        "attributes": {"axis": 1, "scale": 2.0},
    }
    texts = {
        "baseline": "def run(x, axis, scale): return torch.max(x * scale, axis)",
        "candidate": (
            "def run(x, *, axis, scale):\n"
            "    assert x.data_ptr() % 8 == 4\n"
            "    return (x * scale).amax(axis), x.argmax(axis)"
        ),
        "perturbed": "def run(x, axis, scale): return torch.min(x * scale, axis)",
    }
    reference = "def reference(x, axis, scale): return x.max(axis).astype(np.float64) * scale, x.argmax(axis)"
    tolerances = {"float32": {"rtol": 1e-6, "atol": 1e-6}, "int64": {"rtol": 0.0, "atol": 0.0}}
    made = request(tmp_path, reference, texts, case, tolerances=tolerances)
    assert outcomes(checked(template, made)) == PASSES
    same = "import torch\ndef run(x, axis, scale): return (x * scale).amax(axis), x.argmax(axis).to(torch.int32)"
    made["artifacts"]["candidate"] = written(tmp_path, "odd", same)
    assert "DTYPE_MISMATCH" in codes(checked(template, made))


def test_rows_that_are_padding(template: Template, tmp_path: Path) -> None:
    """Who skips rows that are zero today has not read the domain: a secret element there is not zero."""
    form = {"kind": "normal", "live_rows": 4}
    case = {"operands": [operand("x", [16, 8], distribution=form), operand("out", [16, 8], "out")]}
    skips = "def run(x):\n    out = torch.zeros(16, 8)\n    out[:4] = x[:4] * 2\n    return out"
    texts = {"baseline": "def run(x): return x * 2", "candidate": skips, "perturbed": "def run(x): return x * 3"}
    made = request(tmp_path, "def reference(x): return (x.astype(np.float64) * 2,)", texts, case)
    assert "WRONG_RESULT" in [reason["code"] for reason in timed(template, made).reasons]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"strides": [1]}, "strides must hold"),
        ({"strides": [-1, 4]}, "strides must hold"),
        ({"strides": [1, 2]}, "overlap"),
        ({"access": "inout"}, "returns outputs"),
        ({"dtype": "float8_e4m3"}, "dtype"),
    ],
)
def test_operands_that_cannot_be(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    form = {"kind": "normal"}
    out = {**operand("out", [6, 4], "out"), **({"distribution": form} if "access" in more else {}), **more}
    texts = {"baseline": "def run(x): return x"}
    made = request(tmp_path, "def reference(x): return (x,)", texts, {"operands": [operand("x", [6, 4]), out]})
    with pytest.raises(HarnessError, match=message):
        parse(made)
