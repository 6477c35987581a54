"""The first version's program on the runtime, unchanged but for its imports."""

from akf.runtime import Agent, AgentRegistry, Compiler, Event, Kernel, Memory, Scheduler, TaskQueue, WorkerPool

event = Event()
queue = TaskQueue()
compiler = Compiler()
memory = Memory()
registry = AgentRegistry()
registry.register(Agent("analyze"))
registry.register(Agent("generate"))
scheduler = Scheduler(registry)
worker_pool = WorkerPool(2, scheduler, memory)
kernel = Kernel(event, compiler, scheduler, worker_pool, queue)
kernel.submit("analyze AI system")
print(kernel.run_once())
