"""Toolchains: compilers of this machine, each proved by a program that it makes, and that runs.

What a recipe needs of this machine beside the compiler: programs, and headers of libraries.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from dbdyno.errors import REMEDIES, Blocked, BuildFailed, remedy
from dbdyno.frozen import Frozen, listed
from dbdyno.host.cache import scratch
from dbdyno.host.process import die_with_parent, kill_family
from dbdyno.host.writers import require_own
from dbdyno.obtain.architecture import ARCHITECTURES, Architecture, emulator, of_this_machine
from dbdyno.obtain.source.build import ALWAYS, DEFAULT, Flags
from dbdyno.obtain.source.recipe import HEADER, BuildStep


def require_needs(steps: Iterable[BuildStep], compiler: Sequence[str], headers: bool = True) -> None:
    """Raises Blocked with all that is missing, and one command that installs it. `compiler` is the C
    compiler, with the flags that say where it looks for headers. Without `headers` programs alone are looked
    for."""
    every = {name: package for step in steps for name, package in step.needs.items()}
    needs = {name: package for name, package in every.items() if headers or not name.endswith(HEADER)}
    missing = _missing(list(needs), compiler)
    if missing:
        names = listed(missing)
        packages = dict.fromkeys(needs[name] for name in missing)
        raise Blocked(
            "source.recipe",
            f"a build needs {names}, which this machine does not have",
            shlex.join(["apt-get", "install", *packages]),
        )


def _missing(names: Sequence[str], compiler: Sequence[str]) -> list[str]:
    headers = [name for name in names if name.endswith(HEADER)]
    absent = _missing_headers(tuple(headers), tuple(compiler)) if headers else frozenset()
    return [name for name in names if name in absent or (name not in headers and not shutil.which(name))]


@cache
def _missing_headers(names: tuple[str, ...], compiler: tuple[str, ...]) -> frozenset[str]:
    """Those that the preprocessor does not find. A process asks once, because each trial needs the answer.
    Each stands quoted, because it may hold a macro's name."""
    asked = "".join(f'#if !__has_include(<{name}>)\n"{name}"\n#endif\n' for name in names)
    try:
        done = ran([*compiler, "-E", "-P", "-x", "c", "-"], given=asked)
    except OSError as error:
        raise _cannot_look(f"{compiler[0]} cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        raise _cannot_look(first_error(done.stderr))
    return frozenset(line.strip().strip('"') for line in done.stdout.splitlines() if line.startswith('"'))


def _cannot_look(cause: str) -> Blocked:
    reason = f"the compiler cannot look for headers: {cause}"
    return Blocked("build.compiler", reason, "take another compiler, or leave the flag out")


PROGRAM = "int main(void) { return 42; }\n"
ANSWER = 42
ANSWER_MOST_S = 30.0
PARTS = ("cc1", "cc1plus", "as", "ld")
"""What gcc itself runs: its own binary only chooses among them."""


class Toolchain(Frozen):
    """`name` is what the study says; `cc` and `cxx` are paths, `cxx` empty where the C++ compiler is not
    here. `family` is `gcc` or `clang`. `digest` is of the files that compile and link."""

    name: str
    family: str
    version: str
    cc: str
    cxx: str
    digest: str


class TriedFlags(Frozen):
    """What came of compiling a small program with some flags: the warnings, and what the compiler then
    records in a binary: the programs that its command lines run, and their options."""

    warnings: tuple[str, ...]
    programs: frozenset[str]
    options: frozenset[str]


@cache
def toolchain(name: str, linker: str = DEFAULT, architecture: str = "") -> Toolchain:
    """The compiler of that name or path; for another architecture than this machine's the cross compiler of
    that name. Raises Blocked where it is not here, or makes no program that runs, and UserError where it is
    not for root to run, or where nothing here runs programs of the architecture."""
    run: tuple[str, ...] = ()
    package = name if re.fullmatch(r"[a-z][\w.-]*", name) else "gcc"
    if architecture and (wanted := ARCHITECTURES[architecture]) != of_this_machine():
        package = f"{package}-{wanted.packaged} libc6-dev-{wanted.name}-cross"
        name, run = _cross(name, wanted)
    found = shutil.which(name)
    if found is None:
        raise Blocked("build.compiler", f"there is no compiler {name} here", f"apt-get install {package}")
    cc = str(Path(found).absolute())
    cxx = _companion(cc)
    for compiler in filter(None, (cc, cxx)):
        require_own(Path(compiler))
    link = () if linker == DEFAULT else (f"-fuse-ld={linker}",)
    _prove(name, cc, linker, link, run)
    told = _said(cc, "--version").partition("\n")[0]
    family, version = "clang" if "clang" in told else "gcc", version_in(told)
    if not version:
        reason = f"{name} does not say its version, by which a build tells who compiled it"
        raise Blocked("build.compiler", reason, "take a compiler whose `--version` begins with it")
    parts = [_said(cc, f"-print-prog-name={part}").strip() for part in (*PARTS, f"ld.{linker}")]
    # A bare name is no file of the compiler's own, and one in the working folder may bear it.
    paths = [Path(part) for part in (cc, *parts) if Path(part).is_absolute()]
    files = {str(path.resolve()) for path in paths if path.is_file()}
    return Toolchain(
        name=name,
        family=family,
        version=f"{family} {version}",
        cc=cc,
        cxx=cxx,
        digest=digest_of_files(sorted(files)),
    )


def version_in(told: str) -> str:
    """The version in the first line that a compiler prints, where the packager's own stands in brackets;
    empty where there is none."""
    found = re.search(r"\d+\.\d+(\.\d+)?", re.sub(r"\([^)]*\)", "", told))
    return found[0] if found else ""


def _cross(name: str, wanted: Architecture) -> tuple[str, tuple[str, ...]]:
    """The name of a cross compiler, and how a program that it makes is run: with the libraries that come with
    the compiler. A path is one of a cross compiler already."""
    if "clang" in name:
        reason = f"a build for {wanted.name} is made by a cross compiler of GCC's, not by {name}"
        raise Blocked("build.compiler", reason, "take gcc, or a version of it such as gcc-12")
    run = (*emulator(wanted.name), "-L", f"/usr/{wanted.triplet}")
    return name if name.startswith("/") else wanted.tool(name), run


def _prove(name: str, cc: str, linker: str, link: tuple[str, ...], run: tuple[str, ...]) -> None:
    with scratch("compiler") as folder:
        done = _compile(cc, link, folder)
        if done.returncode != 0:
            at_fault = "build.compiler" if linker == DEFAULT else "build.linker"
            beside = "" if linker == DEFAULT else f" with the linker {linker}"
            install = (
                "install its linker and the C library's headers: apt-get install binutils libc6-dev"
                if linker == DEFAULT
                else f"install it (apt-get install {linker}), or take another linker"
            )
            told = f"{name} cannot make a program{beside}: {first_error(done.stderr)}"
            raise Blocked(at_fault, told, hint_for(done.stderr, install))
        try:
            ended = ran([*run, folder / "program"]).returncode
        except OSError as error:
            if error.errno == errno.EACCES:
                told = f"a program of {name} may not run in {folder}: {error.strerror}"
                hint = "point XDG_CACHE_HOME at a disk that is not mounted noexec"
                raise Blocked("build.compiler", told, hint) from None
            ended = error.errno or -1
        if ended != ANSWER:
            reason = f"a program of {name} does not run here: it ended with {ended}, not {ANSWER}"
            raise Blocked("build.compiler", reason, "take a compiler that makes programs for this machine")


@cache
def tried_flags(toolchain: Toolchain, flags: Flags) -> TriedFlags:
    """Compiles a small program with these flags. Raises BuildFailed where the compiler rejects them."""
    with scratch("compiler") as folder:
        options = (*ALWAYS[0], *flags.compile, *flags.link)
        done = _compile(toolchain.cc, options, folder)
        if done.returncode != 0:
            raise BuildFailed(
                f"{toolchain.name} rejects a flag: {first_error(done.stderr)}",
                hint_for(done.stderr, "take the flag out, or choose a compiler that knows it"),
                done.stderr,
            )
        lines = recorded(folder / "program").command_lines
    return TriedFlags(
        warnings=tuple(line.strip() for line in done.stderr.splitlines() if "warning:" in line),
        programs=frozenset(map(program_of, lines)),
        options=frozenset(option for line in lines for option in in_force(line)),
    )


def traces(toolchain: Toolchain, flags: Flags) -> frozenset[str]:
    """The options that a binary tells of when it was compiled with these flags, and not otherwise."""
    return tried_flags(toolchain, flags).options - tried_flags(toolchain, Flags()).options


@cache
def native_target(toolchain: Toolchain, flags: Flags) -> tuple[str, ...]:
    """What the compiler makes of `native` on this CPU: its options for instruction sets, tuning and caches.
    Empty where no flag says `native`. Raises Blocked where the compiler does not tell."""
    asked = [flag for flag in flags.compile if NATIVE.fullmatch(flag)]
    if not asked:
        return ()
    told = ran([toolchain.cc, *asked, "-###", "-E", "-x", "c", "/dev/null"]).stderr
    found = machine_options(told)
    if not found:
        reason = f"{toolchain.name} does not tell what `native` means on this CPU"
        raise Blocked("build.march", reason, "name the CPU's architecture, such as x86-64-v3")
    return found


def machine_options(told: str) -> tuple[str, ...]:
    """The options for the machine in the commands that a compiler shows for `-###`, each in a line that
    begins with a space."""
    lines = [line for line in told.splitlines() if line.startswith((' "', " /"))]
    found = []
    for line in lines:
        for word, following in pairwise([*shlex.split(line), ""]):
            if word in WITH_VALUE:
                found.append(f"{word} {following}")
            elif word.startswith(MACHINE):
                found.append(word)
    return tuple(found)


NATIVE = re.compile(r"-m(arch|tune|cpu)=native")
MACHINE = ("-m", "--param=")
WITH_VALUE = frozenset(("--param", "-target-cpu", "-tune-cpu", "-target-feature"))
"""Options whose value is the next word: GCC's own, and those of clang's inner compiler."""


def first_error(said: str) -> str:
    """The line that says what is wrong, of what a compiler or a build tool printed."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for pattern in ERRORS:
        number = next((number for number, line in enumerate(lines) if re.search(pattern, line)), None)
        if number is not None:
            # CMake says in one line where it stopped, and in the next one why.
            end = number + (2 if PLACE_ALONE.match(lines[number]) else 1)
            return " ".join(lines[number:end])
    return lines[-1] if lines else "it said nothing"


def hint_for(said: str, otherwise: str) -> str:
    """What mends the first error of what a compiler printed. A full disk is no fault of its own."""
    error = first_error(said)
    return next((hint for number, hint in REMEDIES.items() if os.strerror(number) in error), otherwise)


PLACE_ALONE = re.compile(r"CMake Error\b.*:$")
ERRORS = (
    r"No space left on device",
    # What a compiler says last of its linker hides what the linker said.
    r"\berror: (?!ld returned|linker command failed)",
    r"undefined reference|cannot find [-/]|multiple definition",
    r"^CMake Error",
    r"\*\*\* .*(Error|ERROR|No rule)|^ninja: error",
    r"(?i)\berror\b|not found|cannot|failed",
)
"""The first that matches anywhere is asked: a build tool's own last words say only that it stopped."""


def _compile(cc: str, options: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "program.c").write_text(PROGRAM)
    return ran([cc, *options, "-o", "program", "program.c"], folder)


def _companion(cc: str) -> str:
    """The C++ compiler that belongs to a C compiler: `gcc-12` and `g++-12`."""
    path = Path(cc)
    name = re.sub(r"clang(?!\+\+)", "clang++", path.name)
    name = re.sub(r"gcc", "g++", name) if name == path.name else name
    return str(path.with_name(name)) if name != path.name and path.with_name(name).exists() else ""


def _said(cc: str, option: str) -> str:
    return ran([cc, option]).stdout


def ran(
    command: Sequence[str | Path], folder: Path | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """What a compiler says, with `given` on its standard input. Raises Blocked where it does not end, and
    OSError where it cannot be run."""
    child = subprocess.Popen(
        command,
        cwd=folder,
        # A compiler that is killed leaves its temporary files.
        env={**os.environ, "LC_ALL": "C", **({"TMPDIR": str(folder)} if folder else {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=die_with_parent(),
    )
    try:
        said = child.communicate(given.encode(), timeout=ANSWER_MOST_S)
    except BaseException as cut:
        # A compiler is several processes, and each of them holds the pipes.
        kill_family(child)
        if not isinstance(cut, subprocess.TimeoutExpired):
            raise
        asked = " ".join([Path(command[0]).name, *map(str, command[1:])])
        reason = f"`{asked}` does not end within {ANSWER_MOST_S:g} s"
        raise Blocked("build.compiler", reason, WAITED) from None
    output, errors = (part.decode(errors="replace") for part in said)
    return subprocess.CompletedProcess(command, child.returncode, output, errors)


WAITED = "where this machine is busy, type this again; else take another compiler, or leave the flag out"


def digest_of_files(files: Iterable[str | Path]) -> str:
    """Of the names and the contents of files, in this order."""
    digest = hashlib.sha256()
    for path in files:
        with Path(path).open("rb") as file:
            digest.update(f"{Path(path).name}\0".encode())
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


COMMAND_LINES = ".GCC.command.line"
"""The section that -frecord-gcc-switches makes: one text for each way in which a file was compiled."""
BOLT_NOTE = ".note.bolt_info"
"""The section that BOLT makes in what it writes: its version and its command."""
BY = "command line: "
LAST_HOLDS = ("-O", "-march=", "-mtune=")
"""Options of which a compiler obeys the last."""


class RecordedCommands(Frozen):
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


def recorded(file: Path) -> RecordedCommands:
    """What a program or library tells of itself. Raises Blocked where nothing can read it."""
    sections = [f"--string-dump={name}" for name in (COMMAND_LINES, ".comment", BOLT_NOTE)]
    command = ["readelf", "--wide", "--notes", "--dynamic", "--program-headers", *sections, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env={"LC_ALL": "C"})
    except OSError as error:
        told = f"`readelf`, which reads a build's proof, cannot be started: {error.strerror}"
        raise Blocked("build.compiler", told, remedy(error, "apt-get install binutils")) from None
    return parsed(done.stdout)


def parsed(output: str) -> RecordedCommands:
    """What `readelf` printed."""
    comments = _strings(output, ".comment")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", output)
    return RecordedCommands(
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
