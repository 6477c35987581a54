"""What no agent may exceed."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """What no agent may exceed.

    Attributes:
        node_s: a node's time, where the node names none.
        block_s: how long an agent may keep the agents' event loop to itself.
        absent_s: how long a node waits for its role, while nobody answers to it.
    """

    node_s: float = 3600.0
    block_s: float = 5.0
    absent_s: float = 10.0
