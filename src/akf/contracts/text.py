"""Text from files, made safe to show.

Invariants:
1. `printable` returns only characters that advance a terminal's cursor and nothing else: no control, no
   bidirectional override, no zero-width or invisible filler, no lone surrogate. It is idempotent.
2. `show` is short, on one line, and printable, whatever the value.
3. Nothing here imports more than built-ins until a near miss is looked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 80
_LONGEST_WORD = 128
_SHORTEST_START = 3
_CUTOFF = 0.6
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Printable by Unicode category, yet drawn as nothing: fillers, joiners, variation selectors, blank braille.
_INVISIBLE = frozenset(
    int(code, 16) + offset
    for code, count in (
        ("034F", 1),
        ("115F", 2),
        ("17B4", 2),
        ("180B", 5),
        ("2800", 1),
        ("3164", 1),
        ("FE00", 16),
        ("FFA0", 1),
        ("E0100", 240),
    )
    for offset in range(count)
)


def printable(text: str) -> str:
    """Escape everything in `text` that could paint a terminal or hide from the reader."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _plain(c) else _escape(c) for c in text)


def is_name(text: str, longest: int) -> bool:
    """Say whether `text` names something, as in `Qwen/Qwen3-8B`, and not where it is: no path, address or account."""
    place = text.startswith(("/", "~", ".")) or "\\" in text or "//" in text or "@" in text
    return 1 <= len(text) <= longest and printable(text) == text and not text.isspace() and not place


def show(value: object, longest: int = _LONGEST) -> str:
    """Describe a JSON value for a message: a scalar as written, a container by its size."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        cut = value if len(value) <= longest else value[: longest - 1] + "…"
        return f'"{printable(cut)}"'
    if isinstance(value, dict):
        return f"an object with {counted(len(value), 'field')}"
    if isinstance(value, list):
        return f"an array of {counted(len(value), 'item')}"
    if isinstance(value, int) and value.bit_length() > longest * 3:
        return f"a whole number of {value.bit_length()} bits"
    return printable(str(value))


def counted(number: int, one: str, more: str | None = None) -> str:
    """Say how many there are: `1 rank`, `2 ranks`, `2 launches`."""
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `word` was probably meant to be, or None."""
    options = sorted(set(candidates))
    if not options or not word or len(word) > _LONGEST_WORD:
        return None
    folded: dict[str, str] = {}
    for option in options:
        folded.setdefault(_fold(option), option)
    wanted = _fold(word)
    if wanted in folded:
        return folded[wanted]
    begun = [name for name in folded if len(wanted) >= _SHORTEST_START and name.startswith(wanted)]
    if len(begun) == 1:
        return folded[begun[0]]
    from difflib import get_close_matches  # noqa: PLC0415 - costs start-up time, needed only for a near miss

    found = get_close_matches(wanted, list(folded), n=1, cutoff=_CUTOFF)
    return folded[found[0]] if found else None


def _plain(char: str) -> bool:
    return char.isprintable() and ord(char) not in _INVISIBLE


def _escape(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code <= 0xFF:  # noqa: PLR2004 - the widths of Python's own escapes
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def _fold(word: str) -> str:
    return word.casefold().replace("-", "_").replace(" ", "_")
