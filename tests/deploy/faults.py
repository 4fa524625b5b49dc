"""A host of files, a recipe for it, and faults at a chosen command of the recipe's scripts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.deploy.files import PROGRAMS, SCRIPTS, SOURCED
from tests.needs import on_machine

TOOLS = (
    *("awk", "basename", "cat", "chmod", "cmp", "cp", "date", "dirname", "find", "grep", "id", "mkdir", "mv"),
    *("readlink", "rm", "sed", "stat", "sync"),
)
"""The programs that `apply` and `undo` run."""
PAGE_BYTES = 4096
ROWS = """\
version	345	SELECT VERSION()
file	own.cnf	own	/etc/own.cnf
file	linked.cnf	own	/etc/linked.cnf
file	shared.conf	first	/opt/shared.conf
file	created.conf	last	/etc/folder/created.conf
kernel	/proc/sys/vm/nr_hugepages	75
"""
RECIPE = {
    "recipe.tsv": ROWS,
    "own.cnf": "[mysqld]\ninnodb_io_capacity = 345\n",
    "linked.cnf": "[mysqld]\nmax_connections = 345\n",
    "shared.conf": "DefaultDbCachePages = 3000\n",
    "created.conf": "LD_PRELOAD = 'libjemalloc.so.2'\n",
}
BEFORE = {
    "etc/own.cnf": "[client]\npassword = secret\n",
    "srv/target.cnf": "[mysqld]\nmax_connections = 2\n",
    "opt/shared.conf": "".join(f"Parameter{number} = {number}\n" for number in range(450)) + "Last = 1",
}
"""What the host's files hold. The last one takes several pages of the disk, and ends without a line's end."""
MODES = {"etc/own.cnf": 0o600, "srv/target.cnf": 0o444, "opt/shared.conf": 0o640}
AFTER = {
    "etc/own.cnf": RECIPE["own.cnf"],
    "srv/target.cnf": RECIPE["linked.cnf"],
    "opt/shared.conf": f"# begin dyno\n{RECIPE['shared.conf']}# end dyno\n{BEFORE['opt/shared.conf']}\n",
    "etc/folder/created.conf": f"# begin dyno\n{RECIPE['created.conf']}# end dyno\n",
}


@dataclass(frozen=True)
class Fault:
    """What happens in place of a command, counted from 1: `kill` ends the script and all that it runs; `fill`
    leaves so many pages of the disk that holds recipe and host."""

    kind: str
    command: int
    free_pages: int = 0


class Host:
    """A recipe and a tree that stands for a host, below one folder of `disk`. The kernel's values and the
    counter of commands lie in `aside`, which no fault fills."""

    def __init__(self, disk: Path, aside: Path, shell: Sequence[str]) -> None:
        self.disk, self.aside, self.shell = disk, aside, shell
        self.recipe, self.root = disk / "a recipe", disk / "the host"
        self.value = aside / "proc/sys/vm/nr_hugepages"
        self._write_tools()

    def make(self) -> None:
        """The host as it is before any `apply`."""
        for folder in (self.recipe, self.root):
            shutil.rmtree(folder, ignore_errors=True)
        self.recipe.mkdir()
        for name, text in RECIPE.items():
            (self.recipe / name).write_text(text)
        for name in (*PROGRAMS, *SOURCED):
            shutil.copy(SCRIPTS / name, self.recipe / name)
        for name, text in BEFORE.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(MODES[name])
        (self.root / "etc/linked.cnf").symlink_to("/srv/target.cnf")
        self.value.parent.mkdir(parents=True, exist_ok=True)
        self.value.write_text("0\n")
        (self.root / "proc").symlink_to(self.aside / "proc")

    def applied(self) -> None:
        """The host as a whole `apply` leaves it."""
        if not (self.aside / "applied").exists():
            self.make()
            self.run("apply")
            self.keep("applied")
        self.lay("applied")

    def keep(self, name: str) -> None:
        """Keeps aside, by a name, what host and recipe are."""
        kept = self.aside / name
        shutil.rmtree(kept, ignore_errors=True)
        for folder in (self.recipe, self.root):
            shutil.copytree(folder, kept / folder.name, symlinks=True)
        shutil.copy(self.value, kept / self.value.name)

    def lay(self, name: str) -> None:
        """Makes host and recipe what was kept by this name."""
        kept = self.aside / name
        for folder in (self.recipe, self.root):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(kept / folder.name, folder, symlinks=True)
        shutil.copy(kept / self.value.name, self.value)

    def run(
        self, script: str, fault: Fault | None = None, counted: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script, with a fault on its way. Its commands are counted where there is one."""
        counted = counted or fault is not None
        shutil.rmtree(self.aside / "ran", ignore_errors=True)
        (self.aside / "ran").mkdir()
        room = self.disk / "room"
        if fault is not None and fault.kind == "fill":
            room.write_bytes(bytes(fault.free_pages * PAGE_BYTES))
        environment = {
            "PATH": f"{self.aside / 'bin'}:{os.environ['PATH']}" if counted else os.environ["PATH"],
            "DESTDIR": str(self.root),
            "FAULT": fault.kind if fault is not None else "",
            "AT": str(fault.command) if fault is not None else "0",
        }
        said = subprocess.run(
            [*self.shell, str(self.recipe / script)],
            env=environment,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            # A kill of the group ends the script and its commands, and not the tests.
            start_new_session=True,
        )
        for filler in (room, self.disk / "filler"):
            filler.unlink(missing_ok=True)
        return said

    @property
    def commands(self) -> int:
        """How many commands the last script has run."""
        return len(list((self.aside / "ran").iterdir()))

    def files(self) -> dict[str, str]:
        """The contents of all files, without the links."""
        paths = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path.relative_to(self.root)): path.read_text() for path in paths}

    def kept(self) -> list[str]:
        """The contents of all files that the recipe's folder has kept."""
        folders = [self.recipe / "saved", *self.recipe.glob("undone-*")]
        return [path.read_text() for folder in folders for path in folder.rglob("*") if path.is_file()]

    def _write_tools(self) -> None:
        """A program for each tool, which takes the next number, does what the fault says at that one, and
        becomes the tool. Those of a pipe start at the same time, so a number is a file that one can make. The
        first that is tried is how many there are, because trying all takes longer than most of the tools."""
        folder = self.aside / "bin"
        folder.mkdir(parents=True)
        ran, filler, room = self.aside / "ran", self.disk / "filler", self.disk / "room"
        for tool in TOOLS:
            real = f"busybox {tool}" if self.shell[0] == "busybox" else on_machine(tool)
            (folder / tool).write_text(
                f"#!/bin/sh\ncount() {{ number=$#; }}\ncount '{ran}'/*\nset -C\n"
                f"while ! printf '' 2>/dev/null >'{ran}'/$number; do number=$((number + 1)); done\nset +C\n"
                f"case $number,$FAULT in\n  $AT,kill) kill -9 0 ;;\n"
                f"  $AT,fill) /bin/cat /dev/zero >'{filler}' 2>/dev/null; /bin/rm '{room}' ;;\nesac\n"
                f'exec {real} "$@"\n'
            )
            (folder / tool).chmod(0o755)


def wrong(host: Host) -> list[str]:
    """What a fault has destroyed: a file that is neither its old nor its new contents, another mode, or a
    good copy that is nowhere any more."""
    found, kept, said = host.files(), host.kept(), []
    for name in AFTER:
        text = found.get(name)
        if text not in (BEFORE.get(name), AFTER[name]):
            said.append(f"{name} is neither old nor new: {text if text is None else text[-80:]!r}")
        if name in BEFORE and BEFORE[name] not in (text, *kept):
            said.append(f"no copy of {name} is left")
        if name in MODES and name in found and (host.root / name).stat().st_mode & 0o777 != MODES[name]:
            said.append(f"{name} has another mode")
    for path in filter(Path.is_file, host.disk.rglob("*")):
        if host.recipe / "saved" not in path.parents and path.stat().st_mode & 0o077:
            said += [f"others can read the password in {path}"] * ("secret" in path.read_text())
    if (host.recipe / "saved").exists() and (host.recipe / "saved").stat().st_mode & 0o077:
        said.append("others can look into the folder of copies")
    if not (host.root / "etc/linked.cnf").is_symlink():
        said.append("the link is gone")
    return said


def after_fault(host: Host, script: str, fault: Fault, orders: Iterable[Sequence[str]]) -> list[str]:
    """What is wrong after a fault in a script, or after one of the orders of scripts that may follow it, each
    of which must succeed."""
    host.make() if script == "apply" else host.applied()
    said = host.run(script, fault)
    problems = [f"{script} with {fault}: {one}" for one in wrong(host)]
    if fault.kind == "kill" and said.returncode not in (-signal.SIGKILL, 0):
        problems.append(f"{script} with {fault} ended with {said.returncode}: {said.stderr}")
    if said.returncode == 0 and host.files() != (AFTER if script == "apply" else BEFORE):
        problems.append(f"{script} with {fault} says that all is done, and it is not")
    host.keep("faulted")
    for then in orders:
        host.lay("faulted")
        for follower in then:
            told = host.run(follower)
            problems += [f"{follower} after {script} with {fault}: {one}" for one in wrong(host)]
            if told.returncode != 0:
                problems.append(f"{follower} after {script} with {fault}: {told.returncode} {told.stderr}")
        if host.files() != BEFORE:
            problems.append(f"{then} after {script} with {fault}: the host is not as before")
        if (value := host.value.read_text()) != "0\n":
            problems.append(f"{then} after {script} with {fault}: the kernel's value is {value}")
    return problems
