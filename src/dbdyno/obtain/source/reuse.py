"""Objects that an earlier build compiled are taken again, by ccache: a build whose source differs in one file
compiles that file alone.

ccache finds an object by its compiler, its options and all that it is made of, paths among them. So a build
that takes and gives objects has its commands see its folder in one place, whichever folder that is. Some of
the objects are compiled once more, and held against those of ccache, byte for byte.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.host import paths
from dbdyno.host.cache import Tell, shelf
from dbdyno.obtain.source.build import Flags, Reused
from dbdyno.obtain.source.commands import Bound, is_allowed, wrapper
from dbdyno.obtain.source.toolchain import Toolchain, ran, version_in

PROGRAM, OLDEST = "ccache", (4, 3)
"""The first that tells what came of each object."""
SWITCHED_OFF = "CCACHE_DISABLE"
"""ccache's own variable."""
KIND, NAME, PLACE = "objects", "ccache", "compiling"
SIZE = "8G"
NEVER = ("-flto", "-fprofile", "-fbranch-probabilities", "--coverage", "-ftest-coverage")
"""Options whose objects differ from one compilation to the next, or depend on more than the source."""
TOLD, COMPARED = "reuse.log", "compared.log"
CC, CXX = "cc", "cxx"
"""What stands for the compilers in a build's folder."""
AGAIN_ONE_IN = 32
COMPILED = re.compile(r"^# (.*)\n((?:\w+\n)*)", re.MULTILINE)
"""What ccache tells of a call: the file that it compiled, and a word a line for what came of it."""
TAKEN, MISSED = {"direct_cache_hit", "preprocessed_cache_hit"}, {"cache_miss"}
ATTEMPT = re.compile(r"(^|/)conftest\.|/CMakeFiles/CMake(Tmp|Scratch)/|/share/cmake")
"""What a configure compiles to see whether it can."""
SCRIPT = """#!/bin/sh
# Compiles through ccache. One object in {one_in}, by its name, is compiled again and held against that.
export CCACHE_DIR={folder} CCACHE_CONFIGPATH=/dev/null CCACHE_MAXSIZE={size} CCACHE_STATSLOG={told}
export CCACHE_COMPILERCHECK={compiler}
{ccache} {real} "$@" || exit
object= before= compiles=
for word; do
    [ "$before" != -o ] || object=$word
    [ "$word" != -c ] || compiles=yes
    before=$word
done
case $compiles$object in yes*.o | yes*.lo) ;; *) exit 0 ;; esac
number=$(printf %s "$object" | cksum)
[ $((${{number%% *}} % {one_in})) = 0 ] || exit 0
mv "$object" "$object.taken"
{real} "$@" || exit
cmp "$object" "$object.taken" || {{ echo "error: ccache gave another object than $object" >&2; exit 1; }}
rm "$object.taken"
echo "$object" >>{compared}
"""


@dataclass(frozen=True)
class Reuse:
    """How a build takes the objects of others: where they are kept, and by what its compiler is known."""

    kept: Path
    known_by: str

    def lay(self, folder: Path, toolchain: Toolchain) -> None:
        """Puts what stands for the compilers into a build's folder."""
        for name, real in ((CC, toolchain.cc), (CXX, toolchain.cxx)):
            if real:
                script = folder / name
                script.write_text(self._script(real))
                script.chmod(0o755)

    def _script(self, real: str) -> str:
        words = {
            "folder": self.kept,
            "told": place() / TOLD,
            "compared": place() / COMPARED,
            "compiler": f"string:{self.known_by}",
            "ccache": shutil.which(PROGRAM),
            "real": real,
        }
        quoted = {name: shlex.quote(str(word)) for name, word in words.items()}
        return SCRIPT.format(**quoted, size=SIZE, one_in=AGAIN_ONE_IN)


def place() -> Path:
    """Where the commands of all such builds see the folder of their own."""
    return paths.cache() / PLACE


def reuse_of(toolchain: Toolchain, target: tuple[str, ...], flags: Flags, tell: Tell) -> Reuse | None:
    """How a build with these flags takes the objects of others; None where ccache is not here or switched
    off, where the kernel refuses a mount of the build's own, and for flags whose objects cannot be held
    against each other. `target` is what the compiler makes of `native`."""
    if not is_here() or any(flag.startswith(NEVER) for flag in (*flags.compile, *flags.link)):
        return None
    place().mkdir(exist_ok=True)
    kept = shelf(KIND).once(NAME, lambda _: ("objects that builds share", PROGRAM), tell)
    return Reuse(kept, " ".join((toolchain.digest, *target)))


def is_here() -> bool:
    """Whether builds of this process take the objects of earlier ones."""
    return not os.environ.get(SWITCHED_OFF) and _can_be_used()


@cache
def _can_be_used() -> bool:
    program = shutil.which(PROGRAM)
    isolated = wrapper()
    if program is None or isolated is None:
        return False
    try:
        version = version_in(ran([program, "--version"]).stdout.partition("\n")[0])
    except OSError:
        return False
    if tuple(int(part) for part in version.split(".")) < OLDEST:
        return False
    here = paths.cache()
    return is_allowed(Bound(here, here).before(here))


def reused(folder: Path) -> Reused | None:
    """What came of a build's objects, by what its compilers wrote into its folder; None for a build that
    does not take those of others. What they wrote is removed, and what stood for them."""
    told, compared = (_text(folder / name) for name in (TOLD, COMPARED))
    for name in (TOLD, COMPARED, CC, CXX):
        (folder / name).unlink(missing_ok=True)
    if not told:
        return None
    calls = [set(words.split()) for file, words in COMPILED.findall(told) if not ATTEMPT.search(file)]
    again = [name for name in compared.splitlines() if not ATTEMPT.search(name)]
    return Reused(
        compiled=sum(bool(call & MISSED) for call in calls),
        taken=sum(bool(call & TAKEN) for call in calls),
        compared=len(again),
    )


def _text(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""
