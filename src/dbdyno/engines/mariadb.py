"""All that is known of MariaDB."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from dbdyno.engines import server
from dbdyno.engines.base import Ask, HugePages
from dbdyno.engines.values import View, as_text, quantity, same_value, viewed
from dbdyno.errors import EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import die_with_parent
from dbdyno.host.room import require_disk
from dbdyno.obtain import debian, path
from dbdyno.obtain.installation import Installation, Offer, covers
from dbdyno.records.record import Reading
from dbdyno.study.reference import Reference

RECIPE = debian.Recipe(
    engine="mariadb",
    packages=("mariadb-server-core",),
    server="mariadb-server-core",
    binary="usr/sbin/mariadbd",
    suites={"11.8": "trixie", "10.11": "bookworm"},
)
VERSION = r"Ver (\d+\.\d+\.\d+)-MariaDB"
NAMES = ("mariadbd", "mysqld")
PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/local/mysql/bin")

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

BENIGN = re.compile(
    r"Could not increase number of max_open_files|is deprecated|'--skip-name-resolve|skip-name-resolve mode|"
    r"Could not open mysql\.plugin|io_uring_queue_init|falling back to libaio|liburing disabled|"
    r"You need to use --log-bin|root user"
)
ALARMING = re.compile(
    r"\[ERROR\]|\[Warning\]|got signal|got exception|Assertion failure|corrupt|\[FATAL\]|Aborting|"
    r"error while loading shared libraries",
    re.IGNORECASE,
)

DEFAULT_BUFFER_POOL = "128M"
OTHER_LARGE_AREAS_BYTES = 64 << 20
"""Log buffers, lock and adaptive hash tables, which also go to large pages."""

COUNTERS: dict[str, tuple[str, ...]] = {
    "innodb_buffer_pool_size": ("Innodb_buffer_pool_reads", "Innodb_buffer_pool_read_requests"),
    "innodb_flush_log_at_trx_commit": ("Innodb_os_log_fsyncs", "Innodb_data_fsyncs", "Innodb_os_log_written"),
    "innodb_log_file_size": ("Innodb_buffer_pool_pages_flushed", "Innodb_os_log_written"),
    "innodb_log_buffer_size": ("Innodb_log_waits", "Innodb_log_write_requests"),
    "innodb_doublewrite": ("Innodb_dblwr_writes", "Innodb_dblwr_pages_written"),
    "innodb_adaptive_hash_index": (
        "Innodb_adaptive_hash_hash_searches",
        "Innodb_adaptive_hash_non_hash_searches",
    ),
    "innodb_io_capacity": ("Innodb_buffer_pool_pages_flushed",),
    "innodb_io_capacity_max": ("Innodb_buffer_pool_pages_flushed",),
    "innodb_flush_method": ("Innodb_data_writes", "Innodb_data_fsyncs"),
    "innodb_flush_neighbors": ("Innodb_buffer_pool_pages_flushed",),
    "innodb_change_buffering": ("Innodb_ibuf_merges",),
    "sync_binlog": ("Binlog_commits", "Binlog_group_commits"),
    "log_bin": ("Binlog_commits",),
    "query_cache_size": ("Qcache_hits", "Qcache_inserts"),
    "query_cache_type": ("Qcache_hits", "Qcache_inserts"),
    "table_open_cache": ("Table_open_cache_misses", "Table_open_cache_overflows"),
    "thread_cache_size": ("Threads_created",),
    "thread_handling": ("Threadpool_threads", "Threads_created"),
    "tmp_table_size": ("Created_tmp_tables", "Created_tmp_disk_tables"),
    "max_heap_table_size": ("Created_tmp_tables", "Created_tmp_disk_tables"),
    "sort_buffer_size": ("Sort_rows", "Sort_merge_passes"),
    "join_buffer_size": ("Select_full_join",),
    "key_buffer_size": ("Key_read_requests", "Key_reads"),
    "aria_pagecache_buffer_size": ("Aria_pagecache_read_requests", "Aria_pagecache_reads"),
}
"""Which status counters show that a setting's part of the server was at work."""

LOADING: Mapping[str, Level] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_flush_log_at_trx_commit": 0,
    # A vector index whose graph outgrows this is built an order of magnitude slower. Older servers lack it.
    "loose_mhnsw_max_cache_size": "4G",
}
"""Of no use to a trial, which is measured under the study's own settings."""


VIEW: View = {
    "rows read": (
        1.0,
        ("Handler_read_key", "Handler_read_next", "Handler_read_rnd", "Handler_read_rnd_next"),
    ),
    "buffer pool page requests": (1.0, ("Innodb_buffer_pool_read_requests",)),
    "pages read from storage": (1.0, ("Innodb_buffer_pool_reads",)),
    "page writes": (1.0, ("Innodb_data_writes",)),
    "syncs": (1.0, ("Innodb_data_fsyncs", "Innodb_os_log_fsyncs")),
    "redo log, bytes": (1.0, ("Innodb_os_log_written",)),
    "waits for the log buffer": (1.0, ("Innodb_log_waits",)),
    "row locks waited for": (1.0, ("Innodb_row_lock_waits",)),
    "row lock wait, us": (1000.0, ("Innodb_row_lock_time",)),
    "temporary tables on disk": (1.0, ("Created_tmp_disk_tables",)),
}
"""What it says of its own time (`SHOW GLOBAL STATUS`); a lock's wait is counted in milliseconds there. The
cache of vector indexes has no counter: what it misses shows as page requests."""


class MariaDB:
    """The server, rootless: its own data directory, a socket in a private folder, no network."""

    name = "mariadb"
    title = "MariaDB"
    embedded = False
    raw_file = ""
    creation_settings = frozenset(
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
    loading_settings: Mapping[str, Level] = LOADING

    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            return _installed(path.binary(reference.path, NAMES))
        for copy in debian.fetched(self.name):
            if covers(reference.version, copy.version):
                return _unpacked(copy)
        for binary in _binaries_here():
            installation = _installed(binary)
            if covers(reference.version, installation.version):
                return installation
        wanted = f"mariadb@{reference.version}" if reference.version else "mariadb"
        raise EngineMissing(f"{wanted} is not on this machine", f"`dyno engines fetch {wanted}` obtains it")

    def offers(self) -> list[Offer]:
        """What is here, and what can be had."""
        here = [_unpacked(copy) for copy in debian.fetched(self.name)]
        here += [_installed(one) for one in _binaries_here()]
        offers = [Offer(self.name, one.version, one.origin, present=True) for one in here]
        return offers + debian.offers(RECIPE)

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        return _unpacked(debian.fetch(RECIPE, version, mirror=mirror, tell=tell))

    def settings(self, installation: Installation) -> frozenset[str]:
        return frozenset(_defaults(installation)) - OURS

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        require_disk(data.parent, 400_000_000, "a MariaDB data directory")
        data.mkdir(mode=0o700)
        (data / "database").mkdir()
        (data / "temporary").mkdir()
        creation = {name: level for name, level in settings.items() if name in self.creation_settings}
        command = [*_command(installation, data), "--bootstrap", "--log-warnings=1", *_arguments(creation)]
        done = subprocess.run(
            command,
            input=_system_tables(installation),
            capture_output=True,
            env={**os.environ, **installation.environment},
            preexec_fn=die_with_parent(),
        )
        if done.returncode != 0:
            log = (done.stderr or done.stdout).decode("utf-8", "replace")[-server.LOG_BYTES :]
            shutil.rmtree(data, ignore_errors=True)
            reason = next(iter(_problems(log)), server.how_it_ended(done.returncode))
            raise ServerFailed(
                f"MariaDB could not make its data directory: {reason}", _hint(log, installation), log
            )

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> server.ServerProcess:
        if not (data / "database").is_dir():
            raise UserError(f"{data} is not a data directory of Dyno's", "make one with `initialise` first")
        socket_path = runtime / "mariadb.sock"
        server.require_short(socket_path)
        socket_path.unlink(missing_ok=True)
        command = [
            *_command(installation, data),
            f"--socket={socket_path}",
            f"--pid-file={runtime / 'mariadb.pid'}",
            "--skip-networking",
            "--skip-name-resolve",
            *_arguments(settings),
        ]
        return server.launch(
            title=f"MariaDB {installation.version}",
            url=f"mysql://{ACCOUNT}@localhost/{DATABASE}?socket={quote(str(socket_path), safe='/')}",
            installation=installation,
            command=command,
            data=data / "database",
            runtime=runtime,
            how=launch,
            socket=socket_path,
            version_sql="SELECT VERSION()",
            problems=_problems,
            hint=lambda log: _hint(log, installation),
            leftovers=(socket_path, runtime / "mariadb.pid"),
        )

    def huge_pages(
        self, _installation: Installation, settings: Mapping[str, Level], page_bytes: int
    ) -> HugePages | None:
        """The buffer pool, the log's buffer and what InnoDB adds for its own book-keeping (about 2 %)."""
        pool = quantity(str(settings.get("innodb_buffer_pool_size", DEFAULT_BUFFER_POOL)))
        cache_bytes = int(pool[0] if pool else 0)
        size_bytes = int(cache_bytes * 1.02) + OTHER_LARGE_AREAS_BYTES
        return HugePages({"large_pages": "ON"}, max(size_bytes, page_bytes), cache_bytes)

    def read_settings(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        rows = ask("SHOW GLOBAL VARIABLES")
        values = {str(row[0]): "" if row[1] is None else str(row[1]) for row in rows}
        return {
            name: Reading(value=values[name], source=f"SHOW GLOBAL VARIABLES LIKE '{name}'")
            for name in names
            if name in values
        }

    def same(self, name: str, requested: Level, effective: str) -> bool:
        return same_value(requested, effective)

    def exercised(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
        counters = [one for one in COUNTERS.get(name, ()) if one in before and one in after]
        if not counters:
            return None
        changes = [f"{one} {after[one] - before[one]:+.0f}" for one in counters]
        return Reading(value=", ".join(changes), source="SHOW GLOBAL STATUS, after the load less before it")

    def status(self, ask: Ask) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for name, value, *_ in ask("SHOW GLOBAL STATUS"):
            try:
                numbers[str(name)] = float(value if value is not None else "")
            except ValueError:
                continue
        return numbers

    def view(self, gained: Mapping[str, float]) -> dict[str, float]:
        return viewed(VIEW, gained)


ACCOUNT = "dyno"
DATABASE = "dyno"
ACCOUNT_SQL = f"""
FLUSH PRIVILEGES;
CREATE USER {ACCOUNT}@localhost IDENTIFIED VIA mysql_native_password USING '';
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE {DATABASE};
"""
"""No password: the socket stands in a folder that only this user can enter, and there is no network."""


def _unpacked(copy: debian.Fetched) -> Installation:
    return Installation(
        engine="mariadb",
        version=copy.version,
        origin=copy.origin,
        prefix=copy.prefix,
        command=(*debian.loader(copy.prefix), str(copy.prefix / RECIPE.binary)),
        digest=copy.digest,
    )


def _installed(binary: Path) -> Installation:
    command = (str(binary),)
    return Installation(
        engine="mariadb",
        version=path.version(command, VERSION, "MariaDB"),
        origin=str(binary),
        prefix=binary.parent.parent,
        command=command,
        digest=path.digest(binary),
    )


def _binaries_here() -> list[Path]:
    found = [Path(place) / "mariadbd" for place in PLACES]
    return [binary for binary in found if os.access(binary, os.X_OK)]


def _command(installation: Installation, data: Path) -> list[str]:
    """The part of the command that does not depend on the trial. `--no-defaults` must come first."""
    root = ["--user=root"] if os.getuid() == 0 else []
    return [
        *installation.command,
        "--no-defaults",
        *_folders(installation),
        f"--datadir={data / 'database'}",
        f"--tmpdir={data / 'temporary'}",
        *root,
    ]


def _folders(installation: Installation) -> list[str]:
    prefix = Path(installation.command[-1]).parent.parent
    options = [f"--basedir={prefix}"]
    share = _share(installation)
    if share is not None:
        options += [f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"]
    plugins = [prefix / part for part in ("lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin")]
    # Without a folder of its own, an unpacked server would load the host's plugins, built for other
    # libraries.
    return [*options, f"--plugin-dir={next((one for one in plugins if one.is_dir()), plugins[0])}"]


def _share(installation: Installation) -> Path | None:
    """The folder with the messages and the SQL that makes the system tables; None when it is elsewhere."""
    prefix = Path(installation.command[-1]).parent.parent
    folders = [prefix / "share" / part for part in ("mariadb", "mysql", "")]
    return next((one for one in folders if (one / "english/errmsg.sys").is_file()), None)


def _system_tables(installation: Installation) -> bytes:
    share = _share(installation)
    parts = [b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"]
    for stem in ("system_tables", "performance_tables", "system_tables_data"):
        names = [f"mariadb_{stem}.sql", f"mysql_{stem}.sql"]
        found = next((share / name for name in names if share and (share / name).is_file()), None)
        if found is None:
            raise UserError(
                f"{installation.command[-1]} comes without {names[0]}, which makes the system tables",
                "install the server's whole package, or `dyno engines fetch mariadb@11.8`",
            )
        parts.append(found.read_bytes())
    return b"\n".join([*parts, ACCOUNT_SQL.encode()])


def _arguments(settings: Mapping[str, Level]) -> list[str]:
    return [f"--{name.replace('_', '-')}={as_text(level)}" for name, level in settings.items()]


@lru_cache
def _defaults_of(command: tuple[str, ...], folders: tuple[str, ...]) -> dict[str, str]:
    shown = path.ask(command, "--no-defaults", *folders, "--verbose", "--help")
    table = shown.split("\n--------", 1)[-1].split("\n\n", 1)[0]
    pairs = [line.split(None, 1) for line in table.splitlines()[1:]]
    return {pair[0].replace("-", "_"): pair[1].strip() if len(pair) > 1 else "" for pair in pairs if pair}


def _defaults(installation: Installation) -> dict[str, str]:
    """Every setting of this build with its default, as `--verbose --help` prints them."""
    return _defaults_of(installation.command, tuple(_folders(installation)))


def _problems(log: str) -> list[str]:
    return [line.strip() for line in log.splitlines() if ALARMING.search(line) and not BENIGN.search(line)]


def _hint(log: str, installation: Installation) -> str:
    unknown = re.search(r"unknown (?:variable|option) '(?:--)?([\w-]+)", log)
    if unknown:
        name = unknown[1].replace("-", "_")
        near = get_close_matches(name, _defaults(installation), n=1)
        known = f"; did you mean `{near[0]}`?" if near else ""
        return f"this MariaDB has no setting `{name}`{known}"
    hints = (
        (
            r"Errcode: 28|No space left|OS error: 28|error number 28|disk is full",
            "the disk is full: make room below the data directory",
        ),
        (
            r"Unable to lock|Can't lock aria control file|already exists and is locked",
            "another server is using this data directory: stop it first",
        ),
        (r"Cannot allocate memory|Out of memory", "there is not enough memory: choose a smaller buffer pool"),
        (
            r"error while loading shared libraries|cannot open shared object",
            "the server's libraries are incomplete: fetch the engine again",
        ),
        (r"Permission denied|Errcode: 13", "the data directory must belong to the user that runs Dyno"),
        (
            r"Wrong (value|argument)|Error while setting value|Unknown suffix|requires an argument",
            "the server refuses this value: look up what the setting allows",
        ),
    )
    return next((hint for pattern, hint in hints if re.search(pattern, log)), "look at the end of its log")
