"""What CANN puts beside an AICore object: the description of its kernels, and the object for another linker step.

`X.o` is described by `X.json`; so is `X_relocatable.o` by `X_relocatable.json`, and its kernels have `_relocatable` in
their names. This holds for all 175 objects and 40 twins of vllm-ascend 0.23.0.

Invariants:
- A description that contradicts its object (digest, name, kernels) is a problem of integrity, one that cannot be read
  is an invalid file; what the object says is said all the same.
- Of JSON that describes no AICore object nothing is believed; it is a remark. So is a twin that cannot be read.
- Only files beside the object, with its name, are looked at. Nothing in the description leads anywhere else.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from akf.build.inspect import aicore
from akf.build.inspect.content import read_object
from akf.build.inspect.elf import MAGIC, Image
from akf.contracts.digests import digest
from akf.contracts.loader import parse, read_input
from akf.contracts.problems import AkfError, IntegrityError, InvalidError, Problem, StorageError
from akf.contracts.text import printable

_HEX = re.compile(r"[0-9a-f]{64}")
_TWIN = "_relocatable"
_OURS = ("binFileName", "sha256", "kernelList")
_TEXTS = {"bin_file": "binFileName", "suffix": "binFileSuffix", "core_type": "coreType", "magic": "magic"}
_LISTED = 8


class Beside(NamedTuple):
    """What was found, and what is wrong with it."""

    facts: dict[str, Any]
    error: AkfError | None


def beside(path: Path, image: Image, remarks: list[str]) -> Beside:
    """Description and twin of an AICore object."""
    kernels = {kernel.name for kernel in aicore.kernels(image)}
    error: AkfError | None = None
    description = None
    try:
        description, problems = _description(path, image, kernels, remarks)
        if problems:
            error = IntegrityError(problems)
    except (InvalidError, StorageError) as unreadable:
        error = unreadable
    return Beside({"description": description, "twin": _twin(path, kernels, remarks)}, error)


def _description(
    path: Path, image: Image, kernels: set[str], remarks: list[str]
) -> tuple[dict[str, Any] | None, list[Problem]]:
    place = path.with_suffix(".json")
    if place == path or not os.path.lexists(place):
        remarks.append(f"no {printable(place.name)} beside it says what it is")
        return None, []
    data = read_input(place)
    value = parse(data, str(place)).value
    if not all(name in value for name in _OURS):
        remarks.append(f"{printable(place.name)} beside it describes no AICore object")
        return None, []
    stated = {name: _text(value, key, place) for name, key in _TEXTS.items()}
    listed = _kernel_names(value, place)
    entries = {aicore.entry(name) for name in kernels}
    stated_digest = _text(value, "sha256", place) or ""
    is_digest = _HEX.fullmatch(stated_digest) is not None
    holds = is_digest and f"sha256:{stated_digest}" == digest(image.data)
    named = f"{stated['bin_file']}{stated['suffix'] or ''}" == path.name
    facts = {
        "file": printable(place.name),
        "digest": digest(data),
        **{name: printable(text) if text is not None else None for name, text in stated.items()},
        "kernel_count": len(listed),
        "sha256": stated_digest if is_digest else None,
        "sha256_holds": holds,
        "name_holds": named,
        "kernels_hold": listed == entries,
    }
    problems = []
    if not holds:
        problems.append(
            Problem(
                "AKF-I480",
                f"the object is not the one that {printable(place.name)} describes: its sha256 differs",
                file=str(path),
                expected=printable(stated_digest[:128]),
                found=digest(image.data).removeprefix("sha256:"),
                hint="one of the two was replaced; take both from one build",
            )
        )
    if not named:
        text = f"{printable(place.name)} describes {printable(str(stated['bin_file']))}, not this file"
        problems.append(Problem("AKF-I481", text, file=str(place), pointer="/binFileName"))
    if listed != entries:
        text = f"{printable(place.name)} and the object do not list the same kernels"
        only = {"described": sorted(listed - entries), "in_the_object": sorted(entries - listed)}
        found = {side: [printable(name) for name in names[:_LISTED]] for side, names in only.items()}
        problems.append(Problem("AKF-I481", text, file=str(place), pointer="/kernelList", found=found))
    return facts, problems


def _text(value: dict[str, Any], name: str, place: Path) -> str | None:
    text = value.get(name)
    if text is not None and not isinstance(text, str):
        raise InvalidError.of("AKF-F485", f"{name} is no text", file=str(place), pointer=f"/{name}")
    return text


def _kernel_names(value: dict[str, Any], place: Path) -> set[str]:
    names = []
    rows = value["kernelList"]
    for number, row in enumerate(rows if isinstance(rows, list) else [None]):
        name = row.get("kernelName") if isinstance(row, dict) else None
        if not isinstance(name, str):
            text = "kernelList is no list of objects with a kernelName"
            raise InvalidError.of("AKF-F485", text, file=str(place), pointer=f"/kernelList/{number}")
        names.append(name)
    return set(names)


def _twin(path: Path, kernels: set[str], remarks: list[str]) -> dict[str, Any] | None:
    stem = path.stem
    own = stem.endswith(_TWIN)
    place = path.with_name(f"{stem.removesuffix(_TWIN) if own else stem + _TWIN}{path.suffix}")
    if not os.path.lexists(place):
        return None
    try:
        data = read_object(place)
        other = {kernel.name for kernel in aicore.kernels(Image(data, str(place)))} if data.startswith(MAGIC) else set()
    except (InvalidError, StorageError) as error:
        remarks.append(f"its twin {printable(place.name)} cannot be read: {error.problems[0].message}")
        return None
    linked, relocatable = (other, kernels) if own else (kernels, other)
    same = linked == {name.replace(f"{_TWIN}_", "_", 1) for name in relocatable}
    return {"file": printable(place.name), "digest": digest(data), "relocatable": not own, "same_kernels": same}
