"""PostgreSQL's settings: what this build knows and takes, and what a server that runs has."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from dbdyno.engines import configuration
from dbdyno.engines.engine import (
    Ask,
    HugePageSettings,
    Proposal,
    Refused,
    Risk,
    Searchable,
    Where,
    not_taken,
    risked,
)
from dbdyno.engines.facts import A_PATH, OF_DYNO, UNREADABLE, ConfigurationLine, Include, SettingNeed, is_path
from dbdyno.engines.values import FALSE, TRUE, as_text, cache_mib, quantity, respelled, same_value, size_bytes
from dbdyno.frozen import Level
from dbdyno.obtain import path
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss, Reading
from dbdyno.study.nouns import Promise

CREATION = frozenset({"data_checksums", "wal_segment_size"})
"""What `initdb` takes, and the server does not."""

UNITS = ("kB", "MB", "GB", "TB", "us", "ms", "s", "min", "h", "d")
NO_FILES = tuple(f"--{name}=/dev/null" for name in ("config_file", "hba_file", "ident_file"))
SEGMENT_BYTES_LEAST, SEGMENT_BYTES_MOST = 1 << 20, 1 << 30


def refused(installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    faults = {name: fault for name in settings if (fault := _fault_in_creation(name, settings[name]))}
    asked = {name: level for name, level in settings.items() if name not in CREATION}
    for name in not_taken(lambda tried: not _complaint(installation.command, _options(tried)), asked):
        alone = _complaint(installation.command, _options({name: asked[name]}))
        complaint = alone or _complaint(installation.command, _options(asked))
        faults[name] = _refused(installation, name, as_text(asked[name]), complaint)
    return faults


def _fault_in_creation(name: str, level: Level) -> Refused | None:
    """Why `initdb` would not take it."""
    if name == "data_checksums" and as_text(level).lower() not in TRUE | FALSE:
        return Refused(f"does not take {as_text(level)!r}", "it takes on and off")
    if name == "wal_segment_size":
        size = quantity(as_text(level))
        bytes_asked = 0 if size is None else int(size[0] * (1 if size[1] else 2**20))
        within = SEGMENT_BYTES_LEAST <= bytes_asked <= SEGMENT_BYTES_MOST
        if not within or bytes_asked & (bytes_asked - 1):
            takes = "it takes a power of two from 1MB to 1GB; a number without a unit is in MB"
            return Refused(f"does not take {as_text(level)!r}", takes)
    return None


def _options(settings: Mapping[str, Level]) -> tuple[str, ...]:
    return tuple(f"--{name}={as_text(level)}" for name, level in settings.items())


@lru_cache
def _complaint(command: tuple[str, ...], options: tuple[str, ...]) -> str:
    """What the server refuses of these options, and its hint; empty where it takes them all."""
    done = path.answer(command, "-C", "fsync", *NO_FILES, "--data_directory=/", *options)
    if done.returncode == 0:
        return ""
    told = re.findall(r"(?:FATAL|ERROR|HINT):\s+(.*)", done.stderr)
    return "; ".join(told) or done.stderr.strip() or "it said nothing"


def _refused(installation: Installation, name: str, written: str, complaint: str) -> Refused:
    words = re.findall(r"\w+", complaint.partition("Available values:")[2])
    tried = [*respelled(written, UNITS), *get_close_matches(written.lower(), words, n=3)]
    good = [one for one in tried if not _complaint(installation.command, _options({name: one}))]
    listed = " or ".join(f'"{one}"' for one in good)
    guess = f"did you mean {listed}? " if good else ""
    return Refused(f"does not take {written!r}", f"{guess}the server says: {complaint}")


LOADING: Mapping[str, Level] = {}
LOGGED: Mapping[str, Level] = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": 0,
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
DURABLE: Mapping[str, tuple[Level, ...]] = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local"),
}
LOSING: Mapping[str, Level] = {"fsync": "off"}

RISKS: Mapping[str, Risk] = {
    "allow_system_table_mods": Risk(Promise.INTEGRITY, ("off",)),
    "data_checksums": Risk(Promise.INTEGRITY, ("on",)),
    "data_sync_retry": Risk(Promise.INTEGRITY, ("off",)),
    "fsync": Risk(Promise.DURABILITY, ("on",), Loss.DATA),
    "full_page_writes": Risk(Promise.INTEGRITY, ("on",), Loss.DATA),
    "ignore_checksum_failure": Risk(Promise.INTEGRITY, ("off",)),
    "lo_compat_privileges": Risk(Promise.SECURITY, ("off",)),
    "password_encryption": Risk(Promise.SECURITY, loses=("md5",)),
    "session_replication_role": Risk(Promise.INTEGRITY, loses=("replica",)),
    "ssl": Risk(Promise.SECURITY, ("on",)),
    "ssl_min_protocol_version": Risk(Promise.SECURITY, loses=("", "TLSv1", "TLSv1.1")),
    "synchronous_commit": Risk(
        Promise.DURABILITY, ("on", "local", "remote_write", "remote_apply"), Loss.COMMITS
    ),
    # The default lies between a commit and the disk already: what counts is what comes on top of it.
    "wal_writer_delay": Risk(
        Promise.DURABILITY,
        loss=Loss.COMMITS,
        up_to=200,
        where=Where("synchronous_commit", ("off",), unset="on"),
    ),
    "zero_damaged_pages": Risk(Promise.INTEGRITY, ("off",)),
}

OURS = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "log_destination",
        "log_directory",
        "log_filename",
        "logging_collector",
        "port",
        "unix_socket_directories",
        "unix_socket_group",
        "unix_socket_permissions",
    }
)
"""Settings that Dyno sets itself so that the server stays private; a study cannot vary them."""

NEEDS: Sequence[SettingNeed] = (
    SettingNeed(
        ("commit_delay", "commit_siblings", "wal_sync_method"),
        "fsync",
        off=("off",),
        unset="on",
        why="so nothing waits for the disk",
    ),
    SettingNeed(
        ("commit_siblings",), "commit_delay", off=("0",), unset="0", why="so no commit waits for others"
    ),
    SettingNeed(
        ("wal_compression",),
        "full_page_writes",
        off=("off",),
        unset="on",
        why="so there are no whole pages to compress",
    ),
    SettingNeed(
        ("wal_skip_threshold",),
        "wal_level",
        off=("replica", "logical"),
        unset="replica",
        why="so the log holds everything",
    ),
    SettingNeed(
        (
            "autovacuum_max_workers",
            "autovacuum_naptime",
            "autovacuum_vacuum_cost_delay",
            "autovacuum_vacuum_cost_limit",
            "autovacuum_vacuum_scale_factor",
            "autovacuum_vacuum_threshold",
            "autovacuum_work_mem",
        ),
        "autovacuum",
        off=("off",),
        unset="on",
        why="so no table is vacuumed by itself",
    ),
    SettingNeed(
        ("bgwriter_delay", "bgwriter_flush_after", "bgwriter_lru_multiplier"),
        "bgwriter_lru_maxpages",
        off=("0",),
        unset="100",
        why="so the background writer is off",
    ),
    SettingNeed(
        ("jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost"),
        "jit",
        off=("off",),
        unset="on",
        why="so nothing is compiled",
    ),
    SettingNeed(
        (
            "min_parallel_index_scan_size",
            "min_parallel_table_scan_size",
            "parallel_setup_cost",
            "parallel_tuple_cost",
        ),
        "max_parallel_workers_per_gather",
        off=("0",),
        unset="2",
        why="so no query runs in parallel",
    ),
    SettingNeed(
        ("huge_page_size",), "huge_pages", off=("off",), unset="try", why="so there are no huge pages"
    ),
)

CONFINED: Mapping[str, tuple[str, ...]] = {
    "archive_cleanup_command": ("",),
    "archive_command": ("",),
    "recovery_end_command": ("",),
    "restore_command": ("",),
    "ssl_passphrase_command": ("",),
}

BARE_UNITS = (1.0, 1024.0, 8192.0, 2.0**20, 1000.0, 60_000.0)
"""What a bare number may count: bytes, kB, pages of 8 kB, MB; milliseconds, seconds, minutes."""

SIZED_BY_SERVER: Mapping[str, str] = {
    "commit_timestamp_buffers": "0",
    "subtransaction_buffers": "0",
    "transaction_buffers": "0",
    "wal_buffers": "-1",
}
"""The level that leaves a size to the server, which then shows the size that it chose and not the level."""

MEANT_BY_ON: Mapping[str, str] = {"wal_compression": "pglz"}
"""What a server shows where a setting that was a switch once, and has several ways now, is on."""

PAGE_BYTES = 8192
BASE_BYTES = 300 << 20
"""What a server takes beside its buffers: its processes' own memory."""
OTHER_SHARED_BYTES = 32 << 20
"""Shared memory that does not grow with the buffers."""


def proposals(memory_bytes: int) -> tuple[Proposal, ...]:
    return (
        Proposal(
            "config.shared_buffers",
            ("128MB", f"{cache_mib(memory_bytes)}MB"),
            "The server's own cache of tables and indexes. It helps as long as the data do not fit into it.",
        ),
        Proposal(
            "config.wal_compression",
            ("off", "on"),
            "on compresses whole pages in the log: fewer bytes to write, more CPU.",
        ),
        Proposal(
            "config.synchronous_commit",
            ("on", "off"),
            "on waits for the disk at each commit. With off, a crash of the server loses the last commits.",
        ),
    )


def searchable(memory_bytes: int) -> tuple[Searchable, ...]:
    most_mib = 2 * cache_mib(memory_bytes)
    return (
        Searchable(
            "shared_buffers",
            {"from": "64MB", "to": f"{most_mib}MB", "scale": "log", "baseline": "128MB"},
            "the server's own cache of tables and indexes",
        ),
        Searchable(
            "work_mem",
            {"from": "1MB", "to": "64MB", "scale": "log", "baseline": "4MB"},
            "what each sort and hash may take before it goes to the disk",
        ),
        Searchable(
            "max_wal_size",
            {"from": "1GB", "to": "16GB", "scale": "log"},
            "fewer checkpoints write fewer whole pages to the log",
        ),
        Searchable(
            "checkpoint_timeout",
            {"from": "5min", "to": "60min", "scale": "log"},
            "the same, by the clock",
        ),
        Searchable("wal_compression", ["off", "on"], "fewer bytes to write, more CPU"),
        Searchable("wal_buffers", ["-1", "1MB", "16MB", "64MB"], "commits wait where they are full"),
        Searchable(
            "commit_delay", [0, 10, 100, 1000], "microseconds that a commit waits for others to sync with"
        ),
        Searchable(
            "bgwriter_delay",
            {"from": "10ms", "to": "200ms", "scale": "log", "baseline": "200ms"},
            "how often buffers are written in the background",
        ),
        Searchable(
            "bgwriter_lru_maxpages",
            {"from": 100, "to": 1000, "scale": "log"},
            "how many of them at a time",
        ),
        Searchable(
            "random_page_cost",
            {"from": 1.0, "to": 4.0, "step": 0.5, "baseline": 4.0},
            "what plans take a page out of order to cost",
        ),
        Searchable(
            "effective_io_concurrency", {"from": 1, "to": 256, "scale": "log"}, "reads that are asked ahead"
        ),
        Searchable("jit", ["on", "off"], "compiling queries pays for long ones alone"),
    )


def names(installation: Installation) -> frozenset[str]:
    return (parameters(installation) | CREATION) - OURS


LINE = re.compile(r"([A-Za-z_][\w.]*)\s*(?:=|\s)\s*('(?:[^']|'')*'|[^\s#]+)\s*(?:#.*)?")
OF_THE_NETWORK = re.compile(r"(ssl|krb|lc|unix_socket|shared_preload).*")
"""What belongs to the machine that the file was written for: its network, locales and libraries."""
NOT_ARCHIVED = "without the program that archives, the server keeps its whole log, and complains"
INCLUDES = {"include": "", "include_if_exists": "", "include_dir": ".conf"}
"""The lines that lead to other files; of a folder, to those with this ending."""


def configured(text: str, _installation: Installation | None) -> list[ConfigurationLine]:
    """The lines of a `postgresql.conf`."""
    if (entries := configuration.entries(text)) is not None:
        lines = []
        for entry in entries:
            value = entry.value.replace("'", "''")
            written = f"{entry.name} = '{value}'"
            lines.append(entry.untaken(written) or _configured(entry.number, written))
        return lines
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [_configured(number, line) for number, line in numbered if line and line[0] != "#"]


def _configured(number: int, line: str) -> ConfigurationLine:
    found = LINE.fullmatch(line)
    if found is None:
        return ConfigurationLine(number, line, untaken=UNREADABLE)
    name, value = found[1].lower(), found[2]
    level = value[1:-1].replace("''", "'") if value.startswith("'") else value
    if name in INCLUDES:
        return ConfigurationLine(number, line, include=Include(level, INCLUDES[name]))
    if name in OURS or OF_THE_NETWORK.fullmatch(name):
        return ConfigurationLine(number, line, name, level, OF_DYNO)
    if name == "archive_mode":
        return ConfigurationLine(number, line, name, level, NOT_ARCHIVED)
    return ConfigurationLine(number, line, name, level, A_PATH if is_path(level) else "")


def read(ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
    rows = ask("SELECT name, current_setting(name) FROM pg_settings")
    return {
        str(name): Reading(value="" if value is None else str(value), source=f"SHOW {name}")
        for name, value in rows
        if name in names
    }


def same(name: str, requested: Level, effective: str) -> bool:
    if same_value(requested, effective):
        return True
    if as_text(requested).lower() in TRUE and effective == MEANT_BY_ON.get(name):
        return True
    if as_text(requested) == SIZED_BY_SERVER.get(name):
        return quantity(effective) is not None
    wanted, found = quantity(as_text(requested)), quantity(effective)
    if wanted is None or found is None or wanted[1] or not found[1]:
        return False
    # A bare number counts in the setting's own unit, which the text read back does not tell.
    return any(abs(wanted[0] * unit - found[0]) < 0.5 for unit in BARE_UNITS)


def permits(settings: Mapping[str, Level]) -> Loss:
    return risked(RISKS, settings)


def page_bytes(_settings: Mapping[str, Level]) -> int:
    return PAGE_BYTES


def memory_bytes(settings: Mapping[str, Level]) -> int:
    return int(size_bytes(settings.get("shared_buffers", "128MB"), PAGE_BYTES) * 1.1) + BASE_BYTES


def huge_pages(settings: Mapping[str, Level], page_bytes: int) -> HugePageSettings | None:
    """The whole shared memory: the buffers, and a tenth more for descriptors, locks and WAL buffers."""
    buffers = quantity(str(settings.get("shared_buffers", "128MB")))
    cache_bytes = int(buffers[0] if buffers else 0)
    size_bytes = int(cache_bytes * 1.1) + OTHER_SHARED_BYTES
    settings_of_pages: dict[str, Level] = {"huge_pages": "on", "huge_page_size": f"{page_bytes >> 10}kB"}
    return HugePageSettings(settings_of_pages, size_bytes, cache_bytes)


def parameters(installation: Installation) -> frozenset[str]:
    """Every parameter that this build describes, those of Dyno's own included."""
    return _parameters_of(installation.command)


@lru_cache
def _parameters_of(command: tuple[str, ...]) -> frozenset[str]:
    listing = path.ask(command, "--describe-config")
    return frozenset(line.split("\t", 1)[0] for line in listing.splitlines() if "\t" in line)


SEGMENTS = Path("/proc/sysvipc/shm")
FILES = Path("/dev/shm")
MAGIC = 679834894
"""How the segment begins (PGShmemMagic in storage/pg_shmem.h); the process that made it follows."""
HEADER_BYTES = 80
ID_LINE = 6
"""Of postmaster.pid, from 0: the key and the number of the segment (utils/pidfile.h)."""
READ_ONLY, REMOVE = 0o10000, 0
FAILED = ctypes.c_void_p(-1).value
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.shmat.restype = ctypes.c_void_p
_LIBC.shmdt.argtypes = [ctypes.c_void_p]


def free(pid_file: Path) -> None:
    """Frees what the server shared that wrote a postmaster.pid. It is dead; what another process uses, or
    another server made, stays."""
    try:
        lines = pid_file.read_text().splitlines()
        process_id, number = int(lines[0]), int(lines[ID_LINE].split()[1])
        data = pid_file.parent.stat()
    except (OSError, ValueError, IndexError):
        return
    if not _is_left_by(number, process_id):
        return
    header = _header(number)
    whose = struct.pack("=QQ", data.st_dev, data.st_ino)
    if header[:8] != struct.pack("=ii", MAGIC, process_id) or whose not in header:
        return
    for control in _files_named_in(header):
        for one in (*_files_named_in(control.read_bytes()), control):
            with suppress(OSError):
                one.unlink()
    _LIBC.shmctl(number, REMOVE, None)


def _is_left_by(number: int, process_id: int) -> bool:
    """Whether this process made a segment that nobody uses."""
    with suppress(OSError):
        names, *rows = (line.split() for line in SEGMENTS.read_text().splitlines())
        for row in (dict(zip(names, row, strict=False)) for row in rows):
            if int(row["shmid"]) == number:
                return int(row["cpid"]) == process_id and int(row["nattch"]) == 0
    return False


def _header(number: int) -> bytes:
    """How a segment begins; empty where this user may not read it."""
    address = _LIBC.shmat(number, None, READ_ONLY)
    if address == FAILED:
        return b""
    try:
        return ctypes.string_at(address, HEADER_BYTES)
    finally:
        _LIBC.shmdt(address)


def _files_named_in(content: bytes) -> Iterator[Path]:
    """The files of /dev/shm whose numbers stand in memory, wherever a version puts them. The numbers are
    drawn from 32 bits."""
    numbers = struct.unpack(f"={len(content) // 4}I", content[: len(content) // 4 * 4])
    there = {path.name: path for path in FILES.glob("PostgreSQL.*")}
    for number in dict.fromkeys(numbers):
        if (path := there.get(f"PostgreSQL.{number}")) is not None and path.lstat().st_nlink == 1:
            yield path
