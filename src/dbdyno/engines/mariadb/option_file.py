"""The option files of MariaDB and MySQL (`my.cnf`): the lines that the server would read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.engines import configuration
from dbdyno.engines.facts import (
    A_PATH,
    NOT_SHOWN,
    OF_DYNO,
    UNREADABLE,
    ConfigurationLine,
    Include,
    is_path,
    unquoted,
)

GROUPS = r"(mysqld|server|mariadb|mariadbd)(-\d+(\.\d+)*)?|client-server|galera"
"""The groups of servers of this family, where none is there to name its own."""
OF_THE_NETWORK = re.compile(r"(mysqlx|ssl|tls|report|proxy|extra_port|require_secure|skip_name_resolve).*")
HIDDEN = re.compile(
    r"performance_schema_(consumer|instrument).*|ndb.*|(feedback|debug|log_tc).*|innodb|default_time_zone|"
    r"external_locking|symbolic_links|sysdate_is_now|character_set_client_handshake|memlock|"
    r"safe_user_create|master_retry_count|plugin_load.*|user_variables|daemonize"
)
"""Options that are no variables."""
A_LIMIT = "it limits what sessions may ask for, which no variable of the server shows"
PASSED_OVER = "this server does not know it, and passes over it, because it is `loose`"
SWITCHES = (("skip_", False), ("disable_", False), ("enable_", True))
"""Prefixes that turn a switch, and what it then is. With the value 0 it is turned the other way."""


def lines(
    text: str, known: frozenset[str] | None, ours: frozenset[str], groups: frozenset[str] | None = None
) -> Iterator[ConfigurationLine]:
    """The lines that say something: those of the server's groups, those of others, which it does not read,
    and those that lead to other files. `groups` are those that the server says it reads. A line that ends its
    reading is `fatal`, and no later one is taken."""
    if (entries := configuration.entries(text)) is not None:
        for entry in entries:
            written = f"{entry.name} = {entry.value}"
            yield entry.untaken(written) or _judged(entry.number, written, known, ours)
        return
    inside, fault = "", ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        fatal = "" if fault else _fault(number, line, inside)
        fault = fault or fatal
        if fault:
            yield ConfigurationLine(number, line, untaken=fault, fatal=fatal)
        elif line.startswith("["):
            inside = line[1:].partition("]")[0].rstrip()
        elif line.startswith("!"):
            yield _including(number, line)
        elif inside in groups if groups is not None else re.fullmatch(GROUPS, inside):
            yield _judged(number, line, known, ours)
        else:
            yield ConfigurationLine(
                number, line, untaken=f"it stands in [{inside}], which this server does not read"
            )


def _fault(number: int, line: str, inside: str) -> str:
    """Why a server stops reading at a line; empty where it does not."""
    if line.startswith("["):
        return "" if "]" in line else f"the server refuses line {number}, which is no group"
    if line.startswith("!") or inside:
        return ""
    return f"the server refuses line {number}, which stands before any group, such as [mysqld]"


def _including(number: int, line: str) -> ConfigurationLine:
    """Of a folder, servers on Unix read the files that end in `.cnf`."""
    directive, *path = line.split(maxsplit=1)
    endings = {"!include": "", "!includedir": ".cnf"}
    if directive not in endings or not path:
        return ConfigurationLine(number, line, untaken=UNREADABLE)
    return ConfigurationLine(number, line, include=Include(path[0], endings[directive]))


def _judged(number: int, line: str, known: frozenset[str] | None, ours: frozenset[str]) -> ConfigurationLine:
    key, given, value = line.partition("=")
    written = (key if given else key.split("#", 1)[0]).strip().lower().replace("-", "_")
    every = None if known is None else known | ours
    name, level = _meant(written, unquoted(value) if given else True, every)
    if name in ours or OF_THE_NETWORK.fullmatch(name):
        return ConfigurationLine(number, line, name, level, OF_DYNO)
    if HIDDEN.fullmatch(name):
        return ConfigurationLine(number, line, name, level, NOT_SHOWN)
    if written.removeprefix("loose_").startswith("maximum_"):
        return ConfigurationLine(number, line, name, level, A_LIMIT)
    if written.startswith("loose_") and known is not None and name not in known:
        return ConfigurationLine(number, line, name, level, PASSED_OVER)
    if name == "log_bin" and not isinstance(level, bool) and level.lower() not in ("on", "off", "0", "1"):
        # Its value names the log's files: that there is a log is what counts.
        return ConfigurationLine(number, line, name, True)
    return ConfigurationLine(number, line, name, level, A_PATH if is_path(level) else "")


def _meant(name: str, level: str | bool, known: frozenset[str] | None) -> tuple[str, str | bool]:
    """The option that a server understands by a name: prefixes switch it, and its start is enough."""
    name = name.removeprefix("loose_")
    if known is None or name in known:
        return name, level
    for prefix, switched in SWITCHES:
        if name.startswith(prefix) and name.removeprefix(prefix) in known:
            return name.removeprefix(prefix), switched != (level == "0")
    begun = [one for one in known if one.startswith(name)]
    return (begun[0] if len(begun) == 1 else name), level
