"""The sandbox: one interface for everything that a build runs.

`layout(work)` makes a build's folders; `Sandbox(work, roots).run(argv, variables, limits)` runs one command and says
how it ended, by which limit it was stopped, and how it was shut in; `outputs.collect` takes what it left.
"""

from akf.routes.sandbox.levels import LEVELS, Level
from akf.routes.sandbox.limits import MAX_TEXT, Limits, Stop, in_words
from akf.routes.sandbox.place import READ, WORK, WRITTEN, Ended, Sandbox, can_fix_layout, layout

__all__ = [
    "LEVELS",
    "MAX_TEXT",
    "READ",
    "WORK",
    "WRITTEN",
    "Ended",
    "Level",
    "Limits",
    "Sandbox",
    "Stop",
    "can_fix_layout",
    "in_words",
    "layout",
]
