"""Namespaces: the kernel's calls for them, each safe between fork and exec; a user namespace for a program
that refuses to run as root; and a network of Dyno's own for the nodes of a cluster.

As root each node has a network namespace of its own, and a bridge in one more joins them. Open files of Dyno
hold them all, so the kernel takes them back however Dyno ends, and the host's own network has nothing of
them. Without root, nodes meet on addresses of the loopback, and none can be cut off.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from dbdyno.errors import Blocked
from dbdyno.host.process import refusal

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
CLONE_NEWIPC = 0x08000000
MS_NOSUID, MS_NODEV = 2, 4
MS_BIND, MS_REC, MS_PRIVATE, MS_SLAVE, MS_SHARED = 0x1000, 0x4000, 0x40000, 0x80000, 0x100000
MOUNT_ATTR_RDONLY = 1
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Moves the calling thread into namespaces of its own (unshare(2)). Raises OSError where it may not."""
    if _LIBC.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def enter(descriptor: int, kind: int) -> None:
    """Moves the calling thread into the namespace of that kind which an open file stands for (setns(2)).
    Raises OSError where it may not."""
    if _LIBC.setns(descriptor, kind) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def mount(source: bytes, point: bytes, kind: bytes | None, flags: int) -> None:
    """mount(2) without options of the file system. Raises OSError where it fails."""
    if _LIBC.mount(source, point, kind, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")


def set_attributes(point: bytes, on: int, off: int, *, recursive: bool = False) -> None:
    """Switches attributes of a mount on and off, with those of all mounts below it if `recursive`
    (mount_setattr(2), Linux 5.12). Raises OSError where it fails."""
    attributes = struct.pack("=QQQQ", on, off, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    if _LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, point, flags, attributes, len(attributes)) != 0:
        raise OSError(ctypes.get_errno(), "mount_setattr")


def map_user(inside: int, outside: int, group_inside: int, group_outside: int) -> None:
    """Gives the user and the group of the calling process numbers in its new user namespace
    (user_namespaces(7))."""
    for name, text in (
        ("setgroups", b"deny"),
        ("uid_map", f"{inside} {outside} 1".encode()),
        ("gid_map", f"{group_inside} {group_outside} 1".encode()),
    ):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(descriptor, text)
        os.close(descriptor)


SEEN = Path("/dev/volume.img")
"""Where the program finds its file."""
HARMLESS = ("null", "zero", "random", "urandom")
MAY_BE_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL)


def seclude(file: Path) -> Callable[[], None]:
    """For `before_exec`: the program sees `file` as SEEN, in a /dev that holds no device but null, zero and
    random, and all else read-only (mount_setattr(2), Linux 5.12). The step raises OSError without the right.
    """
    own = os.fsencode(file.resolve())

    def enter() -> None:
        unshare(CLONE_NEWNS)
        mount(b"none", b"/", None, MS_REC | MS_PRIVATE)
        # Opened before the folder is covered, and bound from there.
        held = {os.fsencode(SEEN): os.open(own, os.O_PATH)}
        held |= {f"/dev/{name}".encode(): os.open(f"/dev/{name}", os.O_PATH) for name in HARMLESS}
        mount(b"tmpfs", b"/dev", b"tmpfs", 0)
        for point, descriptor in held.items():
            os.close(os.open(point, os.O_CREAT | os.O_WRONLY, 0o600))
            mount(f"/proc/self/fd/{descriptor}".encode(), point, None, MS_BIND)
            os.close(descriptor)
        try:
            set_attributes(b"/", MOUNT_ATTR_RDONLY, 0, recursive=True)
            set_attributes(os.fsencode(SEEN), 0, MOUNT_ATTR_RDONLY)
        except OSError as refused:
            # Where the kernel cannot, /dev alone is closed off.
            if refused.errno not in MAY_BE_MISSING:
                raise

    return enter


ACCOUNTS = Path("/etc/passwd")


def step_down(factor: str, program: str) -> tuple[Callable[[], None], ...]:
    """Steps for `before_exec` after which `program` is not root; none when Dyno is not root itself.

    In the namespace Dyno's user has the number of another account of this machine. A change to that account
    would take the right to Dyno's files away. Raises Blocked, for `factor`, where this cannot be done.
    """
    if os.getuid() != 0:
        return ()
    user = _another_user()
    if user is None:
        raise Blocked(
            factor,
            f"{program} refuses to run as root, and {ACCOUNTS} holds no other account",
            "run Dyno as an ordinary user, or add an account: useradd --system dyno",
        )
    step = _entering(user)
    refused = refusal(step)
    if refused:
        reason, hint = _explained(refused)
        raise Blocked(factor, f"{program} refuses to run as root, and {reason}", hint)
    return (step,)


def _another_user() -> int | None:
    """The smallest number above root's of an account. A program may look up its account by the number."""
    try:
        lines = ACCOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    numbers = [fields[2] for line in lines if len(fields := line.split(":")) == 7]
    return min((int(one) for one in numbers if one.isdecimal() and int(one) > 0), default=None)


def _entering(user: int) -> Callable[[], None]:
    def enter() -> None:
        unshare(CLONE_NEWUSER)
        map_user(user, 0, user, 0)

    return enter


def _explained(refused: int) -> tuple[str, str]:
    """Why the kernel refuses a user namespace, and what would allow it (unshare(2))."""
    if refused in (errno.ENOSPC, errno.EUSERS):
        return (
            "this machine has reached its limit of user namespaces",
            "raise it: sysctl user.max_user_namespaces=1000; or run Dyno as an ordinary user",
        )
    if refused == errno.EPERM:
        return (
            "the kernel refuses user namespaces here, as it does in a chroot",
            "run Dyno as an ordinary user, or in a container or after pivot_root instead of in a chroot",
        )
    return f"the kernel offers no user namespace: {os.strerror(refused)}", "run Dyno as an ordinary user"


FACTOR = "cluster.nodes"
"""The factor that asks for such a network."""
PREFIX, BITS = "10.98.0", 24
LOOPBACK = "127.0.98"
BRIDGE, LINK = "nodes", "eth0"


class NetworkSegment:
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
