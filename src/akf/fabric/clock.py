"""Clocks that nobody can set.

Invariants:
- Whatever is counted in seconds (a lease's time, an age) goes by the boot clock.
- A time of day that is compared later is the wall clock's when this process began, gone on by the boot clock: a wall
  clock that is set meanwhile makes nothing older or younger.
"""

from __future__ import annotations

import time


def boot_clock() -> float:
    """Seconds since the machine was started, also while it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_BEGUN = time.time() - boot_clock()


def unix_time() -> float:
    """Seconds since 1970, steady while this process lives."""
    return _BEGUN + boot_clock()
