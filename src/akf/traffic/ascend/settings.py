"""How a profile was recorded: rank, versions, and settings that change what is seen.

Invariants:
1. What is taken is listed here; everything else in these files (host names, process ids, paths, variables) is left. A
   text that holds a path is withheld.
2. Types that changed between versions are read as one: a rank as a number or as text, an export type as a text or a
   list of texts; a rank below zero is none.
3. The file's name and its content agree on the rank.
4. JSON is read as every foreign JSON is (`akf.traffic.foreign`): no key stands twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.files import read_input
from akf.contracts.problems import InvalidError
from akf.contracts.text import show
from akf.traffic.ascend.folders import MSPROF, Site
from akf.traffic.foreign import documents
from akf.traffic.kernels import named

_RANK = re.compile(r"profiler_info_(\d{1,9})\.json")
_TAKEN = (
    ("experimental_config", "_profiler_level", "profiler_level"),
    ("experimental_config", "_aic_metrics", "aic_metrics"),
    ("experimental_config", "_l2_cache", "l2_cache"), ("experimental_config", "_op_attr", "op_attr"),
    ("experimental_config", "_data_simplification", "data_simplification"),
    ("common_config", "activities", "activities"), ("common_config", "record_shapes", "record_shapes"),
    ("common_config", "profile_memory", "profile_memory"), ("common_config", "with_stack", "with_stack"),
    ("common_config", "with_modules", "with_modules"),
)  # fmt: skip
_METRICS = (
    "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "MemoryUB", "MemoryAccess", "L2Cache",
    "ResourceConflictRatio",
)  # fmt: skip
_DEVICE = {"ai_core_num": "ai_core_num", "aiv_num": "aiv_num", "aic_frequency": "aic_frequency_mhz"}
_UNKNOWN = "unknown"
_WITHHELD = "withheld: it holds a path"


class Recorded(NamedTuple):
    """How a profile was recorded; what is not known is None or absent."""

    rank: int | None
    version: str
    settings: dict[str, str]


def of_torch(path: Path) -> Recorded:
    """What `profiler_info_<rank>.json` says.

    Raises:
        InvalidError: It is malformed, or its name and content disagree.
    """
    held = _object(path)
    named_rank = _RANK.fullmatch(path.name)
    rank = _rank(held.get("rank_id"), path)
    if named_rank is not None:
        if rank is not None and rank != int(named_rank.group(1)):
            message = f"the file is of rank {rank} and named after rank {named_rank.group(1)}"
            raise InvalidError.of("AKF-F132", message, file=str(path), hint="copy whole folders")
        rank = int(named_rank.group(1))
    config = held.get("config")
    settings = {}
    for part, key, name in _TAKEN:
        section = config.get(part) if isinstance(config, dict) else None
        value = section.get(key) if isinstance(section, dict) else None
        if value is not None:
            settings[name] = _text(value)
    if "aic_metrics" in settings:
        settings["aic_metrics"] = _metrics(settings["aic_metrics"])
    cann, version = (held.get(key) for key in ("cann_version", "torch_npu_version"))
    if isinstance(cann, str) and cann:
        settings["cann_version"] = _without_path(cann)
    return Recorded(rank, _without_path(version) if isinstance(version, str) and version else _UNKNOWN, settings)


def of_site(site: Site) -> Recorded:
    """What the files of a profile say.

    Raises:
        InvalidError: One is malformed, or several say it.
    """
    if site.tool == MSPROF:
        return of_devices(site.infos)
    if len(site.infos) > 1:
        names = ", ".join(path.name for path in site.infos)
        message = f"several files say how it was recorded: {names}"
        raise InvalidError.of("AKF-F132", message, file=str(site.infos[0].parent))
    return of_torch(site.infos[0]) if site.infos else Recorded(None, _UNKNOWN, {})


def of_devices(paths: Sequence[Path]) -> Recorded:
    """What msprof's `device_*/info.json*` say of the devices.

    Raises:
        InvalidError: One is malformed.
    """
    seen: dict[str, set[str]] = {}
    for path in paths:
        devices = _object(path).get("DeviceInfo")
        for device in devices if isinstance(devices, list) else []:
            for key, name in _DEVICE.items():
                value = device.get(key) if isinstance(device, dict) else None
                if isinstance(value, int | str) and str(value).isdecimal():
                    seen.setdefault(name, set()).add(str(value))
    return Recorded(None, _UNKNOWN, {name: ", ".join(sorted(values)) for name, values in seen.items()})


def _rank(value: object, path: Path) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value):
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return None if value is None or value < 0 else value
    raise InvalidError.of("AKF-F132", f"rank_id is {show(value)}, no number", file=str(path))


def _metrics(text: str) -> str:
    word = re.sub(r"[^a-z0-9]", "", text.lower().rpartition(".")[2]).removeprefix("aclaicore")
    return next((name for name in _METRICS if name.lower() == word), text)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return named(", ".join(_text(item) for item in value[:16]))
    return _without_path(str(value) if isinstance(value, str | int) else show(value))


def _without_path(text: str) -> str:
    return _WITHHELD if "/" in text or "\\" in text else named(text)


def _object(path: Path) -> Mapping[str, Any]:
    name = os.fspath(path)
    held, *more = documents(read_input(path), name)
    if more:
        raise InvalidError([more[0].problem("AKF-F132", "a second document; the file holds one object")])
    if not isinstance(held.value, dict):
        raise InvalidError([held.problem("AKF-F132", f"{show(held.value)} instead of an object")])
    return held.value
