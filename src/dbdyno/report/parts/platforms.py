"""The page of a study of platforms: a row for each engine on each architecture, and what did not work. It has
no time and no speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import Survivor
from dbdyno.frozen import ENGINE_FACTOR, level_text
from dbdyno.records.platform import Platform
from dbdyno.report.document import Kind, Notes, Row, Section, table
from dbdyno.report.words import naming, numbers, safe
from dbdyno.report.words.platforms import works
from dbdyno.study.act import Act
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import PLATFORM_FACTOR

HEADS = ("engine", "architecture", "version", "starts", "answers", "after kills", "after stops")
MACHINE_HEADS = ("engine", "architecture", "byte order", "pages here", "pages at most", "run by", "packages")
TEXT = dict.fromkeys((*HEADS[3:], *MACHINE_HEADS[2:]), Kind.TEXT)
METHOD = (
    "Each engine ran as packages of each architecture, in a root of its own. A native driver loaded it over"
    " its socket, and it was ended in the midst of the load and started again. Every transaction that a"
    " client had been told of was then looked for, one by one, and the invariants were checked.",
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
    tried = [one for one in _tried(analysis) if one.outcome is not None]
    if not tried:
        return
    yield Section("What works", (table(HEADS, [_row(analysis, one) for one in tried], TEXT),))
    if failures := [_failure(one) for one in tried if not works(one)]:
        yield Section("What does not, and why", (Notes(tuple(failures)),))
    machines = [(one, one.platform) for one in tried if one.platform is not None]
    rows = [_machine(analysis, one, platform) for one, platform in machines]
    yield Section("On what", (table(MACHINE_HEADS, rows, TEXT), Notes((*_versions(analysis, machines),))))
    said = [f"{one.variant}: {safe.clause(one.says)}." for one in tried if one.says]
    yield Section("Proofs", (Notes(tuple(said)),))
    yield Section("Method", (Notes(METHOD),))


def _tried(analysis: Analysis) -> Sequence[Survivor]:
    return analysis.survival.variants if analysis.survival else ()


def _levels(analysis: Analysis, one: Survivor) -> tuple[str, str]:
    """The engine and the architecture of a variant, as the study writes them."""
    variant = next(each for each in variants_of(analysis.study) if each.name == one.variant)
    levels = {**analysis.study.settings, **variant.levels}
    engine = levels.get(ENGINE_FACTOR, analysis.study.engine.written)
    return level_text(engine), level_text(levels[PLATFORM_FACTOR])


def _row(analysis: Analysis, one: Survivor) -> Row:
    started = bool(one.acts) or bool(one.says)
    version = one.platform.version if one.platform else numbers.DASH
    return (
        *_levels(analysis, one),
        version,
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
    return "violated" if damaged else "all right"


def _after(one: Survivor, act: Act) -> str:
    """What an act took along of all that clients had been told of."""
    found = next((each for each in one.acts if each.act is act), None)
    if found is None:
        return numbers.DASH
    rounds = numbers.plural(found.rounds, "round")
    if found.damaged:
        return f"damaged after {found.damaged} of {rounds}"
    if found.lost:
        return f"{found.lost:,} of {found.acknowledged:,} commits lost in {rounds}"
    return f"all {found.acknowledged:,} commits there, {rounds}"


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
        platform.packages,
    )


def _versions(analysis: Analysis, machines: Sequence[tuple[Survivor, Platform]]) -> Iterator[str]:
    """What the columns mean, and engines whose versions differ between architectures."""
    yield (
        "`pages here` is what a program was told of this host's pages. `pages at most` is the largest page of"
        " a kernel that can map its file."
    )
    versions: dict[str, dict[str, str]] = {}
    for one, platform in machines:
        engine, architecture = _levels(analysis, one)
        versions.setdefault(engine, {})[architecture] = platform.version
    for engine, by_architecture in versions.items():
        if len(set(by_architecture.values())) > 1:
            told = ", ".join(f"{version} on {name}" for name, version in by_architecture.items())
            yield f"{engine} is not one version on all: {told}. A difference may be that of the versions."
