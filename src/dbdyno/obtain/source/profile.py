"""Profiles: what an instrumented engine writes of its training, and how much of its code that covers.

Which instructions a compiler may use under the flags of a build, and whether this CPU knows them.

A compiler defines a macro for each set of instructions that its flags allow. What a build may use and the CPU
lacks ends it by an illegal instruction, at some moment.

The training of a build: an instrumented program runs a load, and the profile that it writes is kept.

A compiler guides a second build by the profile, and BOLT lays the finished program out anew by it. Both
are trained here in the same way. The compiler's two builds are made in one folder, because it finds the
profile of an object by the object's path.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.errors import Blocked, BuildFailed, UserError
from dbdyno.frozen import Frozen
from dbdyno.host import kernel_files
from dbdyno.host.cache import Tell
from dbdyno.obtain.source.build import MERGED, Flags, Trainer, Training
from dbdyno.obtain.source.toolchain import NATIVE, Toolchain, first_error, ran, tried_flags

CPUS = Path("/proc/cpuinfo")
KNOWN_TO_ALL = "name a CPU that all hosts know, such as build.march = x86-64-v2"
OTHER_NAMES = {
    "__BMI__": "bmi1",
    "__LZCNT__": "abm",
    "__SSE3__": "pni",
    "__SSE4_1__": "sse4_1",
    "__SSE4_2__": "sse4_2",
    "__AVX512VNNI__": "avx512_vnni",
    "__AVX512BF16__": "avx512_bf16",
    "__AVX512FP16__": "avx512_fp16",
    "__RDRND__": "rdrand",
}
"""Of sets whose macro has another name than the kernel's flag."""
SAME_NAMES = frozenset((
    "sse", "sse2", "ssse3", "sse4a", "avx", "avx2", "fma", "fma4", "f16c", "bmi2", "movbe", "popcnt", "aes",
    "adx", "rdseed", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512ifma",
))  # fmt: skip
MACRO = re.compile(r"#define (__[A-Z0-9_]+__) 1$", re.MULTILINE)


def require_instructions(toolchain: Toolchain, flags: Flags, words: str) -> None:
    """Raises UserError where a build with these flags may use instructions that this CPU does not know. Says
    nothing of a CPU whose flags the kernel does not list by these names."""
    known = known_here()
    lacking = sorted(may_use(toolchain, flags) - known) if known else []
    if lacking:
        raise UserError(
            f"{words}: the CPU of this host does not know {', '.join(lacking)}, which the build may use",
            KNOWN_TO_ALL,
        )


@cache
def may_use(toolchain: Toolchain, flags: Flags) -> frozenset[str]:
    """The sets of instructions that a compiler may use under the flags and not without them, by the kernel's
    names."""
    options = [flag for flag in flags.compile if flag.startswith("-m")]
    if not options or all(map(NATIVE.fullmatch, options)):
        return frozenset()
    with_flags, without = (_sets(toolchain.cc, tuple(given)) for given in (options, ()))
    return with_flags - without


def _sets(compiler: str, options: tuple[str, ...]) -> frozenset[str]:
    told = ran([compiler, *options, "-dM", "-E", "-x", "c", "/dev/null"]).stdout
    names = (OTHER_NAMES.get(macro, macro.strip("_").lower()) for macro in MACRO.findall(told))
    return frozenset(name for name in names if name in SAME_NAMES or name in OTHER_NAMES.values())


@cache
def known_here() -> frozenset[str]:
    """The flags of this CPU; empty on one whose kernel lists none."""
    found = re.search(r"^flags\s*: (.*)$", kernel_files.text_or_none(CPUS) or "", re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


ACCOUNT, PROFILE, RAW = "training.json", "profile", "raw"


@dataclass(frozen=True)
class Untrained:
    """An instrumented engine in a prefix, and the load that is to train it. Its processes write their
    profiles into the folder `raw`, where the `environment` leads them."""

    prefix: Path
    trainer: Trainer
    raw: Path
    environment: Mapping[str, str]


Train = Callable[[Untrained], int]
"""Starts the engine, drives it, and stops it cleanly. Gives the transactions that it did. Raises BuildFailed
where that fails."""


@dataclass(frozen=True)
class Profiling:
    """One way to count what a program executes. `instrument` makes a program that writes its profile into a
    folder, and gives its prefix; `environment` leads its processes there; `collect` makes of that folder the
    profile, in another one that it makes. What was instrumented is gone afterwards."""

    instrument: Callable[[Path], Path]
    environment: Callable[[Path], Mapping[str, str]]
    collect: Callable[[Path, Path], BuildProfile]


def trained(
    folder: Path, trainer: Trainer, profiling: Profiling, train: Train | None, tell: Tell
) -> Training:
    """The training in a folder, carried out where there is none that is whole.

    Raises BuildFailed where nobody can train here, and like `train` and both steps of `profiling`.
    """
    account = folder / ACCOUNT
    if account.exists():
        return Training.model_validate_json(account.read_text())
    if train is None:
        raise BuildFailed(
            f"the build that {trainer.workload} trains is no longer here, and a trial trains none",
            "`dyno run` trains builds before its first trial",
        )
    raw, profile = folder / RAW, folder / PROFILE
    # What a training wrote that was cut short is part of a profile at best.
    for left in (raw, profile):
        shutil.rmtree(left, ignore_errors=True)
    raw.mkdir(parents=True)
    prefix = profiling.instrument(raw)
    began = time.monotonic()
    transactions = train(Untrained(prefix, trainer, raw, profiling.environment(raw)))
    took_s = round(time.monotonic() - began, 3)
    found = profiling.collect(raw, profile)
    training = Training(
        trainer=trainer,
        transactions=transactions,
        took_s=took_s,
        files=found.files,
        functions=found.functions,
        executed=found.executed,
        profile=found.digest,
        moved=found.moved,
        left=found.left,
    )
    tell(training.words)
    shutil.rmtree(raw)
    os.sync()
    whole = folder / f"{ACCOUNT}.part"
    whole.write_text(training.model_dump_json(indent=1) + "\n")
    whole.rename(account)
    return training


def lay_profile(folder: Path) -> None:
    """Puts the files of gcc's profiles, where there are any, where it looks for them: beside the objects that
    it will make."""
    for file in (folder / PROFILE).rglob("*.gcda"):
        place = folder / file.relative_to(folder / PROFILE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)


def remove_profile(prefix: Path) -> None:
    """Takes the profile out of what the build installed."""
    for file in prefix.rglob("*.gcda"):
        file.unlink()


SWITCHED_OFF = (
    "a flag or the source's own build system switches profiles off, or the server does not end by exit(): "
    "look at the build's log"
)
NO_PROFILE = "the training wrote no profile"
NOTHING_EXECUTED = "the training's profile holds no executed function"
STAMPED = re.compile(r":(stamp|checksum) \d+$")
"""What gcov-dump tells of when a file was compiled."""
FUNCTION = re.compile(r":\s*[0-9a-f]+:\s*\d+:\s*FUNCTION ident=")
COUNTERS = re.compile(r":\s*[0-9a-f]+:\s*\d+:\s*COUNTERS (\w+) ")
COUNTS = re.compile(r":\s+\d+:((?: -?\d+)+)\s*$")
"""How gcov-dump tells of a function, of a kind of counters of the last function, and of their counts."""
CLANG_COUNT = re.compile(r"^\s*Function count: (\d+)", re.MULTILINE)
NAMED_BY_GCC = re.compile(r"function '([^']+)'.*\[-W(?:error=)?coverage-mismatch\]")
COUNTED_BY_CLANG = re.compile(r"out of date: of \d+ functions?, (\d+) ha.* mismatched data .*\[-W")
"""How gcc names a function that a profile does not fit, and how clang counts them for a file."""


class BuildProfile(Frozen):
    """A profile on disk: so many `files`, which know of so many `functions`, and of those that were
    `executed`. `digest` is of the counts alone. BOLT has `moved` so many functions by it, and `left` others
    as they were."""

    files: int
    functions: int
    executed: int
    digest: str
    moved: int | None = None
    left: tuple[str, ...] = ()


def environment(family: str, raw: Path) -> dict[str, str]:
    """What leads the profiles of an instrumented process into the folder `raw`. Processes add up there."""
    if family == "gcc":
        return {"GCOV_PREFIX": str(raw)}
    return {"LLVM_PROFILE_FILE": f"{raw}/%4m.profraw"}


def collected(raw: Path, built_in: Path, profile: Path, toolchain: Toolchain) -> BuildProfile:
    """Moves what a training wrote below `raw` into the folder `profile`, and looks how much it is.

    A compiler finds the file of an object by the object's path, so each keeps the path that it has below
    `built_in`. Raises BuildFailed where nothing was written or executed, Blocked like `reader`.
    """
    profile.mkdir()
    if toolchain.family == "gcc":
        found = _of_gcc(raw, built_in, profile, toolchain)
    else:
        found = _of_clang(raw, profile, toolchain)
    if found.files == 0:
        raise BuildFailed(NO_PROFILE, SWITCHED_OFF)
    if found.executed == 0:
        raise BuildFailed(f"{NOTHING_EXECUTED}, of {found.functions:,} in all", SWITCHED_OFF)
    return found


def mismatched(said: str) -> list[str]:
    """The functions that a profile does not fit, by name where the compiler that printed this is gcc."""
    return list(dict.fromkeys(NAMED_BY_GCC.findall(said)))


def mismatches(said: str) -> int:
    """How many functions a profile does not fit, where the compiler that printed this is clang. It finds
    counts by the name of a function alone, which several programs of a source can share."""
    return sum(map(int, COUNTED_BY_CLANG.findall(said)))


def _of_gcc(raw: Path, built_in: Path, profile: Path, toolchain: Toolchain) -> BuildProfile:
    files = []
    for written in sorted(raw.rglob("*.gcda")):
        place = _below(Path("/", written.relative_to(raw)), built_in)
        if place is not None:
            (profile / place).parent.mkdir(parents=True, exist_ok=True)
            written.rename(profile / place)
            files.append(place)
    if not files:
        return BuildProfile(files=0, functions=0, executed=0, digest="")
    lines = _told_by([reader(toolchain), "--long", *map(str, files)], profile)
    counts = [line for line in lines if not STAMPED.search(line)]
    functions = list(executions(counts))
    digest = hashlib.sha256("\n".join(counts).encode()).hexdigest()
    return BuildProfile(files=len(files), functions=len(functions), executed=sum(functions), digest=digest)


def _below(path: Path, folder: Path) -> Path | None:
    """The path as it is below the folder, however that is spelled; None where it is elsewhere."""
    for root in (folder, folder.resolve()):
        if path.is_relative_to(root):
            return path.relative_to(root)
    return None


def executions(lines: Iterable[str]) -> Iterator[bool]:
    """Of each function that gcov-dump tells of, whether anything in it was executed."""
    executed, kind = None, ""
    for line in lines:
        if FUNCTION.search(line):
            if executed is not None:
                yield executed
            executed, kind = False, ""
        elif counters := COUNTERS.search(line):
            kind = counters[1]
        elif kind == "arcs" and (counts := COUNTS.search(line)):
            executed = executed or any(int(count) for count in counts[1].split())
    if executed is not None:
        yield executed


def _of_clang(raw: Path, profile: Path, toolchain: Toolchain) -> BuildProfile:
    files = sorted(map(str, raw.glob("*.profraw")))
    if not files:
        return BuildProfile(files=0, functions=0, executed=0, digest="")
    tool, merged = reader(toolchain), profile / MERGED
    _told_by([tool, "merge", "--output", str(merged), *files], raw)
    told = "\n".join(_told_by([tool, "show", "--all-functions", MERGED], profile))
    counts = [int(count) for count in CLANG_COUNT.findall(told)]
    digest = hashlib.sha256(merged.read_bytes()).hexdigest()
    return BuildProfile(
        files=len(files), functions=len(counts), executed=sum(count > 0 for count in counts), digest=digest
    )


RUNTIME = re.compile(r"cannot find .*(gcov|profile|clang)|(gcov|profile|clang_rt)\S*: No such file")
"""What a linker says where the library is missing that writes a profile."""


def require_profiles(toolchain: Toolchain, instrumented: Flags) -> None:
    """Raises Blocked where the compiler cannot make a program that writes a profile, or nothing reads one."""
    reader(toolchain)
    try:
        tried_flags(toolchain, instrumented)
    except BuildFailed as failed:
        reason = f"{toolchain.name} makes no program that writes a profile: {first_error(failed.log)}"
        package = f"{'libgcc' if toolchain.family == 'gcc' else 'libclang-rt'}-{_major(toolchain)}-dev"
        hint = f"apt-get install {package}" if RUNTIME.search(failed.log) else failed.hint
        raise Blocked("build.pgo", reason, hint) from None


def reader(toolchain: Toolchain) -> str:
    """The tool that reads a compiler's profiles. It stands beside the compiler, because no other version's
    will do. Raises Blocked where there is none."""
    own, resolved = Path(toolchain.cc), Path(toolchain.cc).resolve()
    if toolchain.family == "gcc":
        places = [cc.with_name(f"gcov-dump{cc.name.partition('gcc')[2]}") for cc in (own, resolved)]
    else:
        # The one in LLVM's own folder is of the compiler's version.
        places = [resolved.with_name("llvm-profdata")]
    found = next((place for place in places if place.exists()), None)
    if found is None:
        package = f"{'gcc' if toolchain.family == 'gcc' else 'llvm'}-{_major(toolchain)}"
        reason = f"there is no {places[-1]}, which reads the profiles of {toolchain.name}"
        raise Blocked("build.pgo", reason, f"apt-get install {package}")
    return str(found)


def _major(toolchain: Toolchain) -> str:
    """The major version, which the names of a compiler's packages end with."""
    return toolchain.version.partition(" ")[2].partition(".")[0]


def _told_by(command: Sequence[str], folder: Path) -> list[str]:
    """What a tool prints. Raises BuildFailed where it cannot read a profile."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise BuildFailed(
            f"the profile cannot be read: {said.splitlines()[0] if said else Path(command[0]).name}",
            "the training was cut short while it wrote: run again",
            said,
        )
    return done.stdout.splitlines()
