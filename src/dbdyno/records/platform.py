"""On what machine's programs a trial ran, where a study varies that."""

from __future__ import annotations

from dbdyno.frozen import Frozen


class Platform(Frozen):
    """The engine's packages of one `architecture`, and what ran them here.

    `version` is the engine's, and `packages` are the engine's own and the C library with Debian's versions.
    `byte_order` and `alignment_bytes` stand in the header of its program: a kernel whose pages are larger
    cannot map it. `page_bytes` is what a program of it was told of the pages here, None where it was told
    nothing. `emulator` is the program that ran it with its version; empty where this machine ran it itself.
    """

    architecture: str
    version: str
    packages: str
    byte_order: str
    alignment_bytes: int
    page_bytes: int | None = None
    emulator: str = ""
