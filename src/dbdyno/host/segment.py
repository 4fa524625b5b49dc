"""A network of Dyno's own for the nodes of a cluster: nobody else is on it, and a node can be cut off.

As root each node has a network namespace of its own, and a bridge in one more joins them. Open files of Dyno
hold them all, so the kernel takes them back however Dyno ends, and the host's own network has nothing of
them. Without root, nodes meet on addresses of the loopback, and none can be cut off.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from dbdyno.errors import Blocked
from dbdyno.host.namespaces import CLONE_NEWNET, enter, unshare

FACTOR = "cluster.nodes"
"""The factor that asks for such a network."""
PREFIX, BITS = "10.98.0", 24
LOOPBACK = "127.0.98"
BRIDGE, LINK = "nodes", "eth0"


class Segment:
    """The network of so many nodes, which count from 1. Raises Blocked where the kernel gives none."""

    def __init__(self, count: int) -> None:
        self._files: list[int] = []
        self.separate = os.getuid() == 0
        if not self.separate:
            return
        try:
            self._files = [_namespace() for _ in range(count + 1)]
            _ip(self._files[0], [f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up"])
            for node in range(1, count + 1):
                self._join(node)
        except BaseException:
            self.close()
            raise

    def address(self, node: int) -> str:
        return f"{PREFIX if self.separate else LOOPBACK}.{node}"

    @property
    def network(self) -> str:
        """The addresses of all nodes."""
        return f"{PREFIX}.0/{BITS}" if self.separate else f"{LOOPBACK}.0/{BITS}"

    def port(self, node: int, usual: int) -> int:
        """A free port at a node's address: the usual one where nobody else is on the network."""
        if self.separate:
            return usual
        with socket.socket() as probe:
            probe.bind((self.address(node), 0))
            port: int = probe.getsockname()[1]
            return port

    def entering(self, node: int) -> tuple[Callable[[], None], ...]:
        """What a process of a node does before it runs."""
        return (partial(enter, self._files[node], CLONE_NEWNET),) if self.separate else ()

    def require_cut(self) -> None:
        """Raises Blocked where nodes share the host's network."""
        if not self.separate:
            raise Blocked(FACTOR, "without root, nodes meet on the host's loopback", "run Dyno as root")

    def cut(self, node: int) -> None:
        """Takes a node off a network of its own."""
        _ip(self._files[0], [f"link set {_port(node)} down"])

    def mend(self, node: int) -> None:
        """Puts it on again."""
        _ip(self._files[0], [f"link set {_port(node)} up"])

    def close(self) -> None:
        """Gives the network back once no process is on it. May be called twice."""
        while self._files:
            with suppress(OSError):
                os.close(self._files.pop())

    def _join(self, node: int) -> None:
        there = f"/proc/{os.getpid()}/fd/{self._files[node]}"
        _ip(
            self._files[0],
            [
                f"link add {_port(node)} type veth peer name {LINK} netns {there}",
                f"link set {_port(node)} master {BRIDGE}",
                f"link set {_port(node)} up",
            ],
        )
        _ip(
            self._files[node],
            ["link set lo up", f"addr add {self.address(node)}/{BITS} dev {LINK}", f"link set {LINK} up"],
        )


def _port(node: int) -> str:
    """The bridge's end of the link to a node."""
    return f"node{node}"


def _namespace() -> int:
    """A new network namespace, as an open file. A thread of its own makes it, because its maker is in it."""
    made: list[int | OSError] = []

    def make() -> None:
        try:
            unshare(CLONE_NEWNET)
            place = f"/proc/self/task/{threading.get_native_id()}/ns/net"
            made.append(os.open(place, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        reason = f"the kernel gives no network namespace: {os.strerror(made[0].errno or 0)}"
        raise Blocked(FACTOR, reason, "run Dyno as root, outside of a container that forbids it")
    return made[0]


def _ip(namespace: int, commands: list[str]) -> None:
    """Has iproute2 carry out commands in a namespace. Raises Blocked where it cannot."""
    try:
        done = subprocess.run(
            ["ip", "-batch", "-"],
            input="".join(f"{command}\n" for command in commands),
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "PATH": os.pathsep.join(_places())},
            preexec_fn=partial(enter, namespace, CLONE_NEWNET),
        )
    except FileNotFoundError:
        reason = "the command ip, which joins the networks of nodes, is not here"
        raise Blocked(FACTOR, reason, "install it: apt-get install iproute2") from None
    if done.returncode != 0:
        last = next(iter(done.stderr.strip().splitlines()), "no reason given")
        raise Blocked(
            FACTOR, f"the nodes' network cannot be made: {last}", "the kernel needs veth and bridge"
        )


def _places() -> Iterator[str]:
    """Where commands are looked for. An ordinary user's path may lack the last ones."""
    yield os.environ.get("PATH", os.defpath)
    yield from ("/usr/sbin", "/sbin")
