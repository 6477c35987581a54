"""P10: one durable artifact that never replaces, against overwriting a file and flushing its data.

Run it from anywhere: `python benchmarks/p10_publish.py [FOLDER]`; FOLDER is on the disk to measure (by default the
temporary folder). The other side is the least that is durable at all: `pwrite` over an open file of the same length
and `fdatasync`, with no new name, no atomicity and no refusal. Before anything is timed, the artifact must be there
with its bytes, and publishing it again must be refused.

Growth: bytes of the artifact, at 1x, 10x and 100x of 4 KiB.
"""

import itertools
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import ROUNDS, compare, median_seconds, report, report_growth  # noqa: E402

from akf.contracts.problems import ConflictError  # noqa: E402 (the checkout comes first)
from akf.store.publish import publish_file  # noqa: E402

BYTES = 4096
AT_ONCE = 10
SIZES = (1, 10, 100)


def verify(root: Path) -> None:
    target = root / "verified.json"
    publish_file(target, b"{}\n")
    try:
        publish_file(target, b"[]\n")
    except ConflictError:
        if target.read_bytes() == b"{}\n":
            return
    raise ValueError("an artifact was replaced")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        root = Path(folder)
        verify(root)
        numbers = itertools.count()

        def ours(data: bytes) -> None:
            for _ in range(AT_ONCE):
                publish_file(root / f"{next(numbers)}.json", data)

        data = bytes(BYTES)
        existing = os.open(root / "existing", os.O_CREAT | os.O_RDWR, 0o600)
        os.write(existing, data)
        os.fsync(existing)

        def theirs() -> None:
            for _ in range(AT_ONCE):
                os.pwrite(existing, data, 0)
                os.fdatasync(existing)

        comparison = compare(partial(ours, data), theirs, ROUNDS)
        operation = f"one durable artifact of {BYTES // 1024} KiB ({AT_ONCE} in a row)"
        report("P10", operation, "<= 6x overwrite and fdatasync", comparison)
        report_growth(SIZES, [median_seconds(partial(ours, bytes(BYTES * size))) for size in SIZES])
        os.close(existing)


if __name__ == "__main__":
    main()
