"""P16: a durable queue, one item claimed and completed, against the least that SQLite can do durably.

Run it from anywhere: `python benchmarks/p16_durable_queue.py [FOLDER]`; FOLDER is on the disk to measure (by default
the temporary folder). Two queues are measured: the Server's jobs (a job is started, then finished with its result, each
a transaction with its event that is on the disk when the call returns), and the worker's leases (a device granted, then
released, each with its audit line; they outlive the process, and need not outlive the machine).

The other side is two transactions of one changed row each, WAL mode, `synchronous=FULL`. Before anything is timed, a
queue that is opened again must know what was claimed and what was completed.

Growth: items in the queue, at 1x, 10x and 100x of 10.
"""

import itertools
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import ROUNDS, compare, median_seconds, report, report_growth  # noqa: E402

from akf.fabric.leases import LeaseBook  # noqa: E402 (the checkout comes first)
from akf.server.sqlite import SqliteStore  # noqa: E402
from akf.server.store import Store  # noqa: E402

ITEMS, FEW = 100, 10
SIZES = (1, 10, 100)
RESULT = {"success": True, "code": "x" * 1000}


def worked_off(store: Store, names: list[str]) -> None:
    for name in names:
        if not store.start(name):
            raise ValueError(f"{name} was not to be had")
        store.finish(name, "completed", result=RESULT, error=None, outcome="ok")


def next_worked_off(store: Store, left: Iterator[list[str]]) -> None:
    worked_off(store, next(left))


def bare(path: Path) -> Callable[[int], None]:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("pragma journal_mode=wal")
    database.execute("pragma synchronous=full")
    database.execute("create table item (number integer primary key, state text)")
    numbers = itertools.count()

    def run(items: int) -> None:
        for _ in range(items):
            number = next(numbers)
            database.execute("insert into item values (?, 'claimed')", (number,))
            database.execute("update item set state = 'done' where number = ?", (number,))

    return run


def filled(store: Store, numbers: "itertools.count[int]", items: int) -> list[str]:
    names = [f"job-{next(numbers)}" for _ in range(items)]
    for name in names:
        store.add(name, "user", {"op_name": "relu"})
    return names


def lent(book: LeaseBook, items: int) -> None:
    for _ in range(items):
        lease = book.grant("task", "user", 0, None)
        book.commit()
        book.end(lease, "released", "")
        book.commit()


def verify(root: Path) -> None:
    store: Store = SqliteStore(root)
    first, second = filled(store, itertools.count(), 2)
    worked_off(store, [first])
    store.start(second)
    store.close()
    store = SqliteStore(root)
    found = [job.status for job in (store.job(first), store.job(second)) if job is not None]
    store.close()
    if found != ["completed", "running"]:
        raise ValueError(f"a queue that was opened again says {found}")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        root = Path(folder)
        verify(root / "verified")
        store, book, least = SqliteStore(root / "jobs"), LeaseBook(root / "leases"), bare(root / "bare.sqlite")
        numbers = itertools.count()
        waiting = iter([filled(store, numbers, ITEMS) for _ in range(ROUNDS + 1)])
        comparison = compare(partial(next_worked_off, store, waiting), partial(least, ITEMS))
        report("P16", f"{ITEMS} jobs started and finished", "a figure; >= 3,000 a second on a quiet disk", comparison)
        print(f"    ours {ITEMS / comparison.a_seconds:.0f} a second")
        comparison = compare(partial(lent, book, ITEMS), partial(least, ITEMS))
        report("P16", f"{ITEMS} leases granted and released", "<= 1x", comparison)
        print(f"    ours {ITEMS / comparison.a_seconds:.0f} a second")
        times = []
        for size in SIZES:
            grown = iter([filled(store, numbers, FEW * size) for _ in range(5)])
            times.append(median_seconds(partial(next_worked_off, store, grown), 5))
        report_growth(SIZES, times)
        store.close()
        book.close()


if __name__ == "__main__":
    main()
