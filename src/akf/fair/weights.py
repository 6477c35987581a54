"""What a nice value weighs.

Invariants:
- The table is that of the Linux kernel (`sched_prio_to_weight` in kernel/sched/core.c): nice 0 weighs 1024, and a step
  is a factor of about 1.25, so that of two busy jobs a step apart one gets about 55 % and the other 45 %.
- A nice value outside -20 to 19 is refused, never clamped.
"""

from akf.contracts.problems import UsageError
from akf.contracts.text import show

NICE_RANGE = range(-20, 20)
UNIT = 1024
"""The weight of nice 0."""
WEIGHTS = (
    88761, 71755, 56483, 46273, 36291,
    29154, 23254, 18705, 14949, 11916,
    9548, 7620, 6100, 4904, 3906,
    3121, 2501, 1991, 1586, 1277,
    1024, 820, 655, 526, 423,
    335, 272, 215, 172, 137,
    110, 87, 70, 56, 45,
    36, 29, 23, 18, 15,
)  # fmt: skip
"""By nice value, from -20 to 19."""


def weight(nice: int) -> int:
    """The weight of a nice value.

    Raises:
        UsageError: it is no whole number from -20 to 19.
    """
    if isinstance(nice, bool) or not isinstance(nice, int) or nice not in NICE_RANGE:
        message = f"a nice value of {show(str(nice))} is none"
        hint = "a whole number from -20, which gets most, to 19; 0 is ordinary"
        raise UsageError.of("AKF-U700", message, expected="-20 to 19", found=str(nice), hint=hint)
    return WEIGHTS[nice - NICE_RANGE.start]
