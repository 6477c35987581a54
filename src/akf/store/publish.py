"""Atomic, durable publication that never replaces.

Invariants:
- Data is written and flushed before its final name appears; the name appears in one step; the folder that
  holds the name is flushed last. A crash at any instant leaves the old state or the new one, plus at most a
  leftover.
- A name that exists is never replaced: the second publisher gets a ``ConflictError`` and changes nothing. The
  one exception is an orphan, a sidecar whose artifact does not exist, which does not count yet.
- A refusal of the file system is a ``StorageError`` that names path and remedy, and leaves nothing behind.
- Every call that changes the disk goes through ``os`` or `renameat2`, so that tests can kill the process at
  each.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from akf.contracts.problems import ConflictError, StorageError
from akf.store._steps import (
    Temporary,
    fill,
    flush,
    flush_tree,
    publish_named,
    publish_unnamed,
    rename_new_folder,
    write_all,
)
from akf.store._system import DIRECTORY, storage
from akf.store.leftovers import STAGE, TEMPORARY, claim, clean, remove, stale, temporary_name

__all__ = [
    "StagedFolder",
    "clean",
    "make_folder",
    "publish_file",
    "replace_sidecar",
    "settle",
    "stale",
]


def publish_file(target: Path, data: bytes | Iterable[bytes], *, mode: int = 0o444) -> None:
    """Make `data` appear under `target`, whole and durable, or not at all.

    Args:
        target: The final place; its folder exists.
        data: The bytes, or parts of them that can be walked again.
        mode: The file's mode.

    Raises:
        ConflictError: `target` exists; nothing was changed.
        StorageError: The file system refused.
    """
    with storage(target, "publish"):
        folder = os.open(target.parent, DIRECTORY)
        try:
            try:
                if not publish_unnamed(folder, target, data, mode):
                    publish_named(folder, target, data, mode)
            except FileExistsError as error:
                raise _exists(target) from error
            _flush_appeared(folder, target)
        finally:
            os.close(folder)


def replace_sidecar(target: Path, data: bytes, artifact: Path, *, mode: int = 0o444) -> None:
    """Publish what stands beside an artifact before the artifact; an orphan in its place is replaced.

    The caller holds the run's lock, so that the artifact cannot appear meanwhile.

    Raises:
        ConflictError: The artifact exists, so its sidecar counts and stays; nothing was changed.
        StorageError: The file system refused.
    """
    _refuse_counted(target, artifact)
    if not os.path.lexists(target):
        publish_file(target, data, mode=mode)
        return
    with storage(target, "publish"):
        folder = os.open(target.parent, DIRECTORY)
        name = temporary_name(TEMPORARY)
        try:
            with Temporary(folder, name) as temporary:
                fill(temporary.descriptor, data, mode)
                os.rename(name, target.name, src_dir_fd=folder, dst_dir_fd=folder)
            _flush_appeared(folder, target)
        finally:
            os.close(folder)


def settle(path: Path, root: Path | None = None) -> None:
    """Flush a file and the folders that hold it, up to and including `root` (by default its own folder alone).

    A publisher killed between the name's appearance and the folder's flush leaves a whole file that a power
    failure could still take back; whoever finds one settles it before building on it.
    """
    with storage(path, "flush"):
        flush(path)
        for folder in path.parents:
            flush(folder)
            if root is None or folder == root:
                break


def make_folder(path: Path, *, mode: int = 0o755) -> None:
    """Create a folder and its missing parents, each durable before the next; an existing one is fine."""
    with storage(path, "create"):
        missing = []
        folder = path
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        with suppress(PermissionError):  # not ours; where a crash left it unflushed, it is ours
            flush(folder.parent)
        for folder in reversed(missing):
            try:
                os.mkdir(folder, mode)  # noqa: PTH102 - the kill harness counts the calls of `os`
            except FileExistsError:
                if not folder.is_dir():
                    raise
            flush(folder.parent)


class StagedFolder:
    """A folder that is filled beside its place and appears there whole, in one step.

    ``with StagedFolder(target) as stage:`` — a clean end of the block publishes, an exception leaves nothing.
    Files are written with `write`, or by anyone under `path`: publishing flushes all that it finds there.

    Args:
        target: The final place; its parent exists.
        orphan_of: The artifact beside which the folder stands. While the artifact does not exist, a folder
            found in the place is an orphan and is replaced; the caller holds the run's lock.
        mode: The folder's mode.

    Raises:
        ConflictError: `target` exists; nothing was changed.
        StorageError: The file system refused; nothing is left behind.
    """

    def __init__(self, target: Path, *, orphan_of: Path | None = None, mode: int = 0o755) -> None:
        self.target = target
        self.path = target.parent / temporary_name(STAGE)
        self._orphan_of = orphan_of
        self._mode = mode
        self._parent = -1
        self._own = -1
        self._made = {self.path}

    def __enter__(self) -> Self:
        with storage(self.target, "publish"):
            self._parent = os.open(self.target.parent, DIRECTORY)
            try:
                os.mkdir(self.path.name, self._mode, dir_fd=self._parent)
                self._own = os.open(self.path.name, DIRECTORY, dir_fd=self._parent)
                claim(self._own)
            except BaseException:
                self._discard()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            self._publish()
        except BaseException:
            self._discard()
            raise
        self._close()

    def write(self, relative: str, data: bytes, *, mode: int = 0o444) -> None:
        """Add one file, and the folders on its way, under a relative POSIX path."""
        path = self.path / _inside(relative)
        with storage(self.target / relative, "write"):
            self._make(path.parent)
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                write_all(descriptor, data)
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)

    def folder(self, relative: str) -> None:
        """Add one folder that may stay empty."""
        with storage(self.target / relative, "create"):
            self._make(self.path / _inside(relative))

    def _make(self, folder: Path) -> None:
        if folder not in self._made:
            self._make(folder.parent)
            with suppress(FileExistsError):  # made by someone else under `path`
                os.mkdir(folder)  # noqa: PTH102 - the kill harness counts the calls of `os`
            self._made.add(folder)

    def _publish(self) -> None:
        with storage(self.target, "publish"):
            flush_tree(self.path)
            aside = self._set_orphan_aside()
            try:
                rename_new_folder(self._parent, self.path.name, self.target.name)
            except FileExistsError as error:
                raise _exists(self.target) from error
            finally:
                if aside is not None:
                    with suppress(OSError):  # what stays is a leftover with a name of its own
                        remove(aside)
            _flush_appeared(self._parent, self.target)

    def _set_orphan_aside(self) -> Path | None:
        if self._orphan_of is None or not os.path.lexists(self.target):
            return None
        _refuse_counted(self.target, self._orphan_of)
        name = temporary_name(STAGE)
        os.rename(self.target.name, name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        return self.target.parent / name

    def _discard(self) -> None:
        with suppress(OSError):
            remove(self.path)
        self._close()

    def _close(self) -> None:
        for descriptor in (self._own, self._parent):
            if descriptor >= 0:
                os.close(descriptor)
        self._own = self._parent = -1


def _exists(target: Path) -> ConflictError:
    return ConflictError.of(
        "AKF-C101",
        f"{target} exists already; nothing was changed",
        file=str(target),
        hint="published files are never replaced: a second attempt takes a new id",
    )


def _refuse_counted(target: Path, artifact: Path) -> None:
    if os.path.lexists(artifact):
        raise ConflictError.of(
            "AKF-C102",
            f"{target} stands beside {artifact}, which is published; nothing was changed",
            file=str(target),
            hint="published files are never replaced: a second attempt takes a new id",
        )


def _inside(relative: str) -> PurePosixPath:
    path = PurePosixPath(relative)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(f"not a path inside the folder: {relative!r}")
    return path


def _flush_appeared(folder: int, target: Path) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        raise StorageError.of(
            "AKF-F108",
            f"{target} is published, but its folder was not flushed: {os.strerror(error.errno or 0).lower()}",
            file=str(target),
            hint="check the disk; the next command on this run verifies the file and flushes it again",
        ) from error
