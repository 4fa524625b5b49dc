"""The page of a study that resets a machine: what each way leaves behind of what the machine measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import OnMachine, Spread, Survivor
from dbdyno.report.document import Detail, Kind, Lines, Notes, Row, Section, table
from dbdyno.report.words import numbers, safe
from dbdyno.report.words.machine import machine_of
from dbdyno.report.words.platforms import works

LOG_HEADS = (
    "reset",
    "rounds",
    "firmware again",
    "firmware's log",
    "explains its PCRs",
    "kernel's log",
    "explains PCR 10",
    "with earlier logs",
    "values of PCR 10",
)
TIME_HEADS = ("reset", "rounds", "made ready, s", "firmware, s", "boot, s", "ready, s")
TEXT = dict.fromkeys((*LOG_HEADS[2:], *TIME_HEADS[2:]), Kind.TEXT)
COLUMNS = (
    "Firmware again: how often the firmware's first line came on the console. A log explains a register (PCR)"
    " of the TPM where its events add up to what the register holds. The firmware's log is of PCR 0 to 7, the"
    " kernel's (IMA) of PCR 10. With earlier logs: the kernel's logs of all starts since the firmware last"
    " ran, which Dyno kept outside of the machine, one after the other.",
)
WHY = (
    "A full reset lets the machine's firmware start, and the TPM begins at zero. So each log begins where its"
    " registers do.",
    "A fast reset cannot reset the TPM, because no software can set PCR 0 to 10 back. The next kernel"
    " begins a log of its own, and PCR 10 holds all that earlier ones added. Firmware measures nothing,"
    " because it does not run. Its log lies in memory that no kernel has to keep.",
    "So after a fast reset nobody can tell from the machine alone what runs. Trust comes from outside: from"
    " someone who kept the earlier logs, or from a full reset.",
)
TIMES = (
    "Medians, with the shortest and the longest round, from the last order before the reset. Firmware: until"
    " it started the kernel. Boot: until the guest's first process ran. Ready: until the engine had answered"
    " queries of its data, whose invariants held. Made ready: what a fast reset needs beforehand, to build"
    " its image and load it.",
    "Emulated times have no verdict: an emulator translates each instruction, so no time of it says anything"
    " of the machine.",
)
NOT_SHOWN = (
    "How long a real machine's firmware tests its memory and its links, and so what a fast reset saves.",
    "Whether devices stand a fast reset. The guest has no disk, no network and no device that goes on while"
    " the next kernel starts.",
    "What becomes of data on a disk. The guest's data lie in its image, and each start has them anew.",
    "Measurements of a boot loader and of the first kernel. The emulator hands the kernel to the firmware,"
    " which measures nothing but itself, so PCR 1 to 7 stay zero.",
    "A TPM in hardware. The software TPM holds whatever its host lets it hold.",
)


def facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """What the page says of the run beside its title."""
    platform = next((one.platform for one in analysis.survivors if one.platform), None)
    yield "Engine", analysis.study.engine.written
    if platform is not None:
        yield "Machine", f"{platform.architecture}, emulated by {platform.emulator}"
        yield "Guest", platform.packages
        if platform.page_bytes is not None:
            yield "Pages", f"{platform.page_bytes >> 10} KiB, as its kernel says in the guest"


def sections(analysis: Analysis) -> Iterator[Section]:
    """Nothing where no machine was tried yet."""
    tried = analysis.survivors
    found = [(one, *machine) for one in tried if (machine := machine_of(one)) is not None]
    if found:
        notes = (*COLUMNS, *_unread(found))
        yield Section("What the machine measured", (table(LOG_HEADS, _logs(found), TEXT), Notes(notes)))
        if any(machine.kernel_explains < rounds for _, rounds, machine in found):
            yield Section("Why they differ", (Lines(WHY, bullets=True),))
        yield Section("How long it took", (table(TIME_HEADS, _times(found), TEXT), Notes(TIMES)))
    failed = [one for one in tried if one.outcome is not None and not works(one)]
    if failed:
        yield Section("What does not, and why", (Notes(tuple(map(_failure, failed))),))
    if found:
        yield Section("What emulation does not show", (Lines(NOT_SHOWN, bullets=True),))
        proofs = tuple(f"{one.variant}: {safe.clause(one.says)}." for one, _, _ in found if one.says)
        yield Section("Proofs", (Notes(proofs),), detail=Detail.DETAILS)


Found = Sequence[tuple[Survivor, int, OnMachine]]


def _logs(found: Found) -> list[Row]:
    return [
        (
            machine.way,
            f"{rounds:,}",
            _of(machine.again, rounds),
            _events(machine.firmware_events),
            _of(machine.firmware_explains, rounds),
            _events(machine.kernel_events),
            _of(machine.kernel_explains, rounds),
            _of(machine.with_earlier_explains, rounds),
            f"{machine.kernel_values:,}",
        )
        for _, rounds, machine in found
    ]


def _times(found: Found) -> list[Row]:
    return [
        (
            machine.way,
            f"{rounds:,}",
            *map(_spread, (machine.staged_s, machine.firmware_s, machine.boot_s, machine.ready_s)),
        )
        for _, rounds, machine in found
    ]


def _of(count: int, rounds: int) -> str:
    """`yes` and `no` where all rounds agree."""
    if count in (0, rounds):
        return "yes" if count else "no"
    return f"{count} of {rounds}"


def _events(counts: tuple[int, int]) -> str:
    least, most = counts
    return numbers.plural(most, "event") if least == most else f"{least:,} to {numbers.plural(most, 'event')}"


def _spread(seconds: Spread | None) -> str:
    if seconds is None:
        return numbers.DASH
    return f"{seconds.median:.1f} ({seconds.least:.1f} to {seconds.most:.1f})"


def _unread(found: Found) -> Iterator[str]:
    """Which registers were not explained, and what could not be read of a log."""
    for _, _, machine in found:
        if machine.unexplained:
            names = ", ".join(f"PCR {number}" for number in machine.unexplained)
            yield f"{machine.way}: not explained by their log alone: {names}."
        for fault in machine.faults:
            yield f"{machine.way}: a log could not be read to its end: {safe.clause(fault)}."


def _failure(one: Survivor) -> str:
    return f"{one.variant}: {safe.clause('; '.join(one.faults) or one.cause)}."
