"""An Ascend host: what its driver, its toolkit and its boards say of themselves.

Invariants:
- Every fact is read from the host; a variable of the environment only names the folder that is read. A board's own
  answer beats any name that a user set.
- What only an arm's own process knows (its Python, its packages, the libraries that it loads, its container) is not
  read here, and says so.
- All files of the toolkit are read.

Source of the files: `/usr/local/Ascend/driver/version.info` and `firmware/version.info` (`Version=`), CANN's own files
as `akf.toolchains.installed` reads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.files import read_input
from akf.contracts.problems import AkfError
from akf.contracts.rules import soc
from akf.contracts.text import printable
from akf.frameworks import npu_smi
from akf.frameworks.machine import Die, Reading
from akf.frameworks.toolkit_tree import Tree, read_toolkit
from akf.toolchains.installed import read_installed

ROOT = Path("/usr/local/Ascend")
HOME = "ASCEND_HOME_PATH"
TOOLKITS = ("cann", "ascend-toolkit/latest")
VERSION = "Version"
ADAPTER = "only the arm's own process knows it, and no adapter reads it yet"
BY_ADAPTER = (
    "python", "frameworks", "libraries", "model_runner", "variables", "binding",
    "ascend/image_digest", "ascend/torch", "ascend/torch_npu",
)  # fmt: skip
NO_TOOL = f"{npu_smi.PROGRAM} is not on PATH or does not answer"


class Read(NamedTuple):
    """The machine, and the files of its toolkit where they could be read."""

    reading: Reading
    tree: Tree | None


def read(npus: Iterable[int], root: Path = ROOT) -> Read:
    """Read the host.

    Args:
        npus: which boards are looked at.
        root: where driver, firmware and toolkit are installed.
    """
    unread = {f"/environment/{name}": ADAPTER for name in BY_ADAPTER}
    name = _soc(npus, unread)
    toolkit, tree = _toolkit(root, unread)
    ascend: dict[str, Any] = {
        part: _version(root / part / "version.info", part, unread) for part in ("driver", "firmware")
    }
    ascend["toolkit_tree_digest"] = tree.digest if tree else None
    environment: dict[str, Any] = {
        "soc": {"family": soc.family(name) if name else None, "name": name},
        "toolkit": toolkit,
        "ascend": ascend,
    }
    return Read(Reading({"environment": environment}, unread, dies(npus)), tree)


def dies(npus: Iterable[int]) -> dict[str, Die]:
    """The healthy dies of these boards by their names as they are leased."""
    text = npu_smi.ask("info")
    shown = npu_smi.table(text) if text is not None else npu_smi.Table(None, {}, None)
    found = {}
    for npu in sorted(set(npus)):
        common = npu_smi.ask("info", "-t", "common", "-i", str(npu))
        chips = npu_smi.chips(common) if common is not None else {}
        for (board, chip), die in sorted(shown.dies.items()):
            if board != npu or not die.healthy:
                continue
            processes = None if shown.processes is None else shown.processes.get((npu, chip), ())
            current, rated = npu_smi.frequencies(chips.get(chip, {}))
            name = f"npu-{npu}-die-{chip}"
            found[name] = Die(name, processes, die.busy_percent, current, rated)
    return found


def _soc(npus: Iterable[int], unread: dict[str, str]) -> str | None:
    """The one name of all boards."""
    said = [npu_smi.ask("info", "-t", "board", "-i", str(npu), "-c", "0") for npu in sorted(set(npus))]
    names = {npu_smi.soc_name(text) for text in said if text is not None}
    name = names.pop() if len(names) == 1 else None
    if name is None:
        unread["/environment/soc"] = NO_TOOL if None in said else "the boards have different or unknown names"
    return name


def _toolkit(root: Path, unread: dict[str, str]) -> tuple[dict[str, str] | None, Tree | None]:
    named = os.environ.get(HOME)
    places = [Path(named)] if named else [root / name for name in TOOLKITS]
    folder = next((place for place in places if place.is_dir()), places[0])
    try:
        installed = read_installed(folder)
        return installed.toolkit, read_toolkit({"toolkit": installed.root})
    except AkfError as error:
        for pointer in ("toolkit", "ascend/toolkit_tree_digest"):
            unread[f"/environment/{pointer}"] = error.problems[0].message
        return None, None


def _version(file: Path, part: str, unread: dict[str, str]) -> str | None:
    with suppress(AkfError):
        for line in read_input(file).decode("utf-8", "replace").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == VERSION and value.strip():
                return printable(value.strip())[:200]
    unread[f"/environment/ascend/{part}"] = f"{part}/{file.name} is missing or says no {VERSION}="
    return None
