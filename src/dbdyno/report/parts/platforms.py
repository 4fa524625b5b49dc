"""The page of a study of platforms: a row for each engine on each architecture, and what did not work. It has
no time and no speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import Survivor
from dbdyno.frozen import ENGINE_FACTOR, level_text
from dbdyno.records.platform import Platform
from dbdyno.report.document import Detail, Kind, Notes, Row, Section, table
from dbdyno.report.words import naming, numbers, safe
from dbdyno.report.words.platforms import works
from dbdyno.study.act import Act
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import PLATFORM_FACTOR

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
TEXT = dict.fromkeys((*HEADS[1:], *BUILT_HEADS, *MACHINE_HEADS[1:]), Kind.TEXT)
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
    yield "Engines", ", ".join(one.written for one in analysis.study.engines)
    yield "Workload", naming.workload_text(analysis)
    yield "Size", numbers.plural(len(variants_of(analysis.study)), "platform")


def sections(analysis: Analysis) -> Iterator[Section]:
    """Nothing where no platform was tried yet."""
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
