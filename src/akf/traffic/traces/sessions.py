"""Which requests belong to one session.

Invariants:
- A chat goes back to its parent's parent's … first; the order of rows says nothing. A parent that the trace does not
  hold began before it, and is as good a first as any.
- -1 and an empty text name no parent and no session.
- Two parents of one chat, and a chat that is its own ancestor, are refused with the line.
"""

from __future__ import annotations

from typing import Any

from akf.contracts.problems import Problem
from akf.contracts.text import show
from akf.traffic.traces.rows import Bad
from akf.traffic.trouble import Trouble

NO_PARENT = -1
_NO_SESSION = ("", "-1")


class Chats:
    """Parents by chat, with the file and line of each for messages."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._places: dict[int, tuple[str, int]] = {}

    def add(self, chat: Any, parent: Any, file: str, line: int) -> None:
        """Note the parent of a chat."""
        for value in (chat, parent):
            if type(value) is not int or not NO_PARENT <= value < 1 << 63:
                message = f"{show(value)} names no chat"
                raise Bad("AKF-F256", message, "a whole number, or -1 for no parent", show(value))
        if chat in {NO_PARENT, parent}:
            raise Bad("AKF-F256", f"chat {chat} cannot have the parent {parent}", found=parent)
        known = self._parents.setdefault(chat, parent)
        if known != parent:
            message = f"chat {chat} has the parent {parent} here and {known} in line {self._places[chat][1]}"
            raise Bad("AKF-F256", message, known, parent)
        self._places.setdefault(chat, (file, line))

    def check(self, trouble: Trouble) -> None:
        """Say which chats are their own ancestors."""
        done: set[int] = set()
        for start in self._parents:
            path: dict[int, None] = {}
            chat = start
            while chat not in done and chat in self._parents:
                if chat in path:
                    file, line = min(self._places[each] for each in _cycle(path, chat))
                    trouble.add(Problem("AKF-F256", f"chat {chat} is its own ancestor", file, line=line))
                    break
                path[chat] = None
                chat = self._parents[chat]
            done.update(path)

    def roots(self, chats: list[Any]) -> list[Any]:
        """The session of each request: its first chat, the name it has, or None."""
        roots: dict[Any, Any] = dict.fromkeys(_NO_SESSION)
        for chat in set(chats):
            path = []
            first = chat
            while first not in roots and self._parents.get(first, NO_PARENT) != NO_PARENT:
                path.append(first)
                first = self._parents[first]
            root = roots.get(first, first)
            roots.update(dict.fromkeys([*path, first], root))
        return [roots[chat] for chat in chats]


def _cycle(path: dict[int, None], chat: int) -> list[int]:
    listed = list(path)
    return listed[listed.index(chat) :]
