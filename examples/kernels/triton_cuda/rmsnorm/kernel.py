"""RMSNorm over rows, one row a program."""

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, out, n, eps, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201 - Triton reads these names
    """Rows of `n` elements, at most BLOCK; sums in float32."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    value = tl.load(x + row * n + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / n + eps)
    factor = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * n + columns, (value * scale * factor).to(tl.float16), mask=inside)
