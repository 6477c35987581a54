"""`ar` archives: static libraries and what compilers pack several objects into.

Invariants:
- The format is the common one of GNU and BSD: a header of 60 bytes, names in it, in a table, or before the content.
- A header that does not fit ends the reading with a problem: half an archive is no archive.
- The members of a thin archive are elsewhere; it is refused, because their bytes are not in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from akf.build.inspect import elf_facts
from akf.build.inspect.elf import MAGIC as ELF
from akf.build.inspect.elf import Image
from akf.contracts.digests import digest
from akf.contracts.problems import InvalidError
from akf.contracts.text import printable

MAGIC = b"!<arch>\n"
THIN = b"!<thin>\n"
MAX_MEMBERS = 4_096
LISTED = 512
READ = 64
"""Members that are read as ELF."""
_HEADER = 60
_END = b"`\n"
_NUMBER = re.compile(rb"([0-9]{1,10}) *")
_INDEX = frozenset({b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED"})


def facts(data: bytes, file: str) -> dict[str, Any]:
    """The members of an archive."""
    if data.startswith(THIN):
        _refuse(file, "a thin archive names files and holds none", "inspect its members, one by one")
    members = list(_members(data, file))
    remarks = []
    if len(members) > LISTED:
        remarks.append(f"{LISTED} of {len(members)} members are listed")
    elf = sum(content.startswith(ELF) for _, content in members[:LISTED])
    if elf > READ:
        remarks.append(f"{READ} of {elf} ELF members are read, of the others the digest is given")
    rows, read = [], 0
    for name, content in members[:LISTED]:
        row = {"name": printable(name), "bytes": len(content), "digest": digest(content)}
        if content.startswith(ELF) and read < READ:
            read += 1
            row |= _elf(content, file)
        rows.append(row)
    return {"format": "archive", "member_count": len(members), "members": rows, "remarks": remarks}


def _elf(content: bytes, file: str) -> dict[str, Any]:
    image = Image(content, file)
    kernels = elf_facts.kernels(image)
    return {
        "what": elf_facts.what(image),
        "machine_number": image.machine,
        "kernels": None if kernels is None else [printable(kernel.name) for kernel in kernels],
    }


def _members(data: bytes, file: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each member, but for the index and the table of names."""
    at, number, table = len(MAGIC), 0, b""
    while at < len(data):
        number += 1
        if number > MAX_MEMBERS:
            _refuse(file, f"it has more than {MAX_MEMBERS} members")
        header = data[at : at + _HEADER]
        size = _NUMBER.fullmatch(header[48:58])
        if len(header) < _HEADER or header[58:] != _END or size is None:
            _refuse(file, f"what stands at {at} is no header of a member")
        start, end = at + _HEADER, at + _HEADER + int(size[1])
        if end > len(data):
            _refuse(file, f"member {number} ends at {end} of {len(data)} bytes", "it was cut short, or its headers lie")
        name, content = header[:16].rstrip(b" "), data[start:end]
        at = end + end % 2
        if name == b"//":
            table = content
        elif name not in _INDEX:
            yield _named(name, content, table, file)


def _named(name: bytes, content: bytes, table: bytes, file: str) -> tuple[str, bytes]:
    if name.startswith(b"#1/") and name[3:].isdigit():
        length = int(name[3:])
        name, content = content[:length].rstrip(b"\0"), content[length:]
    elif name.startswith(b"/") and name[1:].isdigit():
        start = int(name[1:])
        end = table.find(b"\n", start)
        if end < 0:
            _refuse(file, f"the name at {start} is not in its table of names")
        name = table[start:end].removesuffix(b"/")
    else:
        name = name.removesuffix(b"/")
    return name[:512].decode("utf-8", "backslashreplace"), content


def _refuse(file: str, message: str, hint: str | None = None) -> NoReturn:
    raise InvalidError.of("AKF-F484", f"the archive cannot be read: {message}", file=file, hint=hint)
