"""The build layer: compiler, flags and linker of an engine that is built from its source, proved by what the
running file itself tells."""

from __future__ import annotations

from collections.abc import Callable

from dbdyno.engines.built import Built
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import LayerOfKnobs
from dbdyno.layers.proof import proof
from dbdyno.layers.setup import Running
from dbdyno.layers.source import accepted_by, asking, build_evidence, holds_build
from dbdyno.obtain.source.recorded import COMMAND_LINES
from dbdyno.obtain.source.toolchain import traces
from dbdyno.obtain.source.wish import DEFAULT, flags_of
from dbdyno.records.record import Evidence, Reading

REMEDY = "the source's own build system drops or replaces it: see the build's log"
FLAG = r"-[\w+=,./:@-]+"


def _built(running: Running) -> Built:
    built = running.setup.built
    assert built is not None, "a level of a build makes one"
    return built


def _prove_compiler(level: str, running: Running) -> Evidence:
    """A compiler writes its name and version into what it compiles."""
    built = _built(running)
    version = built.toolchain.version.partition(" ")[2]
    lines = built.recorded.command_lines
    telling = sum(version in line or built.toolchain.cc in line for line in lines)
    value = f"{built.toolchain.version}, in {telling} of {len(lines)} recorded command lines"
    return _evidence("build.compiler", level, value, 0 < telling == len(lines), running)


def _by_traces(knob: str) -> Callable[[str, Running], Evidence]:
    """The proof of a knob that is flags: what the compiler records of them in a small program, the running
    file must record as well, in each of its command lines. Part of a level is another level."""

    def prove(level: str, running: Running) -> Evidence:
        built = _built(running)
        flags = flags_of(knob, level, built.toolchain.family)
        expected = traces(built.toolchain, flags)
        lines = built.recorded.command_lines
        if not expected:
            passed = " ".join(flags.compile + flags.link)
            value = f"{passed} was passed; compilers record nothing of it" if passed else "no flag"
            evidence = build_evidence(f"build.{knob}", level, value, "the build's account", running)
        else:
            holding = built.recorded.holding(expected)
            told = " ".join(sorted(expected))
            value = f"{told}, in {holding} of {len(lines)} recorded command lines"
            evidence = _evidence(f"build.{knob}", level, value, 0 < holding == len(lines), running)
        ignored = _ignored(built, flags.compile + flags.link)
        return evidence.model_copy(update={"idle": ignored}) if ignored else evidence

    return prove


def _ignored(built: Built, flags: tuple[str, ...]) -> str:
    """What the compiler says of a flag that it does not obey."""
    said = [warning for warning in built.warnings if any(flag in warning for flag in flags)]
    return f"the compiler does not obey it: {said[0]}" if said else ""


def _prove_lto(level: str, running: Running) -> Evidence:
    """GCC compiles all of a link again from its own representation, and says so; clang records the flag."""
    built = _built(running)
    lines = built.recorded.command_lines
    found = [line for line in lines if "GIMPLE" in line or "-flto" in line or "-fltrans" in line]
    value = f"{'linked' if found else 'not linked'} as one: {len(found)} of {len(lines)} command lines say so"
    return _evidence("build.lto", level, value, bool(found) == (level != "off"), running)


def _prove_linker(level: str, running: Running) -> Evidence:
    built = _built(running)
    found = built.recorded.linker
    return _evidence("build.linker", level, found, level in (found, DEFAULT), running)


def _prove_hardening(level: str, running: Running) -> Evidence:
    built = _built(running)
    now, relro = built.recorded.bind_now, built.recorded.relro
    lines = built.recorded.command_lines
    protected = built.recorded.holding(frozenset(("-fstack-protector-strong",)))
    partly = f"in {protected} of {len(lines)} recorded command lines"
    told = "no" if not protected else "yes" if protected == len(lines) else partly
    facts = {"RELRO": relro, "bound at the start": now}
    value = ", ".join(
        [f"stack protector {told}", *(f"{name} {'yes' if there else 'no'}" for name, there in facts.items())]
    )
    wanted = {"full": told == "yes" and relro and now, "off": not (protected or relro or now), DEFAULT: True}
    return _evidence("build.hardening", level, value, wanted[level], running)


def _evidence(factor: str, level: str, value: str, told: bool, running: Running) -> Evidence:
    """The evidence of what the file tells of itself: in effect where a process holds that very file."""
    built, held = _built(running), holds_build(running)
    if not held:
        return build_evidence(factor, level, value, "", running)
    source = f"{COMMAND_LINES} and headers of {built.program.name}, build id {built.recorded.build_id[:12]}"
    found = Reading(value=value, source=f"{source}, which /proc/PID/maps holds")
    return proof(factor, level, found, told, accepted_by(built), REMEDY)


TRACES = "what the compiler records of it, in the very file that /proc/PID/maps holds"

BUILD = LayerOfKnobs(
    "build",
    Knob(
        name="build.compiler",
        levels="gcc, clang, one with its version such as gcc-12, or its path",
        pattern=r"/[\w./+-]+|(gcc|clang)[\w.-]*",
        effect="the engine is compiled by it",
        proof="name and version in the running file",
        ask=asking("compiler"),
        prove=_prove_compiler,
    ),
    Knob(
        name="build.optimisation",
        levels="-O0, -O1, -O2, -O3, -Os, -Og, -Ofast",
        pattern=r"-O([0-3sg]|fast)",
        effect="a flag of the compiler",
        proof=TRACES,
        ask=asking("optimisation"),
        prove=_by_traces("optimisation"),
    ),
    Knob(
        name="build.flags",
        levels="none, or flags with spaces between",
        pattern=rf"none|{FLAG}( {FLAG})*",
        effect="flags of the compiler, after all others",
        proof=TRACES,
        ask=asking("flags"),
        prove=_by_traces("flags"),
    ),
    Knob(
        name="build.march",
        levels="default, or a name that -march= takes, such as native or x86-64-v3",
        pattern=r"[\w.+-]+",
        effect="a flag of the compiler",
        proof=TRACES,
        ask=asking("march"),
        prove=_by_traces("march"),
    ),
    Knob(
        name="build.lto",
        levels="off, full, or with clang thin",
        pattern="off|thin|full",
        effect="a flag of the compiler and the linker",
        proof="the command lines that the running file records",
        ask=asking("lto"),
        prove=_prove_lto,
    ),
    Knob(
        name="build.linker",
        levels="default, bfd, gold, lld, mold",
        pattern="default|bfd|gold|lld|mold",
        effect="a flag of the compiler",
        proof="the mark that the linker leaves in the running file",
        ask=asking("linker"),
        prove=_prove_linker,
    ),
    Knob(
        name="build.hardening",
        levels="default, off, full",
        pattern="default|off|full",
        effect="flags of the compiler and the linker",
        proof="the command lines that the running file records, and its headers",
        ask=asking("hardening"),
        prove=_prove_hardening,
    ),
)
"""`build.KNOB = LEVEL`."""
