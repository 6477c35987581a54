"""What a built file is, read from its bytes: `akf inspect`, and what a Build can say of its outputs.

Invariants:
- A file is read once, whole, and at most 256 MiB of it; digest and facts are of the same bytes. It is never loaded,
  never run, and given to no other program.
- Whatever the bytes are, the answer is a document or a problem that names the place. Work and memory grow with the
  file's size, not with what its headers say.
- Names and texts of a file are data: made printable, bounded, counted.
- Of text (MLIR, PTX) and of containers that it does not read, the inspector gives format and digest and no more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from akf.build.inspect import plain
from akf.build.inspect.content import MAX_OBJECT_BYTES, read_object
from akf.contracts.digests import digest
from akf.contracts.problems import AkfError, BlockedError
from akf.contracts.text import printable

__all__ = ["MAX_OBJECT_BYTES", "Inspection", "describe", "describe_bytes", "inspect", "offers", "read_object"]

_ELF = b"\x7fELF"
_ARCHIVES = (b"!<arch>\n", b"!<thin>\n")


class Inspection(NamedTuple):
    """What a file says, and what is wrong with what stands beside it."""

    document: dict[str, Any]
    error: AkfError | None


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file says of itself.

    Raises:
        IntegrityError: The description beside it contradicts it.
        InvalidError: It is none of the formats, its headers lie, or the description beside it cannot be read.
        BlockedError: pyelftools is not installed.
    """
    found = inspect(path)
    if found.error is not None:
        raise found.error
    return found.document


def describe_bytes(data: bytes, name: str) -> dict[str, Any]:
    """The same of bytes in memory, with nothing beside them.

    Args:
        data: all bytes of a file.
        name: its name, which decides the format of text only.
    """
    return _document(data, name)[0]


def offers(data: bytes, name: str, symbol: str | None = None) -> tuple[dict[str, Any], bool]:
    """Kernels and symbols of an object, and whether it offers this symbol; nothing is said of what is no object.

    Args:
        data: all bytes of the file.
        name: its name.
        symbol: a kernel or a function that is asked for.

    Raises:
        InvalidError: its headers lie.
        BlockedError: pyelftools is not installed.
    """
    if not data.startswith(_ELF):
        return {}, symbol is None
    _need_elftools(name)
    from akf.build.inspect.elf import Image  # noqa: PLC0415 - needs pyelftools
    from akf.build.inspect.offered import offered  # noqa: PLC0415 - as above

    return offered(Image(data, name), symbol)


def inspect(path: str | os.PathLike[str]) -> Inspection:
    """What a file says of itself, together with what is wrong beside it."""
    place = Path(path)
    data = read_object(place)
    document, image = _document(data, str(place))
    if image is None:
        return Inspection(document, None)
    from akf.build.inspect.beside import beside  # noqa: PLC0415 - needs pyelftools

    found = beside(place, image, document["remarks"])
    return Inspection(document | found.facts, found.error)


def _document(data: bytes, name: str) -> tuple[dict[str, Any], Any]:
    """The document, and the image where it is one that is described beside."""
    document = {"file": printable(Path(name).name), "bytes": len(data), "digest": digest(data)}
    if data.startswith((_ELF, *_ARCHIVES)):
        _need_elftools(name)
        from akf.build.inspect import archive, elf, elf_facts  # noqa: PLC0415 - needs pyelftools

        if not data.startswith(_ELF):
            return document | archive.facts(data, name), None
        image = elf.Image(data, name)
        return document | elf_facts.facts(image), image if image.machine == elf.AICORE else None
    return document | plain.facts(data, name), None


def _need_elftools(name: str) -> None:
    try:
        import elftools  # noqa: F401, PLC0415 - only objects need it
    except ImportError as error:
        raise BlockedError.of(
            "AKF-E480",
            "objects are read with pyelftools, and it is not installed",
            file=name,
            hint='run: python -m pip install "ascend-kernel-forge[build]"',
        ) from error
