"""Architectures that an engine's packages can be of, and how a program of one runs on this machine.

A program says in its ELF header which machine it is made for. One of another machine than this runs under
qemu's user-mode emulation: its instructions are translated, and its system calls reach this kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.errors import DynoError, UserError


@dataclass(frozen=True)
class Architecture:
    """One architecture by Debian's name. `machine` is its number in an ELF header, `triplet` how Debian
    names its compilers and folders of libraries, `kernel` what uname(2) says on it, and `emulator` what
    follows `qemu-` in the emulator's name. Its usual kernels have pages of `page_kib`."""

    name: str
    machine: int
    triplet: str
    kernel: str
    emulator: str
    page_kib: tuple[int, ...]

    @property
    def packaged(self) -> str:
        """How the names of Debian's packages for it end."""
        return self.triplet.replace("_", "-")

    @property
    def of_images(self) -> str:
        """How images of containers call it."""
        return self.kernel if self.name == "ppc64el" else self.name

    def tool(self, name: str) -> str:
        """What Debian calls the cross compiler, or another tool of that name, for it."""
        return f"{self.triplet}-{name}"

    def is_named_in(self, text: str) -> bool:
        """Whether a server's words on its machine name it, by its kernel's name or its compilers'."""
        words = set(re.split(r"[\s,-]+", text))
        return bool(words & {self.kernel, self.triplet.partition("-")[0]})


ARCHITECTURES = {
    one.name: one
    for one in (
        Architecture("amd64", 62, "x86_64-linux-gnu", "x86_64", "x86_64", (4,)),
        Architecture("arm64", 183, "aarch64-linux-gnu", "aarch64", "aarch64", (4, 16, 64)),
        Architecture("ppc64el", 21, "powerpc64le-linux-gnu", "ppc64le", "ppc64le", (64, 4)),
        Architecture("s390x", 22, "s390x-linux-gnu", "s390x", "s390x", (4,)),
    )
}
PACKAGE = "qemu-user-static"
"""Debian's package with all of qemu's emulators of user programs."""
LOADED = 1
"""The type of a part of an ELF file that is mapped."""
NAMES_LOADER = 3
"""The type of the part that names a program's dynamic loader."""


@dataclass(frozen=True)
class Header:
    """What a program's or library's file says of the machine it is made for. Its parts can be mapped on a
    kernel whose pages are `alignment_bytes` or smaller. A program names the loader that it starts by, and a
    library names none."""

    machine: int
    big_endian: bool
    alignment_bytes: int
    is_program: bool = False

    @property
    def byte_order(self) -> str:
        return "big" if self.big_endian else "little"


def architecture(name: str) -> Architecture:
    """By its name. Raises UserError for one that Dyno does not know."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UserError(f"{name!r} is no architecture that Dyno knows", f"there are: {known}")
    return ARCHITECTURES[name]


def of_this_machine() -> Architecture | None:
    """The one that this machine runs without an emulator; None where it is none of those."""
    kernel = os.uname().machine
    return next((one for one in ARCHITECTURES.values() if one.kernel == kernel), None)


def elf_header(file: Path) -> Header:
    """Of a 64-bit ELF file, as the System V ABI lays it out. Raises DynoError where the file is none, or
    cannot be read."""
    try:
        with file.open("rb") as opened:
            start = opened.read(64)
            order = ">" if start[5:6] == b"\2" else "<"
            if start[:5] != b"\x7fELF\2":
                raise ValueError("it is no 64-bit ELF file")
            machine, parts_at = (
                *struct.unpack_from(f"{order}H", start, 18),
                *struct.unpack_from(f"{order}Q", start, 32),
            )
            size, count = struct.unpack_from(f"{order}HH", start, 54)
            opened.seek(parts_at)
            parts = opened.read(size * count)
        found = [struct.unpack_from(f"{order}I44xQ", parts, size * part) for part in range(count)]
    except (OSError, ValueError, struct.error) as error:
        raise DynoError(f"{file} is no program: {error}", "remove its folder and fetch it again") from None
    alignments = [alignment for kind, alignment in found if kind == LOADED]
    is_program = any(kind == NAMES_LOADER for kind, _ in found)
    return Header(machine, order == ">", max(alignments, default=0), is_program)


@cache
def emulator(name: str) -> tuple[str, ...]:
    """The start of a command that runs a program of an architecture here: nothing on its own machine.

    Raises UserError where there is no emulator of it.
    """
    wanted = architecture(name)
    if wanted == of_this_machine():
        return ()
    programs = [f"qemu-{wanted.emulator}-static", f"qemu-{wanted.emulator}"]
    found = next(filter(None, map(shutil.which, programs)), None)
    if found is None:
        raise UserError(
            f"nothing here runs programs of {name}: {programs[0]} is not installed",
            f"apt-get install {PACKAGE}",
        )
    return (found,)


@cache
def emulator_version(name: str) -> str:
    """The emulator of an architecture with its version, as it says it; empty on its own machine."""
    command = emulator(name)
    if not command:
        return ""
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\S+)(?: \(([^)]+)\))?", said)
    return f"{Path(command[0]).name} {found[1] if found else 'of unknown version'}"


@cache
def emulator_of(file: Path) -> tuple[str, ...]:
    """The start of a command that runs a file here: nothing for one of this machine, nor for one that is no
    program, which says so itself when it is run. Raises UserError like `emulator`."""
    try:
        made_for = elf_header(file).machine
    except DynoError:
        return ()
    names = [one.name for one in ARCHITECTURES.values() if one.machine == made_for]
    return emulator(names[0]) if names else ()
