"""Agents of others: from an entry point, a module or a file, and away again.

Invariants:
- An origin is `entry:NAME` (of the group `akf.agents`), `package.module`, or a path that ends in `.py`; a colon and a
  name behind a module or file choose something of it. What is found is an agent, a list of agents, or a function
  without arguments that returns either; of a whole module it is its `agents`.
- Loading executes the source that is there now, never a cached translation of it, in a new module. The old module is as
  it was until the new one is known to be good, and for ever if it is not.
- Nothing that a plug-in raises gets out as anything but a refusal that says where and why.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from akf.contracts.problems import InvalidError
from akf.contracts.text import did_you_mean, printable, show

GROUP = "akf.agents"
_MESSAGE = 500


class Plugin(NamedTuple):
    """What an origin gave."""

    origin: str
    agents: tuple[Any, ...]
    modules: dict[str, ModuleType]


def entry_points() -> dict[str, str]:
    """Installed plug-ins: names and what they point at."""
    return {each.name: each.value for each in importlib.metadata.entry_points(group=GROUP)}


def load(origin: str, check: Callable[[tuple[Any, ...]], None]) -> Plugin:
    """Execute a plug-in and take its agents.

    Args:
        origin: where it is.
        check: refuses agents that are none; the plug-in has never been loaded then.

    Raises:
        InvalidError: it is not there, fails, or gives no agents.
    """
    target = origin
    if origin.startswith("entry:"):
        known, name = entry_points(), origin.removeprefix("entry:")
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"did you mean {near}?" if near else f"installed are {', '.join(sorted(known)) or 'none'}"
            raise _refusal(origin, f"no entry point {show(name)} of the group {GROUP} is installed", hint)
        target = known[name]
    place, _, attribute = target.partition(":")
    modules: dict[str, ModuleType] = {}
    before = dict(sys.modules)
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
        own = f"{module.__name__}."
        modules = {name: each for name, each in sys.modules.items() if name == module.__name__ or name.startswith(own)}
        agents = _agents(module, attribute or "agents", origin)
        check(agents)
    except InvalidError:
        _restore(before, place)
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a stranger's module does, the runtime goes on
        _restore(before, place)
        raise _refusal(
            origin, _words(error, place), "mend it and load it again; the old version goes on serving"
        ) from None
    return Plugin(origin, agents, modules)


def unload(plugin: Plugin) -> None:
    """Let a plug-in's modules go, so far as nobody else has taken their names."""
    for name, module in plugin.modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    plugin.modules.clear()


def _from_file(path: Path) -> ModuleType:
    name = f"akf_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    if spec is None:
        raise ImportError(f"{path.name} is no Python file")
    return _execute(spec)


def _from_module(name: str) -> ModuleType:
    for known in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[known]
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ImportError(f"there is no module {name}")
    return _execute(spec)


def _execute(spec: importlib.machinery.ModuleSpec) -> ModuleType:
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if isinstance(spec.loader, importlib.machinery.SourceFileLoader) and spec.origin is not None:
        source = Path(
            spec.origin
        ).read_bytes()  # the loader would take a cached translation of the same second and size
        exec(compile(source, spec.origin, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a plug-in is code
    elif spec.loader is not None:
        spec.loader.exec_module(module)
    return module


def _agents(module: ModuleType, attribute: str, origin: str) -> tuple[Any, ...]:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            hint = "let it be an agent, a list of agents, or a function that returns them"
            raise _refusal(origin, f"there is no {show(attribute)} in it", hint)
        found = getattr(found, part)
    if callable(found) and not hasattr(found, "role"):
        found = found()
    agents = tuple(found) if isinstance(found, Iterable) and not hasattr(found, "role") else (found,)
    if not agents:
        raise _refusal(origin, "it gives no agents", "return at least one")
    return agents


def _restore(before: dict[str, ModuleType], place: str) -> None:
    name = f"akf_plugin_{Path(place).stem}" if place.endswith(".py") else place
    for known in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        if sys.modules[known] is not before.get(known):
            del sys.modules[known]
    for known, module in before.items():
        if known == name or known.startswith(f"{name}."):
            sys.modules[known] = module


def _words(error: BaseException, place: str) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"there is no file {Path(place).name}"
    lines = [
        each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename.endswith(Path(place).name)
    ]
    where = f" in line {lines[-1]}" if lines and place.endswith(".py") else ""
    if isinstance(error, SyntaxError) and error.lineno:
        where = f" in line {error.lineno}"
    return f"it fails{where} with {type(error).__name__}: {printable(str(error))[:_MESSAGE]}"


def _refusal(origin: str, message: str, hint: str) -> InvalidError:
    shown = Path(origin).name if origin.partition(":")[0].endswith(".py") else origin
    return InvalidError.of("AKF-F706", f"plug-in {show(shown)}: {message}", hint=hint)
