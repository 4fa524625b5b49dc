"""What a test needs of its machine. Where that is missing the test is skipped and says what is missing.

No other module of the tests looks at the machine: what it has changes which tests are skipped, and never
which pass. So the tests begin with surroundings of their own: environment, home, cache, locale and zone.
"""

from __future__ import annotations

import atexit
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

KEPT = re.compile(
    "TMPDIR|VIRTUAL_ENV|RUSTFLAGS|OPENBLAS_NUM_THREADS|DYNO_(REQUIRE|TEST_|FAULTS|LOSSES).*|"
    "(PYTEST|HYPOTHESIS|CARGO|RUSTUP|RUSTC|PYENV|PIP|SSL|CURL|GIT_SSL|NODE_EXTRA|REQUESTS)_.*|"
    "(https?|ftp|all|no)_proxy",
    re.IGNORECASE,
)
"""Variables of whoever runs the tests that stay: how the network is reached, and where the compilers are."""
STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
ELSEWHERE = ("cargo", "rustc", "npm", "node")
"""Programs that many have in a place of its own."""
TAKEN = "DYNO_TEST_HOME"


def _take_surroundings() -> None:
    """Once for the workers of a session and all that they start."""
    if TAKEN in os.environ:
        return
    users, user = dict(os.environ), Path.home()
    home = tempfile.mkdtemp(prefix="dyno-tests-")
    atexit.register(_remove, Path(home), os.getpid())
    kept = Path(users.get("XDG_CACHE_HOME") or user / ".cache")
    found = [str(Path(found).parent) for found in map(shutil.which, ELSEWHERE) if found]
    os.environ.clear()
    os.environ |= {name: value for name, value in users.items() if KEPT.fullmatch(name)}
    os.environ |= {
        TAKEN: home,
        "HOME": home,
        "PATH": os.pathsep.join(dict.fromkeys((*STANDARD_PATH, *found))),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "DYNO_HOST_FOLDER": f"{home}/host",
        # Engines that tests fetched are kept from run to run, apart from those of whoever runs the tests.
        "XDG_CACHE_HOME": str(kept / "dyno-tests"),
    }
    for variable, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
        if (user / folder).is_dir():
            os.environ.setdefault(variable, str(user / folder))
    time.tzset()


def _remove(home: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)


if "PYTEST_VERSION" in os.environ:
    _take_surroundings()

IS_ROOT = os.geteuid() == 0
HOST_NAME = os.uname().nodename
OF_SESSION = Path(os.environ.get(TAKEN, os.devnull)) / "made"
"""Where the workers of a session keep what one of them makes for all."""


def on_machine(*names: str) -> str | None:
    """The path of the first of these programs that is here."""
    return next(filter(None, map(shutil.which, names)), None)


INITDB = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=None)
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
OFTEN_NEEDED = (
    "apt-get", "cargo", "ccache", "clang", "gcc", "git", "ip", "mkfs.ext4", "npm", "openssl", "patch",
    "shellcheck", "strace", "valgrind",
)  # fmt: skip
SSHD = Path("/usr/sbin/sshd")
SYSBENCH = Path(os.environ.get("DYNO_TEST_SYSBENCH_SCRIPTS", "/usr/share/sysbench"))


def program_of_administrators(name: str) -> str:
    """The path of a program that may lie where only root's PATH leads; empty where there is none."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin") or ""


needs_pgbouncer = pytest.mark.skipif(
    not program_of_administrators("pgbouncer"), reason="needs pgbouncer: apt install pgbouncer"
)
needs_haproxy = pytest.mark.skipif(
    not program_of_administrators("haproxy"), reason="needs haproxy: apt install haproxy"
)
needs_slurm = pytest.mark.skipif(
    not all(map(program_of_administrators, ("slurmctld", "slurmd", "munged", "sbatch"))),
    reason="needs Slurm: apt install slurm-wlm munge",
)
needs_valgrind = pytest.mark.skipif(
    not (on_machine("valgrind") and on_machine("vgdb")), reason="needs valgrind: apt install valgrind"
)
needs_gcc = pytest.mark.skipif(
    not on_machine("gcc") or os.uname().machine != "x86_64",
    reason="needs gcc on x86-64: apt install gcc libc6-dev",
)
needs_any_gcc = pytest.mark.skipif(not on_machine("gcc"), reason="needs gcc: apt install gcc libc6-dev")
needs_clang = pytest.mark.skipif(not on_machine("clang"), reason="needs clang: apt install clang")
needs_patch = pytest.mark.skipif(not on_machine("patch"), reason="needs patch: apt install patch")
needs_ccache = pytest.mark.skipif(not on_machine("ccache"), reason="needs ccache: apt install ccache")
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root")
needs_ascii_path = pytest.mark.skipif(
    not f"{__file__}{sys.prefix}".isascii(),
    reason="needs a checkout whose path is ASCII, because Python that speaks ASCII imports from no other",
)


def missing() -> tuple[str, ...]:
    """What many tests need and this machine lacks."""
    there = {
        "root": IS_ROOT,
        "PostgreSQL": INITDB is not None,
        "sysbench": SYSBENCH.is_dir(),
        "sshd": SSHD.exists(),
        "chromium": on_machine(*CHROMIUM),
        **{name: on_machine(name) for name in OFTEN_NEEDED},
    }
    return tuple(name for name, here in there.items() if not here)


def lasting_folder() -> Path:
    """A folder of those that may be written to, outside of the short-lived ones. Root's is one that every
    user may enter."""
    # Dyno's modules keep the environment that they are imported with.
    from dbdyno.host.launch import SHORT_LIVED

    places = (Path("/var/lib"), Path(__file__).parents[1], Path(pwd.getpwuid(os.getuid()).pw_dir))
    lasting = (one for one in places if not any(map(one.is_relative_to, SHORT_LIVED)))
    return next(one for one in lasting if os.access(one, os.W_OK))


def skip_blocked(cause: object, remedy: object) -> NoReturn:
    pytest.skip(f"blocked here: {cause}; {remedy}")


@contextmanager
def skipping_blocked() -> Iterator[None]:
    """Skips the test when this machine refuses what stands within."""
    from dbdyno.errors import Blocked

    try:
        yield
    except Blocked as refused:
        skip_blocked(refused.message, refused.hint)


def require_file_system(kind: str) -> None:
    """Skips the test without the program that makes this file system. The host's own needs none."""
    from dbdyno.host.volumes.volume import require_maker

    if kind == "host":
        return
    with skipping_blocked():
        require_maker(kind)


def require_counted_disk(folder: Path) -> None:
    """Skips the test where the kernel tells of no disk under a folder: in memory, or in a container."""
    from dbdyno.host.room import disk_written_bytes

    if disk_written_bytes(folder) is None:
        pytest.skip(f"this host has no disk of which it counts the writes under {folder}")


PYTHON_OF_SEARCHERS = os.environ.get("DYNO_TEST_SEARCHERS", sys.executable)
"""The interpreter that searchers of others are installed for."""
MODULES_OF_SEARCHERS = {
    "optuna": "optuna",
    "smac": "smac",
    "mlos": "mlos_core, flaml.tune",
    "mlos_bench": "mlos_bench.launcher, flaml.tune",
}


def require_searcher(name: str) -> str:
    """The interpreter that has this searcher. Skips the test without one."""
    modules = MODULES_OF_SEARCHERS[name]
    asked = subprocess.run(
        [PYTHON_OF_SEARCHERS, "-c", f"import {modules}"], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        pytest.skip(f"a searcher is not here: {name}: {(asked.stderr.splitlines() or ['?'])[-1]}")
    return PYTHON_OF_SEARCHERS
