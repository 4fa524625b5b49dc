"""What stands between driver and server: a pooler that passes SQL on, or an application that takes requests.

A study describes a program of the user's in `[front.NAME]`, and Dyno those that it knows.
"""

from __future__ import annotations

import re
from enum import StrEnum

from dbdyno.frozen import Frozen, absent

FRONT_KIND, NO_FRONT = "front.kind", "none"
"""The factor that puts a program in front of the server, and its level without one."""
REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(\[[\w., -]*\])?(==([\w.+!-]+))?")
"""A package of Python's and its extras, alone or in one version."""
REQUEST = re.compile(r"[A-Z]+ /\S*")
OF_PACKAGES = "${environment}"
OF_SECTIONS = ("${section}", "${key}")


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
        return any(part in self.setting for part in OF_SECTIONS)
