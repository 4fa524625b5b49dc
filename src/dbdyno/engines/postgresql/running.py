"""A PostgreSQL that runs already: what of its settings an account may move, and how.

A session sets for itself what it may. The rest goes through ALTER SYSTEM and a reload, for which one right on
one parameter is enough from version 15 on. What is read at the start alone needs a restart by the user's
hook."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from dbdyno.driver.passwords import Ask
from dbdyno.engines.postgresql.settings import OURS, same
from dbdyno.engines.runtime import (
    FoundSettings,
    LoadOfOthers,
    OwnPlace,
    Read,
    digest_of_server,
    first_row,
    named,
    quoted,
)
from dbdyno.engines.values import as_text
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.records.in_use import Identity, Means, ServerId, SettingWay

PROGRAMS: tuple[str, ...] = ("postgres", "postmaster")
LASTS = True
COMPARES = False
SESSION = "SELECT pg_backend_pid()"
SET_SQL = """SELECT name, current_setting(name) FROM pg_settings
  WHERE source IN ('configuration file', 'command line', 'environment variable', 'global')"""
READ_ONLY = "SET default_transaction_read_only = on"
NOW = "EXTRACT(EPOCH FROM clock_timestamp())"
TURN = """SELECT 1 FROM set_config('lock_timeout', '{seconds}s', false) AS limited,
  LATERAL pg_advisory_lock(0, 1685679727 + 0 * length(limited)) AS turn"""
LATENCY = "pg_stat_activity: how long each statement of sessions that are not Dyno's has run"
ERRORS = "pg_stat_database: transactions that were rolled back, those of Dyno's load included"

AUTO_CONF = "postgresql.auto.conf"
LISTS = frozenset(
    {
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
        "unix_socket_directories",
    }
)
"""Settings whose values are lists of names in quotes, which the text of a level does not tell."""
RIGHTS_FROM = 150_000
"""The version from which on a right on one parameter can be given."""

OTHERS = (
    "FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND pid <> pg_backend_pid()"
    " AND application_name IS DISTINCT FROM 'dyno'"
)
"""Sessions of clients that are not the driver's, which names itself."""

PENDING_SQL = """SELECT s.name, f.setting, current_setting(s.name) FROM pg_settings s
  LEFT JOIN (
    SELECT DISTINCT ON (lower(name)) lower(name) AS name, setting FROM pg_file_settings
    WHERE error IS NULL ORDER BY lower(name), seqno DESC
  ) f ON f.name = lower(s.name)
  WHERE s.context NOT IN ('internal', 'postmaster')
    AND (s.source = 'configuration file' OR (s.source = 'default' AND f.name IS NOT NULL)) ORDER BY s.name"""
"""What the files say of settings that nothing else gives, beside what is in force."""

WAYS_SQL = """SELECT s.name, s.context, s.source, current_setting(s.name), {rights}
  FROM pg_settings s WHERE s.name IN ({names})"""
RIGHTS = (
    "has_parameter_privilege(current_user, s.name, 'SET')::int,"
    " has_parameter_privilege(current_user, s.name, 'ALTER SYSTEM')::int"
)

SEES_FILE = (
    "(has_table_privilege('pg_catalog.pg_file_settings', 'SELECT') AND"
    " has_function_privilege('pg_show_all_file_settings()', 'EXECUTE'))::int"
)


def identity(ask: Ask) -> Identity:
    version, account, recovering = first_row(ask, "SELECT version(), current_user, pg_is_in_recovery()::int")
    if not version.startswith("PostgreSQL"):
        raise UserError(f"the URL leads to {version.split(',')[0]}, and not to PostgreSQL", "name its engine")
    [number] = first_row(ask, "SHOW server_version")
    system, port = first_row(
        ask, "SELECT system_identifier::text, inet_server_port()::text FROM pg_control_system()"
    )
    [others] = first_row(ask, f"SELECT count(*) {OTHERS}")
    return Identity(
        version=number,
        # A standby has the identifier of its primary.
        digest=digest_of_server(system, version, port, recovering),
        account=account,
        replica="a standby, which replays the log of its primary" if recovering == "1" else "",
        others=int(float(others)),
    )


WHO_SQL = """SELECT system_identifier::text AS system,
  CASE WHEN pg_is_in_recovery() THEN 'none, because it is a standby'
  ELSE ltrim(substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), '0') END AS timeline,
  current_setting('port') AS port, EXTRACT(EPOCH FROM pg_postmaster_start_time())::text AS started
  FROM pg_control_system() OFFSET 0"""
"""What was promoted has the identifier of the server that it was copied from, and a timeline of its own. A
start is in seconds, because a session's zone changes its text."""
OF_SERVER = "w.system, w.port, w.started, w.timeline"
IN_FORCE_SQL = f"""SELECT {OF_SERVER}, s.name, current_setting(s.name)
  FROM pg_settings s, ({WHO_SQL}) w WHERE s.context <> 'internal'"""
LINES_SQL = f"""SELECT {OF_SERVER}, n.name, (
    SELECT f.setting FROM pg_catalog.pg_file_settings f
    WHERE f.name = n.name AND f.sourcefile LIKE '%/{AUTO_CONF}' ORDER BY f.seqno DESC LIMIT 1
  ) FROM (VALUES {{names}}) n (name), ({WHO_SQL}) w"""
HAND_SQL = "SELECT 1 FROM pg_catalog.pg_file_settings WHERE lower(name) = lower({name})"


def who(ask: Ask) -> ServerId:
    return _server(first_row(ask, f"SELECT {OF_SERVER} FROM ({WHO_SQL}) w"))


def _server(row: Sequence[object]) -> ServerId:
    """The columns OF_SERVER of a row."""
    system, port, started, timeline = map(str, row[:4])
    return ServerId(facts={"system": system, "port": port}, started=started, history=f"timeline {timeline}")


def _read(ask: Ask, sql: str) -> tuple[ServerId, list[tuple[str, str | None]]]:
    """Who answered a query, and its last two columns."""
    rows = ask(sql)
    found = [(str(name), None if value is None else str(value)) for *_, name, value in rows]
    return _server(rows[0]), found


def in_force(ask: Ask) -> Read[dict[str, str]]:
    server, found = _read(ask, IN_FORCE_SQL)
    return Read(server, {name: value or "" for name, value in found})


def changed_by(_ask: Ask, _name: str) -> str:
    return ""


def explains(_said: Sequence[str], _name: str, _level: Level, _now: str) -> bool:
    """A file holds what was written into it."""
    return False


def led_along(ask: Ask, _said: Sequence[str], name: str, _now: str) -> bool | None:
    # What the server derives from another setting stands in no file.
    return not ask(HAND_SQL.format(name=quoted(name)))


def known(ask: Ask) -> frozenset[str]:
    return frozenset(str(row[0]) for row in ask("SELECT name FROM pg_settings")) - OURS


@dataclass(frozen=True)
class _Rights:
    """What an account may on a server, whatever the setting: reload it, and see what its file holds. `fine`
    servers have a right for each setting. On `disabled` ones nobody may write that file."""

    account: str
    reloads: bool
    sees: bool
    fine: bool
    disabled: bool


def _rights(ask: Ask) -> _Rights:
    [number, account, reloads, sees] = first_row(
        ask,
        "SELECT current_setting('server_version_num'), current_user,"
        f" has_function_privilege('pg_reload_conf()', 'EXECUTE')::int, {SEES_FILE}",
    )
    disabled = ask("SELECT 1 FROM pg_settings WHERE name = 'allow_alter_system' AND setting = 'off'")
    return _Rights(account, reloads == "1", sees == "1", int(number) >= RIGHTS_FROM, bool(disabled))


def ways(ask: Ask, names: Collection[str], hook: bool) -> dict[str, SettingWay]:
    rights = _rights(ask)
    found = {}
    for name, context, source, now, may_set, may_alter in (
        map(str, row) for row in ask(_ways_sql(names, rights.fine))
    ):
        way = _way(name, context, may_set == "1", rights.account, hook)
        if way.means is not Means.SESSION and not way.refused:
            way = _within_rights(way, source, may_alter == "1", rights)
        found[name] = way.but(now=now)
    return found


def _ways_sql(names: Collection[str], fine: bool) -> str:
    if fine:
        return WAYS_SQL.format(rights=RIGHTS, names=named(names))
    is_super = "(SELECT rolsuper::int FROM pg_roles WHERE rolname = current_user)"
    return WAYS_SQL.format(rights=f"{is_super}, {is_super}", names=named(names))


def _way(name: str, context: str, may_set: bool, account: str, hook: bool) -> SettingWay:
    """How a setting of this context is moved, whoever may."""
    if name in LISTS:
        return SettingWay(
            name=name,
            refused=f"{name} holds a list of names in quotes, which a level does not tell",
            remedy="leave it out",
        )
    if context == "internal":
        return SettingWay(
            name=name,
            refused=f"{name} is fixed when the server is built or its data are made",
            remedy="study it on a server of Dyno's own",
        )
    if context == "user" or (context == "superuser" and may_set):
        right = "" if context == "user" else f"SET on the parameter {name}"
        grant = f"GRANT SET ON PARAMETER {name} TO {account}" if right else ""
        return SettingWay(
            name=name, means=Means.SESSION, does="SET in each of its sessions", right=right, grant=grant
        )
    right, grant = (
        f"ALTER SYSTEM on the parameter {name}",
        f"GRANT ALTER SYSTEM ON PARAMETER {name} TO {account}",
    )
    if context != "postmaster":
        does = "ALTER SYSTEM and a reload"
        return SettingWay(name=name, means=Means.SERVER, does=does, right=right, grant=grant)
    if not hook:
        return SettingWay(
            name=name,
            means=Means.RESTART,
            refused=f"{name} is read when the server starts, and nothing says how to restart it",
            remedy='write restart = "COMMAND" under [server], or study it on a server of Dyno\'s own',
        )
    does = "ALTER SYSTEM and a restart by the study's command"
    return SettingWay(name=name, means=Means.RESTART, does=does, right=right, grant=grant)


def _within_rights(way: SettingWay, source: str, may_alter: bool, rights: _Rights) -> SettingWay:
    """The way, or who refuses it. All rights that lack are named together, because each takes somebody who
    may grant it."""
    account = rights.account
    if rights.disabled:
        return way.but(
            refused="the server refuses ALTER SYSTEM (allow_alter_system = off)", remedy=way.remedy
        )
    if source == "command line":
        told = f"{way.name} stands on the server's command line, which wins over ALTER SYSTEM"
        return way.but(refused=told, remedy="take it out there")
    if not may_alter and not rights.fine:
        remedy = f"before version 15 that takes a superuser, and {account} is none"
        return way.but(refused=f"{account} may not ALTER SYSTEM SET {way.name}", remedy=remedy)
    lacking: list[tuple[str, str]] = []
    if not may_alter:
        lacking.append((f"may not ALTER SYSTEM SET {way.name}", way.grant))
    if way.means is Means.SERVER and not rights.reloads:
        grant = f"GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {account}"
        lacking.append(("may not reload the configuration", grant))
    if not rights.sees:
        lacking.append(_unseen([way.name], account))
    if not lacking:
        return way
    refused = " and ".join(told for told, _ in lacking)
    return way.but(refused=f"{account} {refused}", remedy="; ".join(grant for _, grant in lacking))


def _unseen(names: Collection[str], account: str) -> tuple[str, str]:
    """What an account cannot see that is not granted pg_file_settings, and what grants it."""
    return (
        f"cannot see what {AUTO_CONF} holds for {', '.join(names)}, which is to be put back",
        f"GRANT SELECT ON pg_file_settings TO {account};"
        f" GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO {account}",
    )


def standing(ask: Ask, names: Collection[str]) -> Read[dict[str, str | None]]:
    sees, account = first_row(ask, f"SELECT {SEES_FILE}, current_user")
    # What is in force does not tell: a line may stand there that nobody has taken over yet.
    if sees != "1":
        told, grants = _unseen(names, account)
        raise UserError(f"{account} {told}", grants)
    server, found = _read(ask, LINES_SQL.format(names=", ".join(f"({quoted(name)})" for name in names)))
    return Read(server, dict(found))


def pending(ask: Ask, restarts: bool) -> list[str]:
    found = [
        str(name)
        for name, in_file, in_force in ask(PENDING_SQL)
        if in_file is None or not same(str(name), str(in_file), str(in_force))
    ]
    at_start = "SELECT name FROM pg_settings WHERE pending_restart ORDER BY name"
    return [*found, *(str(row[0]) for row in (ask(at_start) if restarts else ()))]


def in_session(name: str, level: Level) -> str:
    return f"SET {name} = {quoted(as_text(level))}"


def value_of_session(name: str) -> str:
    return f"SELECT current_setting({quoted(name)}) AS value"


def move(ask: Ask, levels: Mapping[str, Level], _found: FoundSettings) -> tuple[str, ...]:
    for name, level in levels.items():
        ask(f"ALTER SYSTEM SET {name} = {quoted(as_text(level))}")
    return ()


def put_back(ask: Ask, lines: Mapping[str, str | None], _found: FoundSettings) -> None:
    for name, line in lines.items():
        ask(f"ALTER SYSTEM RESET {name}" if line is None else f"ALTER SYSTEM SET {name} = {quoted(line)}")


def taken(ask: Ask, server: ServerId) -> bool:
    # One statement asks and acts, because a reload would take over what others have changed elsewhere.
    meant = " AND ".join(f"w.{fact} = {quoted(value)}" for fact, value in server.facts.items())
    meant += (
        f" AND (w.started = {quoted(server.started)} OR 'timeline ' || w.timeline = {quoted(server.history)})"
    )
    rows = ask(f"SELECT CASE WHEN {meant} THEN pg_reload_conf()::int END FROM ({WHO_SQL}) w")
    return rows[0][0] is not None


def own_place(url: str, name: str) -> OwnPlace:
    return OwnPlace(
        name=name,
        create=f"CREATE SCHEMA {name}",
        drop=f"DROP SCHEMA IF EXISTS {name} CASCADE",
        url=url,
        right=_right_to_make(unquote(urlsplit(url).path[1:])),
        opening=(f"SET search_path = {name}",),
    )


def lacking_for_schema(ask: Ask) -> str:
    [account, database, makes] = first_row(
        ask,
        "SELECT current_user, current_database(), has_database_privilege(current_database(), 'CREATE')::int",
    )
    return "" if makes == "1" else f"{_right_to_make(database)} {account}"


def _right_to_make(database: str) -> str:
    """The GRANT that lets an account make a schema, up to the name of the account."""
    return f"GRANT CREATE ON DATABASE {database} TO"


def lacking_for_guard(ask: Ask) -> str:
    [account, sees] = first_row(
        ask, "SELECT current_user, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')::int"
    )
    return "" if sees == "1" else f"GRANT pg_read_all_stats TO {account}"


def of_others(ask: Ask) -> LoadOfOthers:
    rows = ask(
        "SELECT EXTRACT(EPOCH FROM clock_timestamp() - query_start)::float8"
        f" {OTHERS} AND state = 'active' AND query_start IS NOT NULL"
    )
    [errors] = first_row(ask, "SELECT COALESCE(sum(xact_rollback), 0)::float8 FROM pg_stat_database")
    return LoadOfOthers(tuple(float(str(row[0])) for row in rows), float(errors))
