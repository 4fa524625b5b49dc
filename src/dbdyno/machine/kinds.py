"""The machines that are emulated whole here, by their architecture."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from dbdyno.errors import UserError
from dbdyno.obtain.architecture import ARCHITECTURES

TPM = "swtpm"
MEMORY = "1G"


@dataclass(frozen=True)
class MachineKind:
    """One machine. `emulator` runs it, from Debian's `package`, as a `board` with a `tpm`. `kernel` is
    Debian's package of its kernel, whose console is `console`. Its firmware begins with the `banner`, and it
    says `handed_over` when it starts the kernel. Its programs want their libraries through `loader`."""

    architecture: str
    emulator: str
    package: str
    board: str
    tpm: str
    kernel: str
    console: str
    banner: str
    handed_over: str
    loader: str

    def is_named_in(self, uname: str) -> bool:
        """Whether what uname(2) says in the guest is this machine."""
        return ARCHITECTURES[self.architecture].kernel in uname.split()


KINDS = {
    "ppc64el": MachineKind(
        architecture="ppc64el",
        emulator="qemu-system-ppc64",
        package="qemu-system-ppc",
        board="pseries",
        tpm="tpm-spapr",
        kernel="linux-image-powerpc64le",
        console="hvc0",
        banner="QEMU Starting",
        handed_over="Booting Linux via",
        loader="lib64/ld64.so.2",
    )
}


def machine_kind(architecture: str) -> MachineKind:
    """Raises UserError for a machine that is not emulated whole here, and where a program for that is not on
    this host."""
    if architecture not in KINDS:
        raise UserError(
            f"a machine of {architecture} is not emulated whole here", f"there are: {', '.join(KINDS)}"
        )
    found = KINDS[architecture]
    for program, package in ((found.emulator, found.package), (TPM, TPM)):
        if shutil.which(program) is None:
            raise UserError(
                f"no machine of {architecture} runs here: {program} is not installed",
                f"apt-get install {package}",
            )
    return found


@cache
def version(program: str) -> str:
    """A program with its version, as it says it."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d[\w.]*)", said)
    return f"{program} {found[1] if found else 'of unknown version'}"


def command(kind: MachineKind, kernel: str, initrd: str, options: str, tpm_socket: str) -> Sequence[str]:
    """Runs a machine with its console on its own input and output, and nothing else of this host."""
    return (
        *(kind.emulator, "-M", kind.board, "-accel", "tcg", "-smp", "1", "-m", MEMORY),
        *("-nodefaults", "-vga", "none", "-display", "none", "-monitor", "none", "-serial", "stdio"),
        *("-kernel", kernel, "-initrd", initrd, "-append", options),
        *("-chardev", f"socket,id=tpm,path={tpm_socket}", "-tpmdev", "emulator,id=tpm0,chardev=tpm"),
        *("-device", f"{kind.tpm},tpmdev=tpm0"),
    )
