"""What a machine's console tells of one of its starts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbdyno.errors import ServerFailed
from dbdyno.machine.console import Line
from dbdyno.machine.kinds import Kind
from dbdyno.machine.measurements import Event, Events, firmware_events, kernel_events, unexplained
from dbdyno.records.reset import Log, Reset

OF_FIRMWARE = range(8)
OF_KERNEL = (10,)
"""The registers of each log."""


@dataclass(frozen=True)
class Started:
    """One start, from its first line to the one in which the guest waits for orders."""

    kind: Kind
    lines: Sequence[Line]

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

    kind: Kind
    way: str
    earlier: tuple[Event, ...] = ()

    def add(self, ordered_s: float, lines: Sequence[Line]) -> Reset:
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
