"""A fault at one system call of a process, by ptrace(2): a signal as it begins, or an error in its place.

Children of the process are followed, so a call of mount(8) counts like one of Dyno's own. Calls are counted
from the moment at which the process stops itself (`stop_for_tracer`).
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from errno import ENOSPC

WALL = 0x40000000
TRACEME, POKEUSER, CONT, SYSCALL = 0, 6, 7, 24
SETOPTIONS, GET_EVENT, GET_SYSCALL_INFO = 0x4200, 0x4201, 0x420E
FORKED = (1, 2, 3)
"""The events of fork, vfork and clone."""
OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x100000
"""Marked system calls, followed forks of three kinds, and an end of all with this process."""
ORIGINAL_RAX, RAX = 15 * 8, 10 * 8
ENTERED, LEFT = 1, 2
OPENAT = 257
FSYNC, FDATASYNC = 74, 75
FULL = (1, 18, 20, 74, 75, 82, 83, 258, 285, 296)
"""write, pwrite64, writev, fsync, fdatasync, rename, mkdir, mkdirat, fallocate, pwritev: a full disk fails
them, and an openat that makes a file."""
MACHINE = "x86_64"
"""How a call is made to fail is written for this one."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.restype = ctypes.c_long
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def stop_for_tracer() -> None:
    """Called by the child: it is traced from here on."""
    _LIBC.ptrace(TRACEME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)


@dataclass
class Traced:
    """What became of a process and its children. `full` says for each call whether a full disk could fail
    it, and `numbers` which call it was."""

    full: list[bool] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    struck: bool = False


def trace(process_id: int, at: int, fault: str, striking: Callable[[], object]) -> Traced:
    """Runs a child that stops itself, to its end and that of all that it starts, with a fault at the call of
    that number. `striking` is called just before; -1 for no fault."""
    traced, living, failing = Traced(), {process_id}, 0
    os.waitpid(process_id, WALL)
    _LIBC.ptrace(SETOPTIONS, process_id, None, OPTIONS)
    _LIBC.ptrace(SYSCALL, process_id, None, None)
    while living:
        stopped, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            living.discard(stopped)
            continue
        sent = os.WSTOPSIG(status)
        if sent == signal.SIGTRAP | 0x80:
            sent = 0
            how, number, full = _call(stopped)
            if how == ENTERED and not traced.struck:
                traced.full.append(full)
                traced.numbers.append(number)
                if len(traced.full) - 1 == at:
                    traced.struck = True
                    striking()
                    if fault == "full":
                        failing = stopped
                        _LIBC.ptrace(POKEUSER, stopped, ORIGINAL_RAX, 2**64 - 1)
                    else:
                        os.kill(process_id, signal.SIGKILL if fault == "kill" else signal.SIGINT)
            elif how == LEFT and failing == stopped:
                failing = 0
                _LIBC.ptrace(POKEUSER, stopped, RAX, 2**64 - ENOSPC)
        elif status >> 16 in FORKED:
            # A child whose parent dies now has not shown itself yet, and would stand still for ever.
            living.add(_child_of(stopped))
            sent = 0
        elif status >> 16 or sent == signal.SIGSTOP:
            sent = 0
        living.add(stopped)
        # Nothing but the end of a call that fails is of interest after the fault.
        onward = SYSCALL if not traced.struck or failing else CONT
        _LIBC.ptrace(onward, stopped, None, sent)
    return traced


def _child_of(process_id: int) -> int:
    """The process that one has just made."""
    answer = ctypes.c_ulong()
    _LIBC.ptrace(GET_EVENT, process_id, None, ctypes.addressof(answer))
    return answer.value


def _call(process_id: int) -> tuple[int, int, bool]:
    """Whether a process enters or leaves a call, which one, and whether a full disk could fail it."""
    answer = ctypes.create_string_buffer(88)
    _LIBC.ptrace(GET_SYSCALL_INFO, process_id, len(answer), ctypes.addressof(answer))
    number, _, _, flags = struct.unpack_from("=QQQQ", answer, 24)
    return answer.raw[0], number, number in FULL or (number == OPENAT and bool(flags & os.O_CREAT))
