"""What AKF knows of each model architecture, as data: one TOML file an architecture."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent
ARCHITECTURES = {"Qwen3ForCausalLM": "qwen3"}


@cache
def model(architecture: str) -> dict[str, Any]:
    """Return what is known of one architecture."""
    path = _FOLDER / f"{ARCHITECTURES[architecture]}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def operators(architecture: str) -> dict[str, dict[str, Any]]:
    """Return the operators of one forward step by their ids, in their order."""
    return {operator["id"]: operator for operator in model(architecture)["operator"]}
