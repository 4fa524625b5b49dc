"""Profiles: what an instrumented engine writes of its training, and how much of its code that covers."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dbdyno.errors import Blocked, BuildFailed
from dbdyno.frozen import Frozen
from dbdyno.obtain.source.toolchain import Toolchain, first_error, tried
from dbdyno.obtain.source.wish import MERGED, Flags

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


class Profile(Frozen):
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


def collected(raw: Path, built_in: Path, profile: Path, toolchain: Toolchain) -> Profile:
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


def _of_gcc(raw: Path, built_in: Path, profile: Path, toolchain: Toolchain) -> Profile:
    files = []
    for written in sorted(raw.rglob("*.gcda")):
        place = _below(Path("/", written.relative_to(raw)), built_in)
        if place is not None:
            (profile / place).parent.mkdir(parents=True, exist_ok=True)
            written.rename(profile / place)
            files.append(place)
    if not files:
        return Profile(files=0, functions=0, executed=0, digest="")
    lines = _told_by([reader(toolchain), "--long", *map(str, files)], profile)
    counts = [line for line in lines if not STAMPED.search(line)]
    functions = list(executions(counts))
    digest = hashlib.sha256("\n".join(counts).encode()).hexdigest()
    return Profile(files=len(files), functions=len(functions), executed=sum(functions), digest=digest)


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


def _of_clang(raw: Path, profile: Path, toolchain: Toolchain) -> Profile:
    files = sorted(map(str, raw.glob("*.profraw")))
    if not files:
        return Profile(files=0, functions=0, executed=0, digest="")
    tool, merged = reader(toolchain), profile / MERGED
    _told_by([tool, "merge", "--output", str(merged), *files], raw)
    told = "\n".join(_told_by([tool, "show", "--all-functions", MERGED], profile))
    counts = [int(count) for count in CLANG_COUNT.findall(told)]
    digest = hashlib.sha256(merged.read_bytes()).hexdigest()
    return Profile(
        files=len(files), functions=len(counts), executed=sum(count > 0 for count in counts), digest=digest
    )


RUNTIME = re.compile(r"cannot find .*(gcov|profile|clang)|(gcov|profile|clang_rt)\S*: No such file")
"""What a linker says where the library is missing that writes a profile."""


def require_profiles(toolchain: Toolchain, instrumented: Flags) -> None:
    """Raises Blocked where the compiler cannot make a program that writes a profile, or nothing reads one."""
    reader(toolchain)
    try:
        tried(toolchain, instrumented)
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
