"""The layers of other machines: on which machine's programs an engine runs, and how an emulated machine is
reset; each proved by what runs.

A program of another machine runs under emulation, whose speed says nothing of that machine. So a study of
platforms times nothing: its variants are asked whether they start, keep their invariants, and recover.

A full reset lets the firmware start, and the TPM begins at zero. A fast one starts the next kernel from the
kernel that runs, so neither happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import Blocked, DynoError, Mistake
from dbdyno.layers.config import build_id_text, held_file
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import ForSome, LayerOfKnobs, proof
from dbdyno.layers.setup import Before, Building, Request, Running, Setup
from dbdyno.obtain.architecture import ARCHITECTURES, elf_header, emulator_version
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.source.build import BuildSpecification
from dbdyno.records.record import Evidence, Reading
from dbdyno.records.reset import Reset
from dbdyno.study.nouns import MACHINE_FACTOR
from dbdyno.study.nouns import PLATFORM_FACTOR as FACTOR

PATIENCE = 10.0
"""How many times longer an emulated server may take to answer, and to end."""


@dataclass(frozen=True)
class OnPlatform(Request):
    """The engine's packages of an architecture in the place of the study's installation, or a build for it
    where other levels ask for one."""

    architecture: str
    before = Before.ENGINE

    def apply(self, setup: Setup) -> None:
        if any(isinstance(request, Building) for request in setup.asked):
            setup.build = (setup.build or BuildSpecification()).but(architecture=self.architecture)
            return
        platforms = setup.engine.platforms
        assert platforms is not None, "a study names no other engine"
        try:
            setup.installation = platforms.locate(setup.installation.version, self.architecture)
        except DynoError as missing:
            raise Blocked(FACTOR, missing.message, missing.hint) from None
        on_its_own(setup)


def on_its_own(setup: Setup) -> None:
    """Has an installation of a study of platforms make its own data, because those of another machine may
    have another byte order. An emulated one has more time."""
    setup.data_maker = setup.installation
    if setup.installation.emulated:
        setup.launch.patience = PATIENCE


def _prove(level: str, running: Running) -> Evidence:
    """The server's process holds a file of that machine, and the server says that it was built for it."""
    setup, wanted = running.setup, ARCHITECTURES[level]
    file = held_file(setup.installation, running.process_ids)
    if file is None:
        found = Reading(value="another file", source="/proc/PID/maps")
        return proof(FACTOR, level, found, False, setup.installation.origin)
    made_for, said = elf_header(file), _said(running)
    machine = next((one.name for one in ARCHITECTURES.values() if one.machine == made_for.machine), "other")
    in_effect = machine == level and wanted.is_named_in(said)
    found = Reading(
        value=f"{machine}, {made_for.byte_order}-endian",
        source=f"the ELF header of {file}, {build_id_text(file)}, which /proc/PID/maps holds;"
        f" the server says {said}",
    )
    accepted = _accepted(level, setup.installation)
    return proof(FACTOR, level, found, in_effect, accepted, "something else started in its place")


def proved_by_file(level: str, installation: Installation) -> Evidence:
    """The same of an engine that is asked by its shell: the file that is run is of that machine."""
    file, wanted = Path(installation.command[-1]), ARCHITECTURES[level]
    made_for = elf_header(file)
    found = Reading(
        value=f"{level if made_for.machine == wanted.machine else 'other'}, {made_for.byte_order}-endian",
        source=f"the ELF header of {file}, {build_id_text(file)}: its shell, which is asked in the place of a"
        " load process",
    )
    in_effect = made_for.machine == wanted.machine
    return proof(FACTOR, level, found, in_effect, _accepted(level, installation))


def _accepted(level: str, installation: Installation) -> str:
    """Who took a level: packages, and what runs them."""
    emulator = emulator_version(level)
    ran = f"{emulator} runs it" if emulator else "this machine runs it"
    return f"{installation.origin}, {installation.facts.get('packages', '')}; {ran}"


def _said(running: Running) -> str:
    asked = running.setup.engine.machine_sql
    return str(running.ask(asked)[0][0]) if asked else ""


def _unknown(text: str) -> Mistake | None:
    if text in ARCHITECTURES:
        return None
    return Mistake(0, f"{FACTOR}: {text!r} is no architecture", f"there are: {', '.join(ARCHITECTURES)}")


PLATFORM = LayerOfKnobs(
    "platform",
    Knob(
        name=FACTOR,
        levels="amd64, arm64, ppc64el or s390x",
        pattern=r".*",
        refused=_unknown,
        effect="the engine's packages of that architecture run, or a build for it, under an emulator where"
        " they must",
        proof="the ELF header of the file in /proc/PID/maps, and the server's word on its machine",
        ask=lambda level, _: (OnPlatform(level),),
        prove=_prove,
        # A server that is there runs on the machine that it runs on.
        in_production=False,
    ),
    engines=ForSome(
        lambda engine: engine.platforms is not None,
        "cannot be had for other architectures",
        "take mariadb, postgresql or sqlite",
    ),
)
"""`platform.architecture = LEVEL`."""


FULL, KEXEC = "full", "kexec"


def proved_by_console(level: str, resets: Sequence[Reset]) -> Evidence:
    """The firmware's first line came again after each full reset, and after no fast one."""
    again = sum(one.firmware_again for one in resets)
    wanted = len(resets) if level == FULL else 0
    found = Reading(
        value=f"the firmware ran again after {again} of {len(resets)} resets",
        source="the firmware's first line on the machine's console",
    )
    return proof(MACHINE_FACTOR, level, found, again == wanted, "the guest did as it was told")


def _no_machine(level: str, _running: Running) -> Evidence:
    """A server that Dyno starts on this host has no machine of its own."""
    return proof(
        MACHINE_FACTOR, level, Reading(value="no emulated machine", source="Dyno started none"), False, ""
    )


MACHINE = LayerOfKnobs(
    "machine",
    Knob(
        name=MACHINE_FACTOR,
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
