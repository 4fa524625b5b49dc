"""What a machine measured of its own start: two logs, and whether they explain a TPM's registers.

A register (PCR) starts at zero. Each measurement is added to it: the register becomes the SHA-256 of what it
held and of the measurement's digest. A log says which digests those were, so who adds them up again has to
arrive at the register. The firmware's log has the crypto-agile format of the TCG's "PC Client Platform
Firmware Profile", section 10. The kernel's is that of its integrity subsystem (IMA), as the kernel's
documentation of its template lays it out (Documentation/security/IMA-templates.rst).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

ZERO = bytes(32)
SHA256 = 11
"""Its number in the TCG's registry of algorithms."""
NO_ACTION = 3
"""The type of an event that is in the log alone."""
FIRST = struct.Struct("<II20sI")
"""The log's first event has the older format: register, type, digest, and how long what follows is."""
SIGNATURE = b"Spec ID Event03\0"
VIOLATION = bytes(20)
"""The kernel's digest of a file that was written while it was measured."""
LARGEST = 1 << 20
"""No part of a log is as large. A larger one is no part of it."""


@dataclass(frozen=True)
class Event:
    """One measurement: the register that it was added to, and the SHA-256 that was added."""

    register: int
    digest: bytes


@dataclass(frozen=True)
class Events:
    """Those of a log in their order. `fault` says where it cannot be read on; empty where it was read to its
    end."""

    events: tuple[Event, ...] = ()
    fault: str = ""


class _Unreadable(Exception):
    """What follows is no event."""


class _Bytes:
    """A log that is read piece by piece."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    @property
    def left(self) -> int:
        return len(self.content) - self.at

    def take(self, size: int) -> bytes:
        if size > min(LARGEST, self.left):
            raise _Unreadable(f"{size:,} bytes are said to follow, and {self.left:,} do")
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size), "little")


def firmware_events(log: bytes) -> Events:
    """Of the firmware's log. What is in the log alone is left out, because no register holds it."""
    content = _Bytes(log)
    if not log:
        return Events()
    try:
        sizes = _digest_sizes(content)
    except _Unreadable as error:
        return Events(fault=f"the log does not begin as one: {error}")
    return _read(content, lambda: _firmware_event(content, sizes))


def kernel_events(log: bytes) -> Events:
    """Of the kernel's log, from a machine whose numbers are little-endian. Every event is hashed here,
    because the log itself holds SHA-1 alone."""
    content = _Bytes(log)
    return _read(content, lambda: _kernel_event(content))


def replayed(events: Iterable[Event]) -> dict[int, bytes]:
    """The registers that the events add up to, by number. Those without an event are not among them."""
    registers: dict[int, bytes] = {}
    for event in events:
        held = registers.get(event.register, ZERO)
        registers[event.register] = hashlib.sha256(held + event.digest).digest()
    return registers


def unexplained(events: Iterable[Event], registers: Mapping[int, bytes]) -> tuple[int, ...]:
    """The registers that hold something else than the events add up to, by number."""
    found = replayed(events)
    return tuple(number for number, held in sorted(registers.items()) if found.get(number, ZERO) != held)


def _read(content: _Bytes, read_event: Callable[[], Event | None]) -> Events:
    events = list[Event]()
    while content.left:
        try:
            event = read_event()
        except _Unreadable as error:
            return Events(tuple(events), f"what follows event {len(events):,} is none: {error}")
        if event is not None:
            events.append(event)
    return Events(tuple(events))


def _digest_sizes(content: _Bytes) -> dict[int, int]:
    """What the first event says of all others: the size of each digest in bytes, by the hash's number."""
    register, _, _, size = FIRST.unpack(content.take(FIRST.size))
    said = _Bytes(content.take(size))
    if register or not said.content.startswith(SIGNATURE):
        raise _Unreadable("its first event does not say which hashes follow")
    said.take(len(SIGNATURE))
    # The class of the platform, the version of the format, and how large its addresses are.
    said.take(8)
    return {said.number(2): said.number(2) for _ in range(said.number())}


def _firmware_event(content: _Bytes, sizes: Mapping[int, int]) -> Event | None:
    register, kind, count = content.number(), content.number(), content.number()
    digests = dict[int, bytes]()
    for _ in range(count):
        algorithm = content.number(2)
        if algorithm not in sizes:
            raise _Unreadable(f"its digest is of hash {algorithm}, which the log does not have")
        digests[algorithm] = content.take(sizes[algorithm])
    content.take(content.number())
    if SHA256 not in digests:
        raise _Unreadable("it has no SHA-256")
    return None if kind == NO_ACTION else Event(register, digests[SHA256])


def _kernel_event(content: _Bytes) -> Event:
    register, digest = content.number(), content.take(len(VIOLATION))
    template = content.take(content.number())
    if not template.startswith(b"ima"):
        raise _Unreadable(f"its template {template[:16]!r} is not one of the kernel's")
    measured = content.take(content.number())
    if digest == VIOLATION:
        return Event(register, b"\xff" * 32)
    return Event(register, hashlib.sha256(measured).digest())
