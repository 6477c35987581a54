"""Agents that make candidates, and the jobs that they work in.

An agent is untrusted. It reaches the control plane as anyone does: through files and the command line. What it answers
is data, what it costs is metered, and what it makes passes the same checks as a stranger's files.

Read `limits` first, then `files`, `trial`, and an agent, say `tuner`.
"""

from typing import Any

__all__ = ["KernelTask", "Task"]


def __getattr__(name: str) -> Any:
    """`KernelTask` and its alias `Task`, when they are asked for."""
    if name in __all__:
        from akf.agents.kernel_task import KernelTask  # noqa: PLC0415

        return KernelTask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
