"""A MariaDB that runs already: what of its settings an account may move, and how.

A session sets for itself what sessions have of their own. The rest goes through SET GLOBAL, which ends with
the server and leaves its files alone. What is read at the start alone cannot be set at all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from dbdyno.driver.passwords import Ask
from dbdyno.engines.mariadb.settings import OURS
from dbdyno.engines.runtime import (
    FoundSettings,
    LoadOfOthers,
    OwnPlace,
    Read,
    digest_of_server,
    first_row,
    lacks_right,
    named,
    quoted,
)
from dbdyno.engines.server import url_of_database
from dbdyno.engines.values import as_text, quantity
from dbdyno.errors import DriverFailed, UserError
from dbdyno.frozen import Level
from dbdyno.records.in_use import Identity, Means, ServerId, SettingWay

PROGRAMS: tuple[str, ...] = ("mariadbd", "mysqld")
LASTS = False
COMPARES = True
SESSION = "SELECT CONNECTION_ID()"
SET_SQL = """SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE FROM information_schema.SYSTEM_VARIABLES
  WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', 'AUTO') AND GLOBAL_VALUE IS NOT NULL"""
READ_ONLY = "SET SESSION TRANSACTION READ ONLY"
NOW = "UNIX_TIMESTAMP(NOW(6))"
TURN = "SELECT GET_LOCK('dyno_ledger', {seconds})"
LATENCY = "the list of processes: how long each statement of other accounts has run"
ERRORS = "the server's counters: rollbacks and clients that were cut off, those of Dyno's load included"

ALL = "ALL PRIVILEGES"
TRIED_SQL = "SET {scope} {name} = @@{scope}.{name}, SESSION wait_timeout = 'none'"
"""Sets nothing, whatever the account may do. The server looks at all parts before it sets any, at its rights
first, and the last part has a wrong type. Which right it is depends on setting and version: from MariaDB 11
on `SUPER` no longer holds those that have names of their own."""
LACKED = re.compile(r"you need \(at least one of\) the (.+?) privilege")
THE_RIGHT = "the right to set it"
FOR_ALL_ALONE = "(error 1621)"
OF_OUR_OWN = "study it on a server of Dyno's own"
OWN_SCHEMA = "GRANT ALL ON `dyno\\_%`.* TO"
MAKES_SCHEMA = re.compile(
    r"GRANT (?:ALL PRIVILEGES|(?:.*, )?CREATE(?:,.*)?) ON (?:\*|`(?:dyno|%).*`)\.\* TO "
)
"""A grant of `SHOW GRANTS` that lets an account make a database of Dyno's own."""
NUMBER = re.compile(r"-?\d+(\.\d+)?")

WAYS_SQL = """SELECT LOWER(VARIABLE_NAME), VARIABLE_SCOPE, READ_ONLY, GLOBAL_VALUE, SESSION_VALUE
  FROM information_schema.SYSTEM_VARIABLES WHERE LOWER(VARIABLE_NAME) IN ({names})"""
LOOKS, LOOK_AGAIN_S = 5, 0.05
OTHERS_SQL = """SELECT COUNT(*) FROM information_schema.PROCESSLIST
  WHERE COMMAND <> 'Daemon' AND USER NOT IN ('system user', SUBSTRING_INDEX(USER(), '@', 1))"""
AGES_SQL = """SELECT TIME_MS / 1000 FROM information_schema.PROCESSLIST
  WHERE COMMAND IN ('Query', 'Execute') AND USER <> SUBSTRING_INDEX(USER(), '@', 1)"""


def identity(ask: Ask) -> Identity:
    found = identified(ask)
    if "mariadb" not in found.version.lower():
        raise UserError("the URL leads to MySQL, and not to MariaDB", "write mysql:// in its place")
    return found


def identified(ask: Ask) -> Identity:
    """What MariaDB and MySQL say of themselves alike."""
    sql = "SELECT VERSION(), CURRENT_USER(), @@hostname, @@port, @@datadir, @@read_only"
    version, account, *place, read_only = first_row(ask, sql)
    return Identity(
        version=version,
        digest=digest_of_server(version, *place),
        account=_account_of(account),
        replica=_replica(ask, read_only == "1"),
        others=_others(ask),
    )


PLACE = ("server_uid", "server_uuid", "hostname", "port", "datadir")
"""What a server is known by, as far as its version has it."""
WHO_SQL = """SELECT LOWER(VARIABLE_NAME), VARIABLE_VALUE FROM {values}
  WHERE LOWER(VARIABLE_NAME) IN ({names})
  UNION ALL SELECT 'started', UNIX_TIMESTAMP() - CAST(VARIABLE_VALUE AS SIGNED) FROM {status}
  WHERE VARIABLE_NAME = 'UPTIME'"""
"""A server counts from its clock of the day, so its uptime is below zero once that was set back before its
start."""
VALUES = "information_schema.GLOBAL_VARIABLES"
LOGGED = "gtid"
"""How the names begin of what moves with every write."""


def who(ask: Ask) -> ServerId:
    return who_by(ask, VALUES, "information_schema.GLOBAL_STATUS")


def who_by(ask: Ask, values: str, status: str) -> ServerId:
    """Which server this is, whose variables and counters stand in these tables. It is one statement, because
    a pooler may lead the next one to another server."""
    facts = dict(pairs(ask, WHO_SQL.format(values=values, status=status, names=named(PLACE))))
    started = facts.pop("started", "").partition(".")[0]
    return ServerId(facts={name: facts[name] for name in PLACE if name in facts}, started=started)


def in_force(ask: Ask) -> Read[dict[str, str]]:
    found = pairs(ask, "SHOW GLOBAL VARIABLES")
    return Read(_answering(found), {name: value for name, value in found if not name.startswith(LOGGED)})


def _answering(found: Collection[tuple[str, str]]) -> ServerId:
    return ServerId(facts={name: value for name, value in found if name in PLACE})


def changed_by(_ask: Ask, _name: str) -> str:
    return ""


def explains(said: Sequence[str], name: str, level: Level, now: str) -> bool:
    # Only a number is always read back as it was given.
    if not (NUMBER.fullmatch(literal(level)) and NUMBER.fullmatch(now)):
        return True
    cut = f"Truncated incorrect {name} value"
    return any(text.startswith(cut) or text.endswith(f" to {now}") for text in said)


HAND_SQL = """SELECT GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES
  WHERE VARIABLE_NAME = {name} AND GLOBAL_VALUE_ORIGIN = 'SQL'"""


def led_along(ask: Ask, said: Sequence[str], name: str, now: str) -> bool | None:
    return led_along_by(ask, HAND_SQL, said, name, now)


def led_along_by(ask: Ask, by_hand: str, said: Sequence[str], name: str, now: str) -> bool | None:
    """The same, where a query has a row for what was set by hand."""
    if any(text.endswith(f" to {now}") for text in said):
        return True
    with suppress(DriverFailed):
        if not ask(by_hand.format(name=quoted(name))):
            return True
    # It was set by hand at some time, and perhaps before.
    return None


def _others(ask: Ask) -> int:
    """Sessions of other accounts; where this one sees no list of them, all but the one that asks."""
    if holds(ask, ("PROCESS", ALL)):
        return int(float(first_row(ask, OTHERS_SQL)[0]))
    counts = []
    for _ in range(LOOKS):
        # A session that was just closed counts for a moment.
        time.sleep(LOOK_AGAIN_S)
        threads = first_row(ask, "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected'")[1]
        counts.append(int(float(threads)) - 1)
    return max(0, min(counts))


def own_account(ask: Ask) -> str:
    """The account that asks, as a GRANT names it."""
    return _account_of(first_row(ask, "SELECT CURRENT_USER()")[0])


def _account_of(current_user: str) -> str:
    user, _, host = current_user.rpartition("@")
    return f"'{user}'@'{host}'"


def _replica(ask: Ask, read_only: bool) -> str:
    # An account may be refused to ask, and a version may know the older words alone.
    for sql in ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS"):
        with suppress(DriverFailed):
            return "a replica, which replays the log of its primary" if ask(sql) else ""
    return "read-only for all, as replicas are (read_only = ON)" if read_only else ""


def known(ask: Ask) -> frozenset[str]:
    return frozenset(str(row[0]).lower() for row in ask("SHOW GLOBAL VARIABLES")) - OURS


def ways(ask: Ask, names: Collection[str], hook: bool) -> dict[str, SettingWay]:
    account, found = own_account(ask), {}
    for name, scope, fixed, of_server, of_session in _rows(ask, WAYS_SQL.format(names=named(names))):
        if scope.startswith("SESSION"):
            found[name] = by_session(ask, name, of_session, account)
        elif fixed == "YES":
            found[name] = at_start(name, of_server, hook)
        else:
            found[name] = by_global(ask, name, of_server, account)
    return found


def pairs(ask: Ask, sql: str) -> list[tuple[str, str]]:
    """Names in small letters, and what a query has for them."""
    return [(name.lower(), value) for name, value in _rows(ask, sql)]


def _rows(ask: Ask, sql: str) -> list[tuple[str, ...]]:
    return [tuple("" if cell is None else str(cell) for cell in row) for row in ask(sql)]


def by_session(ask: Ask, name: str, now: str, account: str) -> SettingWay:
    """Each session sets it for itself, which some settings take a right for."""
    does = "SET SESSION in each of its sessions"
    way = SettingWay(name=name, means=Means.SESSION, does=does, right=THE_RIGHT, now=now)
    return _tried(ask, way, "SESSION", account)


def by_global(ask: Ask, name: str, now: str, account: str) -> SettingWay:
    """It is set for the whole server, which takes a right."""
    way = SettingWay(name=name, does="SET GLOBAL", right=THE_RIGHT, now=now)
    return _tried(ask, way, "GLOBAL", account)


def _tried(ask: Ask, way: SettingWay, scope: str, account: str) -> SettingWay:
    """The way, or why it is closed to this account: the server says so."""
    try:
        ask(TRIED_SQL.format(scope=scope, name=way.name))
    except DriverFailed as refused:
        if lacks_right(refused):
            found = LACKED.search(refused.message)
            right = least_right(found[1] if found else "SUPER")
            grant = f"GRANT {right} ON *.* TO {account}"
            told = f"{account} may not SET {scope} {way.name}"
            return way.but(right=right, grant=grant, refused=told, remedy=grant)
        if refused.message.endswith(FOR_ALL_ALONE):
            return way.but(refused=f"no session sets {way.name} for itself", remedy=OF_OUR_OWN)
    return way


def least_right(told: str) -> str:
    """Of what a server says that one needs (`SUPER or A and B`), what gives least, as a GRANT lists it."""
    ways = re.split(r",? or |, ", told)
    least = next((one for one in reversed(ways) if one != "SUPER"), "SUPER")
    return re.sub(r" (?:and|plus) ", ", ", least)


def at_start(name: str, now: str, hook: bool) -> SettingWay:
    """The server reads it at its start alone."""
    more = ", so a restart does not help" if hook else ""
    return SettingWay(
        name=name,
        means=Means.RESTART,
        now=now,
        refused=f"{name} is read when the server starts, from files that Dyno does not write{more}",
        remedy=OF_OUR_OWN,
    )


def holds(ask: Ask, rights: Collection[str]) -> bool:
    """Whether the account has one of these rights on the whole server."""
    grants = [str(row[0]) for row in ask("SHOW GRANTS")]
    whole = [grant.partition(" ON *.* ")[0].removeprefix("GRANT ") for grant in grants if " ON *.* " in grant]
    held = {right.strip().upper() for grant in whole for right in grant.split(",")}
    return not held.isdisjoint(rights)


def standing(ask: Ask, names: Collection[str]) -> Read[dict[str, str | None]]:
    wanted = named({*names, *PLACE})
    found = pairs(ask, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({wanted})")
    lines = dict(found)
    for name in names:
        if name not in lines:
            told = f"the server does not tell what {name} is, which is to be put back"
            raise UserError(told, "leave it out")
    return Read(_answering(found), {name: lines[name] for name in names})


def pending(_ask: Ask, _restarts: bool) -> list[str]:
    """SET GLOBAL has nothing else taken over."""
    return []


def literal(level: Level) -> str:
    """A level in SQL, where sizes have no units and switches are words."""
    text = as_text(level)
    if NUMBER.fullmatch(text):
        return text
    size = quantity(text)
    return f"{size[0]:.0f}" if size is not None and size[1] == "bytes" else quoted(text)


def in_session(name: str, level: Level) -> str:
    return f"SET SESSION {name} = {literal(level)}"


def value_of_session(name: str) -> str:
    return f"SELECT @@session.{name} AS value"


def move(ask: Ask, levels: Mapping[str, Level], found: FoundSettings) -> tuple[str, ...]:
    set_where(ask, VALUES, levels, found)
    return warnings(ask)


def warnings(ask: Ask) -> tuple[str, ...]:
    """What the server says of the statement before, as far as it was this session's."""
    return tuple(str(row[2]) for row in ask("SHOW WARNINGS"))


def put_back(ask: Ask, lines: Mapping[str, str | None], found: FoundSettings) -> None:
    set_where(ask, VALUES, as_levels(lines), found)


def as_levels(lines: Mapping[str, str | None]) -> dict[str, Level]:
    """What stood, to be set again."""
    return {name: "" if line is None else line for name, line in lines.items()}


def set_where(ask: Ask, values: str, levels: Mapping[str, Level], found: FoundSettings) -> None:
    """Sets variables in one statement with the look at what stands in the table `values` and at who answers,
    so that nobody comes between. Fails as a query with two rows does where one of them is another.

    The server looks at all of them before it sets any. One may be cut by another that is not set yet, so
    several are set twice over."""
    known = " AND ".join(f"@@{fact} <=> {quoted(value)}" for fact, value in found.server.facts.items())
    parts = []
    for name, level in levels.items():
        to, stood = (
            literal(level),
            f"(SELECT VARIABLE_VALUE FROM {values} WHERE VARIABLE_NAME = {quoted(name)})",
        )
        holds = f"{stood} <=> {quoted(found.lines[name] or '')} AND {known}"
        parts.append(f"GLOBAL {name} = IF({holds}, {to}, (SELECT {to} UNION ALL SELECT {to}))")
    ask("SET " + ", ".join(parts if len(parts) == 1 else parts * 2))


def taken(_ask: Ask, _server: ServerId) -> bool:
    """It is in force at once."""
    return True


def own_place(url: str, name: str) -> OwnPlace:
    return OwnPlace(
        name=name,
        create=f"CREATE DATABASE {name}",
        drop=f"DROP DATABASE IF EXISTS {name}",
        url=url_of_database(url, name),
        right=OWN_SCHEMA,
    )


def lacking_for_schema(ask: Ask) -> str:
    grants = [str(row[0]) for row in ask("SHOW GRANTS")]
    # What a role gives is not told by each server, so a role may give it.
    if any(MAKES_SCHEMA.match(grant) or " ON " not in grant for grant in grants):
        return ""
    return f"{OWN_SCHEMA} {own_account(ask)}"


def lacking_for_guard(ask: Ask) -> str:
    if holds(ask, ("PROCESS", ALL)):
        return ""
    return f"GRANT PROCESS ON *.* TO {own_account(ask)}"


def of_others(ask: Ask) -> LoadOfOthers:
    return LoadOfOthers(ages_of(ask, AGES_SQL), errors_of(ask))


def ages_of(ask: Ask, sql: str) -> tuple[float, ...]:
    """Ages of statements (s) that a query has."""
    return tuple(float(str(row[0])) for row in ask(sql) if row[0] is not None)


def errors_of(ask: Ask) -> float:
    """What the server's counters have counted of errors so far."""
    rows = ask("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_rollback', 'Aborted_clients')")
    return sum(float(str(row[1])) for row in rows)
