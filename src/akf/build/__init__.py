"""The Trusted Builder: source to binary, bound to tools, commands and outputs."""

from akf.build.builder import build
from akf.build.diagnostic import build_diagnostic

__all__ = ["build", "build_diagnostic"]
