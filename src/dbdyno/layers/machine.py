"""The machine layer: how an emulated machine is reset, proved by whether its firmware ran again.

A full reset lets the firmware start, and the TPM begins at zero. A fast one starts the next kernel from the
kernel that runs, so neither happens.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.layers.layer import ForSome, Knob, LayerOfKnobs, proof
from dbdyno.layers.setup import Running
from dbdyno.records.record import Evidence, Reading
from dbdyno.records.reset import Reset
from dbdyno.study.nouns import MACHINE_FACTOR as FACTOR

FULL, KEXEC = "full", "kexec"


def proved_by_console(level: str, resets: Sequence[Reset]) -> Evidence:
    """The firmware's first line came again after each full reset, and after no fast one."""
    again = sum(one.firmware_again for one in resets)
    wanted = len(resets) if level == FULL else 0
    found = Reading(
        value=f"the firmware ran again after {again} of {len(resets)} resets",
        source="the firmware's first line on the machine's console",
    )
    return proof(FACTOR, level, found, again == wanted, "the guest did as it was told")


def _no_machine(level: str, _running: Running) -> Evidence:
    """A server that Dyno starts on this host has no machine of its own."""
    return proof(FACTOR, level, Reading(value="no emulated machine", source="Dyno started none"), False, "")


MACHINE = LayerOfKnobs(
    "machine",
    Knob(
        name=FACTOR,
        levels="full or kexec",
        pattern="full|kexec",
        effect="the guest of an emulated machine reboots, or starts its kernel again by kexec",
        proof="the firmware's first line on the console came again, or did not",
        prove=_no_machine,
        in_production=False,
    ),
    engines=ForSome(
        lambda engine: engine.guest is not None, "runs in no emulated machine here", "take sqlite"
    ),
)
"""`machine.reset = LEVEL`."""
