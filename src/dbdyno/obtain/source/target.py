"""What a build for an architecture of a study of platforms is made against: a root of the distribution's
packages, with the headers and libraries that the recipe needs. What is built runs on that root, as packages
do: by its dynamic loader, and under an emulator where it is of another machine.
"""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import DynoError
from dbdyno.host.cache import Tell
from dbdyno.obtain import debian
from dbdyno.obtain.architecture import Architecture, architecture, header
from dbdyno.obtain.source.recipe import Recipe
from dbdyno.obtain.source.wish import Flags

C_LIBRARY, CXX_LIBRARY = "libc6-dev", "libstdc++6"
EMULATE = "emulate"
"""The script in a build's folder that runs a program of the target."""
BEHIND = ".elf"
"""How the name of a program ends whose place a script has taken."""
SUITES = ("bookworm", "trixie")
"""Debian's that hold every architecture. Compilers of a suite are made for the libraries of the same one."""


@dataclass(frozen=True)
class Target:
    """An architecture, and the root that stands for a machine of it."""

    architecture: Architecture
    root: debian.Fetched

    @property
    def flags(self) -> Flags:
        """What leads the compiler and the linker to the root."""
        into = (f"--sysroot={self.root.prefix}",)
        return Flags(compile=into, link=into)

    @property
    def places(self) -> dict[str, str]:
        """What the places of a recipe stand for that are of the target."""
        known = self.architecture
        return {"triplet": known.triplet, "kernel": known.kernel, "sysroot": str(self.root.prefix)}

    def lay(self, folder: Path) -> None:
        """Puts the script into a build's folder that runs a program of the target."""
        _script(folder / EMULATE, shlex.join(self.root.loader), '"$@"')

    @contextmanager
    def fronted(self, *folders: Path, libraries: tuple[Path, ...]) -> Iterator[None]:
        """Has each program of the target in these folders run by its name: a script takes its place, because
        a kernel runs no program of another machine. Programs look for libraries in those folders first."""
        command = shlex.join(replace(self.root, libraries=libraries).loader)
        programs = [file for folder in folders for file in folder.rglob("*") if self._is_program(file)]
        for program in programs:
            behind = program.with_name(program.name + BEHIND)
            program.rename(behind)
            # The name by which it was called, because a program finds its own files by that.
            _script(program, f'{command} --argv0 "$0"', f'{shlex.quote(str(behind))} "$@"')
        try:
            yield
        finally:
            for program in programs:
                program.with_name(program.name + BEHIND).replace(program)

    def _is_program(self, file: Path) -> bool:
        if file.is_symlink() or not file.is_file() or not os.access(file, os.X_OK) or file.suffix == BEHIND:
            return False
        with suppress(DynoError):
            made_for = header(file)
            return made_for.is_program and made_for.machine == self.architecture.machine
        return False


def _script(file: Path, command: str, arguments: str) -> None:
    file.write_text(f"#!/bin/sh\nexec {command} {arguments}\n")
    file.chmod(0o755)


def target_here(recipe: Recipe, name: str) -> Target | None:
    """The target with a root that was fetched already; None where none holds what the recipe needs. Raises
    UserError for an architecture that Dyno does not know."""
    wanted, packages = architecture(name), _recipe_of_root(recipe, name)
    for copy in debian.fetched(packages.shelved):
        if set(packages.packages) <= copy.packages.keys():
            return Target(wanted, copy)
    return None


def target(recipe: Recipe, name: str, tell: Tell) -> Target:
    """The same, fetched where it is not here. Raises DynoError where it cannot be fetched."""
    found = target_here(recipe, name)
    return found or Target(architecture(name), debian.fetch(_recipe_of_root(recipe, name), tell=tell))


def _recipe_of_root(recipe: Recipe, name: str) -> debian.Recipe:
    cxx = (CXX_LIBRARY,) if recipe.cxx else ()
    return debian.Recipe(
        engine=f"root-of-{recipe.engine}",
        packages=tuple(dict.fromkeys((C_LIBRARY, *cxx, *recipe.headers.values()))),
        server=C_LIBRARY,
        binary="usr/include/stdio.h",
        suites={"": _suite()},
        architecture=name,
    )


def _suite() -> str:
    with suppress(OSError):
        name = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
        return name if name in SUITES else SUITES[0]
    return SUITES[0]
