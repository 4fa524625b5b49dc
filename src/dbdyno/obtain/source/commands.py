"""The commands of a recipe: logged, without the network, in a process namespace that ends with Dyno. A
source's own tests are such commands.

The commits between two revisions of a git repository on this machine.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import IO

from dbdyno.errors import Blocked, BuildFailed, DiskFull, UserError, remedy
from dbdyno.host.cache import Tell
from dbdyno.host.process import die_with_parent, how_it_ended, kill_family
from dbdyno.obtain.source.build import OwnTest
from dbdyno.obtain.source.recipe import BuildStep, SourceTest, expanded
from dbdyno.obtain.source.toolchain import first_error, require_needs
from dbdyno.obtain.source.tree import commit_of, git
from dbdyno.study.trials import TouchedFile

NO_PROGRAMS = ("-c", "core.fsmonitor=false")
"""A repository's own configuration may name a program that is started when files are looked at."""
HASH = re.compile(r"[0-9a-f]{40,64}\x02")
COMMIT, FIELD = "\x01", "\x02"


@dataclass(frozen=True)
class Commit:
    """A commit: its whole hash, the first line of what it says, and the files that it changes."""

    hash: str
    title: str
    touched: tuple[TouchedFile, ...]


def commits_between(repository: Path, good: str, bad: str) -> tuple[Commit, ...]:
    """The commits from `good` to `bad`, both included, along first parents: what a merge brought is one
    commit. Raises UserError where the two are the same, exchanged, or not of one line."""
    if not repository.is_dir():
        raise UserError(f"there is no repository at {repository}", "name a git repository as source.origin")
    first, last = commit_of(repository, good), commit_of(repository, bad)
    if first == last:
        raise UserError(
            f"{good} and {bad} are the same commit {first[:12]}",
            "name two commits with a change between them",
        )
    base = git(repository, "merge-base", first, last)
    if base == last:
        raise UserError(
            f"{bad} is an ancestor of {good}, so good and bad are exchanged",
            f"exchange them: --good {bad} --bad {good}",
        )
    if base != first:
        fork = f"their last common commit is {base[:12]}" if base else "they have no commit in common"
        hint = f"--good {base[:12]} is a commit from which {bad} descends" if base else "name two of one line"
        raise UserError(f"{good} is no ancestor of {bad}: {fork}", hint)
    good_end = _log(repository, "--max-count=1", first)
    return (*good_end, *_log(repository, "--reverse", f"{first}..{last}"))


def uncommitted(repository: Path) -> int:
    """How many files of a work tree seem to differ from what is committed. Contents are not looked at,
    because that would start filters of the repository."""
    if git(repository, "rev-parse", "--is-bare-repository") == "true":
        return 0
    top = Path(git(repository, "rev-parse", "--show-toplevel"))
    staged = git(top, *NO_PROGRAMS, "diff-index", "--cached", "--name-only", "HEAD")
    changed = git(top, *NO_PROGRAMS, "diff-files", "--name-only")
    return len({*staged.splitlines(), *changed.splitlines()})


def _log(repository: Path, *revisions: str) -> tuple[Commit, ...]:
    """Commits along first parents. No program of the repository shows what they change."""
    shown = ("--first-parent", "-m", "--no-ext-diff", "--no-textconv", "--no-renames", "--numstat", "-z")
    told = git(repository, "log", *shown, f"--format={COMMIT}%H{FIELD}%s{FIELD}", *revisions, "--")
    return tuple(_commit(text) for text in told.split(COMMIT) if HASH.match(text))


def _commit(text: str) -> Commit:
    name, _, rest = text.partition(FIELD)
    title, _, files = rest.partition(FIELD)
    rows = [row.strip("\n") for row in files.split("\0")]
    touched = [_touched(*row.split("\t", 2)) for row in rows if row.count("\t") >= 2]
    return Commit(name, title, tuple(touched))


def _touched(added: str, removed: str, path: str) -> TouchedFile:
    lines = [int(count) if count.isdigit() else None for count in (added, removed)]
    return TouchedFile(path=path, added=lines[0], removed=lines[1])


LOG_BYTES = 64 << 10
TELL_EVERY_S = 10.0
TRIAL_S = 30.0
PROGRESS = re.compile(r"\[\s*(?:(\d+)/(\d+)|(\d+)%)\]")
"""How ninja and CMake's makefiles tell how far they are."""
NETWORK = re.compile(
    r"(?i)could not resolve host|name or service not known|network is unreachable"
    r"|temporary failure in name resolution|temporary failure resolving"
)
FULL = "No space left on device"


BIND = ("sh", "-euc", 'mount --bind "$1" "$2"; cd "$3"; shift 3; exec "$@"', "bind")


@dataclass(frozen=True)
class Bound:
    """A folder that commands see in another place. Nobody else sees it there."""

    folder: Path
    place: Path

    def outside(self, path: Path) -> Path:
        """Where a path is that a command sees."""
        return self.folder / path.relative_to(self.place) if path.is_relative_to(self.place) else path

    def before(self, inside: Path) -> tuple[str, ...]:
        """What a command follows so that it sees the folder there, and begins `inside`."""
        mount = ("--mount", "--propagation", "private")
        return (*(wrapper() or ()), *mount, *BIND, str(self.folder), str(self.place), str(inside))


@dataclass(frozen=True)
class Workplace:
    """Where commands run: what a recipe's places stand for, and the environment. All that they print goes to
    `log`. Places of what is `bound` are as commands see them. `cc` is the compiler itself."""

    places: Mapping[str, str | tuple[str, ...]]
    environment: Mapping[str, str]
    log: Path
    cc: str = ""
    bound: Bound | None = None

    def outside(self, path: Path) -> Path:
        """Where a path is that a command sees."""
        return self.bound.outside(path) if self.bound else path

    def before(self, folder: Path) -> tuple[str, ...]:
        """What a command follows that begins in a folder."""
        return self.bound.before(folder) if self.bound else wrapper() or ()


@cache
def wrapper() -> tuple[str, ...] | None:
    """What a command follows so that it has no network, and so that nothing of it outlives Dyno; None where
    the kernel refuses that."""
    program = shutil.which("unshare")
    if program is None:
        return None
    who = () if os.geteuid() == 0 else ("--map-root-user",)
    found = (program, *who, "--net", "--pid", "--fork", "--kill-child")
    return found if is_allowed(found) else None


def is_allowed(prefix: Sequence[str]) -> bool:
    """Whether the kernel lets a command run that follows this prefix."""
    try:
        tried = subprocess.run([*prefix, "true"], capture_output=True, timeout=TRIAL_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def run_step(step: BuildStep, workplace: Workplace, tell: Tell) -> None:
    """Runs a step, unless the file that it makes is there. Raises BuildFailed with the first error, and
    Blocked where this machine lacks what the step needs."""
    folder = Path(expanded([step.folder], workplace.places)[0])
    if step.makes and workplace.outside(folder / step.makes).exists():
        return
    require_needs([step], [workplace.cc, *expanded(["{cflags}"], workplace.places)])
    command = expanded(step.command, workplace.places)
    returncode, said = run_command(command, folder, workplace, lambda text: tell(step.name + text))
    if returncode != 0:
        raise _failure(step, workplace, said, returncode)


def run_command(command: Sequence[str], folder: Path, workplace: Workplace, tell: Tell) -> tuple[int, str]:
    """Runs a command in a folder; returns its exit code, and its part of the log, which begins with a line of
    the command itself. Raises BuildFailed where it cannot be run."""
    said_from = workplace.log.stat().st_size if workplace.log.exists() else 0
    # Unbuffered, because its time tells how long a build went on that was killed.
    with workplace.log.open("ab", buffering=0) as log:
        line = " ".join(command).replace("\n", " ")
        log.write(f"$ {line}\n".encode(errors="replace"))
        returncode = _run(command, folder, workplace, log, tell)
    with workplace.log.open("rb") as file:
        file.seek(said_from)
        return returncode, file.read().decode(errors="replace")


def _run(command: Sequence[str], folder: Path, workplace: Workplace, log: IO[bytes], tell: Tell) -> int:
    """Its exit code. What it prints goes to the log, and how far it is to `tell`."""
    try:
        child = subprocess.Popen(
            [*workplace.before(folder), *command],
            cwd=workplace.outside(folder),
            env=dict(workplace.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
    except OSError as error:
        raise BuildFailed(f"cannot run {command[0]}: {error.strerror}", remedy(error, "install it")) from None
    assert child.stdout is not None
    began_s = told_s = time.monotonic()
    try:
        for line in child.stdout:
            log.write(line)
            far = PROGRESS.search(line.decode(errors="replace"))
            if far and time.monotonic() - told_s >= TELL_EVERY_S:
                told_s = time.monotonic()
                tell(far_text(far, told_s - began_s))
        return child.wait()
    finally:
        child.stdout.close()
        kill_family(child)


def far_text(far: re.Match[str], took_s: float) -> str:
    """How far a command says that it is, and about what is left at the speed that it has had."""
    done, of = (int(far[1]), int(far[2])) if far[1] else (int(far[3]), 100)
    told = f"{done} of {of}" if far[1] else f"{done} %"
    left_min = math.ceil(took_s * (of - done) / done / 60) if done else 0
    return f", {told}, about {left_min} min left" if left_min else f", {told}"


def _failure(step: BuildStep, workplace: Workplace, said: str, returncode: int) -> BuildFailed:
    end = said[-LOG_BYTES:]
    if FULL in said:
        return DiskFull(f"{step.name}: the disk is full", "make room below the cache folder", end)
    if NETWORK.search(said) and wrapper() is not None:
        return BuildFailed(
            f"{step.name}: the source asked for the network, which a build does not have",
            "put what it downloads into the source, or switch that off in the recipe",
            end,
        )
    lines = said.partition("\n")[2]
    for place in ("source", "build"):
        lines = lines.replace(f"{workplace.places[place]}/", "")
    cause = first_error(lines) if lines.strip() else f"the command {how_it_ended(returncode)}"
    return BuildFailed(f"{step.name}: {cause}", "the end of its log is kept with the trial", end)


LONGEST_S = 1800
"""A test that hangs has failed."""
NOBODY = "65534"
NAMES_MOST, LINES_MOST, LINE_MOST = 3, 6, 120
"""So many tests that failed are named, and so much is shown of what the first one answered differently."""
LOOPBACK_UP = """
import contextlib, fcntl, os, socket, struct, sys
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41
with contextlib.suppress(OSError), socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", UP_AND_RUNNING))
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""A program of Python's that switches the loopback on, where it may, and becomes the command behind it."""


def run_tests(tests: Sequence[SourceTest], workplace: Workplace, tell: Tell) -> tuple[OwnTest, ...]:
    """How each test ended, up to the first that holds the build up."""
    found: list[OwnTest] = []
    for test in tests:
        tell(f"the source's own tests: {test.name}")
        found.append(_carried_out(test, workplace, tell))
        if found[-1].holds_up:
            break
    return tuple(found)


def _carried_out(test: SourceTest, workplace: Workplace, tell: Tell) -> OwnTest:
    if test.carried and not (_path("{source}", workplace) / test.carried).exists():
        return OwnTest(name=test.name, verdict="absent", detail=f"not run: the source has no {test.carried}")
    before = not_root()
    if before is None:
        why = "servers refuse to start as root, and the kernel refuses user namespaces: run as another user"
        return OwnTest(name=test.name, verdict="unable", detail=why)
    limited = ("timeout", "--kill-after=10", str(LONGEST_S), *test.command)
    try:
        run_step(test.but(command=(*_loopback(), *before, *limited)), workplace, tell)
    except (Blocked, DiskFull) as failure:
        return OwnTest(name=test.name, verdict="unable", detail=f"{failure.message}: {failure.hint}")
    except BuildFailed as failure:
        if unknown := _unknown(test, failure):
            return OwnTest(name=test.name, verdict="unable", detail=unknown)
        return OwnTest(name=test.name, verdict="failed", detail=_cause(test, workplace, failure))
    return OwnTest(name=test.name, verdict="passed")


def _unknown(test: SourceTest, failure: BuildFailed) -> str:
    """That the recipe names a test which this source has not; empty where nothing says so."""
    found = re.search(test.unknown, failure.log, re.MULTILINE) if test.unknown else None
    if found is None:
        return ""
    remedy = "let [[tests]] of their own, with `carried`, name those that not every version has"
    return f"the source has no test {found[1]}: {remedy}"


def _cause(test: SourceTest, workplace: Workplace, failure: BuildFailed) -> str:
    """Which tests failed, and how the first one's answer differs; the first error where nothing tells."""
    said = failure.log
    failing = list(re.finditer(test.failing, said, re.MULTILINE)) if test.failing else []
    if not failing:
        return failure.message
    # What was printed before is of tests that passed.
    since = said[failing[0].end() :]
    names = list(dict.fromkeys(found[1].strip() for found in failing))
    more = f" and {len(names) - NAMES_MOST} more" if len(names) > NAMES_MOST else ""
    written = _path(test.differences, workplace)
    answered = written.read_text(errors="replace") if test.differences and written.is_file() else since
    differs = " | ".join(first_difference(answered)) or first_error(since)
    return f"{', '.join(names[:NAMES_MOST])}{more}: {differs}"


def first_difference(text: str) -> list[str]:
    """The first lines that were expected (`-`) or came in their place (`+`), of a unified difference in a
    text; none where it holds no such difference."""
    hunk = dropwhile(lambda line: not line.startswith("@@"), text.splitlines())
    changed: list[str] = []
    for line in list(hunk)[1:]:
        if not line.startswith((" ", "-", "+", "\\")):
            break
        if line.startswith(("-", "+")):
            changed.append(line if len(line) <= LINE_MOST else f"{line[: LINE_MOST - 1]}…")
    return changed[:LINES_MOST]


def _path(place: str, workplace: Workplace) -> Path:
    return workplace.outside(Path("".join(expanded([place], workplace.places))))


def _loopback() -> tuple[str, ...]:
    """What a command follows so that a server can listen on the loopback, which is down in a new namespace of
    the network. Whoever becomes another user may not switch it on any more."""
    return () if wrapper() is None else (sys.executable, "-I", "-c", LOOPBACK_UP)


@cache
def not_root() -> tuple[str, ...] | None:
    """What a command follows so that it is not root, because servers refuse to start as root; None where the
    kernel refuses that. An ordinary user too is root in the namespace that takes the network away. Its files
    stay those of who runs Dyno."""
    isolated = wrapper()
    if os.geteuid() != 0 and isolated is None:
        return ()
    found = ("unshare", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    return found if is_allowed((*(isolated or ()), *found)) else None
