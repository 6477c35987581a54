"""`journal.jsonl`: times and remarks for people. Nothing here is evidence.

Invariants:
- A line that cannot be written never stops or changes what is recorded.
- Times of day live here and in no canonical artifact.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import orjson

from akf.store.layout import journal


def note(run: Path, event: str, path: str, remarks: Mapping[str, object] | None = None) -> None:
    """Add one line: the time, what happened to which artifact, and remarks such as load and wall time."""
    value = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, "path": path, **(remarks or {})}
    with suppress(OSError, TypeError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(journal(run), flags, 0o644)
        try:
            os.write(descriptor, orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))
        finally:
            os.close(descriptor)
