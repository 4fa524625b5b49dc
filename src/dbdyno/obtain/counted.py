"""Instructions of a program of any architecture, counted by qemu: it logs each one that it carries out.

That takes some microseconds an instruction, so it is for short programs of one thread. Neither plug-ins that
count nor the means to make one are in the distribution's packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from dbdyno.host.process import die_with_parent, kill_family
from dbdyno.obtain.architecture import architecture
from dbdyno.obtain.installation import Installation

LONGEST_S = 120.0
LOGGED = b"Trace "
"""How a line of the log begins that tells an instruction."""
SINGLY = ("-one-insn-per-tb", "-singlestep")
"""How newer and older emulators are told to translate one instruction at a time."""


@cache
def counter(name: str) -> tuple[str, ...]:
    """The start of a command that runs a program of an architecture, and logs each of its instructions into
    the file whose name follows. Empty where no emulator of it is here."""
    found = shutil.which(f"qemu-{architecture(name).emulator}-static")
    if found is None:
        return ()
    known = subprocess.run([found, "--help"], capture_output=True, text=True, check=False).stdout
    singly = next((option for option in SINGLY if option in known), None)
    return (found, singly, "-d", "nochain,exec", "-D") if singly else ()


def counted(installation: Installation, arguments: Sequence[str], script: Path) -> int | None:
    """How many instructions a program carries out that reads a script, its dynamic loader's included. None
    where nothing here counts them, and where the program fails or does not end."""
    start = counter(installation.architecture)
    if not start:
        return None
    # An emulated one begins with its emulator.
    own = installation.command[1:] if installation.emulated else installation.command
    reader, writer = os.pipe()
    with script.open() as given:
        child = subprocess.Popen(
            ["timeout", f"{LONGEST_S:g}", *start, f"/dev/fd/{writer}", *own, *arguments],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writer,),
            preexec_fn=die_with_parent(),
        )
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as log:
            count = sum(line.startswith(LOGGED) for line in log)
        return count if child.wait() == 0 else None
    finally:
        kill_family(child)
