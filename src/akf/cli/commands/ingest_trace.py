"""`ingest trace`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.cli.options import check_data_class, check_name
from akf.cli.outputs import free, publish
from akf.cli.result import Result
from akf.contracts.documents import load
from akf.contracts.files import open_regular


def ingest(
    traces: Sequence[Path],
    onto: Path,
    out: Path | None,
    requests: Path | None,
    layout: str | None,
    labels: Sequence[str],
    sec_multiplier: str | None,
    block_size: int | None,
    bounds: Sequence[str],
    tokenizer: str | None,
    subset: int | None,
    data_class: str,
    captures: Sequence[Path],
) -> Result:
    """Make a Workload of a draft and a trace; without `out` only say what it would be."""
    from akf.contracts.rules.placeholders import blockers  # noqa: PLC0415
    from akf.contracts.schemas import schema  # noqa: PLC0415
    from akf.traffic.traces.layout_options import stated  # noqa: PLC0415
    from akf.traffic.traces.reader import read  # noqa: PLC0415
    from akf.traffic.traces.recognise import confirm, recognised  # noqa: PLC0415
    from akf.traffic.traces.workload import Options, draft_of, make  # noqa: PLC0415

    left = _left_behind(out, requests)
    free("AKF-F261", out=out, requests=None if left else requests)
    check_data_class("AKF-F261", data_class)
    check_name("AKF-F261", "--tokenizer", tokenizer)
    chosen = stated(layout, labels, sec_multiplier, block_size)
    sizes = [load(path, "Capture") for path in captures]
    options = Options(bounds, tokenizer, subset, data_class, sizes)
    draft = load(onto, "Workload")
    value = draft_of(draft, options)
    trace = read(traces, chosen or recognised(traces))
    if chosen is None:
        confirm(trace.layout, max(trace.requests.inputs))
    made = make(value, trace, options, os.fspath(onto))
    workload = made.workload
    if left and requests is not None and _digest(requests) != workload["digest_of_requests"]:
        free("AKF-F261", requests=requests)
    publish((None if left else requests, made.requests), (out, made.data))  # a list is there before it is named
    name = os.fspath(onto if out is None else out)
    document: dict[str, Any] = {
        "workload": None if out is None else str(out),
        "requests": None if requests is None else str(requests),
        "id": workload["id"],
        "layout": {
            "name": trace.layout.name,
            "publication": trace.layout.published,
            "publication_licence": trace.layout.licence,
        },
        "tokenizer_matches": workload["source"].get("tokenizer_matches"),
        "data_class": workload["data_class"],
        "rows_out_of_order": trace.out_of_order,
        "stages": [{key: stage[key] for key in ("id", "requests", "weight_ratio")} for stage in workload["stages"]],
        "stages_left_out": list(made.left_out),
        "traffic": workload["traffic"],
        "prefix": workload.get("prefix"),
        "sample": workload.get("sample"),
        "digest_of_requests": workload["digest_of_requests"],
        "blockers": blockers(schema("Workload"), workload, name),
    }
    return Result(document)


def _left_behind(out: Path | None, requests: Path | None) -> bool:
    """Whether the list is there without its Workload, as a command that was killed between the two leaves it."""
    return out is not None and requests is not None and not os.path.lexists(out) and requests.is_file()


def _digest(path: Path) -> str:
    with open(open_regular(path), "rb") as file:  # noqa: PTH123 - an open descriptor
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
