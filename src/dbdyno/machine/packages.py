"""What a guest is made of: Debian's kernel, a shell, the program that starts a kernel, and an engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import DynoError, EngineMissing
from dbdyno.host.once import Tell
from dbdyno.machine.kinds import Kind
from dbdyno.obtain import debian
from dbdyno.obtain.binary.needed import needed
from dbdyno.obtain.debian import Fetched, Recipe

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

    kind: Kind
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
            for name in needed(left.pop()):
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


def recipe(kind: Kind, engine: Recipe) -> Recipe:
    """The engine's packages with those of the guest."""
    return replace(
        engine,
        engine=f"machine-of-{engine.engine}",
        packages=(*engine.packages, kind.kernel, *PACKAGES),
        without=(*engine.without, *WITHOUT),
        unneeded=UNNEEDED,
        architecture=kind.architecture,
    )


def fetch(kind: Kind, engine: Recipe, version: str, mirror: str, tell: Tell) -> Parts:
    """Raises UserError where this host cannot fetch at all, and DynoError where the fetch fails."""
    copy = debian.fetch(recipe(kind, engine), version, mirror=mirror, tell=tell)
    return Parts(kind, copy, engine.binary)


def locate(kind: Kind, engine: Recipe) -> Parts:
    """The newest copy. Raises EngineMissing with the command that obtains it."""
    for copy in _here(kind, engine):
        return Parts(kind, copy, engine.binary)
    raise EngineMissing(
        f"the guest of {kind.architecture} with {engine.engine} is not on this machine",
        f"`dyno engines fetch {engine.engine} --platform {kind.architecture} --machine` obtains it",
    )


def _here(kind: Kind, engine: Recipe) -> Iterator[Fetched]:
    yield from debian.fetched(recipe(kind, engine).shelved)
