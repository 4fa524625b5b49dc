"""Where Dyno keeps its files, after the XDG Base Directory Specification 0.8, but for what the next Dyno must
find whatever its variables are. Each function makes the folder it names, except those with `place` in their
name: a verb that only reads must not need the right to write.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.errors import DynoError, UserError, remedy

PACKAGE, CARRIED = Path(__file__).parents[1], "examples"
HOST_VARIABLE = "DYNO_HOST_FOLDER"
ROOTS_HOST, USERS_HOSTS = Path("/var/lib/dyno"), Path("/var/tmp")
"""Both outlast a start of the host, as files do that the journal tells of."""
MARKS = "standing"

SOCKET_PATH_BYTES = 107
"""What `sockaddr_un.sun_path` holds on Linux, without its closing zero (unix(7))."""

LONGEST_RUNTIME_BYTES = 60
"""A runtime folder longer than this leaves too little of the socket's 107 bytes for a trial's own folder."""


def carried_place() -> Path:
    """The folder that holds what comes along with Dyno's package: studies, and all that they refer to."""
    tree = PACKAGE.parent.parent
    # Of a clone its own files, because what its last build carried may be older.
    return tree if (tree / "pyproject.toml").is_file() else PACKAGE / CARRIED


def code_files(package: Path = PACKAGE) -> list[Path]:
    """The files of Dyno's own Python code. What comes along has programs of studies among it, which a clone
    has from its last build, or not at all."""
    return [path for path in sorted(package.rglob("*.py")) if not path.is_relative_to(package / CARRIED)]


def data() -> Path:
    """The store and the reports: what a user would miss."""
    return _made(data_place(), "XDG_DATA_HOME")


def data_place() -> Path:
    return _place("XDG_DATA_HOME", ".local/share")


def reports_place() -> Path:
    """The pages of runs that have ended, and the flame graphs. It need not be there."""
    return data_place() / "reports"


def page_of_run(run: str) -> Path:
    """Where the page of a run is written when it ends. It need not be there, nor be writable."""
    return reports_place() / f"{run}.html"


PROFILE, AGAINST = "-profile-", "-against-"
"""Stand in the name of a page of flame graphs between its run, its variant and the other one."""


def flame_graphs(run: str) -> list[tuple[Path, tuple[str, ...]]]:
    """The pages of flame graphs that were made of a run, each with the variants that its name tells."""
    found = sorted(one for one in reports_place().glob("*.html") if one.name.startswith(f"{run}{PROFILE}"))
    return [(one, tuple(one.stem.removeprefix(f"{run}{PROFILE}").split(AGAINST))) for one in found]


def reports_state() -> int:
    """What differs where a page was added to the reports or taken out; 0 where there are none."""
    with suppress(OSError):
        return reports_place().stat().st_mtime_ns
    return 0


def store_place() -> Path:
    """The store of whoever names none. It need not be there."""
    return data_place() / "dyno.sqlite"


def store_place_url() -> str:
    """The same as the URL of a store."""
    return f"sqlite:///{store_place()}"


def cache() -> Path:
    """Fetched engines and pristine data: what can be made again."""
    return _made(cache_place(), "XDG_CACHE_HOME")


def cache_place() -> Path:
    return _place("XDG_CACHE_HOME", ".cache")


def config_place() -> Path:
    """What a user sets once. Dyno reads it and never writes it."""
    return _place("XDG_CONFIG_HOME", ".config")


def state() -> Path:
    """What Dyno kept of a fault of its own, and records that wait for their store."""
    return _made(state_place(), "XDG_STATE_HOME")


def state_place() -> Path:
    return _place("XDG_STATE_HOME", ".local/state")


def host() -> Path:
    """Journals, and notes that other users may read. One place per user whatever the XDG variables are:
    the Dyno that comes after one that died may have others.
    """
    folder = host_place()
    _make(folder, HOST_VARIABLE, mode=0o755)
    _require_own(folder, 0o022, HOST_VARIABLE)
    return folder


def journals() -> Path:
    """The journals of this user's Dynos. Nobody else may read, write or lock them."""
    folder = host() / "journal"
    _make(folder, HOST_VARIABLE, mode=0o700)
    _require_own(folder, 0o077, HOST_VARIABLE)
    return folder


def marks() -> Path:
    """What tells other users of this host which journals stand: empty files of their names."""
    folder = host() / MARKS
    _make(folder, HOST_VARIABLE, mode=0o755)
    _require_own(folder, 0o022, HOST_VARIABLE)
    return folder


def host_place() -> Path:
    return _chosen_host() or (ROOTS_HOST if os.getuid() == 0 else USERS_HOSTS / f"dyno-{os.getuid()}")


def hosts_of_all() -> tuple[Path, ...]:
    """The places of the journals of all users of this host; they need not be there."""
    chosen = _chosen_host()
    return (chosen,) if chosen else (ROOTS_HOST, *sorted(USERS_HOSTS.glob("dyno-*")))


def lock(name: str) -> Path:
    """A file to lock, in a folder that no other user can enter: whoever can open a file can also lock it, and
    so stop whoever waits. Users tell each other by notes, whose owner and process are looked at."""
    folder = host() / "locks"
    _make(folder, HOST_VARIABLE, mode=0o700)
    _require_own(folder, 0o077, HOST_VARIABLE)
    path = folder / name
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise host_is_full(path, error) from None
    return path


def host_is_full(path: Path, error: OSError) -> DynoError:
    """What to tell where a file of the host's folder cannot be written."""
    return DynoError(
        f"{path} cannot be written: {error.strerror or error}",
        f"{remedy(error) or 'look at that folder'}, or set {HOST_VARIABLE} to a folder on another disk;"
        " nothing was changed on this host for it, and what was stored is safe",
    )


def discard(path: Path) -> None:
    """Removes a file that means nothing once its process has ended. It stays where the disk takes no change
    any more, because that must not hide what ended the process."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Where to make what is then at this path, whole or not at all: whoever reads meets no half of it, and
    each of several writers, of hosts that share a folder too, has a place of its own."""
    making = path.with_name(f".{secrets.token_hex(4)}.part")
    try:
        yield making
        making.replace(path)
    finally:
        discard(making)


def runtime() -> Path:
    """Sockets and logs of running servers: private to this user, and short, because a socket's path is
    limited.
    """
    folder = runtime_place()
    _make(folder, "XDG_RUNTIME_DIR", mode=0o700)
    # Anyone may make a folder under /tmp: one that is not ours, or open to others, must not hold our sockets.
    _require_own(folder, 0o077, "XDG_RUNTIME_DIR")
    return folder


def runtime_place() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(base) / "dyno"
    # `su` and `sudo` may leave root the folder of another user, who could put another in its place.
    usable = _is_own(Path(base)) and os.access(base, os.W_OK | os.X_OK)
    if not usable or len(os.fsencode(folder)) > LONGEST_RUNTIME_BYTES:
        return Path(tempfile.gettempdir()) / f"dyno-{os.getuid()}"
    return folder


def _is_own(folder: Path) -> bool:
    """Whether a folder belongs to this user, so that nobody else can replace what lies in it."""
    try:
        return folder.is_absolute() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def _chosen_host() -> Path | None:
    """For a container that shares more of the host than its own /var, and for tests."""
    chosen = Path(os.environ.get(HOST_VARIABLE, ""))
    return chosen if chosen.is_absolute() else None


def _place(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    # The specification: a relative path is invalid and must be ignored.
    root = Path(base) if Path(base).is_absolute() else Path.home() / default
    return root / "dyno"


def _made(folder: Path, variable: str) -> Path:
    _make(folder, variable)
    return folder


def _make(folder: Path, variable: str, mode: int = 0o777) -> None:
    """Makes a folder, if it is not there, that this user can write. Raises UserError naming the variable
    that moves it."""
    hint = f"set {variable} to a folder you can write"
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError(f"{folder} is a file where dyno needs a folder", f"remove it, or {hint}") from None
    except NotADirectoryError:
        raise UserError(f"cannot make {folder}: a folder above it is a file", hint) from None
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror}", hint) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{folder} may not be written by this user", hint)


def _require_own(folder: Path, closed: int, variable: str) -> None:
    """Raises UserError for a folder that is somebody else's, or a link; takes the rights in `closed` away."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise UserError(
            f"{folder} belongs to someone else", f"remove it, or set {variable} to a folder of your own"
        )
    if status.st_mode & closed:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~closed)
