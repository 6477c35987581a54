"""Files that a command makes where it is told to.

Invariants:
- A name that is taken is refused before anything is read.
- Missing folders are made. Of several files all are published, or none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from akf.contracts.problems import ConflictError, UsageError

Output = tuple[Path | None, bytes | Iterable[bytes]]
"""Where and what; nothing where nobody asked for it."""


def free(code: str, **targets: Path | None) -> None:
    """See that every output can be made; each is given under the name of its option.

    Raises:
        ConflictError: One exists already.
        UsageError: Two are the same.
    """
    named: dict[str, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        if os.path.lexists(path):
            hint = "published files are never replaced: name a new one"
            raise ConflictError.of("AKF-C101", f"{path} exists already; nothing was changed", file=str(path), hint=hint)
        other = named.setdefault(os.path.abspath(path), option)  # noqa: PTH100 - links are not followed
        if other != option:
            raise UsageError.of(code, f"--{other} and --{option} name the same place", found=str(path))


@contextmanager
def published(*outputs: Output) -> Iterator[None]:
    """Publish files in this order; where one of them or the block fails, none stays.

    Raises:
        ConflictError: One exists already.
        StorageError: The file system refused.
    """
    from akf.store.publish import make_folder, publish_file  # noqa: PLC0415

    for path, _ in outputs:
        if path is not None:
            make_folder(path.absolute().parent)
    with ExitStack() as undo:
        for path, data in outputs:
            if path is not None:
                publish_file(path, data, mode=0o644)
                undo.callback(_remove, path)
        yield
        undo.pop_all()


def publish(*outputs: Output) -> None:
    """Publish files in this order: all, or none.

    Raises:
        ConflictError: One exists already.
        StorageError: The file system refused.
    """
    with published(*outputs):
        pass


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
