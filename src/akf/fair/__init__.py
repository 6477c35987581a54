"""Fair shares of time between tenants, as Linux's CFS gives them: by weight, and nobody starves.

Read `weights` first, then `share`, which decides whose turn it is, then `queue`, which holds what waits. All of it is
pure: no clock, no thread, the same calls give the same answers. Whoever measures time says how much was used.

How to use it: `push` what waits under its tenant, `pop` what comes next, and `settle` the turn with the time it really
took (on several workers or devices at once, each item is a turn of its own).
"""

from akf.fair.queue import FairQueue
from akf.fair.share import LATENCY_NS, FairShare, Turn
from akf.fair.weights import NICE_RANGE, WEIGHTS, weight

__all__ = ["LATENCY_NS", "NICE_RANGE", "WEIGHTS", "FairQueue", "FairShare", "Turn", "weight"]
