"""The reference of an example job: ReLU on 64 x 64 values, in numpy."""

import numpy as np


class Model:
    """What the operator computes."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """ReLU."""
        return np.maximum(x, 0)


def get_inputs() -> list[np.ndarray]:
    """The inputs of one call."""
    return [np.random.rand(64, 64).astype(np.float32) - 0.5]  # noqa: NPY002 - the check seeds numpy's own generator


def get_init_inputs() -> list[object]:
    """What `Model` is made with."""
    return []
