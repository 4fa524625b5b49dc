"""How a machine came back after a reset, and what its measurements say of that."""

from __future__ import annotations

from dbdyno.frozen import Frozen, absent


class Log(Frozen):
    """A log of measurements: how many `events` it has, and the registers that it does not explain, by number,
    where it has any or they should be zero. `fault` says where it cannot be read on."""

    events: int
    unexplained: tuple[int, ...] = ()
    fault: str = absent("")

    @property
    def explains(self) -> bool:
        """Whether who adds up the log arrives at the registers."""
        return not (self.unexplained or self.fault)


class Reset(Frozen):
    """One reset of an emulated machine in one `way`.

    The guest needed `staged_s` to make it ready. From then on, the firmware had handed over after
    `firmware_s`, None where it did not run; the first process of the guest ran after `boot_s`, and the engine
    had answered after `ready_s`. `firmware_again` says whether the firmware's first line came again.
    `firmware` is its log of registers 0 to 7, `kernel` that of register 10, and `with_earlier` the same after
    the logs of all starts since the firmware last ran. `registers` are the values that
    the guest read, in hexadecimal, by number.
    """

    way: str
    staged_s: float
    firmware_s: float | None
    boot_s: float
    ready_s: float
    firmware_again: bool
    firmware: Log
    kernel: Log
    with_earlier: Log
    registers: dict[str, str]
