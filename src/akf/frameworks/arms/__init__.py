"""What AKF knows of each arm, as data: one TOML file an arm."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent
ARMS = ("sglang_ascend", "transformers", "vllm_ascend", "xllm")


@cache
def arm(name: str) -> dict[str, Any]:
    """Return what is known of one arm; of an arm that AKF does not know, nothing."""
    path = _FOLDER / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if name in ARMS and path.exists() else {}


def kernels(name: str, op: str, provider: str) -> list[dict[str, Any]]:
    """Return the kernels that answer an operator of this arm when this provider is called."""
    return [kernel for kernel in arm(name).get("kernel", ()) if kernel["op"] == op and provider in kernel["providers"]]
