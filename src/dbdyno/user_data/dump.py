"""A dump: how it is packed, told by its contents and not by its name, and its text as a stream.

xz is read with a limit of memory, because its header says how much its reader takes, up to 4 GiB.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from dbdyno.errors import DynoError, UserError, remedy
from dbdyno.host.process import die_with_parent

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MEMORY_MOST_BYTES = 300 << 20
"""`xz -9` takes 65 MiB."""
CHUNK_BYTES = 128 << 10


def xz_unpacked(file: IO[bytes], path: Path) -> io.BufferedReader:
    """The same of a file that is open, and stays so."""
    return io.BufferedReader(_OfXz(file, path, closes=False), CHUNK_BYTES)


class _OfXz(io.RawIOBase):
    """Streams one behind the other, with zeros between them, as xz reads them."""

    def __init__(self, file: IO[bytes], path: Path, closes: bool) -> None:
        self._file, self._path, self._closes = file, path, closes
        self._stream = self._new_stream()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        room = memoryview(buffer).cast("B")
        while len(room):
            packed = b""
            if self._stream.eof:
                packed = self._next_stream()
                if not packed:
                    return 0
            elif self._stream.needs_input:
                packed = self._file.read(CHUNK_BYTES)
                if not packed:
                    raise EOFError("it ends too early")
            text = self._unpack(packed, len(room))
            if text:
                room[: len(text)] = text
                return len(text)
        return 0

    def close(self) -> None:
        if self._closes:
            self._file.close()
        super().close()

    def _unpack(self, packed: bytes, most: int) -> bytes:
        try:
            return self._stream.decompress(packed, most)
        except lzma.LZMAError as error:
            if "Memory" not in str(error):
                raise
            raise UserError(
                f"{self._path} takes more than {MEMORY_MOST_BYTES >> 20} MiB of memory to unpack",
                f"unpack it yourself if you trust it: xz -dk {self._path}",
            ) from None

    def _next_stream(self) -> bytes:
        """Begins a stream; returns the beginning of what is packed in it, and nothing where there is none."""
        left = self._stream.unused_data.lstrip(b"\0")
        while not left:
            more = self._file.read(CHUNK_BYTES)
            if not more:
                return b""
            left = more.lstrip(b"\0")
        self._stream = self._new_stream()
        return left

    @staticmethod
    def _new_stream() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY_MOST_BYTES)


HEAD_BYTES = 64 << 10
"""Enough to hold what a tool writes before the first table."""
TABLE_OF_CONTENTS = "toc.dat"
"""The file that a directory has which `pg_dump` wrote, and the first one in such a tar."""
GROWTH = 3
GROWTH_PACKED = 12
"""How many bytes of data a byte of a dump is taken to become, with indexes and logs."""

BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, OSError)


class Packing(StrEnum):
    """What a file is packed with."""

    NONE = "nothing"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTD = "zstd"


MAGIC = {
    b"\x1f\x8b": Packing.GZIP,
    b"BZh": Packing.BZIP2,
    b"\xfd7zXZ\x00": Packing.XZ,
    b"\x28\xb5\x2f\xfd": Packing.ZSTD,
}


class ByteSource(Protocol):
    """Where bytes come from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Dump:
    """A file or a directory that holds a dump. `head` is its beginning, unpacked; empty for a directory.

    An `archive` holds no SQL: a program of the engine's turns it into some.
    """

    path: Path
    packing: Packing
    head: bytes
    archive: bool

    @property
    def size_bytes(self) -> int:
        if self.path.is_dir():
            return sum(file.stat().st_size for file in self.path.iterdir() if file.is_file())
        return self.path.stat().st_size

    @property
    def is_text(self) -> bool:
        return not self.archive and bool(self.head.strip()) and b"\x00" not in self.head

    @property
    def needed_bytes(self) -> int:
        """About how much disk its data take."""
        packed = self.archive or self.packing is not Packing.NONE
        return self.size_bytes * (GROWTH_PACKED if packed else GROWTH)


@dataclass(frozen=True)
class DumpText:
    """A dump's text while it is read; `done_bytes` says how much of the file is behind."""

    source: ByteSource
    file: IO[bytes] | None

    @property
    def done_bytes(self) -> int:
        # A program that unpacks the file shares its position.
        return os.lseek(self.file.fileno(), 0, os.SEEK_CUR) if self.file else 0


def dump_at(path: Path) -> Dump:
    """The dump at a path. Raises UserError where there is none, or where it is packed in a way that nothing
    here unpacks."""
    if path.is_dir():
        if not (path / TABLE_OF_CONTENTS).is_file():
            raise UserError(
                f"{path} is a folder and no dump", "a server's data folder is given as `folder`, not `dump`"
            )
        return Dump(path, Packing.NONE, b"", archive=True)
    try:
        with path.open("rb") as file:
            start = file.read(512)
    except FileNotFoundError:
        raise UserError(f"there is no {path}", "a relative path counts from the study's folder") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", remedy(error)) from None
    if not start:
        raise UserError(f"{path} is empty", "write the dump again")
    packing = packing_of(start)
    dump = Dump(path, packing, start, archive=_is_archive(start))
    if dump.archive:
        return dump
    with text_of(dump) as text:
        return Dump(path, packing, filled(text.source, HEAD_BYTES), archive=False)


def packing_of(start: bytes) -> Packing:
    """What a file that begins so is packed with."""
    return next((one for magic, one in MAGIC.items() if start.startswith(magic)), Packing.NONE)


def filled(source: ByteSource, size: int) -> bytes:
    """So many bytes, fewer only at the end."""
    parts, left = [], size
    while left and (part := source.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


@contextmanager
def text_of(dump: Dump, unarchive: Sequence[str] = ()) -> Iterator[DumpText]:
    """The dump's text. `unarchive` is the program that turns an archive on its standard input into SQL, or
    that names its directory. Raises UserError where the dump turns out to be damaged."""
    if dump.path.is_dir():
        with _through(unarchive, None, dump.path) as source:
            yield DumpText(source, None)
        return
    if dump.archive:
        with dump.path.open("rb", buffering=0) as file, _through(unarchive, file, dump.path) as source:
            yield DumpText(source, file)
        return
    try:
        with unpacked(dump.path, dump.packing) as text:
            yield text
    except BROKEN as error:
        raise _damaged(dump.path, str(error)) from None


@contextmanager
def unpacked(path: Path, packing: Packing) -> Iterator[DumpText]:
    """What a packed file holds: a dump, a log or a result. Reading raises one of BROKEN where the file is
    damaged, and UserError where zstd says so or unpacking takes too much memory."""
    with path.open("rb", buffering=0) as file:
        if packing is Packing.ZSTD:
            with _through([_zstd(path), "-dc"], file, path) as source:
                yield DumpText(source, file)
        elif packing is Packing.GZIP:
            yield DumpText(gzip.GzipFile(fileobj=file, mode="rb"), file)
        elif packing is Packing.BZIP2:
            yield DumpText(bz2.BZ2File(file), file)
        elif packing is Packing.XZ:
            yield DumpText(xz_unpacked(file, path), file)
        else:
            yield DumpText(file, file)


@contextmanager
def _through(command: Sequence[str], file: IO[bytes] | None, path: Path) -> Iterator[ByteSource]:
    """What a program makes of the file."""
    child = subprocess.Popen(
        list(command),
        stdin=file if file is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=die_with_parent(),
    )
    assert child.stdout is not None and child.stderr is not None
    try:
        yield child.stdout
        # Whoever read a part alone has no interest in its end.
        if not child.stdout.read(1) and child.wait():
            raise _damaged(path, child.stderr.read().decode("utf-8", "replace").strip())
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        child.stderr.close()


def _zstd(path: Path) -> str:
    program = shutil.which("zstd")
    if program is None:
        raise UserError(f"{path} is packed with zstd, which is not on this machine", "install zstd")
    return program


def _damaged(path: Path, reason: str) -> DynoError:
    last = reason.splitlines()[-1] if reason else "it ends too early"
    return UserError(f"{path} cannot be read to its end: {last}", "write the dump again")


def _is_archive(start: bytes) -> bool:
    """Whether a file begins as one that `pg_dump` wrote in its custom format, or as a tar."""
    if start.startswith(b"PGDMP"):
        return True
    is_tar = len(start) >= tarfile.BLOCKSIZE and start[257:262] == b"ustar"
    return is_tar and start.startswith(TABLE_OF_CONTENTS.encode() + b"\x00")
