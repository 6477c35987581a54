"""A product of two matrices, as a PyPTO program; the result in float32."""

import pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def matmul(a: pypto.Tensor(), b: pypto.Tensor(), c: pypto.Tensor()):  # noqa: ANN201 - PyPTO reads these annotations
    """Tiles of 64."""
    pypto.set_cube_tile_shapes([64, 64], [64, 64], [64, 64])
    c[:] = pypto.matmul(a, b, pypto.DT_FP32)
