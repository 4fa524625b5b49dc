"""The unit of systemd that starts a host's worker."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dbdyno.errors import DynoError
from dbdyno.host import paths

UNIT = "dyno-worker.service"
SYSTEM = Path("/etc/systemd/system")
_TEXT = """[Unit]
Description=Dyno's worker of host {name}
After=network-online.target
Wants=network-online.target

[Service]
EnvironmentFile={environment}
ExecStart={start}
Restart=on-failure
RestartSec=10
# A mistake of the user's is not mended by another start.
RestartPreventExitStatus=2
# It was asked to end.
SuccessExitStatus=130
# The worker restores the host before it ends.
KillMode=mixed
TimeoutStopSec=10min

[Install]
WantedBy={target}
"""


def unit_files(name: str, tags: Sequence[str], url: str, system: bool, output: Path | None) -> Iterator[str]:
    """Writes the unit and the file with the store's URL, and yields what was written and what to type. Raises
    DynoError where a file cannot be written."""
    unit = output or (SYSTEM if system else paths.config_place().parent / "systemd" / "user") / UNIT
    environment = unit.with_suffix(".env").absolute()
    words = [str(Path(sys.argv[0]).absolute()), "fleet", "worker", "start", "--name", name]
    words += [word for tag in tags for word in ("--tag", tag)]
    text = _TEXT.format(
        name=name,
        environment=environment,
        # A command's words may hold specifiers and variables, which are doubled to stand for themselves.
        start=" ".join(_quoted(word).replace("%", "%%").replace("$", "$$") for word in words),
        target="multi-user.target" if system else "default.target",
    )
    try:
        unit.parent.mkdir(parents=True, exist_ok=True)
        _write_own(environment, f"DYNO_STORE={_quoted(url)}\n")
        unit.write_text(text)
    except OSError as error:
        raise DynoError(
            f"cannot write {error.filename or unit}: {error.strerror}", "--output FILE writes it elsewhere"
        ) from None
    yield f"{unit}"
    yield f"{environment}: the store's URL, which only you can read"
    yield "then:"
    how = "systemctl" if system else "systemctl --user"
    given = f" {shlex.quote(str(unit.absolute()))}" if output else f" {UNIT}"
    yield f"  {how} enable --now{given}"
    if not system:
        yield "  loginctl enable-linger    # so that it runs while you are not logged in"


def _write_own(path: Path, text: str) -> None:
    """A file that nobody else reads at any moment."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _quoted(word: str) -> str:
    """A word as systemd reads it, in a command and in a file of variables."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
