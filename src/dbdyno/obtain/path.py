"""An installed server, named by its path."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dbdyno.errors import EngineUnobtainable, UserError, remedy
from dbdyno.host.writers import require_own
from dbdyno.obtain.installation import Installation, environment_of

NO_PROFILE = {"LLVM_PROFILE_FILE": os.devnull}
"""A program that clang instrumented would write a profile into its working folder."""


def binary(path: str, names: tuple[str, ...]) -> Path:
    """The server's binary at `path`: the file itself, or one of `names` in the folder or in its `bin` or
    `sbin`.

    Raises EngineUnobtainable when there is none, UserError when it cannot be run.
    """
    given = Path(path).expanduser()
    if given.is_dir():
        inside = [
            given / part / name for part in ("", "bin", "sbin", "usr/sbin", "usr/bin") for name in names
        ]
        found = next((one for one in inside if one.is_file()), None)
        if found is None:
            raise EngineUnobtainable(
                f"no {' or '.join(names)} in {given}", "give the path of the server's binary"
            )
        given = found
    if not given.exists():
        raise EngineUnobtainable(
            f"there is no server at {given}", "check the path; `dyno engines` lists what is here"
        )
    if not given.is_file():
        raise UserError(f"{given} is not a program", "give the path of the server's binary")
    if not os.access(given, os.X_OK):
        raise UserError(
            f"{given} is not executable", f"`chmod +x {given}`, or give the path of the server's binary"
        )
    return given.absolute()


def file(path: str, *names: str) -> Path:
    """The library at `path`: itself, or the first of `names` in the folder or its `lib`. Its own name begins
    with one of them.

    Raises EngineUnobtainable when there is none, UserError when it is not for root to load.
    """
    given = Path(path).expanduser()
    places = [given, *(given / part / name for name in names for part in ("", "lib"))]
    found = next((place for place in places if place.name.startswith(names) and place.is_file()), None)
    if found is None:
        raise EngineUnobtainable(
            f"there is no {' or '.join(names)} at {given}", "give the path of the library, or of its folder"
        )
    require_own(found)
    return found.absolute()


def installation(binary: Path, engine: str, pattern: str, title: str) -> Installation:
    """The installation that a server's binary stands in; `pattern` and `title` are those of `version`.

    Raises UserError for another program, and for one that is not for root to run.
    """
    require_own(binary)
    command = (str(binary),)
    return Installation(
        engine=engine,
        version=version(command, pattern, title),
        origin=str(binary),
        prefix=binary.parent.parent,
        command=command,
        digest=digest_of_binary(binary),
    )


def version(command: tuple[str, ...], pattern: str, title: str) -> str:
    """What `--version` says, by the first group of `pattern`. Raises UserError when it is another program."""
    shown = ask(command, "--version")
    found = re.search(pattern, shown)
    if not found:
        first = (shown.strip().splitlines() or ["nothing"])[0]
        raise UserError(
            f"{command[-1]} is not a {title} server: `--version` says {first[:120]!r}",
            f"give the path of {title}'s server binary",
        )
    return found[1]


def ask(command: tuple[str, ...], *arguments: str) -> str:
    """Output of a short, harmless run of the server's binary."""
    done = answer(command, *arguments)
    return done.stdout or done.stderr


def answer(
    command: tuple[str, ...],
    *arguments: str,
    timeout_s: float = 30.0,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """A short, harmless run of the server's binary: what it wrote, what it complained of, and its status."""
    try:
        return subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            cwd="/",
            env=environment_of(NO_PROFILE, environment or {}),
        )
    except OSError as error:
        other_machine = "name one that is built for this machine" if error.errno == errno.ENOEXEC else ""
        told = f"{command[-1]} cannot be run: {error.strerror}"
        raise UserError(told, other_machine or remedy(error)) from None
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{command[-1]} {' '.join(arguments)} did not end", "is it a database server?"
        ) from None


def digest_of_binary(file: Path) -> str:
    """Identifies the bytes of a binary."""
    with file.open("rb") as program:
        return hashlib.file_digest(program, "sha256").hexdigest()[:12]
