"""What a machine's console tells of one of its starts.

The measurements of its own start are two logs; `unexplained` says what they leave of a TPM's registers.

A register (PCR) starts at zero. Each measurement is added to it: the register becomes the SHA-256 of what it
held and of the measurement's digest. A log says which digests those were, so who adds them up again has to
arrive at the register. The firmware's log has the crypto-agile format of the TCG's "PC Client Platform
Firmware Profile", section 10. The kernel's is that of its integrity subsystem (IMA), as the kernel's
documentation of its template lays it out (Documentation/security/IMA-templates.rst).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.errors import ServerFailed
from dbdyno.machine.guest import ConsoleLine
from dbdyno.machine.kinds import MachineKind
from dbdyno.records.reset import Log, Reset

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


OF_FIRMWARE = range(8)
OF_KERNEL = (10,)
"""The registers of each log."""


@dataclass(frozen=True)
class Started:
    """One start, from its first line to the one in which the guest waits for orders."""

    kind: MachineKind
    lines: Sequence[ConsoleLine]

    @property
    def answers(self) -> list[str]:
        """What the engine answered."""
        return self._all("answer")

    @property
    def kernel(self) -> str:
        """The kernel's release and machine, by its own word."""
        return self._one("kernel")

    @property
    def pages(self) -> str:
        """The size of its pages, such as `64 kB`."""
        return self._one("pages").partition(":")[2].strip()

    @property
    def page_bytes(self) -> int | None:
        """The same as a number; None where the guest did not tell it."""
        number, _, unit = self.pages.partition(" ")
        return int(number) << 10 if number.isdecimal() and unit == "kB" else None

    @property
    def firmware_ran(self) -> bool:
        return any(self.kind.banner in line.text for line in self.lines)

    @property
    def registers(self) -> dict[int, bytes]:
        """Those that the guest could read, by number. Raises ServerFailed for what is no register."""
        try:
            pairs = [line.split() for line in self._all("register")]
            return {int(pair[0]): bytes.fromhex(pair[1]) for pair in pairs}
        except (ValueError, IndexError):
            raise ServerFailed("the guest cannot read its TPM", "look at the console", self._log) from None

    def firmware(self) -> Log:
        return self._explained(firmware_events(self._bytes("firmware")), OF_FIRMWARE)

    def measured(self, earlier: Sequence[Event] = ()) -> Log:
        """The kernel's log, after what was measured `earlier`."""
        found = kernel_events(self._bytes("measured"))
        return self._explained(replace(found, events=(*earlier, *found.events)), OF_KERNEL)

    def kernel_events(self, marked: str) -> tuple[Event, ...]:
        """What the kernel had measured when the guest told it so."""
        return kernel_events(self._bytes(marked)).events

    def at_s(self, marked: str) -> float:
        """When the guest told something. Raises ServerFailed where it did not."""
        found = next((line.at_s for line in self.lines if line.marked == marked), None)
        if found is None:
            raise ServerFailed(f"the guest did not tell `{marked}`", "look at the console", self._log)
        return found

    @property
    def handed_over_s(self) -> float | None:
        """When the firmware started the kernel; None where it did not run."""
        found = (line.at_s for line in self.lines if self.kind.handed_over in line.text)
        return next(found, None)

    def _explained(self, found: Events, numbers: Sequence[int]) -> Log:
        held = {number: value for number, value in self.registers.items() if number in numbers}
        return Log(events=len(found.events), unexplained=unexplained(found.events, held), fault=found.fault)

    def _bytes(self, marked: str) -> bytes:
        try:
            return base64.b64decode(self._one(marked), validate=True)
        except binascii.Error:
            raise ServerFailed(f"the log `{marked}` did not come whole", "try again", self._log) from None

    def _one(self, marked: str) -> str:
        return next(iter(self._all(marked)), "")

    def _all(self, marked: str) -> list[str]:
        found = (line.marked.partition(" ") for line in self.lines)
        return [rest for name, _, rest in found if name == marked]

    @property
    def _log(self) -> str:
        return "\n".join(line.text[:200] for line in self.lines)


@dataclass
class Resets:
    """The resets of one machine as they come. `earlier` is all that the kernel measured since the firmware
    last ran, in the starts before this one."""

    kind: MachineKind
    way: str
    earlier: tuple[Event, ...] = ()

    def add(self, ordered_s: float, lines: Sequence[ConsoleLine]) -> Reset:
        """Of the lines from an order at `ordered_s` until the guest waits again. Raises ServerFailed where
        they lack something."""
        at = next((index for index, line in enumerate(lines) if line.marked == "reset"), None)
        before = Started(self.kind, lines[: len(lines) if at is None else at + 1])
        again = Started(self.kind, lines[len(before.lines) :])
        began_s, handed_over_s = before.at_s("reset"), again.handed_over_s
        self.earlier = () if again.firmware_ran else (*self.earlier, *before.kernel_events("before"))
        return Reset(
            way=self.way,
            staged_s=round(began_s - ordered_s, 3),
            firmware_s=None if handed_over_s is None else round(handed_over_s - began_s, 3),
            boot_s=round(again.at_s("up") - began_s, 3),
            ready_s=round(again.at_s("ready") - began_s, 3),
            firmware_again=again.firmware_ran,
            firmware=again.firmware(),
            kernel=again.measured(),
            with_earlier=again.measured(self.earlier),
            registers={str(number): value.hex() for number, value in again.registers.items()},
        )
