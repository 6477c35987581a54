"""The kinds of input of a survey, each with the importer that knows it.

Invariants:
- A format is known by what its importer says; nothing is recognised here that an importer would not read.
- The order decides where two would: a profile, a trace of requests, a benchmark, a model, a framework's configuration,
  a framework's log. The later ones say less of themselves.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from akf.contracts.loader import parse, read_input
from akf.contracts.problems import AkfError
from akf.frameworks.arms import ARMS
from akf.frameworks.arms import arm as arm_data
from akf.frameworks.health import told_by
from akf.frameworks.settings import speaks_of
from akf.opportunity.survey.paths import Kind
from akf.traffic import formats
from akf.traffic.bench import tool_of
from akf.traffic.traces.recognise import recognised

_LARGEST_CONFIG = 1024 * 1024
_TEXT_STARTS = (b"{", b"[")


def _no_folder(_path: Path) -> None:
    return None


def _profile_folder(folder: Path) -> str | None:
    return formats.of_folder(folder)


def _profile_file(path: Path, head: bytes) -> str | None:
    return formats.of_file(path) if head else None


def _trace_file(path: Path, head: bytes) -> str | None:
    if not head:
        return None
    try:
        return recognised([path]).name
    except AkfError:
        return None


def _benchmark_file(path: Path, head: bytes) -> str | None:
    return tool_of(path) if head.lstrip().startswith(_TEXT_STARTS) or path.suffix == ".csv" else None


def _object(path: Path, head: bytes) -> dict[str, Any] | None:
    """The object that a small file of JSON holds."""
    if not head.lstrip().startswith(b"{") or path.stat().st_size > _LARGEST_CONFIG:
        return None
    try:
        return parse(read_input(path), os.fspath(path)).value
    except AkfError:
        return None


def _model_file(path: Path, head: bytes) -> str | None:
    value = _object(path, head)
    stated = value.get("architectures") if value is not None else None
    if not isinstance(stated, list) or not stated or not all(isinstance(each, str) for each in stated):
        return None
    return str(stated[0])


def _framework_file(path: Path, head: bytes) -> str | None:
    value = _object(path, head)
    if value is None or "kind" in value:
        return None
    return " or ".join(arm for arm in ARMS if speaks_of(arm_data(arm), value)) or None


def _log_file(path: Path, head: bytes) -> str | None:
    if not head or b"\x00" in head or head.lstrip().startswith(_TEXT_STARTS):
        return None
    return " or ".join(arm for arm in ARMS if told_by(path, arm)) or None


KINDS = (
    Kind("profile", "a *_ascend_pt, PROF_* or OPPROF_* folder, one of their tables, or a trace of torch",
         _profile_folder, _profile_file),
    Kind("trace", "a trace of requests: Bailian, Mooncake, Azure, BurstGPT", _no_folder, _trace_file),
    Kind("benchmark", "a result of vLLM, sglang, evalscope, aiperf, guidellm or AISBench", _no_folder, _benchmark_file),
    Kind("model", "a model's config.json", _no_folder, _model_file),
    Kind("framework", "a framework's configuration as one JSON object", _no_folder, _framework_file),
    Kind("log", "a framework's log", _no_folder, _log_file),
)  # fmt: skip
