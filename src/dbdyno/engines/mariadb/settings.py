"""MariaDB's settings: what this build knows and takes, and what a server that runs has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

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
from dbdyno.engines.facts import ConfigurationLine, SettingNeed
from dbdyno.engines.mariadb import option_file
from dbdyno.engines.values import FALSE, TRUE, as_text, cache_mib, quantity, respelled, same_value, size_bytes
from dbdyno.frozen import Level, level_shown
from dbdyno.obtain import path
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss, Reading
from dbdyno.study.nouns import Promise

UNITS = ("K", "M", "G", "T", "P", "E")
SMALLEST, LARGEST = ("-9223372036854775808", "0"), ("18446744073709551615", "9223372036854775807")
"""Numbers beyond every range: the server brings them to the nearest that it takes. Not each type takes the
first."""
OF_THE_MACHINE = frozenset(
    {"max_connections", "open_files_limit", "table_definition_cache", "table_open_cache"}
)
"""What the server lowers to the files that it may open, and that other settings change."""
NAMING_FILES = frozenset({"log_bin"})
"""Settings whose value names a file: `ON` and `OFF` would be names as well."""
DESCRIPTION_MAX = 240


@dataclass(frozen=True)
class Shown:
    """What a server would run with, by name, and what it complained of."""

    values: Mapping[str, str]
    help: str
    complaints: tuple[str, ...]
    failed: bool

    @property
    def groups(self) -> frozenset[str]:
        """The groups of an option file that this server reads, by its own word."""
        told = re.search(r"^The following groups are read:(.*)$", self.help, re.MULTILINE)
        return frozenset(told[1].split()) if told else frozenset()

    def complaints_about(self, name: str) -> list[str]:
        spelt = re.compile(rf"(?<![\w-]){re.escape(name).replace('_', '[-_]')}(?![\w-])")
        return [line for line in self.complaints if spelt.search(line)]


Try = Callable[[Mapping[str, Level]], Shown]


def refused(installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    return refused_by(
        lambda tried: shown_by(installation.command, tuple(folders(installation)), tried), settings
    )


def refused_by(ask: Try, settings: Mapping[str, Level]) -> dict[str, Refused]:
    def content(tried: Mapping[str, Level]) -> bool:
        shown = ask(tried)
        return not shown.failed and all(_taken(shown, name, level) for name, level in tried.items())

    return {
        name: Refused(_reason(ask({name: settings[name]}), name, settings[name]), _takes(ask, name, settings))
        for name in not_taken(content, settings)
    }


def option(name: str, level: Level) -> str:
    """A setting as the server's command line takes it."""
    spelt, text = name.replace("_", "-"), as_text(level)
    if name in NAMING_FILES and text.lower() in FALSE:
        return f"--skip-{spelt}"
    if is_switched_on(name, level):
        # Without a name the server warns that it depends on the host's.
        return f"--{spelt}={spelt}"
    return f"--{spelt}={text}"


def is_switched_on(name: str, level: Level) -> bool:
    """Whether a setting whose value names a file is on, and names none."""
    return name in NAMING_FILES and as_text(level).lower() in TRUE


def shown_by(command: tuple[str, ...], folders: tuple[str, ...], settings: Mapping[str, Level]) -> Shown:
    return _shown(command, folders, tuple(option(name, level) for name, level in settings.items()))


def listed(shown: str) -> dict[str, str]:
    """The settings and their values in what `--verbose --help` prints."""
    table = shown.split("\n--------", 1)[-1].split("\n\n", 1)[0]
    pairs = [line.split(None, 1) for line in table.splitlines()[1:]]
    return {pair[0].replace("-", "_"): pair[1].strip() if len(pair) > 1 else "" for pair in pairs if pair}


@lru_cache
def _shown(command: tuple[str, ...], folders: tuple[str, ...], options: tuple[str, ...]) -> Shown:
    done = path.answer(command, "--no-defaults", *folders, *options, "--verbose", "--help")
    complaints = [line for line in done.stderr.splitlines() if re.search(r"\[ERROR\]|\[Warning\]", line)]
    return Shown(
        listed(done.stdout), done.stdout, tuple(complaints or done.stderr.splitlines()), done.returncode != 0
    )


def _taken(shown: Shown, name: str, level: Level) -> bool:
    if any(
        re.search(r"\[ERROR\]|adjusted to|wasn't recognized", line) for line in shown.complaints_about(name)
    ):
        return False
    value = shown.values.get(name, "")
    # Words and paths are shown in other spellings than they are given in.
    return not quantity(value) or name in OF_THE_MACHINE or same_value(level, value)


def _reason(shown: Shown, name: str, level: Level) -> str:
    written = as_text(level)
    about = shown.complaints_about(name)
    if not shown.failed and not any("[ERROR]" in line for line in about):
        return f"would run with {shown.values.get(name, 'another value')} instead of {level_shown(written)}"
    return f"does not take {written!r}"


def _takes(ask: Try, name: str, settings: Mapping[str, Level]) -> str:
    """The nearest spelling that the server takes, and all that it takes as far as it says so."""
    shown, written = ask({name: settings[name]}), as_text(settings[name])
    if _good(ask, name, written):
        return "it takes it, but not beside the other settings"
    description = described(shown.help or ask({}).help, name)
    words = re.findall(r"[A-Za-z][\w-]*", description)
    folded = {word.lower(): word for word in words}
    near = [folded[word] for word in get_close_matches(written.lower(), folded, n=3)]
    good = next((one for one in [*respelled(written, UNITS), *near] if _good(ask, name, one)), "")
    guess = f'did you mean "{good}"? ' if good else ""
    limits = [_brought_to(ask, name, extremes) for extremes in (SMALLEST, LARGEST)]
    if all(limits):
        return f"{guess}it takes {limits[0]} to {limits[1]}"
    return f"{guess}the server says: {description}" if description else guess.strip()


def _good(ask: Try, name: str, written: str) -> bool:
    shown = ask({name: written})
    return not shown.failed and _taken(shown, name, written)


def _brought_to(ask: Try, name: str, extremes: Sequence[str]) -> str:
    """What the server makes of the first extreme that it reads; empty where it reads none as a number."""
    for extreme in extremes:
        shown = ask({name: extreme})
        refused = shown.failed or any("[ERROR]" in line for line in shown.complaints_about(name))
        value = shown.values.get(name, "")
        if not refused and quantity(value):
            return value
    return ""


def described(help: str, name: str) -> str:
    """What the server's help says of a setting, on one line."""
    option = re.escape(name).replace("_", "[-_]")
    found = re.search(
        rf"^  (?:-\w, )?--{option}(?:\[?=\S+)? *\n?((?: {{20,}}.*\n)+| .*\n(?: {{20,}}.*\n)*)",
        help,
        re.MULTILINE,
    )
    text = " ".join(found[1].split()) if found else ""
    return text if len(text) <= DESCRIPTION_MAX else f"{text[:DESCRIPTION_MAX].rsplit(' ', 1)[0]} ..."


CREATION = frozenset(
    {
        "character_set_server",
        "collation_server",
        "default_storage_engine",
        "innodb_checksum_algorithm",
        "innodb_compression_algorithm",
        "innodb_compression_default",
        "innodb_compression_level",
        "innodb_data_file_path",
        "innodb_data_home_dir",
        "innodb_default_row_format",
        "innodb_encrypt_tables",
        "innodb_file_per_table",
        "innodb_page_size",
        "innodb_undo_directory",
        "innodb_undo_tablespaces",
        "lower_case_table_names",
    }
)

LOADING: Mapping[str, Level] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_flush_log_at_trx_commit": 0,
    # A vector index whose graph outgrows this is built an order of magnitude slower. Older servers lack it.
    "loose_mhnsw_max_cache_size": "4G",
}
"""Of no use to a trial, which is measured under the study's own settings."""
LOGGED: Mapping[str, Level] = {
    "slow_query_log": "ON",
    "slow_query_log_file": "statements.log",
    "log_output": "FILE",
    "long_query_time": 0,
}
DURABLE: Mapping[str, tuple[Level, ...]] = {
    "innodb_doublewrite": ("ON",),
    "innodb_flush_log_at_trx_commit": (1,),
}
LOSING: Mapping[str, Level] = {"innodb_flush_log_at_trx_commit": 0}

OF_BOTH: Mapping[str, Risk] = {
    "delay_key_write": Risk(Promise.INTEGRITY, loses=("ALL",)),
    "foreign_key_checks": Risk(Promise.INTEGRITY, ("ON",)),
    "innodb_checksum_algorithm": Risk(
        Promise.INTEGRITY, ("crc32", "full_crc32", "strict_crc32", "strict_full_crc32")
    ),
    # MySQL's word for what ON does.
    "innodb_doublewrite": Risk(Promise.INTEGRITY, ("ON", "DETECT_AND_RECOVER"), Loss.DATA),
    "innodb_flush_log_at_timeout": Risk(
        Promise.DURABILITY,
        (0,),
        Loss.COMMITS,
        up_to=1,
        where=Where("innodb_flush_log_at_trx_commit", (0, 2), unset=1),
    ),
    # 3 flushes at the prepare as well. At 0 a kill of the server loses commits, at 2 only one of the host.
    "innodb_flush_log_at_trx_commit": Risk(Promise.DURABILITY, (1, 3), Loss.COMMITS, worse=(0,)),
    "innodb_flush_method": Risk(
        Promise.DURABILITY, ("fsync", "O_DSYNC", "O_DIRECT"), Loss.DATA, worse=("nosync",)
    ),
    "innodb_force_recovery": Risk(Promise.INTEGRITY, (0,)),
    "local_infile": Risk(Promise.SECURITY, ("OFF",)),
    "require_secure_transport": Risk(Promise.SECURITY, ("ON",)),
    "secure_file_priv": Risk(Promise.SECURITY, loses=("",)),
    "sql_mode": Risk(Promise.INTEGRITY, members=("strict_trans_tables", "strict_all_tables", "traditional")),
    # A commit that the log has lost is undone.
    "sync_binlog": Risk(Promise.DURABILITY, loss=Loss.COMMITS, up_to=1),
    "transaction_isolation": Risk(Promise.ISOLATION, loses=("READ-COMMITTED", "READ-UNCOMMITTED")),
    "unique_checks": Risk(Promise.INTEGRITY, ("ON",)),
}
"""What both servers of this family give up by settings that they share."""
RISKS: Mapping[str, Risk] = {
    **OF_BOTH,
    "aria_page_checksum": Risk(Promise.INTEGRITY, ("ON",)),
    "check_constraint_checks": Risk(Promise.INTEGRITY, ("ON",)),
    "innodb_encrypt_log": Risk(Promise.SECURITY, ("ON",)),
    "innodb_encrypt_tables": Risk(Promise.SECURITY, ("ON", "FORCE")),
    # Off, a transaction overwrites a row that changed after its snapshot, and is not told.
    "innodb_snapshot_isolation": Risk(Promise.ISOLATION, ("ON",)),
    "secure_auth": Risk(Promise.SECURITY, ("ON",)),
}

OURS = frozenset(
    {
        "basedir",
        "bind_address",
        "bootstrap",
        "character_sets_dir",
        "console",
        "datadir",
        "defaults_file",
        "ignore_db_dirs",
        "lc_messages_dir",
        "log_error",
        "pid_file",
        "plugin_dir",
        "port",
        "skip_grant_tables",
        "skip_networking",
        "socket",
        "tmpdir",
        "user",
        "wsrep_on",
    }
)
"""Settings that Dyno sets itself so that the server stays private; a study cannot vary them."""

NO_POOL_OF_THREADS = SettingNeed(
    (
        "thread_pool_idle_timeout",
        "thread_pool_max_threads",
        "thread_pool_oversubscribe",
        "thread_pool_priority",
        "thread_pool_size",
        "thread_pool_stall_limit",
    ),
    "thread_handling",
    off=("one-thread-per-connection", "no-threads"),
    unset="one-thread-per-connection",
    why="so there is no pool of threads",
)
CONFINED: Mapping[str, tuple[str, ...]] = {"wsrep_notify_cmd": ("",)}

BINARY_LOG = (
    "binlog_cache_size",
    "binlog_commit_wait_count",
    "binlog_commit_wait_usec",
    "binlog_format",
    "binlog_row_image",
    "binlog_stmt_cache_size",
    "max_binlog_cache_size",
    "max_binlog_size",
    "sync_binlog",
)

NEEDS: Sequence[SettingNeed] = (
    SettingNeed(BINARY_LOG, "log_bin", off=("OFF",), unset="OFF", why="so there is no binary log"),
    NO_POOL_OF_THREADS,
    SettingNeed(
        ("thread_cache_size",),
        "thread_handling",
        off=("pool-of-threads",),
        unset="one-thread-per-connection",
        why="and a pool keeps its own threads",
    ),
    SettingNeed(
        ("innodb_adaptive_hash_index_parts",),
        "innodb_adaptive_hash_index",
        off=("OFF",),
        unset="OFF",
        why="so there is no adaptive hash index",
    ),
)

DEFAULT_BUFFER_POOL = "128M"
BASE_BYTES = 400 << 20
"""What a server takes beside its buffer pool: code, threads, log buffer, dictionaries."""
OTHER_AREAS = (
    "aria_pagecache_buffer_size",
    "innodb_log_buffer_size",
    "key_buffer_size",
    "query_cache_size",
)
"""Settings that take their size from the start; their defaults are in the base."""
OTHER_LARGE_AREAS_BYTES = 64 << 20
"""Log buffers, lock and adaptive hash tables, which also go to large pages."""


def proposals(memory_bytes: int) -> tuple[Proposal, ...]:
    return (
        Proposal(
            "config.innodb_buffer_pool_size",
            (DEFAULT_BUFFER_POOL, f"{cache_mib(memory_bytes)}M"),
            "The memory for tables and indexes. It helps as long as the data do not fit into it.",
        ),
        Proposal(
            "config.innodb_io_capacity",
            (200, 2000),
            "How many pages a second are written in the background. Fast disks take more than the default.",
        ),
        Proposal(
            "config.innodb_flush_log_at_trx_commit",
            (1, 2),
            "1 waits for the disk at each commit. 2 flushes once a second, so a crash of the machine loses up"
            " to a second of commits.",
        ),
    )


TEMPORARY_TABLES = {"from": "16M", "to": "256M", "scale": "log"}
"""The range of both limits of a temporary table in memory."""


def searchable(memory_bytes: int) -> tuple[Searchable, ...]:
    most_mib = 2 * cache_mib(memory_bytes)
    return (
        Searchable(
            "innodb_buffer_pool_size",
            {"from": "64M", "to": f"{most_mib}M", "scale": "log", "baseline": DEFAULT_BUFFER_POOL},
            "the memory for tables and indexes",
        ),
        Searchable(
            "mhnsw_max_cache_size",
            {"from": "16M", "to": f"{most_mib}M", "scale": "log"},
            "the memory for the graph of a vector index; smaller than the graph, each search reads tables",
        ),
        Searchable(
            "innodb_log_file_size",
            {"from": "96M", "to": "4G", "scale": "log"},
            "a larger redo log lets pages wait longer before they are written",
        ),
        Searchable(
            "innodb_log_buffer_size",
            {"from": "16M", "to": "256M", "scale": "log"},
            "commits wait where it is full",
        ),
        Searchable(
            "innodb_io_capacity",
            {"from": 100, "to": 20000, "scale": "log", "baseline": 200},
            "how many pages a second are written in the background",
        ),
        Searchable("innodb_flush_neighbors", [1, 0], "0 suits disks without a head"),
        Searchable(
            "innodb_max_dirty_pages_pct",
            {"from": 10, "to": 90, "step": 10, "baseline": 90},
            "how much of the pool may wait to be written",
        ),
        Searchable("innodb_adaptive_hash_index", ["OFF", "ON"], "a hash over pages that are read often"),
        Searchable(
            "thread_handling",
            ["one-thread-per-connection", "pool-of-threads"],
            "a pool has fewer threads than clients",
        ),
        Searchable("tmp_table_size", TEMPORARY_TABLES, "temporary tables larger than this go to disk"),
        Searchable("max_heap_table_size", TEMPORARY_TABLES, "the smaller of the two counts"),
        Searchable(
            "sort_buffer_size",
            {"from": "256K", "to": "16M", "scale": "log", "baseline": "2M"},
            "sorts larger than this go to disk",
        ),
        Searchable(
            "join_buffer_size",
            {"from": "256K", "to": "16M", "scale": "log"},
            "joins without an index read fewer times",
        ),
    )


def names(installation: Installation) -> frozenset[str]:
    return frozenset(defaults(installation)) - OURS


def configured(text: str, installation: Installation | None) -> list[ConfigurationLine]:
    """The lines of a `my.cnf`."""
    if installation is None:
        return list(option_file.lines(text, None, OURS))
    shown = shown_by(installation.command, tuple(folders(installation)), {})
    return list(option_file.lines(text, names(installation), OURS, shown.groups))


def read(ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
    rows = ask("SHOW GLOBAL VARIABLES")
    values = {str(row[0]): "" if row[1] is None else str(row[1]) for row in rows}
    return {
        name: Reading(value=values[name], source=f"SHOW GLOBAL VARIABLES LIKE '{name}'")
        for name in names
        if name in values
    }


def same(name: str, requested: Level, effective: str) -> bool:
    return same_value(requested, effective)


def permits(settings: Mapping[str, Level]) -> Loss:
    # The binary log is off by default, and not synced where it is on.
    logged = as_text(settings.get("log_bin", "OFF")).lower() not in FALSE
    sync_binlog = settings.get("sync_binlog", 0) if logged else 1
    return risked(RISKS, {**settings, "sync_binlog": sync_binlog})


DEFAULT_PAGE_BYTES = 16384


def page_bytes(settings: Mapping[str, Level]) -> int:
    return size_bytes(settings.get("innodb_page_size", DEFAULT_PAGE_BYTES))


def memory_bytes(settings: Mapping[str, Level]) -> int:
    pool = size_bytes(settings.get("innodb_buffer_pool_size", DEFAULT_BUFFER_POOL))
    areas = sum(size_bytes(settings[name]) for name in OTHER_AREAS if name in settings)
    return int(pool * 1.1) + areas + BASE_BYTES


def huge_pages(settings: Mapping[str, Level], page_bytes: int) -> HugePageSettings | None:
    """The buffer pool, the log's buffer and what InnoDB adds for its own book-keeping (about 2 %)."""
    pool = quantity(str(settings.get("innodb_buffer_pool_size", DEFAULT_BUFFER_POOL)))
    cache_bytes = int(pool[0] if pool else 0)
    size_bytes = int(cache_bytes * 1.02) + OTHER_LARGE_AREAS_BYTES
    return HugePageSettings({"large_pages": "ON"}, max(size_bytes, page_bytes), cache_bytes)


def arguments(settings: Mapping[str, Level]) -> list[str]:
    """The settings as the server's command line takes them."""
    return [option(name, level) for name, level in settings.items()]


def defaults(installation: Installation) -> dict[str, str]:
    """Every setting of this build with its default, as `--verbose --help` prints them."""
    return dict(shown_by(installation.command, tuple(folders(installation)), {}).values)


def folders(installation: Installation) -> list[str]:
    """The options that lead the server to its own messages, character sets and plug-ins."""
    prefix = Path(installation.command[-1]).parent.parent
    options = [f"--basedir={prefix}"]
    share = share_folder(installation)
    if share is not None:
        options += [f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"]
    plugins = [prefix / part for part in ("lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin")]
    # Without a folder of its own, an unpacked server would load the host's plugins, built for other
    # libraries.
    return [*options, f"--plugin-dir={next((one for one in plugins if one.is_dir()), plugins[0])}"]


def share_folder(installation: Installation) -> Path | None:
    """The folder with the messages and the SQL that makes the system tables; None when it is elsewhere."""
    prefix = Path(installation.command[-1]).parent.parent
    folders = [prefix / "share" / part for part in ("mariadb", "mysql", "")]
    return next((one for one in folders if (one / "english/errmsg.sys").is_file()), None)
