"""Names of a stranger's file: sorted, printable, counted whole and listed in part."""

from __future__ import annotations

from akf.contracts.text import printable

LISTED = 256


class Names:
    """Counts all names that are added; keeps the first `LISTED` of their order."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: list[str] = []

    def add(self, name: str) -> None:
        """Count one more."""
        self.count += 1
        self._kept.append(name)
        if len(self._kept) >= 2 * LISTED:
            self._kept = sorted(self._kept)[:LISTED]

    @property
    def listed(self) -> list[str]:
        """Those that are shown."""
        return [printable(name) for name in sorted(self._kept)[:LISTED]]


def texts(data: bytes, most: int, longest: int = 512) -> list[str]:
    """The texts between NULs, each once, as many and as much of each as is asked for."""
    found = dict.fromkeys(part[:longest] for part in data.split(b"\0") if part)
    return [printable(part.decode("utf-8", "backslashreplace")) for part in list(found)[:most]]
