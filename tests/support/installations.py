"""Installations of CANN as far as their own files go, with made-up builds."""

from __future__ import annotations

from pathlib import Path

INFO = "x86_64-linux/ascend_toolkit_install.info"


def install(root: Path, version: str = "9.1.0", inner: str = "V100R001C25SPC005B220", name: str = INFO) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        "package_name=Ascend-cann-toolkit",
        f"version={version}",
        f"innerversion={inner}",
        "arch=x86_64",
        "os=linux",
    ]
    file.write_text("\n".join(lines) + "\npath=/usr/local/Ascend/cann\n")
    return root
