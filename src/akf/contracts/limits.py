"""The limits of the contracts, in one place.

Invariants:
1. A limit is a constant here and nowhere else; messages print the constant.
2. Everything AKF writes stays inside the limits it reads by.
"""

MAX_FILE_BYTES = 16 * 1024 * 1024
"""An artifact or a hand-written input; raw samples live outside it."""

MAX_DEPTH = 64
"""Arrays and objects inside one another, the outermost counted as 1."""

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest whole number that every JSON reader holds exactly."""

MAX_PROBLEMS = 1_000
"""Problems listed for one file; a last one says that the list was cut."""

MAX_ID = 63
"""Characters of an id."""

MAX_SHORT_ID = 48
"""Characters of a campaign id or a candidate id, which other ids are built from."""

MAX_PATH_BYTES = 512
"""Bytes of a relative path in an artifact."""

MAX_SEGMENT_BYTES = 255
"""Bytes between two slashes: what common file systems hold."""

MAX_POINTER = 1_024
"""Characters of a JSON pointer in a problem; a longer one is cut at a container that holds the place."""

MAX_TRACE_BYTES = 8 * 1024 * 1024 * 1024
"""A trace of events, unpacked; it is read in pieces."""

MAX_EVENT_CHARS = 4 * 1024 * 1024
"""One event of a trace, or one value beside its events: all that is held of the text at a time."""
