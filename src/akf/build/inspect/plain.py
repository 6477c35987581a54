"""Files of which only format and digest are given: texts between two stages, and containers that are not read.

Invariants:
- A binary container is known by its first bytes, a text by its name; a text is UTF-8 without NUL and other control
  characters than those of terminals and line ends, as a whole.
- Anything else is refused: the inspector knows what it says.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from akf.contracts.problems import InvalidError
from akf.contracts.text import show

CONTAINERS = {
    b"BC\xc0\xde": "llvm_bitcode",
    b"ML\xefR": "mlir_bytecode",
    b"\x50\xed\x55\xba": "cuda_fatbin",
}
TEXTS = {
    ".mlir": "mlir", ".ttir": "mlir", ".ttgir": "mlir", ".ttadapter": "mlir", ".ll": "llvm_ir", ".ptx": "ptx",
    ".s": "assembly", ".json": "json", ".asc": "source", ".cpp": "source", ".cc": "source", ".h": "source",
    ".hpp": "source", ".py": "source", ".log": "log",
}  # fmt: skip


_NO_TEXT = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"


def facts(data: bytes, file: str) -> dict[str, Any]:
    """Format of a file that is no object."""
    for magic, name in CONTAINERS.items():
        if data.startswith(magic):
            return {"format": name, "remarks": ["its content is not read"]}
    if not data:
        raise InvalidError.of("AKF-F480", "the file is empty", file=file)
    try:
        text = len(data.translate(None, _NO_TEXT)) == len(data) and bool(data.decode())
    except UnicodeDecodeError:
        text = False
    if not text:
        raise InvalidError.of(
            "AKF-F480",
            "the file is no object, no archive and no text that the inspector knows",
            file=file,
            found=f"first bytes {data[:8].hex(' ')}",
            hint=f"it reads ELF, ar archives, {', '.join(sorted(set(CONTAINERS.values())))}, and text in UTF-8",
        )
    suffix = PurePath(file).suffix.lower()
    known = TEXTS.get(suffix)
    remark = "its content is not read" if known is not None else f"no format is known by the suffix {show(suffix)}"
    return {"format": known or "text", "remarks": [remark]}
