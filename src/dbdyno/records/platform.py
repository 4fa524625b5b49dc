"""On what machine's programs a trial ran, where a study varies that."""

from __future__ import annotations

from dbdyno.frozen import Frozen, absent


class Platform(Frozen):
    """The engine's packages of one `architecture`, or a build for it, and what ran them here.

    `version` is the engine's, and `packages` are the engine's own and the C library with Debian's versions.
    `byte_order` and `alignment_bytes` stand in the header of its program: a kernel whose pages are larger
    cannot map it. `page_bytes` is what a program of it was told of the pages here, None where it was told
    nothing. What was `built` here tells its compiler and flags, and its `packages` are the build itself and
    the C library. `emulator` is the program that ran it with its version; empty where this machine ran it
    itself. An engine that is asked by its shell takes so many `instructions` for one transaction.
    """

    architecture: str
    version: str
    packages: str
    byte_order: str
    alignment_bytes: int
    page_bytes: int | None = None
    emulator: str = ""
    built: str = absent("")
    instructions: int | None = absent(None)
