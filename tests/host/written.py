"""Where Dyno really writes: whole runs under strace(1), against the places that `dyno plan` names.

`python -m tests.host.written [STUDY...]` runs short forms of studies: those that are named, or else those of
the tree and of HOSTILE, whose statements try to write elsewhere. It prints a line for each: how many paths
were written to, and those that the plan does not name. It ends with 1 where there is one. Each study has
folders of its own outside of the temporary ones, because there every program may write.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.host.namespaces import SEEN
from dbdyno.host.paths import HOST_VARIABLE, cache_place
from tests.needs import lasting_folder

ROOT = Path(__file__).parents[2]
OPENING = ("open", "openat", "openat2", "creat")
FORKING = ("clone", "clone3", "fork", "vfork")
CHANGING = (
    "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "link", "linkat",
    "symlink", "symlinkat", "truncate", "chmod", "fchmodat", "chown", "lchown", "fchownat", "mknod",
    "mknodat",
)  # fmt: skip
LINKING = ("link", "linkat", "symlink", "symlinkat")
MOVING = ("chdir", "fchdir")
CALL = re.compile(r"(?P<name>\w+)\((?P<given>.*)\)\s+= (?P<code>-?\d+)(?:<(?P<path>[^>]*)>)?")
TEXT = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<base>[^>]*)>, )?(?P<text>"(?:[^"\\]|\\.)*")')
FOR_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
HARMLESS = (
    "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full", "/dev/tty", "/dev/ptmx",
    "/dev/pts/*", "/proc/[0-9]*", "/proc/self/*", "/proc/thread-self/*", "pipe:*", "socket:*",
    "anon_inode:*", "/memfd:*", str(SEEN),
)  # fmt: skip
"""What holds no data of the host: devices that keep nothing, a process's own files, and the image as the
maker of a file system sees it, in a /dev of its own."""
SHORTER = (
    (r"(?m)^blocks(\s*)=.*", r"blocks\1= 1"),
    (r"(?m)^(duration|load)(\s*)=.*", r'\1\2= "1s"'),
    (r"(?m)^(power_cuts|torn_pages|kills|images)(\s*)=\s*\d+", r"\1\2= 1"),
    (r"(?m)^time(\s*)=.*", r'time\1= "3m"'),
)
STUDY_S = 900.0


@dataclass(frozen=True)
class Hostile:
    """A study that a user did not read: `statement` writes to `{victim}` when it is executed."""

    name: str
    engine: str
    statement: str
    settings: str = ""


HOSTILE = (
    Hostile("outfile", "mariadb@11.8", "SELECT 1 INTO OUTFILE '{victim}'"),
    Hostile("copy", "postgresql", "COPY (SELECT 1) TO '{victim}'"),
    Hostile("program", "postgresql", "COPY (SELECT 1) TO PROGRAM 'cat >{victim}'"),
    Hostile("vacuum", "sqlite", "VACUUM INTO '{victim}'"),
    Hostile(
        "log",
        "mariadb@11.8",
        "SELECT 1",
        '"config.general_log" = "ON"\n"config.general_log_file" = "{victim}"',
    ),
)


def written(logs: Path, folder: str) -> Iterator[str]:
    """The paths that processes wrote to, from strace's file for each of them. One that no other began, as far
    as the files tell, began in `folder`."""
    calls = {int(path.suffix[1:]): _calls(path) for path in logs.iterdir()}
    begun = {int(call["code"]) for told in calls.values() for call in told if call["name"] in FORKING}
    for process in calls.keys() - begun:
        yield from _written(calls, process, folder)


def _calls(path: Path) -> list[re.Match[str]]:
    lines = path.read_text(errors="surrogateescape").splitlines()
    return [call for line in lines if (call := CALL.match(line))]


def _written(calls: Mapping[int, list[re.Match[str]]], process: int, folder: str) -> Iterator[str]:
    """The paths that a process wrote to, which began in a folder, and all that it began."""
    for call in calls.get(process, ()):
        name, given, came = call["name"], call["given"], call["path"] or ""
        if name in FORKING:
            yield from _written(calls, int(call["code"]), folder)
        elif name == "chdir":
            folder = next(_paths(given, folder), folder)
        elif name == "fchdir":
            folder = given.partition("<")[2].rstrip(">") or folder
        elif name in OPENING:
            if name == "creat" or FOR_WRITING.search(given):
                # A file without a name has that of its folder.
                yield came.removesuffix(" (deleted)")
        else:
            paths = list(_paths(given, folder))
            # What a link leads to stays as it is.
            yield from paths[-1:] if name in LINKING else paths


def _paths(given: str, folder: str) -> Iterator[str]:
    """The paths among what a call was given, each whole."""
    for found in TEXT.finditer(given):
        text = ast.literal_eval(f"b{found['text']}").decode(errors="surrogateescape")
        yield os.path.normpath(Path(found["base"] or folder) / text)


def watched(
    command: Sequence[str], options: Mapping[str, Any]
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Runs a command, with options of `subprocess.run`, and gives the paths that were written to."""
    with tempfile.TemporaryDirectory(prefix="dyno-traced-") as logs:
        calls = ",".join((*OPENING, *FORKING, *CHANGING, *MOVING))
        trace = ["strace", "-ff", "--seccomp-bpf", "-qq", "-y", "-z", "-s", "8192", "-e", f"trace={calls}"]
        trace += ["-e", "signal=none", "-o", f"{logs}/log"]
        done = subprocess.run([*trace, *command], timeout=STUDY_S, text=True, capture_output=True, **options)
        return done, set(written(Path(logs), str(options["cwd"])))


def undeclared(paths: Iterable[str], places: Iterable[str]) -> list[str]:
    """Those that lie in no place, in which `*` stands for anything. The folders above a place may have to be
    made."""
    places = list(places)
    above = {str(folder) for place in places for folder in Path(place).parents}
    allowed = [*HARMLESS, *(pattern for place in places for pattern in (place, f"{place}/*"))]
    return sorted(
        path
        for path in set(paths) - above
        if not any(fnmatch.fnmatchcase(path, pattern) for pattern in allowed)
    )


def short_form(text: str) -> str:
    """A study of one block with a second of load."""
    for pattern, shorter in SHORTER:
        text = re.sub(pattern, shorter, text)
    return text


STUDY = """
title = "{name}"
engine = "{engine}"
blocks = 1
aa = true
[workload]
name = "script"
file = "load.toml"
clients = 1
duration = "1s"
[settings]
{settings}
"""
LOAD = """
[[transactions]]
name = "write"
statements = ["{statement}"]
"""


def short_study(study: Path, folder: Path) -> Path:
    """The short form of a study, with all that lies beside it, and the patches of the tree."""
    shutil.copytree(study.parent, folder / "studies")
    shutil.copytree(ROOT / "patches", folder / "patches")
    path = folder / "studies" / study.name
    path.write_text(short_form(path.read_text()))
    return path


def hostile_study(one: Hostile, folder: Path, victim: Path) -> Path:
    """The study with its workload file."""
    (folder / "load.toml").write_text(LOAD.format(statement=one.statement.format(victim=victim)))
    path = folder / f"{one.name}.toml"
    settings = one.settings.format(victim=victim)
    path.write_text(STUDY.format(name=one.name, engine=one.engine, settings=settings))
    return path


def traced(study: Path, home: Path) -> tuple[str, set[str], list[str]]:
    """How the run of a study ended, the paths that it wrote to, and those that its plan does not name."""
    environment = {
        **os.environ,
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "DATA", "STATE", "CONFIG")},
        "XDG_RUNTIME_DIR": str(home / "run"),
        HOST_VARIABLE: str(home / "host"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name in ("cache/dyno", "run", "host"):
        (home / name).mkdir(parents=True, mode=0o700)
    engines = cache_place() / "engines"
    if engines.is_dir():
        (home / "cache/dyno/engines").symlink_to(engines)
    dyno = [str(Path(sys.executable).with_name("dyno"))]
    where: dict[str, Any] = {"cwd": study.parent, "env": environment}
    planned = subprocess.run([*dyno, "plan", str(study), "--json"], text=True, capture_output=True, **where)
    if planned.returncode != 0:
        return f"refused: {planned.stderr.strip().splitlines()[-1]}", set(), []
    places = [one["place"] for one in json.loads(planned.stdout)["writes"]]
    done, paths = watched([*dyno, "run", str(study), "--quiet"], where)
    ended = f"exit {done.returncode}"
    if done.returncode not in (0, 1, 3):
        ended += f": {done.stderr.strip().splitlines()[-1]}"
    return ended, paths, undeclared(paths, places)


def main(names: list[str]) -> int:
    hostile = {one.name: one for one in HOSTILE}
    named: list[Path | Hostile] = [hostile.get(name) or Path(name) for name in names]
    studies = named or [*sorted((ROOT / "studies").glob("*.toml")), *HOSTILE]
    failed = 0
    for study in studies:
        with tempfile.TemporaryDirectory(dir=lasting_folder(), prefix=".dyno-written-") as folder:
            home, given, victim = (Path(folder) / name for name in ("home", "given", "victim"))
            given.mkdir()
            if isinstance(study, Hostile):
                place = hostile_study(study, given, victim)
            else:
                place = short_study(study, given)
            ended, paths, others = traced(place, home)
            print(f"{place.stem}: {ended}; {len(paths)} paths written, {len(others)} not in the plan")
            print(*(f"    {path}\n" for path in others), sep="", end="", flush=True)
            failed += bool(others) or victim.exists()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
