"""SoC names, normalised from what tools print.

Invariants:
- A name is `ascend...` in lower case, as `torch_npu` and the driver spell it; its family is a separate fact.
- What the table does not know is unknown (None): it is never guessed from a prefix, except the 950 line, whose names
  carry their family and whose list is still growing.

Source: the SoC lists of vLLM-Ascend's `device/hardware.py` and the compiler's target list, read 2026-11.
"""

from __future__ import annotations

import re

FAMILIES: dict[str, tuple[str, ...]] = {
    "ascend910b": ("ascend910b1", "ascend910b2", "ascend910b2c", "ascend910b3", "ascend910b4", "ascend910b4-1"),
    "ascend910_93": (
        "ascend910_9391", "ascend910_9381", "ascend910_9372", "ascend910_9392", "ascend910_9382", "ascend910_9362",
    ),
    "ascend310p": ("ascend310p1", "ascend310p3", "ascend310p5", "ascend310p7"),
}  # fmt: skip
FAMILY_NAMES = (*FAMILIES, "ascend950")
PRODUCTS = {"ascend910b": "A2", "ascend910_93": "A3", "ascend950": "A5"}

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}
_LINE_950 = re.compile(r"ascend950(pr|dt)_[0-9a-z]{4}", re.ASCII)


def normalise(printed: str) -> str | None:
    """The full name for what a tool printed (`Ascend910_9391`, `ASCEND910B4`, `910B4`), or None when unknown."""
    name = printed.strip().lower()
    if name[:3].isdigit():
        name = "ascend" + name
    return name if family(name) else None


def from_board(chip_name: str, npu_name: str | None) -> str | None:
    """The full name from `npu-smi info -t board`: A2 prints it as Chip Name, A3 and 950 as Chip Name and NPU Name."""
    chip = chip_name.strip()
    return normalise(f"{chip}_{npu_name.strip()}" if npu_name else chip)


def family(name: str) -> str | None:
    """The family of a normalised name, or None when the name is unknown."""
    return _FAMILY_OF.get(name) or ("ascend950" if _LINE_950.fullmatch(name) else None)
