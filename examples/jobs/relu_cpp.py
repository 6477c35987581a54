"""A candidate for `relu.py`: C++ that is compiled when the model is made, called through ctypes."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

SOURCE = """
extern "C" void relu(const float* x, float* y, long count) {
    for (long i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
"""


class ModelNew:
    """The same operator, by another way."""

    def __init__(self) -> None:
        source, library = Path("relu.cpp"), Path("relu.so").resolve()
        source.write_text(SOURCE, encoding="utf-8")
        subprocess.run(["g++", "-O3", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        self._relu = ctypes.CDLL(str(library)).relu

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """ReLU."""
        x = np.ascontiguousarray(x)
        y = np.empty_like(x)
        pointer = ctypes.POINTER(ctypes.c_float)
        self._relu(x.ctypes.data_as(pointer), y.ctypes.data_as(pointer), ctypes.c_long(x.size))
        return y
