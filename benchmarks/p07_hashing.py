"""P7: digests of artifact files, against SHA-256 of the same bytes in memory.

Run it from anywhere: `python benchmarks/p07_hashing.py [FOLDER]`. The files are in the page cache. Before anything is
timed, every digest must be the same on both sides. With two threads the goal is a speed of 1.8 times one core's.

Growth: number of files, at 1x, 10x and 100x.
"""

import hashlib
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import compare, median_seconds, report, report_growth  # noqa: E402

from akf.contracts.canonical import digest_file, digest_files  # noqa: E402 (the checkout comes first)

SHAPES = ((64, 1 << 20), (500, 64 << 10))
SIZES = (1, 10, 100)


def in_memory(contents: list[bytes]) -> list[str]:
    return [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in contents]


def one_thread(paths: list[Path]) -> list[str]:
    return [digest_file(path) for path in paths]


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for count, size in SHAPES:
            contents = [os.urandom(size) for _ in range(count)]
            paths = [Path(folder) / f"{size}-{at}" for at in range(count)]
            for path, data in zip(paths, contents, strict=True):
                path.write_bytes(data)
            if not one_thread(paths) == digest_files(paths) == in_memory(contents):
                raise ValueError("the digests differ")
            what = f"{count} files of {size >> 10} KB"
            for name, run, goal in (
                ("one thread", partial(one_thread, paths), "at least 0.90 times as fast as one core in memory"),
                ("two threads", partial(digest_files, paths, 2), "at least 1.8 times as fast as one core in memory"),
            ):
                found = compare(run, partial(in_memory, contents))
                report("P7", f"{what}, {name}", goal, found)
                print(f"    {1 / found.ratio:.2f} times as fast")
        few = paths[: len(paths) // SIZES[-1]]
        report_growth(SIZES, [median_seconds(partial(one_thread, few * size)) for size in SIZES])


if __name__ == "__main__":
    main()
