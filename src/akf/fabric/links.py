"""Connections whose other side may be cut off: noticed from both sides within half a minute, not after two hours.

Invariants:
- An idle connection is probed, so that who waits for a device behind a cut link waits no more.
- What was sent and not acknowledged for that long ends the connection.
- Bytes that the other machine acknowledged have arrived there, whatever becomes of the link later.
"""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
import termios

LOST_S = 30
"""After so long without any answer a connection is lost."""
_CUT = frozenset({errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH})
_IDLE_S, _EVERY_S, _PROBES = 15, 5, 3
OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _EVERY_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_S * 1000),
)
"""For connections of a client, and for a listener, whose connections inherit them."""


def attend(connection: socket.socket) -> None:
    """Let a socket notice that it is cut off."""
    for level, name, value in OPTIONS:
        connection.setsockopt(level, name, value)


def was_cut(why: Exception) -> bool:
    """Whether a connection ended because nothing came from the other machine any more."""
    return isinstance(why, OSError) and why.errno in _CUT


def unacknowledged(connection: socket.socket) -> int:
    """How many bytes were sent that the other machine did not acknowledge."""
    (left,) = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))
    return int(left)


def forget(connection: socket.socket) -> None:
    """Let what was not acknowledged never arrive, once the connection is closed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
