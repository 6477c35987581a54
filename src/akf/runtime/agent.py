"""What an agent is, and what it is told beside its node.

Invariants:
- An agent has a `role` and one entry: `run(node, context)`, or `execute(node)` as in the first version. `async def`
  runs on an event loop of the runtime's, a plain function in a thread, a `ProcessAgent` in a process of its own.
- A node is a new dict for each call: `id`, `action`, `input` (references replaced by results) and `inputs` (the results
  of its needs, by id). What an agent does to it changes nothing else.
- What is no agent is refused when it is registered, with everything that is wrong.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from typing import Any, Literal

from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import show

Carrier = Literal["async", "thread", "process"]
MEMORY_BYTES = 4 * 1024**3
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")


class Agent:
    """The seed's agent: says what it was asked. Others inherit or just look alike."""

    def __init__(self, role: str) -> None:
        self.role = role

    def execute(self, node: dict[str, Any]) -> Any:
        """Answer a node."""
        return f"[{self.role}] -> {node['action']} :: {node['input']}"


class ProcessAgent:
    """An agent whose code runs in a process of its own, one for each node, and is imported nowhere else.

    For code that holds the interpreter, may crash, leaks or cannot be interrupted: with its time or its task it ends,
    together with every process that it started.

    Args:
        role: what it answers to.
        target: `package.module:function` or `/folder/file.py:function`; the function takes the node, and is plain.
        memory_bytes: most memory that the process, and each that it starts, may have as address space; None is no
            limit.
    """

    def __init__(self, role: str, target: str, memory_bytes: int | None = MEMORY_BYTES) -> None:
        self.role = role
        self.target = target
        self.memory_bytes = memory_bytes


class Context:
    """What an agent is told beside its node, and what it may ask of the runtime.

    Attributes:
        task: id of the task.
        node: id of the node.
        role: what the agent was called for.
        tenant: whose task it is.
        attempt: 1 for the first, counted up by retries.
        round: 1 for the first round of the node's loop, and for nodes of no loop.
        previous: in a loop, the results of the round before, by node; else empty.
    """

    __slots__ = (
        "_cancelled", "_device_ns", "_read", "attempt", "node", "previous", "role", "round", "task", "tenant",
    )  # fmt: skip

    def __init__(
        self,
        task: str,
        node: str,
        role: str,
        tenant: str,
        attempt: int,
        round_: int,
        previous: dict[str, Any],
        read: Callable[..., Any],
    ) -> None:
        self.task = task
        self.node = node
        self.role = role
        self.tenant = tenant
        self.attempt = attempt
        self.round = round_
        self.previous = previous
        self._read = read
        self._device_ns = 0
        self._cancelled: threading.Event | None = None

    @property
    def key(self) -> str:
        """Names this node in this round: the same when it is run again after a crash."""
        return f"{self.task}/{self.node}/{self.round}"

    @property
    def cancelled(self) -> bool:
        """Whether the time is over or the task was cancelled; a plain function that runs long looks here."""
        return self._cancelled is not None and self._cancelled.is_set()

    def read(self, node: str, task: str | None = None) -> Any:
        """The latest result of a node: of this task, or of another one by its id.

        Raises:
            KeyError: there is none.
        """
        return self._read(node, self.task if task is None else task)

    def charge_device(self, used_ns: int) -> None:
        """Count time for which a device was leased: it is run time of the tenant, as the node's own is."""
        if used_ns < 0:
            raise ValueError("a device is used for some time")
        self._device_ns += used_ns


def entry_of(agent: Any) -> tuple[Carrier, Any]:
    """How an agent is run: by what, and the function that takes node and context, or the `ProcessAgent`.

    Raises:
        InvalidError: it is no agent.
    """
    problems = []
    role = getattr(agent, "role", None)
    if not isinstance(role, str) or not _ROLE.match(role):
        expected = "a letter, then letters, digits, dots, dashes and underscores, 64 at most"
        problems.append(_problem(f"its role is {show(role) if isinstance(role, str) else repr(role)[:80]}", expected))
    if isinstance(agent, ProcessAgent):
        if agent.target.count(":") != 1 or not all(agent.target.split(":")):
            problems.append(
                _problem(f"its target is {show(agent.target)}", "package.module:function or file.py:function")
            )
        if problems:
            raise InvalidError(problems)
        return "process", agent
    run, execute = getattr(agent, "run", None), getattr(agent, "execute", None)
    entry, count = (run, 2) if callable(run) else (execute, 1)
    if inspect.isclass(agent):
        problems.append(_problem("it is a class", "an object: call the class"))
    elif not callable(entry):
        problems.append(_problem("it has neither run nor execute", "run(node, context) or execute(node)"))
    elif not _takes(entry, count):
        name = "run(node, context)" if count == 2 else "execute(node)"  # noqa: PLR2004
        problems.append(_problem("its entry takes other arguments", name))
    if problems:
        raise InvalidError(problems)
    assert callable(entry)  # noqa: S101 - a problem otherwise
    carrier: Carrier = "async" if inspect.iscoroutinefunction(entry) else "thread"
    if count == 2:  # noqa: PLR2004
        return carrier, entry
    return carrier, _without_context(entry)


def _without_context(execute: Callable[..., Any]) -> Callable[..., Any]:
    def run(node: dict[str, Any], context: Context) -> Any:
        del context
        return execute(node)

    return run


def _takes(entry: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(entry).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


def _problem(message: str, expected: str) -> Problem:
    return Problem("AKF-F707", f"this is no agent: {message}", expected=expected, hint=f"an agent needs {expected}")
