"""The execution fabric: where packages run, on devices that one holder has at a time.

Read `interface` first: it is what the one machine, a remote one and Ray have in common.
"""

from akf.fabric.interface import OUTCOMES, Outcome, WorkerInterface

__all__ = ["OUTCOMES", "Outcome", "WorkerInterface"]
