"""Runs in the child, for one untimed call: which exceptions were raised in the candidate's frames and did not come out.

Invariants:
- Only meaningful for a call that returned: then every exception that a frame of the candidate has seen was swallowed.
- Iteration, attribute and item protocols are not exceptions of that kind; an explicit `raise StopIteration` outside
  of `__next__` is.
- Frames of the standard library and of installed packages are not the candidate's; code from `exec` is, and so is
  where a thread or a task of the library keeps what its function raised.
- Who switches the watch off, or sets one of its own, has `tampered`. `sys.gettrace` does not show the watch.

Python 3.12 and later tell by `sys.monitoring`, earlier ones by `sys.settrace`. Self-contained: it is sent to the
child as text and imports the standard library only.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from typing import Any

_MOST = 20
_RAISE = dis.opmap["RAISE_VARARGS"]
_LEAVES = {dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE") if name in dis.opmap}
_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)
_PROTOCOL: dict[str, tuple[type[BaseException], ...]] = {
    "__getattr__": (AttributeError,),
    "__getattribute__": (AttributeError,),
    "__get__": (AttributeError,),
    "__getitem__": (IndexError, KeyError),
    "__missing__": (KeyError,),
    "__next__": _ITERATION,
    "__anext__": _ITERATION,
}
_GENERATED = ("<frozen ", "<__array_function__", "<akf_child ")
_BOUNDARIES = {
    "run": ("threading.py", "concurrent/futures/thread.py"),
    "worker": ("multiprocessing/pool.py",),
    "_run": ("asyncio/events.py",),
}
_SWITCHES = frozenset(("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"))


class Watch:
    """Collects what was swallowed between `start` and `stop`."""

    def __init__(self, installed: tuple[str, ...], root: str) -> None:
        self._installed = installed
        self._root = root
        self._known: dict[str, bool] = {}
        self._pending: dict[int, tuple[Any, int, BaseException]] = {}
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._gettrace = sys.gettrace
        self._getframe = sys._getframe  # noqa: SLF001 - the way to who asked
        self._active = False
        self.tampered = False
        self.found: list[dict[str, Any]] = []
        sys.addaudithook(self._audited)

    def start(self) -> None:
        """Watch from here on, threads that are started included."""
        if self._monitoring is None:
            sys.gettrace = lambda: None
            threading.settrace(self._called)
            sys.settrace(self._called)
            self._active = True
            return
        events, tool = self._monitoring.events, self._monitoring.PROFILER_ID
        self._monitoring.use_tool_id(tool, "")
        handlers: list[tuple[int, Callable[..., None]]] = [
            (events.RAISE, self._raised),
            (events.RERAISE, self._raised),
            (events.EXCEPTION_HANDLED, self._handled),
        ]
        for event, handler in handlers:
            self._monitoring.register_callback(tool, event, handler)
        self._monitoring.set_events(tool, events.RAISE | events.RERAISE | events.EXCEPTION_HANDLED)
        self._active = True

    def stop(self) -> None:
        """Watch no longer."""
        self._active = False
        if self._monitoring is None:
            self.tampered |= self._gettrace() != self._called
            sys.gettrace = self._gettrace
            sys.settrace(None)
            threading.settrace(None)
            return
        if self._monitoring.get_tool(self._monitoring.PROFILER_ID) is None:
            self.tampered = True
            return
        self.tampered |= not self._monitoring.get_events(self._monitoring.PROFILER_ID)
        self._monitoring.set_events(self._monitoring.PROFILER_ID, 0)
        self._monitoring.free_tool_id(self._monitoring.PROFILER_ID)

    def _audited(self, event: str, arguments: Any) -> None:
        """An audit hook cannot be taken away. The library's own use, for a thread that starts, is no offence."""
        del arguments
        if self._active and event in _SWITCHES and self._own(self._getframe(1).f_code):
            self.tampered = True

    def _own(self, code: Any) -> bool:
        name: str = code.co_filename
        if name.endswith(_BOUNDARIES.get(code.co_name, ())):
            return True
        known = self._known.get(name)
        if known is None:
            inside = name.startswith(self._root)
            known = self._known[name] = inside or not name.startswith((*self._installed, *_GENERATED))
        return known

    def _note(self, code: Any, line: int, error: BaseException) -> None:
        where = {"exception": type(error).__name__[:80], "function": code.co_name[:80], "line": line}
        if len(self.found) < _MOST and where not in self.found:
            self.found.append(where)

    def _seen(self, code: Any, line: int, offset: int, error: BaseException) -> bool:
        """One frame of the candidate has an exception. Returns whether a protocol excuses it if it leaves."""
        allowed = _PROTOCOL.get(code.co_name, ())
        if issubclass(type(error), allowed):
            return True
        if issubclass(type(error), _ITERATION) and not (
            0 <= offset < len(code.co_code) and code.co_code[offset] == _RAISE
        ):
            return False
        self._note(code, line, error)
        return False

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        """For settrace: follow the candidate's frames only."""
        del argument
        if event != "call" or not self._own(frame.f_code):
            return None
        frame.f_trace_lines = False
        return self._followed

    def _followed(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "exception":
            error = argument[1] if isinstance(argument[1], BaseException) else argument[0]()
            if self._seen(frame.f_code, frame.f_lineno, frame.f_lasti, error):
                self._pending[id(frame)] = (frame, frame.f_lineno, error)
        elif event == "return" and id(frame) in self._pending:
            _, line, error = self._pending.pop(id(frame))
            if frame.f_code.co_code[frame.f_lasti] in _LEAVES:  # it returned: the exception stayed inside
                self._note(frame.f_code, line, error)
        return self._followed

    def _raised(self, code: Any, offset: int, error: BaseException) -> None:
        """For monitoring."""
        if self._own(code):
            self._seen(code, _line(code, offset), offset, error)

    def _handled(self, code: Any, offset: int, error: BaseException) -> None:
        if self._own(code) and issubclass(type(error), _PROTOCOL.get(code.co_name, ())):
            self._note(code, _line(code, offset), error)


def _line(code: Any, offset: int) -> int:
    return next((line or 0 for start, end, line in code.co_lines() if start <= offset < end), 0)
