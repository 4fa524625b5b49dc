"""Layouts of a build's functions: by BOLT, LLVM's tool, from what the training of a finished program
executed; and by a linker script for GNU ld, in an order that a seed draws.

BOLT takes what any compiler made, as long as the linker left the relocations in. A program that it
instruments counts branches itself, so no counters of the CPU are needed.

A linker script may not name functions, because they are known only when all is compiled. So it sorts them
by the last three characters of their names: a seed deals out the alphabet into classes, and draws an order
of all triples of classes. With `INSERT` the linker keeps its own script beside this one, whatever it
links. What it puts first for a reason (cold, hot and starting code) stays first. All other code comes
last, so that the linker's own `.text` holds nothing: of a file with two, Valgrind reads no symbols.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import string
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from dbdyno.errors import Blocked, BuildFailed, DiskFull
from dbdyno.frozen import Frozen
from dbdyno.host.cache import Tell, scratch
from dbdyno.host.process import how_it_ended
from dbdyno.obtain.source.build import Flags
from dbdyno.obtain.source.commands import FULL, LOG_BYTES, Workplace, run_command
from dbdyno.obtain.source.profile import NO_PROFILE, NOTHING_EXECUTED, SWITCHED_OFF, BuildProfile
from dbdyno.obtain.source.toolchain import PROGRAM, Toolchain, digest_of_files, ran, version_in

ALPHABET = f"{string.ascii_letters}{string.digits}_."
"""The characters of a function's section. A name with another one comes last."""
CLASSES = 8
FIRST = (
    "*(.text.unlikely .text.*_unlikely .text.unlikely.*)",
    "*(.text.exit .text.exit.*)",
    "*(.text.startup .text.startup.*)",
    "*(.text.hot .text.hot.*)",
    "*(SORT(.text.sorted.*))",
)
"""In the order of GNU ld's own script."""
LAST = ("*(.text .stub .text.* .gnu.linkonce.t.*)", "*(.gnu.warning)")
"""All that GNU ld's own script holds beside."""


def script(seed: int) -> str:
    """The script of a seed: the same on every machine."""
    dealt = [_classes(seed, position) for position in range(3)]
    patterns = (f"*(.text.*[{one}][{two}][{three}])" for one, two, three in product(*dealt))
    lines = "\n".join(f"    {line}" for line in (*FIRST, *_shuffled(patterns, f"{seed}"), *LAST))
    return f"SECTIONS\n{{\n  .text :\n  {{\n{lines}\n  }}\n}}\nINSERT BEFORE .fini;\n"


def _classes(seed: int, position: int) -> list[str]:
    """The alphabet in classes of one size."""
    drawn = _shuffled(ALPHABET, f"{seed} {position}")
    return ["".join(drawn[start::CLASSES]) for start in range(CLASSES)]


def _shuffled(things: Iterable[str], seed: str) -> list[str]:
    """An order that no version of Python changes."""
    return sorted(things, key=lambda thing: hashlib.sha256(f"{seed} {thing}".encode()).digest())


FACTOR = "build.bolt"
LLVM = Path("/usr/lib")
"""Where each version of LLVM has a folder of its own."""
VERSION = re.compile(r"/llvm-(\d+)/")
PACKAGE = "bolt-19"
RUNTIME = "libbolt_rt_instr.a"
"""What counts in an instrumented program."""
ORIGINAL, INSTRUMENTED, LAID_OUT = "original", "instrumented", "laid-out"
MERGED = "merged.fdata"
REORDERING = (
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=hfsort",
    "-split-functions",
    "-split-all-cold",
    "-split-eh",
)
LEFT_MOST = 20
"""More functions than these, and it is the program that BOLT cannot take."""
EXECUTED = re.compile(r"(\d+) out of (\d+) functions in the binary \([^)]*\) have non-empty exec")
MOVED = re.compile(r"reordering modified layout of (\d+) functions")
UNFIT = re.compile(r"(\d+) \([^)]* of all profiled\) functions? ha\w+ invalid \(possibly stale\) profile")
STUCK = re.compile(r"in function (\S+?)(?:\(\*\d+\))?\. Consider adding this function to --skip-funcs")
"""A function that computes where it jumps to, such as the interpreter of PostgreSQL's expressions."""
COMPLAINT = re.compile(r"^.*?\bERROR: (.+)$", re.MULTILINE)
REMEDIES = {
    "stripped": "have the recipe leave the symbols in: no -s, no strip",
    "relocations": "have the recipe link its program with {ldflags}, which hold -Wl,--emit-relocs",
}
"""By a word of the complaint."""
REMEDY = "take another linker or compiler, or leave build.bolt off"


class Bolt(Frozen):
    """`program` rewrites programs, and `merge` adds profiles up. `digest` is of both and of the runtime."""

    program: str
    merge: str
    version: str
    digest: str


@cache
def newest_bolt(llvm: Path = LLVM) -> Bolt:
    """The newest BOLT here, by its path in LLVM's own folder, because it looks for its runtime from there.
    Raises Blocked where there is none, or a part of it is missing."""
    places = {
        int(found[1]): place
        for place in llvm.glob("llvm-*/bin/llvm-bolt")
        if (found := VERSION.search(str(place)))
    }
    if not places:
        raise Blocked(FACTOR, f"there is no llvm-bolt below {llvm}", f"apt-get install {PACKAGE}")
    number, program = max(places.items())
    merge, runtime = program.with_name("merge-fdata"), program.parents[1] / "lib" / RUNTIME
    for part, package in ((merge, f"bolt-{number}"), (runtime, f"libbolt-{number}-dev")):
        if not part.is_file():
            reason = f"there is no {part}, which BOLT needs for its training"
            raise Blocked(FACTOR, reason, f"apt-get install {package}")
    return Bolt(
        program=str(program),
        merge=str(merge),
        version=version_in(ran([program, "--version"]).stdout),
        digest=digest_of_files([program, merge, runtime]),
    )


@cache
def proved_bolt(toolchain: Toolchain, flags: Flags, llvm: Path = LLVM) -> Bolt:
    """The newest BOLT, once a small program of this compiler has written a profile. Raises Blocked."""
    bolt = newest_bolt(llvm)
    with scratch("bolt") as folder:
        (folder / "program.c").write_text(PROGRAM)
        ran([toolchain.cc, *flags.compile, *flags.link, "-o", ORIGINAL, "program.c"], folder)
        program, raw = folder / INSTRUMENTED, folder / "raw"
        raw.mkdir()
        done = ran([bolt.program, ORIGINAL, "-o", INSTRUMENTED, *_instrumenting(program, raw)], folder)
        if done.returncode == 0 and program.exists():
            ran([program])
        if not any(raw.iterdir()):
            reason = f"BOLT {bolt.version} makes no program of {toolchain.name} that writes a profile"
            cause = complaint(done.stdout + done.stderr, done.returncode)
            raise Blocked(FACTOR, f"{reason}: {cause}", remedy(cause))
    return bolt


def complaint(said: str, returncode: int) -> str:
    """What BOLT could not do, of all that it printed; else how it ended."""
    found = COMPLAINT.search(said)
    return found[1] if found else f"the command {how_it_ended(returncode)}"


def remedy(cause: str) -> str:
    """What would help against a complaint."""
    return next((text for word, text in REMEDIES.items() if word in cause), REMEDY)


def _failure(said: str, returncode: int) -> BuildFailed:
    """Why BOLT did not lay a program out."""
    end = said[-LOG_BYTES:]
    if FULL in said:
        return DiskFull("BOLT: the disk is full", "make room below the cache folder", end)
    cause = complaint(said, returncode)
    return BuildFailed(f"BOLT cannot lay the program out: {cause}", remedy(cause), end)


def _instrumenting(program: Path, raw: Path) -> tuple[str, ...]:
    """What makes a program write a profile for each of its processes. It reads itself by its path, because
    the kernel tells that only to root."""
    return (
        "-instrument",
        f"--instrumentation-file={raw / 'process'}",
        "--instrumentation-file-append-pid",
        f"--instrumentation-binpath={program}",
    )


@dataclass(frozen=True)
class Rewriting:
    """A `program` of a build that BOLT rewrites, with a `folder` for what it is made of."""

    bolt: Bolt
    program: Path
    folder: Path
    workplace: Workplace
    tell: Tell

    def instrument(self, raw: Path) -> None:
        """Puts an instrumented program in the place of the program, which it sets aside."""
        self.folder.mkdir(parents=True, exist_ok=True)
        original = self.folder / ORIGINAL
        # Where an earlier part of the build was cut short, another program may stand in its place already.
        if not original.exists():
            draft = self.folder / f"{ORIGINAL}.part"
            shutil.copy2(self.program, draft)
            draft.rename(original)
        self._rewrite(INSTRUMENTED, *_instrumenting(self.program, raw))
        (self.folder / INSTRUMENTED).rename(self.program)

    def lay_out(self, raw: Path, profile: Path) -> BuildProfile:
        """Makes a profile of what a training wrote, and by that a program that is laid out anew. Raises
        BuildFailed where nothing was written, or where it is of other code."""
        written = sorted(raw.iterdir())
        if not written:
            raise BuildFailed(NO_PROFILE, SWITCHED_OFF)
        profile.mkdir()
        digest = self._merge(written, profile / MERGED)
        data = os.path.relpath(profile / MERGED, self.folder)
        said, left = self._rewrite(LAID_OUT, f"-data={data}", *REORDERING)
        if unfit := UNFIT.search(said):
            raise BuildFailed(
                f"the profile does not fit {unfit[1]} of the functions that BOLT lays out by it",
                "the trained program is not the one that BOLT instrumented: run again",
                said[-LOG_BYTES:],
            )
        executed, moved = EXECUTED.search(said), MOVED.search(said)
        if executed is None or int(executed[1]) == 0:
            raise BuildFailed(NOTHING_EXECUTED, SWITCHED_OFF, said[-LOG_BYTES:])
        return BuildProfile(
            files=len(written),
            functions=int(executed[2]),
            executed=int(executed[1]),
            digest=digest,
            moved=int(moved[1]) if moved else 0,
            left=left,
        )

    def put_in_place(self) -> None:
        """Puts the program that is laid out anew in the place of the program."""
        draft = self.folder / f"{LAID_OUT}.part"
        shutil.copy2(self.folder / LAID_OUT, draft)
        draft.rename(self.program)

    def _merge(self, written: list[Path], merged: Path) -> str:
        """Adds up the profiles of all processes; the digest of what they counted, in any order."""
        command = [self.bolt.merge, "-o", str(merged), *map(str, written)]
        returncode, said = run_command(command, self.folder, self.workplace, self.tell)
        if returncode != 0:
            raise _failure(said, returncode)
        counts = sorted(merged.read_bytes().splitlines())
        return hashlib.sha256(b"\n".join(counts)).hexdigest()

    def _rewrite(self, made: str, *options: str) -> tuple[str, tuple[str, ...]]:
        """Has BOLT make a program of the original; what it printed, and the functions that it had to leave as
        they are. Raises BuildFailed with its complaint."""
        left: tuple[str, ...] = ()
        while True:
            skipping = (f"--skip-funcs={','.join(left)}",) if left else ()
            # By names alone, because the program will hold the command, and must not tell where it was made.
            command = [self.bolt.program, ORIGINAL, "-o", made, *options, *skipping]
            returncode, said = run_command(command, self.folder, self.workplace, self.tell)
            if returncode == 0:
                return said, left
            stuck = STUCK.search(said)
            if stuck is None or stuck[1] in left or len(left) == LEFT_MOST:
                raise _failure(said, returncode)
            left += (stuck[1],)
