"""What a binary itself tells of how it was built, as `readelf` reads it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from dbdyno.errors import Blocked, remedy
from dbdyno.frozen import Frozen

COMMAND_LINES = ".GCC.command.line"
"""The section that -frecord-gcc-switches makes: one text for each way in which a file was compiled."""
BOLT_NOTE = ".note.bolt_info"
"""The section that BOLT makes in what it writes: its version and its command."""
BY = "command line: "
LAST_HOLDS = ("-O", "-march=", "-mtune=")
"""Options of which a compiler obeys the last."""


class Recorded(Frozen):
    """`command_lines` are the different ones with which its files were compiled. `bolt` is the command by
    which BOLT wrote the file, empty where it did not."""

    build_id: str = ""
    command_lines: tuple[str, ...] = ()
    linker: str = ""
    bind_now: bool = False
    relro: bool = False
    bolt: str = ""

    def holding(self, options: frozenset[str]) -> int:
        """With how many of the command lines all these options were in force."""
        return sum(options <= in_force(line) for line in self.command_lines)


def in_force(command_line: str) -> frozenset[str]:
    """The options of a command line, without those that a later one replaces."""
    words = [word for word in command_line.split() if word.startswith("-")]
    for prefix in LAST_HOLDS:
        of_kind = [word for word in words if word.startswith(prefix)]
        words = [word for word in words if word not in of_kind[:-1] or word == of_kind[-1]]
    return frozenset(words)


def program_of(command_line: str) -> str:
    """What a command line runs."""
    return command_line.partition(" ")[0]


def recorded(file: Path) -> Recorded:
    """What a program or library tells of itself. Raises Blocked where nothing can read it."""
    sections = [f"--string-dump={name}" for name in (COMMAND_LINES, ".comment", BOLT_NOTE)]
    command = ["readelf", "--wide", "--notes", "--dynamic", "--program-headers", *sections, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env={"LC_ALL": "C"})
    except OSError as error:
        told = f"`readelf`, which reads a build's proof, cannot be started: {error.strerror}"
        raise Blocked("build.compiler", told, remedy(error, "apt-get install binutils")) from None
    return parsed(done.stdout)


def parsed(output: str) -> Recorded:
    """What `readelf` printed."""
    comments = _strings(output, ".comment")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", output)
    return Recorded(
        build_id=build_id[1] if build_id else "",
        command_lines=tuple(dict.fromkeys(_strings(output, COMMAND_LINES))),
        linker=_linker(output, comments),
        bind_now="BIND_NOW" in output or re.search(r"FLAGS_1\).*\bNOW\b", output) is not None,
        relro="GNU_RELRO" in output,
        bolt=next((line.partition(BY)[2] for line in _strings(output, BOLT_NOTE) if BY in line), ""),
    )


def _strings(output: str, section: str) -> list[str]:
    _, _, dump = output.partition(f"String dump of section '{section}':\n")
    lines = dump.partition("\n\n")[0].splitlines()
    return [found[1] for line in lines if (found := re.match(r" +\[ *[0-9a-f]+\] +(.*)", line))]


def _linker(output: str, comments: list[str]) -> str:
    """The linker, by the name of its level. GNU ld alone leaves no mark."""
    if re.search(r"Version: gold", output):
        return "gold"
    marks = {"LLD": "lld", "mold": "mold"}
    found = (name for mark, name in marks.items() if any(mark in comment for comment in comments))
    return next(found, "bfd")
