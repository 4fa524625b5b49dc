"""The page of a study of platforms: a row for each engine on each architecture, and what did not work. It has
no time and no speed.

The page of a study that resets a machine: what each way leaves behind of what the machine measured.

What a study of platforms says of its variants: whether they work. Nothing of it is a speed.

An emulator translates each instruction of another machine into several of this one, so no ratio between two
of them, and none to a native run, says anything of the machines. A variant that failed, or lost what a client
was told of, has the verdict of that. All others stay without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import OnMachine, Spread, Survivor
from dbdyno.frozen import ENGINE_FACTOR, level_text
from dbdyno.records.record import Platform
from dbdyno.report.document import ColumnKind, Detail, Lines, Notes, Row, Section, table
from dbdyno.report.words import naming, numbers, safe
from dbdyno.report.words.platforms import machine_resets, works
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.soak import Act

HEADS = ("engine", "on", "version", "starts", "answers", "kills", "stops")
BUILT_HEADS = ("on", "version", "built by", *HEADS[3:])
"""Of a study whose variants are builds, which are all of one engine."""
COUNTED_HEADS = ("engine", "on", "built by", "instructions a transaction")
COUNTED = (
    "The emulator logged each instruction of a shell with 2 and of one with 6 transactions, in place of a"
    " clock. Those of the kernel are not among them. Another architecture needs other instructions for the"
    " same work, so compare builds of one."
)
MACHINE_HEADS = ("engine", "on", "bytes", "pages", "at most", "run by")
TEXT = dict.fromkeys((*HEADS[1:], *BUILT_HEADS, *MACHINE_HEADS[1:]), ColumnKind.TEXT)
PACKAGES = "Each engine ran as packages of each architecture, in a root of its own."
BUILDS = (
    "Each engine was compiled here for each architecture, against the headers and libraries of a root of that"
    " architecture, and ran in that root. One whose recipe names tests of its source had to pass them first."
)
METHOD = (
    "A native driver loaded each server over its socket, and it was ended in the midst of the load and"
    " started again. Every transaction that a client had been told of was then looked for, one by one, and"
    " the invariants were checked.",
    "An embedded engine lives in the load process, which loads no library of another machine. So its shell of"
    " that machine ran transfers of one client, and was killed, started again and asked. This machine's"
    " library then read the same file.",
    "Emulated speed has no verdict: an emulator translates each instruction, so no time of it says anything"
    " of the machine. This report has none.",
    "An emulator uses this kernel. It shows no fault of another kernel, and most faults of another memory"
    " model stay hidden, because this machine's is stronger.",
)


def facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """What the page says of the run beside its title."""
    if analysis.study.in_guest:
        yield from machine_facts(analysis)
        return
    yield "Engines", ", ".join(one.written for one in analysis.study.engines)
    yield "Workload", naming.workload_text(analysis)
    yield "Size", numbers.plural(len(variants_of(analysis.study)), "platform")


def sections(analysis: Analysis) -> Iterator[Section]:
    """Nothing where no platform was tried yet."""
    if analysis.study.in_guest:
        yield from machine_sections(analysis)
        return
    tried = [one for one in analysis.survivors if one.outcome is not None]
    if not tried:
        return
    built = [one.platform for one in tried if one.platform is not None and one.platform.built]
    rows = [_row(analysis, one, bool(built)) for one in tried]
    heads = BUILT_HEADS if built else HEADS
    yield Section("What works", (table(heads, rows, TEXT), Notes((_rounds(analysis),))))
    if failures := [_failure(one) for one in tried if not works(one)]:
        yield Section("What does not, and why", (Notes(tuple(failures)),))
    machines = [(one, one.platform) for one in tried if one.platform is not None]
    of_machines = [_machine(analysis, one, platform) for one, platform in machines]
    notes = (*_versions(analysis, machines),)
    if machines:
        yield Section("On what", (table(MACHINE_HEADS, of_machines, TEXT), Notes(notes)))
        yield Section("Proofs", (Notes((*_proofs(tried),)),), detail=Detail.DETAILS)
    if counted := [(one, platform) for one, platform in machines if platform.instructions is not None]:
        work = [_counted(analysis, one, platform) for one, platform in counted]
        yield Section("Counted work", (table(COUNTED_HEADS, work, TEXT), Notes((COUNTED,))))
    yield Section("Method", (Notes((BUILDS if built else PACKAGES, *METHOD)),))


def trial_count(analysis: Analysis) -> int:
    """How many trials the page is made from."""
    return sum(len(one.trials) for one in analysis.survivors)


def _proofs(tried: Sequence[Survivor]) -> Iterator[str]:
    """What shows that each variant ran on its platform, and the packages that it was."""
    for one in tried:
        if one.says and one.platform is not None:
            of = "Build" if one.platform.built else "Packages"
            yield f"{one.variant}: {safe.clause(one.says)}. {of}: {one.platform.packages}."


def _rounds(analysis: Analysis) -> str:
    """What the columns of restarts count."""
    restarts = analysis.study.restarts
    counts = (restarts.kills, restarts.stops) if restarts else (0, 0)
    acts = f"{numbers.plural(counts[0], 'kill')} and {numbers.plural(counts[1], 'clean stop')}"
    return (
        f"Kills and stops: the commits that clients had been told of, and that were there after {acts} of"
        " each. Answers: whether the invariants held each time."
    )


def _levels(analysis: Analysis, one: Survivor) -> tuple[str, str]:
    """The engine and the architecture of a variant, as the study writes them."""
    variant = next(each for each in variants_of(analysis.study) if each.name == one.variant)
    levels = {**analysis.study.settings, **variant.levels}
    engine = levels.get(ENGINE_FACTOR, analysis.study.engine.written)
    return level_text(engine), level_text(levels[PLATFORM_FACTOR])


def _row(analysis: Analysis, one: Survivor, built: bool) -> Row:
    started = bool(one.acts) or bool(one.says)
    engine, architecture = _levels(analysis, one)
    version = one.platform.version if one.platform else numbers.DASH
    by = one.platform.built if one.platform else numbers.DASH
    return (
        *((architecture, version, by) if built else (engine, architecture, version)),
        "yes" if started else "no",
        _answers(one),
        _after(one, Act.KILL),
        _after(one, Act.STOP),
    )


def _answers(one: Survivor) -> str:
    """Whether the invariants held after each load; nothing is known without a round."""
    if not one.acts:
        return numbers.DASH
    damaged = sum(act.damaged for act in one.acts)
    return "violated" if damaged else "right"


def _after(one: Survivor, act: Act) -> str:
    """What an act took along of all that clients had been told of."""
    found = next((each for each in one.acts if each.act is act), None)
    if found is None:
        return numbers.DASH
    if found.damaged:
        return f"damaged, {found.damaged} of {found.rounds}"
    return f"{found.lost:,} of {found.acknowledged:,} lost" if found.lost else f"all {found.acknowledged:,}"


def _failure(one: Survivor) -> str:
    told = "; ".join(one.faults) or one.cause
    return f"{one.variant}: {safe.clause(told)}."


def _machine(analysis: Analysis, one: Survivor, platform: Platform) -> Row:
    pages = numbers.DASH if platform.page_bytes is None else f"{platform.page_bytes >> 10} KiB"
    return (
        *_levels(analysis, one),
        platform.byte_order,
        pages,
        f"{platform.alignment_bytes >> 10} KiB",
        platform.emulator or "this machine",
    )


def _counted(analysis: Analysis, one: Survivor, platform: Platform) -> Row:
    engine, architecture = _levels(analysis, one)
    return engine, architecture, platform.built or "packages", f"{platform.instructions:,}"


def _versions(analysis: Analysis, machines: Sequence[tuple[Survivor, Platform]]) -> Iterator[str]:
    """What the columns mean, and engines whose versions differ between architectures."""
    yield (
        "Bytes: the byte order. Pages: what a program was told of this host's. At most: the largest page of a"
        " kernel that can map its file."
    )
    versions: dict[str, dict[str, str]] = {}
    for one, platform in machines:
        engine, architecture = _levels(analysis, one)
        versions.setdefault(engine, {})[architecture] = platform.version
    for engine, by_architecture in versions.items():
        if len(set(by_architecture.values())) > 1:
            told = ", ".join(f"{version} on {name}" for name, version in by_architecture.items())
            yield f"{engine} is not one version on all: {told}. A difference may be that of the versions."


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
MACHINE_TEXT = dict.fromkeys((*LOG_HEADS[2:], *TIME_HEADS[2:]), ColumnKind.TEXT)
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


def machine_facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """What the page says of the run beside its title."""
    platform = next((one.platform for one in analysis.survivors if one.platform), None)
    yield "Engine", analysis.study.engine.written
    if platform is not None:
        yield "Machine", f"{platform.architecture}, emulated by {platform.emulator}"
        yield "Guest", platform.packages
        if platform.page_bytes is not None:
            yield "Pages", f"{platform.page_bytes >> 10} KiB, as its kernel says in the guest"


def machine_sections(analysis: Analysis) -> Iterator[Section]:
    """Nothing where no machine was tried yet."""
    tried = analysis.survivors
    found = [(one, *machine) for one in tried if (machine := machine_resets(one)) is not None]
    if found:
        notes = (*COLUMNS, *_unread(found))
        yield Section(
            "What the machine measured", (table(LOG_HEADS, _logs(found), MACHINE_TEXT), Notes(notes))
        )
        if any(machine.kernel_explains < rounds for _, rounds, machine in found):
            yield Section("Why they differ", (Lines(WHY, bullets=True),))
        yield Section("How long it took", (table(TIME_HEADS, _times(found), MACHINE_TEXT), Notes(TIMES)))
    failed = [one for one in tried if one.outcome is not None and not works(one)]
    if failed:
        yield Section("What does not, and why", (Notes(tuple(map(_machine_failure, failed))),))
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


def _machine_failure(one: Survivor) -> str:
    return f"{one.variant}: {safe.clause('; '.join(one.faults) or one.cause)}."
