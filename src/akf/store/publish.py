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

import errno
import os
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from akf.contracts.problems import ConflictError, StorageError
from akf.store._system import DIRECTORY, RENAME_NOREPLACE, Unsupported, renameat2, storage
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

FLUSH_THREADS = 16

# Refusals that say something about the disk; any other refusal of a link asks for the fallback.
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EEXIST})
_NO_TMPFILE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})


def publish_file(target: Path, data: bytes, *, mode: int = 0o444) -> None:
    """Make `data` appear under `target`, whole and durable, or not at all.

    Raises:
        ConflictError: `target` exists; nothing was changed.
        StorageError: The file system refused.
    """
    with storage(target, "publish"):
        folder = os.open(target.parent, DIRECTORY)
        try:
            try:
                if not _publish_unnamed(folder, target, data, mode):
                    _publish_named(folder, target, data, mode)
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
            with _temporary(folder, name) as temporary:
                _fill(temporary.descriptor, data, mode)
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
        _flush(path)
        for folder in path.parents:
            _flush(folder)
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
            _flush(folder.parent)
        for folder in reversed(missing):
            try:
                os.mkdir(folder, mode)  # noqa: PTH102 - the kill harness counts the calls of `os`
            except FileExistsError:
                if not folder.is_dir():
                    raise
            _flush(folder.parent)


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
                _write(descriptor, data)
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
            _flush_tree(self.path)
            aside = self._set_orphan_aside()
            try:
                _rename_new_folder(self._parent, self.path.name, self.target.name)
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


def _publish_unnamed(folder: int, target: Path, data: bytes, mode: int) -> bool:
    """Publish through a file that has no name until it is whole; False where the system has no such thing."""
    try:
        descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_TMPFILE:
            return False
        raise
    try:
        _fill(descriptor, data, mode)
        try:
            # With a `dst_dir_fd` Python calls linkat with AT_SYMLINK_FOLLOW, which names the open file.
            os.link(f"/proc/self/fd/{descriptor}", target.name, dst_dir_fd=folder, follow_symlinks=True)
        except OSError as error:
            if error.errno in _DISK:
                raise
            return False
    finally:
        os.close(descriptor)
    return True


def _publish_named(folder: int, target: Path, data: bytes, mode: int) -> None:
    """Publish through a temporary name beside the final one."""
    name = temporary_name(TEMPORARY)
    with _temporary(folder, name) as temporary:
        _fill(temporary.descriptor, data, mode)
        try:
            renameat2(folder, name, target.name, RENAME_NOREPLACE)
        except Unsupported:
            _link_and_drop(folder, name, target)


class _temporary:  # noqa: N801 - reads as a context manager
    """A named temporary that is removed when the block fails."""

    def __init__(self, folder: int, name: str) -> None:
        self._folder = folder
        self._name = name
        self.descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
        claim(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._folder)
        os.close(self.descriptor)


def _link_and_drop(folder: int, name: str, target: Path) -> None:
    try:
        os.link(name, target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in _DISK:
            raise
        raise StorageError.of(
            "AKF-F109",
            f"cannot publish {target}: its file system has neither hard links nor renameat2",
            file=str(target),
            hint="keep runs on a local file system such as ext4, xfs, btrfs or tmpfs",
        ) from error
    with suppress(OSError):  # published; what stays is a leftover
        os.unlink(name, dir_fd=folder)


def _rename_new_folder(parent: int, name: str, final: str) -> None:
    """Rename a folder to a name that must not exist."""
    try:
        renameat2(parent, name, final, RENAME_NOREPLACE)
    except Unsupported:
        _rename_guarded(parent, name, final)


def _rename_guarded(parent: int, name: str, final: str) -> None:
    """Look and rename under a lock on the parent, where the kernel cannot refuse to replace.

    Every publisher here takes the lock, so they exclude one another. What another program creates between the
    look and the rename is refused by ``rename`` too, unless it is an empty folder: then that empty folder is
    replaced.
    """
    import fcntl  # noqa: PLC0415 - the fallback alone needs it

    lock = os.open(".", DIRECTORY, dir_fd=parent)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            os.stat(final, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            pass
        else:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), final)
        try:
            os.rename(name, final, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), final) from error
            raise
    finally:
        os.close(lock)


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


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _fill(descriptor: int, data: bytes, mode: int) -> None:
    _write(descriptor, data)
    os.fchmod(descriptor, mode)
    os.fsync(descriptor)


def _flush(path: Path | str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def _flush_tree(root: Path) -> None:
    """Flush every file of a tree from several threads, then its folders, the deepest first."""
    files: list[str] = []
    folders = [os.fspath(root)]
    for folder in folders:  # grows while it is walked
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.path)
    if len(files) > 1:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - costs 10 ms

        with ThreadPoolExecutor(min(FLUSH_THREADS, len(files))) as pool:
            for _ in pool.map(_flush, files):
                pass
    else:
        for file in files:
            _flush(file)
    for folder in reversed(folders):
        _flush(folder)
