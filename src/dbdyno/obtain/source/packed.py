"""A build packed into one file, so that another host can take it, and what must hold there before it does.

All of its folder is packed: what it installed with its symbols, its account, its log and its profiles. What
this host alone knows of it stays: when it was kept, and what it was compared with. The same folder gives the
same bytes, whoever packs it and when.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import Frozen
from dbdyno.host.cache import ACCOUNT
from dbdyno.obtain.source.build import ENVIRONMENT
from dbdyno.obtain.source.making import PREFIX
from dbdyno.obtain.source.profile import KNOWN_TO_ALL
from dbdyno.obtain.tarball import unpack

STAYS = (ACCOUNT, "beside-*.json", "correctness-*.json")
PRESET = 0
"""Of xz. On builds of MariaDB and PostgreSQL it took about as long as zlib's usual level, and left three
quarters of its size; the next levels take twice as long for a tenth less."""
ANSWER_MOST_S = 60.0
LACKING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
LOADS = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"


class Packed(Frozen):
    """A packed build: the hash of the file, and its size."""

    sha256: str
    size_bytes: int


class Damaged(DynoError):
    """What was read is not what was packed."""


def pack(folder: Path, file: Path) -> Packed:
    """Packs the folder of a build into a file."""
    with (
        lzma.open(file, "wb", preset=PRESET) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in _packed_of(folder):
            archive.add(path, str(path.relative_to(folder)), recursive=False, filter=_anonymous)
    with file.open("rb") as packed:
        return Packed(
            sha256=hashlib.file_digest(packed, "sha256").hexdigest(), size_bytes=file.stat().st_size
        )


def written(pieces: Iterable[bytes], file: Path, sha256: str) -> None:
    """Writes a packed build as it is read. Raises Damaged where it is another one than `sha256` says."""
    digest = hashlib.sha256()
    with file.open("wb") as packed:
        for piece in pieces:
            digest.update(piece)
            packed.write(piece)
    if digest.hexdigest() != sha256:
        told = f"its hash is {digest.hexdigest()[:12]}, and not {sha256[:12]}"
        raise Damaged(told, "it is made again")


def unpacked(file: Path, folder: Path) -> None:
    """Unpacks a build into a folder. Raises Damaged where that fails."""
    try:
        with tarfile.open(file, "r:xz") as archive:
            unpack(archive, folder)
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as error:
        raise Damaged(f"it cannot be unpacked: {error}", "it is made again") from None


def content_of(folder: Path) -> str:
    """The digest of what a build installed: of all paths, modes, links and bytes below its prefix."""
    digest, prefix = hashlib.sha256(), folder / PREFIX
    for path in sorted(prefix.rglob("*")):
        place = str(path.relative_to(prefix))
        if path.is_symlink():
            told = f"link {path.readlink()}"
        elif path.is_file():
            with path.open("rb") as file:
                told = f"{path.stat().st_mode & 0o755:o} {hashlib.file_digest(file, 'sha256').hexdigest()}"
        else:
            told = "folder"
        digest.update(f"{place}\0{told}\0".encode())
    return digest.hexdigest()


def require_runs(program: Path, environment: Mapping[str, str], host: str, what: str) -> None:
    """Raises UserError where a host cannot run the program or the library of a build that another host made,
    with what it lacks."""
    cannot = f"host {host} cannot run {what}"
    told = _ran(["ldd", str(program)], environment, cannot)[1]
    if lacking := LACKING.findall(told):
        raise UserError(
            f"{cannot}: it has no {', '.join(dict.fromkeys(lacking))}",
            f"install there what holds them, or leave {host} out",
        )
    is_library = ".so" in program.name
    command = [sys.executable, "-I", "-c", LOADS, str(program)] if is_library else [str(program), "--version"]
    status, told = _ran(command, environment, cannot)
    if status == -signal.SIGILL:
        raise UserError(f"{cannot}: its CPU does not know an instruction of it", KNOWN_TO_ALL)
    if status != 0:
        last = (told.strip().splitlines() or [f"it ended with {status}"])[-1]
        raise UserError(f"{cannot}: {last}", f"mend that there, or leave {host} out")


def _ran(command: list[str], environment: Mapping[str, str], cannot: str) -> tuple[int, str]:
    """How a command ended, and what it said. Raises UserError where it does not end."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_MOST_S,
            env={**os.environ, **environment, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        told = f"{cannot}: `{' '.join(command)}` does not end within {ANSWER_MOST_S:g} s"
        raise UserError(told, "look there what it waits for") from None
    return done.returncode, done.stdout + done.stderr


def _packed_of(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.parent != folder or not any(path.match(pattern) for pattern in STAYS):
            yield path


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what tells who packed it, and when."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = int(ENVIRONMENT["SOURCE_DATE_EPOCH"])
    return member
