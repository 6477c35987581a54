"""Who answers to which role, now and while it changes.

Invariants:
- A role has one agent at a time. Replacing is one step: a node gets the old version or the new one, never none.
- A node finishes on the version that it started with; a version that is replaced or unloaded is let go when its last
  node has ended, and its module with it.
- All agents of a plug-in take their roles together, or none does and the old ones go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from akf.contracts.problems import AkfError, ConflictError, InvalidError, UsageError
from akf.contracts.text import did_you_mean, show
from akf.runtime import plugins
from akf.runtime.agent import Carrier, entry_of

Listener = Callable[[str, dict[str, Any]], None]


class Version:
    """One agent as it was registered, and how many nodes run on it."""

    __slots__ = ("agent", "carrier", "entry", "number", "origin", "retired", "role", "running")

    def __init__(self, agent: Any, carrier: Carrier, entry: Any, origin: Origin | None) -> None:
        self.agent: Any = agent
        self.role: str = agent.role
        self.carrier = carrier
        self.entry = entry
        self.origin = origin
        self.number = 0
        self.running = 0
        self.retired = False


class Origin:
    """A plug-in with the versions that came of it."""

    __slots__ = ("alive", "plugin")

    def __init__(self, plugin: plugins.Plugin) -> None:
        self.plugin = plugin
        self.alive = len(plugin.agents)


class AgentRegistry:
    """Agents by role."""

    def __init__(self) -> None:
        self._versions: dict[str, Version] = {}
        self._numbers: dict[str, int] = {}
        self._draining: set[Version] = set()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._loading = threading.Lock()
        self._listeners: list[Listener] = []

    @property
    def agents(self) -> dict[str, Any]:
        """The agents by role."""
        with self._lock:
            return {role: version.agent for role, version in self._versions.items()}

    def register(self, agent: Any) -> None:
        """Let an agent answer to its role, instead of whoever did.

        Raises:
            InvalidError: it is no agent.
        """
        self._install([Version(agent, *entry_of(agent), None)], ())

    def get(self, role: str) -> Any:
        """The agent of a role, or None."""
        version = self._versions.get(role)
        return None if version is None else version.agent

    def load(self, origin: str) -> list[str]:
        """Load a plug-in, or load it again; returns its roles.

        Raises:
            InvalidError: it is not there, fails, or gives no agents; whoever served goes on.
        """
        with self._loading:
            try:
                plugin = plugins.load(origin, lambda agents: _check(agents, origin))
            except AkfError as error:
                self._tell("agent_refused", {"origin": origin, "problem": error.problems[0].message})
                raise
            source = Origin(plugin)
            versions = [Version(each, *entry_of(each), source) for each in plugin.agents]
            with self._lock:
                roles = {version.role for version in versions}
                old = [v for v in self._versions.values() if v.origin is not None and v.origin.plugin.origin == origin]
            self._install(versions, [version.role for version in old if version.role not in roles])
            return sorted(roles)

    def discover(self) -> list[str]:
        """Load every installed plug-in; returns their roles. One that is refused is passed over and told of."""
        roles = []
        for name in sorted(plugins.entry_points()):
            try:
                roles += self.load(f"entry:{name}")
            except InvalidError:
                continue  # its refusal is an event
        return roles

    def unload(self, role: str, wait_s: float | None = None) -> None:
        """Let nobody answer to a role any more, and wait until its last node has ended.

        Raises:
            UsageError: nobody does.
            ConflictError: a node still runs when the time is over; its version goes when it ends.
        """
        with self._lock:
            version = self._versions.pop(role, None)
            if version is None:
                raise self.unknown(role)
            self._retire(version)
        self._tell("agent_unloaded", {"role": role, "version": version.number})
        with self._lock:
            if not self._changed.wait_for(lambda: version not in self._draining, wait_s):
                message = f"{version.running} nodes still run on {role}"
                raise ConflictError.of("AKF-C703", message, hint="it is let go when they end; give them a timeout")

    def acquire(self, role: str) -> Version | None:
        """The version that a node starts on; `release` it."""
        with self._lock:
            version = self._versions.get(role)
            if version is not None:
                version.running += 1
            return version

    def acquire_again(self, version: Version) -> None:
        """One more node on a version that one runs on."""
        with self._lock:
            version.running += 1

    def release(self, version: Version) -> None:
        """A node has ended."""
        with self._lock:
            version.running -= 1
            if version.retired and not version.running:
                self._drop(version)

    def listen(self, listener: Listener) -> None:
        """Be told of every change, on the thread that makes it."""
        self._listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        """Be told no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def unknown(self, role: str) -> UsageError:
        """The refusal of a role that nobody answers to."""
        known = sorted(self._versions)
        near = did_you_mean(role, known)
        listed = f"known are {', '.join(known[:20])}" if known else "none is registered"
        hint = f"did you mean {near}? {listed}" if near else listed
        return UsageError.of("AKF-U702", f"no agent has the role {show(role)}", found=role, hint=hint)

    def _install(self, versions: Sequence[Version], gone: Sequence[str]) -> None:
        told = []
        with self._lock:
            for version in versions:
                old = self._versions.get(version.role)
                version.number = self._numbers[version.role] = self._numbers.get(version.role, 0) + 1
                self._versions[version.role] = version
                if old is not None:
                    self._retire(old)
                told.append(("agent_replaced" if old is not None else "agent_loaded", version.role, version.number))
            for role in gone:
                old = self._versions.pop(role)
                self._retire(old)
                told.append(("agent_unloaded", role, old.number))
        for kind, role, number in told:
            self._tell(kind, {"role": role, "version": number})

    def _retire(self, version: Version) -> None:
        version.retired = True
        if version.running:
            self._draining.add(version)
        else:
            self._drop(version)

    def _drop(self, version: Version) -> None:
        """Keep nothing of a version: its agent, and its module with the last one of its plug-in."""
        self._draining.discard(version)
        version.agent = version.entry = None
        if version.origin is not None:
            version.origin.alive -= 1
            if not version.origin.alive:
                plugins.unload(version.origin.plugin)
            version.origin = None
        self._changed.notify_all()

    def _tell(self, kind: str, data: dict[str, Any]) -> None:
        for listener in list(self._listeners):
            listener(kind, data)


def _check(agents: Sequence[Any], origin: str) -> None:
    for agent in agents:
        entry_of(agent)
    roles = [agent.role for agent in agents]
    twice = sorted({role for role in roles if roles.count(role) > 1})
    if twice:
        hint = "give each agent a role of its own"
        raise InvalidError.of("AKF-F706", f"plug-in {show(origin)}: two agents have the role {twice[0]}", hint=hint)
