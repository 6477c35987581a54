"""Softmax over rows, as a PyPTO program."""

import pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def softmax(x: pypto.Tensor(), out: pypto.Tensor()):  # noqa: ANN201 - PyPTO reads these annotations
    """Rows of any length; the tiles divide the work."""
    pypto.set_vec_tile_shapes(8, 512)
    top = pypto.amax(x, dim=-1, keepdim=True)
    power = pypto.exp(pypto.sub(x, top))
    out[:] = pypto.div(power, pypto.sum(power, dim=-1, keepdim=True))
