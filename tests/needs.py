"""What a test needs of its machine. Where that is missing the test is skipped and says what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from dbdyno.errors import Blocked
from dbdyno.host.volumes.volume import require_maker


def program_of_administrators(name: str) -> str:
    """The path of a program that may lie where only root's PATH leads; empty where there is none."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin") or ""


needs_pgbouncer = pytest.mark.skipif(
    not program_of_administrators("pgbouncer"), reason="needs pgbouncer: apt install pgbouncer"
)
needs_haproxy = pytest.mark.skipif(
    not program_of_administrators("haproxy"), reason="needs haproxy: apt install haproxy"
)
needs_valgrind = pytest.mark.skipif(
    not (shutil.which("valgrind") and shutil.which("vgdb")), reason="needs valgrind: apt install valgrind"
)
needs_gcc = pytest.mark.skipif(
    not shutil.which("gcc") or os.uname().machine != "x86_64",
    reason="needs gcc on x86-64: apt install gcc libc6-dev",
)
needs_clang = pytest.mark.skipif(not shutil.which("clang"), reason="needs clang: apt install clang")
needs_patch = pytest.mark.skipif(not shutil.which("patch"), reason="needs patch: apt install patch")
needs_ccache = pytest.mark.skipif(not shutil.which("ccache"), reason="needs ccache: apt install ccache")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def skip_blocked(cause: object, remedy: object) -> NoReturn:
    pytest.skip(f"blocked here: {cause}; {remedy}")


@contextmanager
def skipping_blocked() -> Iterator[None]:
    """Skips the test when this machine refuses what stands within."""
    try:
        yield
    except Blocked as refused:
        skip_blocked(refused.message, refused.hint)


def require_file_system(kind: str) -> None:
    """Skips the test without the program that makes this file system. The host's own needs none."""
    if kind == "host":
        return
    with skipping_blocked():
        require_maker(kind)
