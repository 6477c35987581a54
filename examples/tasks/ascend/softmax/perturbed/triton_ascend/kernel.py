"""Deliberately wrong: divides by one more than the sum. The hit proof binds it in a candidate's place."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    """Rows of `n` elements, at most BLOCK."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    value = tl.load(x + row * n + columns, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * n + columns, power / (1.0 + tl.sum(power, axis=0)), mask=inside)
