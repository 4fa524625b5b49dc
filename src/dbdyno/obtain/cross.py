"""What a program for another architecture does here: compiled and linked by its cross compiler, run, and its
instructions counted by qemu.

A header may declare what no library holds, and a library may hold what the kernel, or the emulator, does not
know. So the three steps are told apart: a feature is there once a program that uses it has run.

An engine's packages of other architectures are fetched, found, and run here under an emulator. Counting
takes some microseconds an instruction, so it is for short programs of one thread. Neither plug-ins that
count nor the means to make one are in the distribution's packages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from dbdyno.errors import DynoError, EngineMissing, UserError
from dbdyno.host.process import die_with_parent, how_it_ended, kill_family
from dbdyno.obtain import debian, path
from dbdyno.obtain.architecture import ARCHITECTURES, Architecture, architecture, emulator, of_this_machine
from dbdyno.obtain.installation import Installation, Offer, covers, may_hold
from dbdyno.obtain.source.toolchain import ran

C_LIBRARY = "libc6"
"""Its version stands beside that of the engine's own package, because the engine runs on it."""


@dataclass(frozen=True)
class Platforms:
    """Where one engine's programs of other architectures come from. Each of the `recipes` holds other
    versions of it. `unpacked` makes an installation of a copy, and `version` is the pattern that finds the
    version in what its program says to `--version`."""

    engine: str
    title: str
    version: str
    recipes: tuple[debian.DebianRecipe, ...]
    unpacked: Callable[[debian.DebianRecipe, debian.Fetched], Installation]

    def recipe(self, version: str) -> debian.DebianRecipe:
        """The one that holds a version; the first for an empty one. Raises UserError where none does."""
        for recipe in self.recipes:
            if any(may_hold(version, held) for held in recipe.suites):
                return recipe
        have = ", ".join(f"{self.engine}@{held}" for recipe in self.recipes for held in recipe.suites)
        raise UserError(
            f"{self.engine}@{version} is in no Debian suite of other architectures", f"there are: {have}"
        )

    def fetch(self, version: str, name: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        """Obtains the engine of an architecture, and shows that it runs. Raises UserError for an architecture
        without an emulator before anything is fetched, and DynoError where the fetch fails or the program
        does not run."""
        emulator(architecture(name).name)
        recipe = self.recipe(version)
        copy = debian.fetch(recipe.of(name), version, mirror=mirror, tell=tell)
        found = self._installed(recipe, copy)
        try:
            path.version(found.command, self.version, self.title)
        except DynoError as failed:
            raise DynoError(
                f"{self.title} {copy.version} of {name} in {copy.prefix} does not run: {failed.message}",
                f"`dyno cache free {copy.prefix.name}`, and fetch it again",
            ) from None
        return found

    def locate(self, version: str, name: str) -> Installation:
        """The newest copy of the series that a version is of. Raises EngineMissing with the command that
        obtains it, and UserError where no suite holds it."""
        recipe = self.recipe(version)
        series = next(held for held in recipe.suites if may_hold(version, held))
        for copy in debian.fetched(recipe.of(architecture(name).name).shelved):
            if covers(series, copy.version):
                return self._installed(recipe, copy)
        raise EngineMissing(
            f"{self.engine}@{series} of {name} is not on this machine",
            f"`dyno engines fetch {self.engine}@{series} --platform {name}` obtains it",
        )

    def of_build(self, program: Path, root: debian.Fetched) -> Installation:
        """What was built for an architecture, run on the root that it was built against. Raises UserError
        where it does not run."""
        copy = replace(root, engine=self.engine)
        found = self.unpacked(replace(self.recipes[0], binary=str(program)), copy)
        return replace(
            found,
            version=path.version(found.command, self.version, self.title),
            digest=path.digest_of_binary(Path(found.command[-1])),
            architecture=root.architecture,
            facts={"packages": f"{C_LIBRARY} {root.packages.get(C_LIBRARY, '')}"},
        )

    def offers(self) -> Iterator[Offer]:
        """The copies that are here."""
        for name in ARCHITECTURES:
            for copy in debian.fetched(self.recipes[0].of(name).shelved):
                yield Offer(f"{self.engine} of {name}", copy.version, copy.origin, present=True)

    def _installed(self, recipe: debian.DebianRecipe, copy: debian.Fetched) -> Installation:
        known = copy.packages
        told = [f"{name} {known[name]}" for name in (recipe.server, C_LIBRARY) if name in known]
        found = self.unpacked(recipe, copy)
        return replace(found, architecture=copy.architecture, facts={"packages": ", ".join(told)})


RUN_S = 10.0
"""A program that takes longer hangs."""
SAID_MOST = 160


class ProgramStage(StrEnum):
    """How far a program comes."""

    COMPILES = "compiles"
    LINKS = "links"
    RUNS = "runs"


@dataclass(frozen=True)
class TriedProgram:
    """How far a program came, None where it did not compile, and what the step after that said; of one that
    ran, what it printed."""

    reached: ProgramStage | None
    said: str


@dataclass(frozen=True)
class Compiler:
    """A cross compiler, and how what it makes is run: with the libraries of its architecture."""

    command: str
    run: tuple[str, ...]


def compiler_of(wanted: Architecture) -> Compiler:
    """The compiler of an architecture. Raises UserError with its packages where it is not installed, and like
    `emulator`."""
    command = f"{wanted.triplet}-gcc"
    native = wanted == of_this_machine()
    if shutil.which(command) is None:
        names = "gcc" if native else f"gcc-{wanted.triplet} libc6-dev-{wanted.name}-cross"
        raise UserError(f"{command} is not installed", f"apt-get install {names}")
    prefix = emulator(wanted.name)
    return Compiler(command, (*prefix, "-L", f"/usr/{wanted.triplet}") if prefix else ())


def tried_program(source: str, compiler: Compiler, folder: Path) -> TriedProgram:
    """Compiles, links and runs a program of C. It succeeds by ending with 0, and fails by another number or a
    signal; what it prints is kept. Raises Blocked where the compiler does not end."""
    file, made, program = folder / "program.c", folder / "program.o", folder / "program"
    file.write_text(source)
    compiled = ran([compiler.command, "-O2", "-c", "-o", made, file], folder)
    if compiled.returncode != 0:
        return TriedProgram(None, _fault(compiled.stderr, r"error: (.*)"))
    linked = ran([compiler.command, "-pthread", "-o", program, made], folder)
    if linked.returncode != 0:
        return TriedProgram(
            ProgramStage.COMPILES, _fault(linked.stderr, r"(undefined reference.*|cannot find.*)")
        )
    try:
        done = _run([*compiler.run, program], folder)
    except subprocess.TimeoutExpired:
        return TriedProgram(ProgramStage.LINKS, f"it did not end within {RUN_S:g} s")
    said = (done.stdout or done.stderr).strip().replace("\n", "; ")[:SAID_MOST]
    if done.returncode != 0:
        return TriedProgram(ProgramStage.LINKS, said or how_it_ended(done.returncode))
    return TriedProgram(ProgramStage.RUNS, said)


def _run(command: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=RUN_S,
        env={**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)},
        preexec_fn=die_with_parent(),
    )


def _fault(said: str, pattern: str) -> str:
    found = re.search(pattern, said)
    lines = said.strip().splitlines() or ["it said nothing"]
    return (found[1] if found else lines[-1])[:SAID_MOST]


def _call(name: str, number: str, arguments: str) -> str:
    """A program that makes one system call by its number, and says what the kernel answers."""
    return (
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <string.h>\n"
        "#include <unistd.h>\n#include <sys/syscall.h>\n"
        f"int main(void) {{\n    long got = syscall({number}, {arguments});\n"
        f'    if (got < 0 && errno == ENOSYS) {{ printf("{name}: %s", strerror(errno)); return 1; }}\n'
        f'    if (got < 0) printf("{name}: known, refused this call: %s", strerror(errno));\n'
        "    return 0;\n}\n"
    )


PROGRAMS = {
    "byte order and page size": """#include <stdio.h>
#include <unistd.h>
int main(void) {
    int one = 1;
    printf("%s-endian, pages of %ld KiB", *(char *)&one ? "little" : "big", sysconf(_SC_PAGESIZE) >> 10);
    return 0;
}
""",
    "double arithmetic": """#include <stdio.h>
#include <float.h>
int main(void) {
    volatile double tenth = 0.1, third = 1.0 / 3.0;
    printf("long double has %d bits of mantissa", LDBL_MANT_DIG);
    return !(tenth + 0.2 != 0.3 && third * 3.0 == 1.0);
}
""",
    "atomic exchange of 8 bytes": """#include <stdio.h>
#include <pthread.h>
static long counter;
static void *add(void *unused) {
    for (int i = 0; i < 100000; i++) __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) if (pthread_create(&threads[i], 0, add, 0)) return 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    printf("4 threads counted to %ld", counter);
    return counter != 400000;
}
""",
    "atomic exchange of 16 bytes": """#include <stdio.h>
static __int128 value __attribute__((aligned(16)));
int main(void) {
    __int128 expected = 0;
    return !__atomic_compare_exchange_n(&value, &expected, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
""",
    "poll (epoll_pwait2)": """#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/epoll.h>
int main(void) {
    struct timespec none = {0, 0};
    struct epoll_event event;
    int got = epoll_pwait2(epoll_create1(0), &event, 1, &none, 0);
    if (got < 0) printf("epoll_pwait2: %s", strerror(errno));
    return got != 0;
}
""",
    "io_uring": _call("io_uring_setup", "SYS_io_uring_setup", "8, 0"),
    "native AIO": _call("io_setup", "SYS_io_setup", "8, 0"),
    "futex_waitv": _call("futex_waitv", "SYS_futex_waitv", "0, 0, 0, 0, 0"),
    "membarrier": _call("membarrier", "SYS_membarrier", "0, 0, 0"),
    "robust mutex": """#define _GNU_SOURCE
#include <pthread.h>
#include <errno.h>
static pthread_mutex_t mutex;
static void *dies(void *unused) { pthread_mutex_lock(&mutex); return unused; }
int main(void) {
    pthread_mutexattr_t attributes;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    if (pthread_create(&thread, 0, dies, 0)) return 1;
    pthread_join(thread, 0);
    return pthread_mutex_trylock(&mutex) != EOWNERDEAD;
}
""",
    "direct I/O": """#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    void *block;
    int file = open("direct", O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (file < 0 || posix_memalign(&block, 4096, 4096)) return 1;
    return write(file, block, 4096) != 4096;
}
""",
}
"""What database servers ask of a machine and its kernel."""


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


def count_instructions(installation: Installation, arguments: Sequence[str], script: Path) -> int | None:
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
