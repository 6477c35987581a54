"""RMSNorm over rows, as a PyPTO program; sums in float32."""

import pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def rms_norm(x: pypto.Tensor(), weight: pypto.Tensor(), out: pypto.Tensor(), eps: float):  # noqa: ANN201 - read by PyPTO
    """Rows of any length; the tiles divide the work."""
    pypto.set_vec_tile_shapes(8, 512)
    wide = pypto.cast(x, pypto.DT_FP32)
    mean = pypto.sum(wide * wide, dim=-1, keepdim=True) * (1.0 / x.shape[1])
    scaled = wide / pypto.sqrt(mean + eps)
    line = pypto.reshape(pypto.cast(weight, pypto.DT_FP32), [1, x.shape[1]])
    out[:] = pypto.cast(scaled * line, pypto.DT_FP16)
