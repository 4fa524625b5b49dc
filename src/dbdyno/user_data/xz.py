"""Reading what xz packed, with a limit of memory: its header says how much its reader takes, up to 4 GiB."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dbdyno.errors import UserError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MEMORY_MOST_BYTES = 300 << 20
"""`xz -9` takes 65 MiB."""
CHUNK_BYTES = 128 << 10


def opened(path: Path) -> io.BufferedReader:
    """What the file at a path holds, unpacked. Reading raises UserError where that takes too much memory,
    EOFError where the file is cut, and LZMAError where it is damaged."""
    return io.BufferedReader(_Unpacked(path.open("rb"), path, closes=True), CHUNK_BYTES)


def unpacked(file: IO[bytes], path: Path) -> io.BufferedReader:
    """The same of a file that is open, and stays so."""
    return io.BufferedReader(_Unpacked(file, path, closes=False), CHUNK_BYTES)


class _Unpacked(io.RawIOBase):
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
