"""What a guest is made of: Debian's kernel, a shell, the program that starts a kernel, and an engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import DynoError, EngineMissing, Unreachable
from dbdyno.host import cache
from dbdyno.host.cache import Tell
from dbdyno.machine.kinds import KINDS, MachineKind
from dbdyno.obtain import debian
from dbdyno.obtain.binary.read import needed_libraries
from dbdyno.obtain.debian import DebianRecipe, Fetched
from dbdyno.obtain.installation import Offer

SHELL, KEXEC = "bin/busybox", "sbin/kexec"
PACKAGES = ("busybox-static", "kexec-tools")
WITHOUT = ("debconf", "initramfs-tools", "kmod", "linux-base")
"""What an installation of the kernel would need."""
UNNEEDED = ("lib/modules", "usr/lib/modules", "usr/share")
"""What the guest starts without. The modules take five times what all else does."""
LIBRARIES = ("lib", "usr/lib")


@dataclass(frozen=True)
class Parts:
    """A guest's files in a copy of its packages."""

    kind: MachineKind
    copy: Fetched
    program: str

    @property
    def kernel(self) -> Path:
        """Raises DynoError where there is none."""
        found = sorted((self.copy.prefix / "boot").glob("vmlinu[xz]-*"))
        if not found:
            raise DynoError(f"no kernel below {self.copy.prefix}", "remove that folder and fetch it again")
        return found[-1]

    @property
    def kernel_release(self) -> str:
        return self.kernel.name.partition("-")[2]

    @property
    def packages(self) -> str:
        """What a report says of them."""
        names = ("linux-image-" + self.kernel_release, *PACKAGES)
        return ", ".join(f"{name} {found}" for name in names if (found := self.copy.packages.get(name)))

    def files(self) -> dict[str, Path]:
        """The guest's programs with all that they load, by their paths in the guest."""
        prefix = self.copy.prefix
        found = {name: prefix / name for name in (SHELL, KEXEC, self.program)}
        found[self.kind.loader] = self._library(Path(self.kind.loader).name)[1]
        left = list(found.values())
        while left:
            for name in needed_libraries(left.pop()):
                place, file = self._library(name)
                if place not in found and file not in found.values():
                    found[place] = file
                    left.append(file)
        return found

    def _library(self, name: str) -> tuple[str, Path]:
        """Where the guest's loader looks for a library, and its file. Raises DynoError."""
        for folder in LIBRARIES:
            for file in sorted((self.copy.prefix / folder).glob(f"*-linux-gnu/{name}")):
                return str(file.relative_to(self.copy.prefix)), file
        raise DynoError(f"no {name} below {self.copy.prefix}", "remove that folder and fetch it again")


def recipe(kind: MachineKind, engine: DebianRecipe) -> DebianRecipe:
    """The engine's packages with those of the guest."""
    return replace(
        engine,
        engine=f"machine-of-{engine.engine}",
        packages=(*engine.packages, kind.kernel, *PACKAGES),
        without=(*engine.without, *WITHOUT),
        unneeded=UNNEEDED,
        architecture=kind.architecture,
    )


def fetch(kind: MachineKind, engine: DebianRecipe, version: str, mirror: str, tell: Tell) -> Parts:
    """Raises UserError where no suite holds the version or this host cannot fetch at all, Unreachable where
    there is no copy and no answer, and DynoError where the fetch fails in another way."""
    # Here, so that a wrong version is told by the engine's own name.
    engine.suite(version)
    wanted = recipe(kind, engine)
    try:
        copy = debian.fetch(wanted, version, mirror=mirror, tell=tell)
    except Unreachable as unreachable:
        raise Unreachable(
            f"the guest of {kind.architecture} cannot be fetched: {unreachable.message}",
            f"name a mirror with --mirror. Or `{_command(kind, engine)}` on a machine with a network, and"
            f" copy ~/.cache/dyno/engines/{wanted.shelved}-* from there into {cache.shelf('engines').folder}",
        ) from None
    return Parts(kind, copy, engine.binary)


def locate(kind: MachineKind, engine: DebianRecipe) -> Parts:
    """The newest copy. Raises EngineMissing with the command that obtains it."""
    for copy in debian.fetched(recipe(kind, engine).shelved):
        return Parts(kind, copy, engine.binary)
    raise EngineMissing(
        f"the guest of {kind.architecture} with {engine.engine} is not on this machine",
        f"`{_command(kind, engine)}` obtains it",
    )


def _command(kind: MachineKind, engine: DebianRecipe) -> str:
    return f"dyno engines fetch {engine.engine} --platform {kind.architecture} --machine"


def offers(engine: DebianRecipe) -> Iterator[Offer]:
    """The copies that are here."""
    for kind in KINDS.values():
        for copy in debian.fetched(recipe(kind, engine).shelved):
            name = f"{engine.engine} in a machine of {kind.architecture}"
            yield Offer(name, copy.version, copy.origin, present=True)
