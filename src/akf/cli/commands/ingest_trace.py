"""`ingest trace`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from akf.cli.result import Result
from akf.contracts.documents import load
from akf.contracts.problems import ConflictError, UsageError
from akf.contracts.text import is_name, show

MAX_NAME = 256


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

    _free(out, requests)
    chosen = stated(layout, labels, sec_multiplier, block_size)
    sizes = [load(path, "Capture") for path in captures]
    options = Options(bounds, _tokenizer(tokenizer), subset, _data_class(data_class), sizes)
    draft = load(onto, "Workload")
    value = draft_of(draft, options)
    trace = read(traces, chosen or recognised(traces))
    if chosen is None:
        confirm(trace.layout, max(trace.requests.inputs))
    made = make(value, trace, options, os.fspath(onto))
    _publish(out, made.data, requests, made.requests)
    workload = made.workload
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
        "traffic": workload["traffic"],
        "prefix": workload.get("prefix"),
        "sample": workload.get("sample"),
        "digest_of_requests": workload["digest_of_requests"],
        "blockers": blockers(schema("Workload"), workload, name),
    }
    return Result(document)


def _free(out: Path | None, requests: Path | None) -> None:
    """Refuse before anything is read what would be refused at the end."""
    if out is not None and requests is not None and os.path.abspath(out) == os.path.abspath(requests):  # noqa: PTH100 - links are not followed
        raise UsageError.of("AKF-F261", "--out and --requests name the same file", found=str(out))
    for path in (out, requests):
        if path is not None and os.path.lexists(path):
            hint = "published files are never replaced: name a new one"
            raise ConflictError.of("AKF-C101", f"{path} exists already; nothing was changed", file=str(path), hint=hint)


def _tokenizer(name: str | None) -> str | None:
    if name is not None and not is_name(name, MAX_NAME):
        message = f"--tokenizer: {show(name)} is no name of 1 to {MAX_NAME} characters"
        raise UsageError.of("AKF-F261", message, hint="the name alone, without folders: --tokenizer Qwen3")
    return name


def _data_class(name: str) -> str:
    known = ("public", "internal", "confidential")
    if name not in known:
        raise UsageError.of("AKF-F261", f"--data-class: {name!r} is not one of {', '.join(known)}", found=name)
    return name


def _publish(out: Path | None, data: bytes, requests: Path | None, listed: Any) -> None:
    """Both files or none: the list first, so that no Workload names a list that is not there."""
    from akf.store.publish import make_folder, publish_file  # noqa: PLC0415

    for path in (requests, out):
        if path is not None:
            make_folder(path.absolute().parent)
    if requests is not None:
        publish_file(requests, listed, mode=0o644)
    if out is not None:
        try:
            publish_file(out, data, mode=0o644)
        except BaseException:
            if requests is not None:
                with suppress(OSError):
                    requests.unlink()
            raise
