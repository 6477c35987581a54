"""Deliberately wrong: scales by the mean square instead of its root. The hit proof binds it in a candidate's place."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm(x1, x2, gamma, y, rstd, x, eps, HIDDEN: tl.constexpr):
    """Add the residual and scale one row by 1 / (2 * mean square)."""
    row = tl.program_id(0)
    at = row * HIDDEN + tl.arange(0, HIDDEN)
    total = tl.load(x1 + at).to(tl.float32) + tl.load(x2 + at).to(tl.float32)
    scale = 0.5 / (tl.sum(total * total, axis=0) / HIDDEN + eps)
    weight = tl.load(gamma + tl.arange(0, HIDDEN)).to(tl.float32)
    tl.store(y + at, (total * scale * weight).to(tl.bfloat16))
    tl.store(rstd + row, scale)
    tl.store(x + at, total.to(tl.bfloat16))
