"""A loop in a thread of its own, and the one way onto it.

Invariants:
- What is posted from any thread is done on the loop, in order, once. The loop is woken once for many.
- What is posted after the end is done on the thread that posts: whoever waits for it is answered.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any


class Hub:
    """Runs until it is ended.

    Args:
        turned: called after each turn, when all that was posted is done.
    """

    def __init__(self, turned: Callable[[], None]) -> None:
        self.loop = asyncio.new_event_loop()
        self._turned = turned
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._called = False
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="akf-kernel", daemon=True)
        self._thread.start()

    def post(self, what: Callable[..., None], *args: Any) -> None:
        """Let something be done on the loop; from any thread."""
        self._inbox.append((what, args))
        if self._ended:
            self._rest()
        elif not self._called:
            self._called = True
            self.loop.call_soon_threadsafe(self.turn)

    def ask(self, what: Callable[..., Any], *args: Any) -> Any:
        """Let something be done on the loop and wait for its answer; from another thread."""
        future: Future[Any] = Future()
        self.post(lambda: future.set_result(what(*args)))
        return future.result()

    def turn(self) -> None:
        """Do what was posted; on the loop."""
        self._called = False
        inbox = self._inbox
        while inbox:
            what, args = inbox.popleft()
            what(*args)
        self._turned()

    def end(self, last: Coroutine[Any, Any, None]) -> None:
        """Run this to its end, then nothing more; from another thread."""
        asyncio.run_coroutine_threadsafe(last, self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self._ended = True
        self._rest()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _rest(self) -> None:
        with suppress(IndexError):
            while True:
                what, args = self._inbox.popleft()
                what(*args)
