"""What stands between driver and server: a pooler that passes SQL on, or an application that takes requests.

A study describes a program of the user's in `[front.NAME]`, and Dyno those that it knows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import StrEnum
from pathlib import Path
from string import Template

from dbdyno.frozen import Frozen, absent

FRONT_KIND, NO_FRONT = "front.kind", "none"
"""The factor that puts a program in front of the server, and its level without one."""
REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(\[[\w., -]*\])?(==([\w.+!-]+))?")
"""A package of Python's and its extras, alone or in one version."""
REQUEST = re.compile(r"[A-Z]+ /\S*")
OF_PACKAGES = "${environment}"
OF_SETTING = ("name", "value", "section", "key")
ALWAYS = ("account", "configuration", "database", "folder", "group", "port", "runtime", "server", "user")
"""What `${...}` can name in each text, whatever else a section has."""
OF_FILES = (*ALWAYS, "data", "environment", "server_port", "settings", "socket", "workers")


class StopSignal(StrEnum):
    """What asks a program for a clean end."""

    TERM = "SIGTERM"
    INT = "SIGINT"


class FrontProgram(Frozen):
    """A program between driver and server. In `command`, in `socket`, in the commands of `prepare` and in the
    files of `configuration`, `${runtime}` stands for a folder of its own, `${configuration}` for the path of
    the first of those files as it was filled in, `${server}` and `${folder}` for the server's socket and its
    folder, `${port}` for a free port of loopback, `${database}` and `${user}` for what the load uses,
    `${account}` and `${group}` for whom it runs as, and `${settings}` for each of its levels in the form
    `setting`, where a name's part before the last dot is the `${section}` and the rest the `${key}`. It
    listens on the `socket`, else on that port.

    What passes SQL on says what it runs with in answer to `show`, which goes to `show_at`: a database of its
    own, or the path of a socket. Where it `shares` the server's sessions, nothing may outlive a transaction.

    What is `ready` once it answers a request is an application, and takes requests. Its commands of `prepare`
    make its tables in an empty database, and may keep files in the folder `${data}`. `packages` are what a
    virtual environment of Python, `${environment}`, must hold. Each of its `workers` writes what it runs with
    into `told-PID` of its folder, and may keep in `spent-PID` what it has spent (`applications/front.py`).

    The signal `stop` asks it for a clean end."""

    command: str
    configuration: tuple[str, ...] = ()
    socket: str = ""
    setting: str = "${name} = ${value}"
    show: str = ""
    show_at: str = ""
    shares: bool = False
    stop: StopSignal = StopSignal.TERM
    ready: str = absent("")
    prepare: tuple[str, ...] = absent(())
    packages: tuple[str, ...] = absent(())
    workers: int | None = absent(None)

    @property
    def in_sections(self) -> bool:
        """Whether its file has its settings in sections."""
        return any(f"${{{part}}}" in self.setting for part in ("section", "key"))

    def faults(self, name: str) -> Iterator[tuple[str, str, str]]:
        """What in `[front.NAME]` does not fit together: its key, what is wrong, and what to do."""
        if self.prepare and not self.ready:
            told = f"`prepare` makes the tables of an application, and {name} has no `ready`"
            yield "prepare", told, 'write the request that it answers: ready = "GET /health"'
        if self.shares and self.ready:
            told = f"`shares` is of statements, and {name} takes requests"
            yield "shares", told, "leave it out"
        files = [Path(file).name for file in self.configuration]
        for file in sorted({file for file in files if files.count(file) > 1}):
            yield "configuration", f"two files are called {file}", "give each its own name"
        yield from self._wrong_names(name)

    def _wrong_names(self, name: str) -> Iterator[tuple[str, str, str]]:
        """Those that stand for nothing where they are written."""
        more = {"socket": self.socket, "data": self.prepare, "workers": self.workers}
        known = [*ALWAYS, *(one for one, has in more.items() if has), "server_port", "environment"]
        for key in ("command", "prepare", "socket", "show_at", "setting"):
            given = getattr(self, key)
            text = given if isinstance(given, str) else "\n".join(given)
            for told, hint in misnamed(text, OF_SETTING if key == "setting" else known):
                yield key, f"{told} in `{key}` of {name}", hint
            if OF_PACKAGES in text and not self.packages:
                told = f"{OF_PACKAGES} stands for the packages of {name}, and it has none"
                yield key, told, 'name them: packages = ["gunicorn==23.0.0"]; or write the path'


def misnamed(text: str, allowed: Collection[str] = OF_FILES) -> Iterator[tuple[str, str]]:
    """What in a text, by default one of a file, stands for nothing, and what to do."""
    template = Template(text)
    for one in sorted({*template.get_identifiers()}.difference(allowed)):
        known = ", ".join(sorted(allowed))
        yield f"${{{one}}} stands for nothing", f"write $$ for a dollar sign; known here are {known}"
    if not template.is_valid():
        yield "a `$` begins no name", "write $$ for a dollar sign"
