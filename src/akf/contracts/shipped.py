"""Where the files that AKF ships lie: inside a wheel, or in the checkout.

Invariants:
1. An installed package never looks outside itself.
2. A missing folder is an incomplete installation, said so, never an empty answer.
"""

from __future__ import annotations

from pathlib import Path

from akf.contracts.problems import StorageError

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(name: str) -> Path:
    """Return the folder `name` (`schemas`, `suites`, `adapters`, `examples`) that came with this AKF."""
    packed = _PACKAGE / "_shipped" / name
    if packed.is_dir():
        return packed
    root = _PACKAGE.parent.parent
    if _PACKAGE.parent.name == "src" and (root / name).is_dir():
        return root / name
    raise StorageError.of(
        "AKF-F008",
        f"the folder {name!r} that ships with AKF is missing",
        file=str(packed),
        hint="the installation is incomplete: reinstall ascend-kernel-forge",
    )
