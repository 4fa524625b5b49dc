"""What works of another architecture here, found by doing it: programs that are compiled for it, and the
engines whose packages of it are on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dbdyno.analyse.restarts import survivor
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.errors import DynoError, UserError
from dbdyno.host.cache import Tell, scratch
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import Journal
from dbdyno.host.probe import ProbeFinding
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.obtain.architecture import Architecture, architecture, emulator_version
from dbdyno.obtain.cross import PROGRAMS, ProgramStage, TriedProgram, compiler_of, tried_program
from dbdyno.obtain.installation import Installation
from dbdyno.plan.restarts import turn_of
from dbdyno.prepare_run.begun import Begun, bench_of, new_run
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import ComparisonRun
from dbdyno.run import run_trial
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.reader import parse_study
from dbdyno.trial.machine import described

TAKES_S = 60.0
"""About how long the engines take, for those who wait for this host."""
STUDY = """title = "{title}"
engine = "{engine}"
[workload]
name = "tpcb"
scale = 1
clients = 4
[settings]
"platform.architecture" = "{on}"
[restarts]
kills = 1
stops = 1
load = "1s"
"""
EMULATED = "seen under the emulator; that machine itself may run it"


def probe_platform(
    name: str, programs: Sequence[Path], journal: Journal, tell: Tell
) -> Iterator[ProbeFinding]:
    """Every finding on an architecture. `programs` are files of C that are tried beside Dyno's own. Raises
    UserError for an architecture that Dyno does not know, and for one without an emulator."""
    wanted = architecture(name)
    yield ProbeFinding("platform", "run by", emulator_version(wanted.name) or "this machine")
    sizes = ", ".join(f"{size} KiB" for size in wanted.page_kib)
    yield ProbeFinding("platform", "pages of its usual kernels", sizes)
    yield from _programs(wanted, _sources(programs))
    with alone(f"the probe of {name}", TAKES_S):
        for engine in registry.ENGINES.values():
            if engine.platforms is not None:
                yield from engine_findings(engine, wanted, journal, tell)


def _sources(programs: Sequence[Path]) -> dict[str, str]:
    """The user's programs by their files' names. Raises UserError for one that cannot be read."""
    found = {}
    for file in programs:
        try:
            found[file.name] = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a text in UTF-8"
            raise UserError(f"{file} cannot be read: {reason}", "give the file of a program in C") from None
    return found


def _programs(wanted: Architecture, own: dict[str, str]) -> Iterator[ProbeFinding]:
    try:
        compiler = compiler_of(wanted)
    except UserError as missing:
        yield ProbeFinding("programs", "cross compiler", "no", missing.message, missing.hint)
        return
    group = f"programs, compiled by {compiler.command}"
    with scratch("cross") as folder:
        for name, source in {**PROGRAMS, **own}.items():
            yield _finding(group, name, tried_program(source, compiler, folder), bool(compiler.run))


def _finding(group: str, name: str, found: TriedProgram, emulated: bool) -> ProbeFinding:
    """How far a program came, in words."""
    if found.reached is ProgramStage.RUNS:
        return ProbeFinding(group, name, "yes", found.said)
    did = {
        None: "does not compile",
        ProgramStage.COMPILES: "compiles, does not link",
        ProgramStage.LINKS: "compiles and links, does not run",
    }[found.reached]
    ran = emulated and found.reached is ProgramStage.LINKS
    return ProbeFinding(group, name, "no", f"{did}: {found.said}", EMULATED if ran else "")


def engine_findings(
    engine: Engine, wanted: Architecture, journal: Journal, tell: Tell
) -> Iterator[ProbeFinding]:
    """Whether an engine works, in one line for each question."""
    assert engine.platforms is not None
    group = engine.title
    try:
        found = engine.platforms.locate("", wanted.name)
        platform = described(found)
    except DynoError as missing:
        yield ProbeFinding(group, "here", "no", missing.message, missing.hint)
        return
    yield ProbeFinding(group, "here", "yes", platform.packages)
    page_kib = platform.alignment_bytes >> 10
    yield ProbeFinding(group, "byte order", platform.byte_order)
    yield ProbeFinding(group, "largest pages that its file allows", f"{page_kib} KiB")
    tell(f"{engine.title} {found.version} of {wanted.name}: started, loaded, killed and stopped")
    yield from _tried(group, _record(engine, found, wanted, journal, tell))


def _tried(group: str, record: Record) -> Iterator[ProbeFinding]:
    """What one trial with a kill and a stop showed."""
    if record.outcome in (Outcome.BLOCKED, Outcome.FAILED):
        log = next(iter(record.server_log.strip().splitlines()), "")
        yield ProbeFinding(group, "works", "no", record.cause or log, record.remedy)
        return
    effective = next((one.effective for one in record.evidence if one.factor == PLATFORM_FACTOR), None)
    yield ProbeFinding(group, "starts", "yes", effective.value if effective else "")
    one = survivor(record.variant, [record])
    for act in one.acts:
        kept = act.acknowledged - act.lost
        there = f"{kept:,} of {act.acknowledged:,} acknowledged commits are there"
        sound = "the invariants hold" if not act.damaged else "; ".join(one.faults)
        good = not (act.damaged or act.lost)
        yield ProbeFinding(group, f"after a {act.act.words}", "yes" if good else "no", f"{there}; {sound}")


def _record(
    engine: Engine, found: Installation, wanted: Architecture, journal: Journal, tell: Tell
) -> Record:
    """A trial of a study that no file holds."""
    text = STUDY.format(
        title=f"{engine.title} on {wanted.name}", engine=f"{engine.name}@{found.version}", on=wanted.name
    )
    names = replace(catalogue(ask_engines=False), lone=True)
    study = parse_study(text.encode(), names, "probe.toml")
    run = new_run(ComparisonRun, study, found, tell)
    bench = bench_of(Begun(study, run, found), journal, None, NOTHING_ALLOWED)
    [trial] = turn_of(study, run, 0)
    return run_trial(trial, bench)
