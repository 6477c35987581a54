"""The single steps of publication: fill a file without a name, name it, rename a folder, flush a tree.

Invariants:
- A file is filled and flushed before it is named.
- A step that names anything refuses where the name exists: ``FileExistsError``.
- A step that fails leaves nothing behind; a step that has no way here is replaced by the next best one.
"""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from akf.contracts.problems import StorageError
from akf.store._system import DIRECTORY, RENAME_NOREPLACE, Unsupported, renameat2
from akf.store.leftovers import TEMPORARY, claim, temporary_name

FLUSH_THREADS = 16

# Refusals that say something about the disk; any other refusal of a link asks for the fallback.
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EEXIST})
_NO_TMPFILE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})


def publish_unnamed(folder: int, target: Path, data: bytes | Iterable[bytes], mode: int) -> bool:
    """Publish through a file that has no name until it is whole; False where the system has no such thing."""
    try:
        descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_TMPFILE:
            return False
        raise
    try:
        fill(descriptor, data, mode)
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


def publish_named(folder: int, target: Path, data: bytes | Iterable[bytes], mode: int) -> None:
    """Publish through a temporary name beside the final one."""
    name = temporary_name(TEMPORARY)
    with Temporary(folder, name) as temporary:
        fill(temporary.descriptor, data, mode)
        try:
            renameat2(folder, name, target.name, RENAME_NOREPLACE)
        except Unsupported:
            _link_and_drop(folder, name, target)


class Temporary:
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


def rename_new_folder(parent: int, name: str, final: str) -> None:
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


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def fill(descriptor: int, data: bytes | Iterable[bytes], mode: int) -> None:
    for part in (data,) if isinstance(data, bytes) else data:
        write_all(descriptor, part)
    os.fchmod(descriptor, mode)
    os.fsync(descriptor)


def flush(path: Path | str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_tree(root: Path) -> None:
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
            for _ in pool.map(flush, files):
                pass
    else:
        for file in files:
            flush(file)
    for folder in reversed(folders):
        flush(folder)
