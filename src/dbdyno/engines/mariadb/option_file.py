"""The option files of MariaDB and MySQL (`my.cnf`): the lines that the server would read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.engines.line import A_PATH, NOT_SHOWN, OF_DYNO, UNREADABLE, Include, Line, is_path, unquoted

GROUPS = r"(mysqld|server|mariadb|mariadbd)(-\d+(\.\d+)*)?"
OF_THE_NETWORK = re.compile(r"(mysqlx|ssl|tls|report|proxy|extra_port|require_secure|skip_name_resolve).*")
HIDDEN = re.compile(
    r"performance_schema_(consumer|instrument).*|ndb.*|(feedback|debug|log_tc).*|innodb|default_time_zone|"
    r"external_locking|symbolic_links|sysdate_is_now|character_set_client_handshake|memlock|"
    r"safe_user_create|master_retry_count|plugin_load.*|user_variables|daemonize"
)
"""Options that are no variables."""


def lines(text: str, known: frozenset[str] | None, ours: frozenset[str]) -> Iterator[Line]:
    """The lines of the server's groups, and those that lead to other files."""
    of_the_server = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if group := re.fullmatch(r"\[(.+?)\]\s*(#.*)?", line):
            of_the_server = re.fullmatch(GROUPS, group[1].strip()) is not None
        elif line.startswith("!"):
            yield _including(number, line)
        elif of_the_server and line and line[0] not in "#;":
            yield _judged(number, line, known, ours)


def _including(number: int, line: str) -> Line:
    """Of a folder, servers on Unix read the files that end in `.cnf`."""
    directive, *path = line.split(maxsplit=1)
    endings = {"!include": "", "!includedir": ".cnf"}
    if directive not in endings or not path:
        return Line(number, line, untaken=UNREADABLE)
    return Line(number, line, include=Include(path[0], endings[directive]))


def _judged(number: int, line: str, known: frozenset[str] | None, ours: frozenset[str]) -> Line:
    key, given, value = line.partition("=")
    written = key if given else key.split("#", 1)[0]
    every = None if known is None else known | ours
    name, level = _meant(written.strip().lower().replace("-", "_"), unquoted(value) if given else True, every)
    if name in ours or OF_THE_NETWORK.fullmatch(name):
        return Line(number, line, name, level, OF_DYNO)
    if HIDDEN.fullmatch(name):
        return Line(number, line, name, level, NOT_SHOWN)
    if name == "log_bin" and not isinstance(level, bool) and level.lower() not in ("on", "off", "0", "1"):
        # Its value names the log's files: that there is a log is what counts.
        return Line(number, line, name, True)
    return Line(number, line, name, level, A_PATH if is_path(level) else "")


def _meant(name: str, level: str | bool, known: frozenset[str] | None) -> tuple[str, str | bool]:
    """The option that a server understands by a name: prefixes switch it, and its start is enough."""
    name = name.removeprefix("loose_")
    if known is None or name in known:
        return name, level
    for prefix, switched in (("skip_", False), ("disable_", False), ("enable_", True)):
        if name.startswith(prefix) and name.removeprefix(prefix) in known and level is True:
            return name.removeprefix(prefix), switched
    begun = [one for one in known if one.startswith(name)]
    return (begun[0] if len(begun) == 1 else name), level
