"""Softmax over rows, one row a program."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201 - Triton reads these names
    """Rows of `n` elements, at most BLOCK."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    value = tl.load(x + row * n + columns, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * n + columns, power / tl.sum(power, axis=0), mask=inside)
