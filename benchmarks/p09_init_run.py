"""P9: 300 artifacts that appear durably and all or nothing, against flushing and renaming each.

Run it from anywhere: `python benchmarks/p09_init_run.py [FOLDER]`; FOLDER is on the disk to measure (by default the
temporary folder). Our side is the `StagedFolder` that `akf init-run` publishes a run with. The other side writes each
artifact to a temporary name, flushes it and renames it, and flushes the folder once at the end: durable, but neither
all-or-nothing nor safe from replacing. Before anything is timed, both sides must leave the same bytes under the same
names, and ours must refuse a second time.

Growth: artifacts, at 1x, 10x and 100x of 30.
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
from akf.store.publish import StagedFolder  # noqa: E402

ARTIFACTS = 300
SMALLEST = 30
SIZES = (1, 10, 100)
DATA = bytes(range(256)) * 16


def contents(count: int) -> dict[str, bytes]:
    return {f"{number}.json": str(number).encode() + DATA for number in range(count)}


def ours(target: Path, files: dict[str, bytes]) -> None:
    with StagedFolder(target) as stage:
        for name, data in files.items():
            stage.write(name, data)


def theirs(target: Path, files: dict[str, bytes]) -> None:
    target.mkdir()
    for name, data in files.items():
        temporary = target / f".{name}"
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.rename(target / name)
    for folder in (target, target.parent):
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def verify(root: Path) -> None:
    """Hold both sides to the same names and bytes, and ours to its refusal."""
    files = contents(ARTIFACTS)
    for side in (ours, theirs):
        side(root / side.__name__, files)
        found = {path.name: path.read_bytes() for path in (root / side.__name__).iterdir()}
        if found != files:
            raise ValueError(f"{side.__name__} left other files")
    try:
        ours(root / "theirs", files)
    except ConflictError:
        return
    raise ValueError("a folder was replaced")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        root = Path(folder)
        verify(root)
        numbers = itertools.count()
        files = contents(ARTIFACTS)
        comparison = compare(
            lambda: ours(root / str(next(numbers)), files), lambda: theirs(root / str(next(numbers)), files), ROUNDS
        )
        operation = f"init-run of {ARTIFACTS} artifacts of {len(DATA) // 1024} KiB, durable and all or nothing"
        report("P9", operation, "<= 0.35x fsync and rename of each", comparison)

        def publish(more: dict[str, bytes]) -> None:
            ours(root / str(next(numbers)), more)

        times = [median_seconds(partial(publish, contents(SMALLEST * size))) for size in SIZES]
        report_growth(SIZES, times)


if __name__ == "__main__":
    main()
