"""Which process listens at an address of this host."""

from __future__ import annotations

import socket
import struct
from functools import partial
from pathlib import Path

import psutil

from dbdyno.host.kernel_files import Unreadable, by_psutil

PEER = struct.Struct("3i")
"""The process, user and group that SO_PEERCRED tells (unix(7))."""
CONNECT_S = 5.0


def at_socket(path: Path) -> int | None:
    """The process that listens on a socket file; None where none does, or where it hides."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(str(path))
        except OSError:
            return None
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
    process_id: int = PEER.unpack(told)[0]
    return process_id or None


def at_port(port: int) -> int | None:
    """The process that listens on a TCP port; None where none does, or where the kernel hides it from this
    user."""
    try:
        connections = by_psutil(partial(psutil.net_connections, "tcp"), "/proc/net/tcp")
    except (psutil.AccessDenied, Unreadable):
        return None
    listening = (
        each.pid
        for each in connections
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid
    )
    # A server's own processes share its socket; the first of them is the oldest.
    return min(listening, default=None)


def is_here(host: str) -> bool:
    """Whether a name of a host stands for this one."""
    return host in ("", "localhost", "::1", socket.gethostname()) or host.startswith("127.")
