"""A MySQL that runs already: what of its settings an account may move, and how. Most is as with MariaDB."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dbdyno.driver.passwords import Ask
from dbdyno.engines.mariadb import running as mariadb
from dbdyno.engines.mysql.settings import OURS
from dbdyno.engines.runtime import FoundSettings, LoadOfOthers, first_row, lacks_right, named, quoted
from dbdyno.errors import DriverFailed, UserError
from dbdyno.frozen import Level
from dbdyno.records.in_use import Identity, ServerId, SettingWay

PROGRAMS: tuple[str, ...] = ("mysqld",)
LASTS = False
COMPARES = True
SESSION = mariadb.SESSION
SET_SQL = """SELECT v.variable_name, v.variable_value FROM performance_schema.global_variables v
  JOIN performance_schema.variables_info i ON i.variable_name = v.variable_name
  WHERE i.variable_source <> 'COMPILED'"""
READ_ONLY = mariadb.READ_ONLY
NOW = mariadb.NOW
TURN = mariadb.TURN
LATENCY = "performance_schema: how long each statement of other accounts has run"
ERRORS = mariadb.ERRORS

SCOPES_SQL = """SELECT VARIABLE_NAME, VARIABLE_SCOPE FROM performance_schema.variables_metadata
  WHERE VARIABLE_NAME IN ({names})"""
AGES_SQL = """SELECT s.TIMER_WAIT / 1e12 FROM performance_schema.threads t
  JOIN performance_schema.events_statements_current s USING (THREAD_ID)
  WHERE t.TYPE = 'FOREGROUND' AND s.END_EVENT_ID IS NULL
  AND t.PROCESSLIST_USER <> SUBSTRING_INDEX(USER(), '@', 1)"""

standing = mariadb.standing
pending = mariadb.pending
in_session = mariadb.in_session
value_of_session = mariadb.value_of_session
in_force = mariadb.in_force
explains = mariadb.explains
taken = mariadb.taken
own_place = mariadb.own_place
lacking_for_schema = mariadb.lacking_for_schema


def identity(ask: Ask) -> Identity:
    found = mariadb.identified(ask)
    if "mariadb" in found.version.lower():
        raise UserError("the URL leads to MariaDB, and not to MySQL", "write mariadb:// in its place")
    return found


VALUES = "performance_schema.global_variables"
CHANGED_SQL = """SELECT SET_USER, SET_HOST, SET_TIME FROM performance_schema.variables_info
  WHERE VARIABLE_NAME = {name} AND SET_USER <> ''"""


def who(ask: Ask) -> ServerId:
    return mariadb.who_by(ask, VALUES, "performance_schema.global_status")


def changed_by(ask: Ask, name: str) -> str:
    try:
        user, host, at = first_row(ask, CHANGED_SQL.format(name=quoted(name)))
    except (DriverFailed, IndexError):
        return ""
    return f"{user}@{host} at {at}"


def led_along(ask: Ask, said: Sequence[str], name: str, now: str) -> bool | None:
    return mariadb.led_along_by(ask, CHANGED_SQL, said, name, now)


def move(ask: Ask, levels: Mapping[str, Level], found: FoundSettings) -> tuple[str, ...]:
    mariadb.set_where(ask, VALUES, levels, found)
    return mariadb.warnings(ask)


def put_back(ask: Ask, lines: Mapping[str, str | None], found: FoundSettings) -> None:
    mariadb.set_where(ask, VALUES, mariadb.as_levels(lines), found)


def known(ask: Ask) -> frozenset[str]:
    return frozenset(str(row[0]).lower() for row in ask("SHOW GLOBAL VARIABLES")) - OURS


def ways(ask: Ask, names: Collection[str], _hook: bool) -> dict[str, SettingWay]:
    account, scopes, found = mariadb.own_account(ask), _scopes(ask, names), {}
    for name, now in mariadb.pairs(ask, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({named(names)})"):
        if scopes.get(name, "").startswith("SESSION"):
            found[name] = mariadb.by_session(ask, name, now, account)
        else:
            found[name] = mariadb.by_global(ask, name, now, account)
    return found


def _scopes(ask: Ask, names: Collection[str]) -> dict[str, str]:
    """Whether sessions have a setting of their own; nothing where this version does not say."""
    try:
        return dict(mariadb.pairs(ask, SCOPES_SQL.format(names=named(names))))
    except DriverFailed:
        return {}


def lacking_for_guard(ask: Ask) -> str:
    try:
        mariadb.ages_of(ask, AGES_SQL)
    except DriverFailed as refused:
        if not lacks_right(refused):
            raise
        return f"GRANT SELECT ON performance_schema.* TO {mariadb.own_account(ask)}"
    return ""


def of_others(ask: Ask) -> LoadOfOthers:
    return LoadOfOthers(mariadb.ages_of(ask, AGES_SQL), mariadb.errors_of(ask))
