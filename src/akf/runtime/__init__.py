"""The Kernel runtime: tasks as graphs of agents, run in parallel, fairly, and over crashes.

    registry = AgentRegistry()
    registry.register(Agent("analyze"))
    scheduler = Scheduler(registry)
    kernel = Kernel(Event(), Compiler(), scheduler, WorkerPool(2, scheduler, Memory()), TaskQueue())
    with kernel:
        outcome = kernel.outcome(kernel.submit({"nodes": [{"id": "n1", "action": "analyze", "input": "..."}]}))

What an agent is
    Any object with a `role` (letters, digits, dots, dashes, underscores) and one entry:

    - `async def run(self, node, context)`: runs on an event loop of the runtime's for agents. It must not block: one
      that does fails, after `Limits.block_s`.
    - `def run(self, node, context)`: runs in a thread. A thread cannot be ended: look at `context.cancelled`.
    - `execute(self, node)` instead of `run`, as in the first version.
    - `ProcessAgent(role, "package.module:function")` or `"file.py:function"`: the function gets the node, with the
      context's fields under `context`, in a process of its own, which ends with everything that it started.

    `node` is a dict of its own: `id`, `action`, `input` (each `{"$result": NODE, "path": POINTER}` in it replaced) and
    `inputs` (results of the nodes that it needs, by id). `context` is a `Context`: `task`, `node`, `role`, `tenant`,
    `attempt`, `round`, `previous` (results of a loop's last round), `key`, `cancelled`, `read(node, task=None)`,
    `charge_device(used_ns)`.

    The answer is JSON (`akf.runtime.values`), 8 MiB at most. An exception, another answer, or the node's timeout fails
    the node: it is tried again as often as `attempts` says, then its dependants are skipped and its siblings go on.
    A node may run again after a crash, and completes once: `context.key` tells that it is the same.

How agents come
    `registry.register(agent)`, or `registry.load(origin)` with `entry:NAME` of the entry-point group `akf.agents`, a
    module's name, or a path to a `.py` file; `:name` behind the last two chooses. It gives an agent, a list of them, or
    a function that returns either; of a whole module, its `agents`. Load it again to replace it, `unload(role)` to end.

Read `graph` and `form` for what a graph may say, `state` for what follows from events, `engine` for what happens when,
`hub` for its loop, `chronicle` for what is told.
"""

from akf.runtime.agent import Agent, Context, ProcessAgent
from akf.runtime.compiler import Compiler
from akf.runtime.events import Event, Reader, Record
from akf.runtime.graph import Graph, Loop, Node
from akf.runtime.journal import Journal
from akf.runtime.kernel import Kernel
from akf.runtime.limits import Limits
from akf.runtime.memory import Memory
from akf.runtime.queue import QueueFull, TaskQueue
from akf.runtime.registry import AgentRegistry
from akf.runtime.scheduler import Scheduler
from akf.runtime.task import Outcome, Results
from akf.runtime.worker import Worker, WorkerPool

__all__ = [
    "Agent",
    "AgentRegistry",
    "Compiler",
    "Context",
    "Event",
    "Graph",
    "Journal",
    "Kernel",
    "Limits",
    "Loop",
    "Memory",
    "Node",
    "Outcome",
    "ProcessAgent",
    "QueueFull",
    "Reader",
    "Record",
    "Results",
    "Scheduler",
    "TaskQueue",
    "Worker",
    "WorkerPool",
]
