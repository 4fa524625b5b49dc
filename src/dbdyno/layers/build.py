"""The build layer: compiler, flags and linker of an engine that is built from its source, proved by what the
running file itself tells; and the builds that the levels of a study ask for.

Levels of a build's trainings: a workload with its options, as a study writes them in one text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from dbdyno.driver import _driver
from dbdyno.engines.built import Built
from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked, Mistake, UserError
from dbdyno.frozen import Level
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import Layer, LayerOfKnobs, ask, by_layer, proof
from dbdyno.layers.setup import Running
from dbdyno.layers.source import accepted_by, asking, build_evidence, built_of, holds_build, wish_among
from dbdyno.layers.workload import files_of_workload
from dbdyno.obtain.source.build import DEFAULT, OFF, BuildSpecification, Flags, Trainer, flags_of
from dbdyno.obtain.source.toolchain import COMMAND_LINES, Toolchain, program_of, traces, tried_flags
from dbdyno.records.record import Evidence, Reading
from dbdyno.study import Option, Study, WorkloadOffer, workload_offers
from dbdyno.study.files import NamedFile
from dbdyno.study.nouns import Promise
from dbdyno.study.trials import Variant
from dbdyno.study.values import ValueFault
from dbdyno.study.written import CLIENTS, filled, parse_workload

PGO, BOLT = "build.pgo", "build.bolt"
TRANSACTIONS = 5_000
"""By how many a build is trained. An instrumented server can be 300 times slower, so no time is set."""
OWN = (
    CLIENTS,
    Option.model_validate({"name": "transactions", "type": "int", "allowed": {"min": 1, "max": 10**9}}),
)
"""The options that a trainer has beside those of its workload."""


@cache
def offers() -> tuple[WorkloadOffer, ...]:
    return workload_offers(_driver.workloads())


def parsed(text: str) -> tuple[WorkloadOffer, dict[str, Level]]:
    """The workload that a level names, and the options that it gives. Raises ValueFault."""
    return parse_workload(text, offers(), OWN, (OFF,), " that could train a build")


def refused(factor: str, text: str) -> Mistake | None:
    """What is wrong with a level that is neither off nor a trainer."""
    try:
        if text != OFF:
            parsed(text)
    except ValueFault as fault:
        return Mistake(0, f"{factor}: {fault.message}", fault.hint)
    return None


def files_of_trainer(text: str, folder: Path) -> tuple[NamedFile, ...]:
    """The files that a trainer's workload reads."""
    try:
        offer, given = parsed(text) if text != OFF else (None, {})
    except ValueFault:
        return ()
    return files_of_workload(offer.name, given, folder) if offer is not None else ()


def trainer_of(factor: str, text: str, study: Study) -> Trainer:
    """What a level of a factor means in a study. Options that the level leaves out are those of the study's
    own workload where that has them, and the server has the configuration of the study's baseline: so builds
    do not differ where variants differ in configuration alone. Raises UserError for what is no trainer."""
    try:
        offer, given = parsed(text)
        options = filled(offer, given, study.workload.options)
    except ValueFault as fault:
        raise UserError(f"{factor}: {fault.message}", fault.hint) from None
    levels = {**study.settings, **study.baseline}
    return Trainer(
        workload=offer.name,
        options=tuple(options.items()),
        settings=tuple(sorted((name, levels[name]) for name in levels if name.startswith("config."))),
        clients=int(given.get("clients", study.workload.clients)),
        transactions=int(given.get("transactions", TRANSACTIONS)),
    )


def with_trainer(wish: BuildSpecification, study: Study) -> BuildSpecification:
    """A wish with what its trainers mean in a study. Raises UserError like `trainer_of`."""
    asked = {"trainer": (PGO, wish.pgo), "bolt_trainer": (BOLT, wish.bolt)}
    trainers = {
        name: trainer_of(factor, level, study) for name, (factor, level) in asked.items() if level != OFF
    }
    return wish.but(**trainers)


def run_options(trainer: Trainer) -> frozenset[str]:
    """The options that only the run looks at, so that they do not shape the data."""
    offered = next((offer.options for offer in offers() if offer.name == trainer.workload), ())
    return frozenset(option.name for option in offered if not option.shapes_data)


REMEDY = "the source's own build system drops or replaces it: see the build's log"
FOLLOWING = ("-fprofile-use", "-fprofile-instr-use")
FLAG = r"-[\w+=,./:@-]+"
TRAINER = r"[\w.]+( +[\w.]+=\S*)*"
TRAINERS = (
    "off, or the workload that trains the build, with its options: read_write tables=4 transactions=10000"
)


Told = tuple[str, bool]
"""What a file tells of a knob, and whether that is the level that was asked for."""


Prove = Callable[[str, Running], Evidence]


def _knob(name: str, prove: Callable[[str], Prove], **declared: Any) -> Knob:
    """The knob `build.NAME`, which is asked for and proved by its name."""
    return Knob(name=f"build.{name}", ask=asking(name), prove=prove(name), **declared)


def _by_file(tell: Callable[[Built, str], Told]) -> Callable[[str], Prove]:
    """The proof of a knob by what the running file itself tells."""

    def of_knob(knob: str) -> Prove:
        return lambda level, running: _evidence(
            f"build.{knob}", level, tell(built_of(running), level), running
        )

    return of_knob


def _by_traces(knob: str) -> Prove:
    """The proof of a knob that is flags: what the compiler records of them in a small program, the running
    file must record as well, in each of its command lines. Part of a level is another level."""

    def prove(level: str, running: Running) -> Evidence:
        built = built_of(running)
        flags = flags_of(knob, level, built.toolchain.family)
        expected = traces(built.toolchain, flags)
        if not expected:
            passed = " ".join(flags.compile + flags.link)
            value = f"{passed} was passed; compilers record nothing of it" if passed else "no flag"
            evidence = build_evidence(f"build.{knob}", level, value, "the build's account", running)
        else:
            shared, all_hold = _shared(built, built.recorded.holding(expected))
            told = f"{' '.join(sorted(expected))}, {shared}", all_hold
            evidence = _evidence(f"build.{knob}", level, told, running)
        ignored = _ignored(built, flags.compile + flags.link)
        return evidence.but(idle=ignored) if ignored else evidence

    return prove


def _ignored(built: Built, flags: tuple[str, ...]) -> str:
    """What the compiler says of a flag that it does not obey."""
    said = [warning for warning in built.warnings if any(flag in warning for flag in flags)]
    return f"the compiler does not obey it: {said[0]}" if said else ""


def _compiler(built: Built, _level: str) -> Told:
    """A compiler writes its name and version into what it compiles, or its path."""
    told = sum(compiled_by(built.toolchain, line) for line in built.recorded.command_lines)
    shared, all_tell = _shared(built, told)
    return f"{built.toolchain.version}, {shared}", all_tell


def compiled_by(compiler: Toolchain, command_line: str) -> bool:
    """Whether a recorded command line is of that compiler. GCC records its version. Clang records the file
    that it is, which is seldom the path by which it was called."""
    if compiler.family == "gcc":
        return compiler.version.partition(" ")[2] in command_line
    return program_of(command_line) in tried_flags(compiler, Flags()).programs


def _lto(built: Built, level: str) -> Told:
    lines = built.recorded.command_lines
    found = Counter(lto_of(line) for line in lines)
    told = [f"{HOW_LINKED[kind]}: {count} of {len(lines)} command lines" for kind, count in found.items()]
    return "; ".join(told) or "no command line is recorded", set(found) == {level}


HOW_LINKED = {OFF: "not linked as one", "thin": "linked as one, thinly", "full": "linked as one"}


def lto_of(command_line: str) -> str:
    """The level of LTO that a recorded command line tells of. GCC compiles all of a link again from its own
    representation, and says so; clang records the flag."""
    if "GIMPLE" in command_line or "-fltrans" in command_line:
        return "full"
    flags = [word for word in command_line.split() if re.match(r"-f(no-)?lto(=|$)", word)]
    # A compiler obeys the last.
    return {"": OFF, "-fno-lto": OFF, "-flto=thin": "thin"}.get(flags[-1] if flags else "", "full")


def _pgo(built: Built, level: str) -> Told:
    """Compilers record that they followed a profile; by which training it came about, the account tells."""
    lines, training = built.recorded.command_lines, built.account.training
    guided = sum(any(flag in line for flag in FOLLOWING) for line in lines)
    shared, all_guided = _shared(built, guided)
    if training is None:
        return f"no training, a profile {shared}", level == OFF and not guided
    return f"{training.words}, {shared}", level != OFF and all_guided


def _bolt(built: Built, level: str) -> Told:
    """BOLT leaves a note in what it writes; by which training it did, the account tells."""
    training, is_noted = built.account.bolt, bool(built.recorded.bolt)
    note = "a note of BOLT's" if is_noted else "no note of BOLT's"
    if training is None:
        return f"no training, {note}", level == OFF and not is_noted
    return f"{training.words}, {note}", level != OFF and is_noted


def _linker(built: Built, level: str) -> Told:
    found = built.recorded.linker
    return found, level in (found, DEFAULT)


def _hardening(built: Built, level: str) -> Told:
    now, relro = built.recorded.bind_now, built.recorded.relro
    protected = built.recorded.holding(frozenset(("-fstack-protector-strong",)))
    shared, all_protected = _shared(built, protected)
    told = "no" if not protected else "yes" if all_protected else shared
    facts = {"RELRO": relro, "bound at the start": now}
    value = ", ".join(
        [f"stack protector {told}", *(f"{name} {'yes' if there else 'no'}" for name, there in facts.items())]
    )
    wanted = {"full": all_protected and relro and now, "off": not (protected or relro or now), DEFAULT: True}
    return value, wanted[level]


def _layout(level: str, running: Running) -> Evidence:
    """A seed leaves no trace in the file. That the functions lie elsewhere was shown before the start."""
    seed = built_of(running).account.layout
    told = f"functions shuffled by seed {seed}" if seed else "not shuffled"
    return build_evidence("build.layout", level, told, "the build's account", running)


def _shared(built: Built, count: int) -> Told:
    """In how many of the recorded command lines something stands, and whether in all of them."""
    lines = len(built.recorded.command_lines)
    return f"in {count} of {lines} recorded command lines", 0 < count == lines


def _evidence(factor: str, level: str, told: Told, running: Running) -> Evidence:
    """The evidence of what the file tells of itself: in effect where a process holds that very file."""
    built, (value, as_asked) = built_of(running), told
    if not holds_build(running):
        return build_evidence(factor, level, value, "", running)
    source = f"{COMMAND_LINES} and headers of {built.program.name}, build id {built.recorded.build_id[:12]}"
    found = Reading(value=value, source=f"{source}, which /proc/PID/maps holds")
    return proof(factor, level, found, as_asked, accepted_by(built), REMEDY)


TRACES = "what the compiler records of it, in the mapped file"

BUILD = LayerOfKnobs(
    "build",
    _knob(
        "compiler",
        levels="gcc, clang, one with its version such as gcc-12, or its path",
        pattern=r"/[\w./+-]+|(gcc|clang)[\w.-]*",
        effect="the engine is compiled by it",
        proof="name and version in the running file",
        prove=_by_file(_compiler),
    ),
    _knob(
        "optimisation",
        levels="-O0, -O1, -O2, -O3, -Os, -Og, -Ofast",
        pattern=r"-O([0-3sg]|fast)",
        effect="a flag of the compiler",
        proof=TRACES,
        prove=_by_traces,
    ),
    _knob(
        "flags",
        levels="none, or flags with spaces between",
        pattern=rf"none|{FLAG}( {FLAG})*",
        effect="flags of the compiler, after all others",
        proof=TRACES,
        prove=_by_traces,
    ),
    _knob(
        "march",
        levels="default, or a name that -march= takes, such as native or x86-64-v3",
        pattern=r"[\w.+-]+",
        effect="a flag of the compiler",
        proof=TRACES,
        prove=_by_traces,
    ),
    _knob(
        "lto",
        levels="off, full, or with clang thin",
        pattern="off|thin|full",
        effect="a flag of the compiler and the linker",
        proof="the command lines that the running file records",
        prove=_by_file(_lto),
    ),
    _knob(
        "pgo",
        levels=TRAINERS,
        pattern=TRAINER,
        effect="an instrumented build is trained by it, and built again by its profile",
        proof="the command lines that the running file records, and the account of the training",
        refused=partial(refused, PGO),
        files=files_of_trainer,
        prove=_by_file(_pgo),
    ),
    _knob(
        "bolt",
        levels=TRAINERS,
        pattern=TRAINER,
        effect="BOLT instruments the finished program, and lays it out anew by its profile",
        proof="the note that BOLT leaves in the running file, and the account of the training",
        refused=partial(refused, BOLT),
        files=files_of_trainer,
        prove=_by_file(_bolt),
    ),
    _knob(
        "linker",
        levels="default, bfd, gold, lld, mold",
        pattern="default|bfd|gold|lld|mold",
        effect="a flag of the compiler",
        proof="the mark that the linker leaves in the running file",
        prove=_by_file(_linker),
    ),
    _knob(
        "hardening",
        levels="default, off, full",
        pattern="default|off|full",
        effect="flags of the compiler and the linker",
        proof="the command lines that the running file records, and its headers",
        prove=_by_file(_hardening),
        gives_up=lambda level: Promise.SECURITY if level == "off" else None,
    ),
    _knob(
        "layout",
        levels="none, or a seed, which is a whole number from 1 on",
        pattern=r"none|[1-9]\d{0,8}",
        effect="the linker shuffles the functions by the seed, which changes none of them: a placebo",
        proof="the functions of the file, which are the baseline's at other addresses",
        prove=lambda _knob: _layout,
    ),
)
"""`build.KNOB = LEVEL`."""


def wish_of(
    study: Study, levels: Mapping[str, Level], layers: Mapping[str, Layer], engine: Engine
) -> BuildSpecification | None:
    """The build that a variant's levels ask for beside the study's own settings; None where they ask for
    none. Raises Blocked where a layer refuses a level, and UserError for a trainer that is none."""
    wish = wish_among(ask(by_layer({**study.settings, **levels}), layers, engine))
    return wish and with_trainer(wish, study)


def variants_by_wish(
    study: Study, variants: Iterable[Variant], layers: Mapping[str, Layer], engine: Engine
) -> dict[BuildSpecification, tuple[Variant, ...]]:
    """Each build that these variants ask for, with those that share it, in their order. Raises UserError like
    `wish_of`."""
    wishes: dict[BuildSpecification, tuple[Variant, ...]] = {}
    for variant in variants:
        try:
            wish = wish_of(study, variant.levels, layers, engine)
        except Blocked:
            # It has no trial, so it needs no build.
            continue
        if wish is not None:
            wishes[wish] = (*wishes.get(wish, ()), variant)
    return wishes
