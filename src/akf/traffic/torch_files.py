"""Which files are traces of torch's profiler, by their names and beginnings; told without polars."""

from __future__ import annotations

import zlib
from pathlib import Path

from akf.traffic.unpacked import PACKED

_SUFFIXES = (".json", ".json.gz")
_SURE = (".pt.trace.json", ".pt.trace.json.gz")
_HEAD = 1024 * 1024


def may_be_trace(file: Path) -> bool:
    """Whether a file that somebody named is to be read as a trace."""
    return file.name.endswith(_SUFFIXES)


def is_trace(file: Path) -> bool:
    """Whether a file in a folder is a trace of torch: by its name, or by its beginning."""
    if file.name.endswith(_SURE):
        return True
    if not file.name.endswith(_SUFFIXES) or file.is_symlink() or not file.is_file():
        return False
    try:
        with file.open("rb") as raw:
            head = raw.read(_HEAD)
        if head.startswith(PACKED):
            head = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, _HEAD)
    except (OSError, zlib.error):
        return file.name.endswith(".gz")  # no other file here is packed: it is to be refused, not overlooked
    return head.lstrip().startswith(b"{") and b'"traceEvents"' in head
