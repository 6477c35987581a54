"""From a task's text or JSON to its graph.

Invariants:
- Text that begins with a brace is the JSON form of a graph; any other text is the input of one node for each role of
  the compiler's, as in the first version.
- A graph that is compiled can be run to an end: ids are known, nothing waits for itself, loops are bounded.
- All problems come at once, with line and column where there is a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from akf.contracts.document import Document
from akf.contracts.loader import parse
from akf.contracts.problems import InvalidError, Problem, unlisted
from akf.contracts.text import printable
from akf.runtime import edges, form
from akf.runtime.graph import Graph, Node
from akf.runtime.values import Garbage, kept

MAX_TEXT = 1024**2


class Compiler:
    """Makes graphs.

    Args:
        roles: what a plain text is given to, one node each.
    """

    def __init__(self, roles: Sequence[str] = ("analyze", "generate")) -> None:
        self.roles = tuple(roles)

    def compile(self, task: str | dict[str, Any] | Graph) -> Graph:
        """The graph of a task.

        Raises:
            InvalidError: it is none; with every problem.
        """
        if isinstance(task, Graph):
            task = task.to_json()
        if isinstance(task, dict):
            try:
                return self.checked(kept(task))
            except Garbage as garbage:
                raise InvalidError.of("AKF-F701", f"the task is no JSON: {garbage}", hint="inputs are JSON") from None
        if len(task) > MAX_TEXT:
            message = f"the task's text has {len(task)} characters, more than {MAX_TEXT}"
            raise InvalidError.of("AKF-F701", message, hint="hand large inputs over as files")
        if task.lstrip().startswith("{"):
            return self.read(task.encode("utf-8", "surrogatepass"), "task")
        return Graph(tuple(Node(f"n{number}", role, task) for number, role in enumerate(self.roles, 1)))

    def read(self, data: bytes, file: str) -> Graph:
        """The graph of a file's bytes.

        Raises:
            InvalidError: it is none; with every problem and its place in the file.
        """
        document = parse(data, file)
        return self.checked(document.value, document)

    def checked(self, value: Any, document: Document | None = None) -> Graph:
        """The graph of a form that was read already.

        Raises:
            InvalidError: it is none; with every problem.
        """
        found = form.Faults()
        graph = form.read(value, found)
        if graph is not None:
            edges.check(graph, found)
        if found or graph is None:
            raise InvalidError(_problems(found, document))
        return graph


def _problems(found: form.Faults, document: Document | None) -> list[Problem]:
    problems = []
    if document is not None:
        document.prefetch(fault.pointer for fault in found)
    for fault in found[: form.SHOWN]:
        line, column = document.locate(fault.pointer) if document is not None else (None, None)
        file = document.file if document is not None else None
        message = printable(fault.message)
        problems.append(Problem(fault.code, message, file, fault.pointer, line, column, hint=fault.hint))
    if len(found) > form.SHOWN:
        problems.append(unlisted("AKF-F701", len(found) - form.SHOWN, problems[-1]))
    return problems
