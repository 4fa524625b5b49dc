"""Fixtures that every test may use."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from dbdyno.cli.preference_keys import KEYS
from dbdyno.host import once, paths

# How fast an example runs says something of the machine, and nothing of the code.
settings.register_profile("dyno", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dyno")

# A shell without job control lets what runs in the background ignore Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

DYNO = [sys.executable, "-c", "from dbdyno.cli import main; main()"]
"""The command, as a process of its own."""


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Dyno's own folders, all inside a folder of this test. Returns that folder."""
    for variable in ("DATA", "CACHE", "STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(tmp_path / variable.lower()))
    monkeypatch.setenv(paths.HOST_VARIABLE, str(tmp_path / "host"))
    for key in KEYS.values():
        monkeypatch.delenv(key.variable, raising=False)
    # A socket's path has little room, and pytest's own folders are deep.
    with tempfile.TemporaryDirectory(prefix="dyno-") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield tmp_path
    once.release()


@pytest.fixture(scope="session")
def fetched_engines() -> Path:
    """The folder of fetched engines of whoever runs the tests, with those that tests need."""
    for engine in ("mariadb@11.8", "firebird@5"):
        fetched = subprocess.run([*DYNO, "engines", "fetch", engine], capture_output=True, text=True)
        if fetched.returncode != 0:
            pytest.skip(f"{engine} cannot be had here: {fetched.stderr.strip()}")
    return paths.cache() / "engines"


@pytest.fixture
def homes_with_engines(fetched_engines: Path, homes: Path) -> Path:
    """Like `homes`, but with the engines that were fetched already."""
    (paths.cache() / "engines").symlink_to(fetched_engines)
    return homes
