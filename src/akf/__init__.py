"""Ascend Kernel Forge: a control plane that freezes, builds, measures and judges kernels by rule."""

__version__ = "0.1.0"
