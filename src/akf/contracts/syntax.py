"""What is wrong where JSON's grammar does not go on, in the words of the person who wrote the file.

Invariants:
1. Every fault names what stands there and what should; the common slips of people coming from JavaScript,
   Python and YAML get a hint.
2. Nothing here decides whether a text is valid: the scanner has already stopped.
"""

from __future__ import annotations

import re

from akf.contracts.text import printable, show

BODY = r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
"""The inside of a valid string literal, as a pattern that never backtracks."""

_BODY = re.compile(BODY)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,40}")
_NUMBERISH = re.compile(r"[-+.0-9A-Za-z_]{1,40}")
_WORDS = {
    "True": "write true",
    "False": "write false",
    "None": "write null",
    "undefined": "write null, or leave the field out",
    "nan": "JSON has no NaN: leave the field out",
    "inf": "JSON has no infinity: leave the field out",
    "yes": "write true",
    "no": "write false",
}
_MARKS = {
    "'": "strings and keys stand in double quotes",
    "`": "strings and keys stand in double quotes",
    "“": "these are typographic quotes: use plain double quotes",
    "”": "these are typographic quotes: use plain double quotes",
    "/": "JSON has no comments",
    "#": "JSON has no comments",
    ";": "JSON separates with commas",
    "=": "JSON separates a key from its value by a colon",
    "+": "JSON numbers have no plus sign",
    ".": "JSON numbers start with a digit",
}


class Fault:
    """Where the grammar ends, why, and what may help."""

    __slots__ = ("hint", "message", "offset")

    def __init__(self, offset: int, message: str, hint: str | None = None) -> None:
        self.offset = offset
        self.message = message
        self.hint = hint


def unexpected(text: str, pos: int, wanted: str, opened: tuple[int, int] | None, *, after_comma: bool) -> Fault:
    """Describe what stands at `pos` instead of `wanted`; `opened` is where the open container starts."""
    if pos >= len(text):
        hint = f"what opens at line {opened[0]}, column {opened[1]} is not closed" if opened else None
        return Fault(pos, f"the file ends where {wanted} should stand", hint)
    char = text[pos]
    if after_comma and char in "]}":
        return Fault(pos, f"a comma stands before {char}", "remove the comma after the last item")
    name = _NAME.match(text, pos)
    found = name[0] if name else char
    if char == '"' and (string := _BODY.match(text, pos + 1)):
        found = string[0]
    hint = _WORDS.get(found) or _MARKS.get(char)
    if hint is None and name and "key" in wanted:
        hint = "keys stand in double quotes"
    if hint is None and wanted.startswith("a comma") and char in '"{[-0123456789':
        hint = "a comma is missing before it"
    if hint is None and not char.isascii() and char.isspace():
        hint = f"U+{ord(char):04X} is not white space in JSON"
    return Fault(pos, f"{show(found)} stands where {wanted} should", hint)


def broken_number(text: str, pos: int) -> Fault:
    """Describe a number that goes on where JSON's does not."""
    match = _NUMBERISH.match(text, pos)
    word = match[0] if match else text[pos]
    bare = word.lstrip("-")
    if re.match(r"0[0-9]", bare):
        hint = "JSON numbers have no leading zeros"
    elif bare[:2].lower() in {"0x", "0o", "0b"}:
        hint = "JSON numbers are decimal"
    elif "_" in word:
        hint = "JSON numbers have no underscores"
    elif re.fullmatch(r"[0-9]+\.", bare):
        hint = "digits must follow the decimal point"
    else:
        hint = "a unit belongs into the field's name, not behind its number"
    return Fault(pos, f"{show(word)} is not a JSON number", hint)


def broken_string(text: str, pos: int) -> Fault:
    """Describe a string literal, starting at `pos`, that is not closed or holds what it may not."""
    match = _BODY.match(text, pos + 1)
    end = pos + 1 if match is None else match.end()
    if end >= len(text):
        return Fault(pos, "the string that starts here is never closed", 'its closing " is missing')
    if text[end] == "\n":
        return Fault(end, "the line ends inside a string", 'its closing " is missing; write a line break as \\n')
    if text[end] == "\\":
        found = printable(text[end : end + 2])
        return Fault(end, f"{found} is not an escape", 'JSON has \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX')
    code = ord(text[end])
    return Fault(end, f"a string holds the control character U+{code:04X}", f"write it as \\u{code:04x}")
