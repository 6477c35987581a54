"""The Trusted Builder: source to binary, bound to tools, commands and outputs."""

from akf.build.builder import build

__all__ = ["build"]
