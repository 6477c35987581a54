"""Large products: what the subset and Freivalds' check find, what they let pass, and a reference that is no product."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the harness needs numpy")

from akf.harness import product  # noqa: E402 - after the skip
from akf.harness.outcome import HarnessError  # noqa: E402
from akf.harness.request import Case, Operand, Product  # noqa: E402

M, K, N = 40, 70, 150
PRODUCT = Product("x", "w")
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}


def case(m: int = M, n: int = N) -> Case:
    shapes = {"x": ((m, K), "in"), "w": ((K, n), "in"), "out": ((m, n), "out")}
    operands = tuple(Operand(name, "float32", shape, access) for name, (shape, access) in shapes.items())
    return Case("row", bytes(32), {}, operands, {})


def drawn(m: int = M, n: int = N) -> tuple[dict[str, Any], Any]:
    """Inputs, and the product as a kernel in single precision gives it."""
    generator = np.random.default_rng(7)
    inputs = {
        "x": generator.standard_normal((m, K), dtype=np.float32),
        "w": generator.standard_normal((K, n), dtype=np.float32),
    }
    return inputs, (inputs["x"].astype(np.float64) @ inputs["w"]).astype(np.float32)


def said(inputs: dict[str, Any], out: Any, *changes: product.Change, seed: int = 1) -> str:
    m, n = out.shape
    return product.wrong(PRODUCT, case(m, n), inputs, out, changes, np.random.default_rng(seed), TOLERANCE)


def test_a_right_product_passes_whatever_is_drawn() -> None:
    inputs, out = drawn()
    assert {said(inputs, out, product.Change("x", seed), seed=seed) for seed in range(50)} == {""}


@pytest.mark.parametrize("shape", [(1, 1), (1, 64), (3, 65), (40, 5000)])
def test_every_size_of_a_block_is_folded(shape: tuple[int, int]) -> None:
    inputs, out = drawn(*shape)
    assert said(inputs, out) == ""
    out[-1, -1] += 100
    assert said(inputs, out) == "WRONG_RESULT"


def test_one_wrong_element_of_many_is_found_by_folding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "ELEMENTS", 2)  # none of these can hit it but by chance
    inputs, out = drawn()
    for place in ((0, 0), (M - 1, N - 1), (17, 64)):
        spoilt = out.copy()
        spoilt[place] += 1.0
        assert said(inputs, spoilt, seed=3) == "WRONG_RESULT", place


def test_rows_that_are_not_computed_are_found_by_the_subset() -> None:
    inputs, out = drawn()
    out[3:5] = 0.0
    assert said(inputs, out) == "WRONG_RESULT"


def test_small_errors_everywhere_that_cancel_in_a_block_are_found_by_the_subset() -> None:
    inputs, out = drawn()
    assert said(inputs, out * np.float32(1.0 + 1e-4)) == "WRONG_RESULT"


def test_an_answer_to_what_was_there_before_is_found_where_it_differs() -> None:
    """Precision so low that no block's bound would show it."""
    inputs, out = drawn()
    earlier = inputs["x"].copy()
    inputs["x"][9, 4] += 0.5
    change = product.Change("x", 9 * K + 4)
    loose = {"rtol": 1e-2, "atol": 5e-3}
    for seed in range(20):
        generator = np.random.default_rng(seed)
        assert product.wrong(PRODUCT, case(), inputs, out, [change], generator, loose) == "WRONG_RESULT"
        before = {**inputs, "x": earlier}
        assert product.wrong(PRODUCT, case(), before, out, [change], generator, loose) == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_one_element_that_is_not_finite_is_found(value: float) -> None:
    inputs, out = drawn()
    out[20, 20] = value
    assert said(inputs, out) == "NON_FINITE"


def test_a_reference_that_is_no_product_is_refused() -> None:
    inputs, _ = drawn()
    wide = inputs["x"].astype(np.float64) @ inputs["w"]
    product.confirm(PRODUCT, case(), inputs, [wide])
    for other in (np.maximum(wide, 0.0), wide + 1e-3, wide.T):
        with pytest.raises(HarnessError) as caught:
            product.confirm(PRODUCT, case(), inputs, [other])
        assert caught.value.code == "REFERENCE_INVALID"


def test_it_is_for_large_outputs_of_a_stated_product_only() -> None:
    assert product.applies(PRODUCT, case(1025, 1024))
    assert not product.applies(PRODUCT, case(1024, 1024))
    assert not product.applies(None, case(1025, 1024))
