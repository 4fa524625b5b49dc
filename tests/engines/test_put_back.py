"""What is put back on a server that is not Dyno's, and what is left alone."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.driver.passwords import conversation, query
from dbdyno.engines import put_back as put_back_module
from dbdyno.engines import registry
from dbdyno.engines.postgresql import running
from dbdyno.engines.put_back import (
    SCHEMA,
    SETTING,
    SettingBefore,
    drop_schema,
    ledger_on,
    put_back,
    put_back_noted,
    restart,
)
from dbdyno.engines.runtime import TABLE, FoundSettings, ServerLedger, lacks_right, one_server
from dbdyno.errors import AnotherServer, DriverFailed, EngineMissing, ServerFailed, UserError
from dbdyno.host import paths
from dbdyno.host.journal import open_journal
from dbdyno.prepare_run.running import Noted
from dbdyno.records.in_use import Identity, InUse, ServerId, SettingWay
from dbdyno.trial.running.switch import SettingsSwitch
from tests.running_server import TUNER, UsersServer, promote, replica, source_and_replica, users_server

URL = "postgresql://tuner@db1/shop"
SERVER = ServerId(facts={"system": "1"})


@pytest.mark.parametrize("name", ["public", "dyno_a; DROP TABLE b", 'dyno_"a', "shop_dyno_1"])
def test_only_a_schema_of_dynos_is_dropped(name: str) -> None:
    with pytest.raises(ValueError, match="left alone"):
        drop_schema(URL, SERVER, "run", name)


def test_a_command_that_fails_is_told_with_its_last_words() -> None:
    with pytest.raises(ServerFailed, match=r"ended with 3: .*; it said: no such unit") as failed:
        restart("echo no such unit >&2; exit 3", lambda _: [])
    assert failed.value.hint.endswith("dyno cleanup")


def test_two_urls_are_one_server_whoever_connects() -> None:
    assert one_server(URL, "postgres://admin@db1/shop")
    for other in ("postgresql://tuner@db2/shop", "postgresql://tuner@db1/test", "mysql://tuner@db1/shop"):
        assert not one_server(URL, other)


def test_what_is_put_back_is_said_in_words() -> None:
    standing = SettingBefore(server=SERVER, name="jit", does="", line=None, before="on", levels=("off",))
    assert standing.words == "jit on"
    assert standing.model_copy(update={"line": "on"}).words == "jit on, set as on"
    assert standing.model_copy(update={"before": "", "line": ""}).words == 'jit "", set as ""'


def test_a_standby_that_is_promoted_is_put_back_and_a_copy_of_it_is_another_server() -> None:
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder, ExitStack() as stack:
        places = [Path(folder) / name for name in ("a", "b")]
        for place in places:
            place.mkdir()
        try:
            primary = stack.enter_context(users_server("postgresql@15", places[0]))
        except EngineMissing as missing:
            pytest.skip(f"postgresql is not here: {missing.message}")
        primary.tell(f"CREATE ROLE {TUNER} LOGIN SUPERUSER")
        standby = stack.enter_context(replica(primary, places[1]))
        with conversation(standby.url) as ask:
            meant = running.who(ask)
            before = running.standing(ask, ("deadlock_timeout",)).value["deadlock_timeout"]
            running.move(ask, {"deadlock_timeout": "3s"}, FoundSettings({"deadlock_timeout": before}, meant))
        standing = SettingBefore(
            server=meant, name="deadlock_timeout", does="", line=before, before="1s", levels=("3s",)
        )
        standby.tell("SELECT pg_promote()::int")
        [moved] = put_back(standby.url, (standing,))
        assert (moved.after, moved.left) == ("1s", "")
        with pytest.raises(AnotherServer, match="another server answers"):
            put_back(primary.url, (standing,))


@pytest.mark.parametrize("engine", ["mariadb@11.8", "mysql@9"])
def test_a_replica_that_is_promoted_in_the_midst_goes_on_and_is_put_back(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder, ExitStack() as stack:
        places = Path(folder) / "a", Path(folder) / "b"
        for place in places:
            place.mkdir()
        try:
            source, behind = stack.enter_context(source_and_replica(engine, places))
        except EngineMissing as missing:
            pytest.skip(f"{engine} is not here: {missing.message}")
        monkeypatch.setenv(paths.HOST_VARIABLE, f"{folder}/host")
        for server in (source, behind):
            server.tell(
                "SET sql_log_bin = 0",
                f"CREATE USER IF NOT EXISTS {TUNER}@localhost",
                f"GRANT ALL PRIVILEGES ON *.* TO {TUNER}@localhost",
            )
        name, own = "max_connect_errors", registry.engine(behind.installation.engine)
        runtime = registry.runtime_of(own.name)
        behind.tell(f"SET GLOBAL {name} = 150")
        with conversation(behind.url) as ask:
            meant = runtime.who(ask)
            way = SettingWay(name=name, does="moved", now="150")
            standing = SettingBefore.of(
                meant, way, runtime.standing(ask, (name,)).value[name], ("200", "300"), ""
            )
        in_use = InUse(
            url=behind.url,
            identity=Identity(version="", digest="", account=""),
            here=True,
            data="mine",
            ways=(way,),
        )
        with open_journal() as journal:
            switch = SettingsSwitch(
                own, in_use, meant, (standing,), Noted(journal, None, behind.url, meant, "r")
            )
            switch.take_turn({name: "200"})
            promote(behind)
            behind.tell("CREATE DATABASE its_own")
            switch.take_turn({name: "300"})
            assert behind.tell(f"SELECT @@GLOBAL.{name}")[0][0] in (300, "300", 300.0)
            [moved] = switch.put_back()
            assert (moved.after, moved.left) == ("150", "")
            assert any(told.startswith("read_only from") for told in switch.others_moved.values())
            with pytest.raises(AnotherServer, match="another server answers"):
                put_back(source.url, (standing,))
            journal.forget(lambda _: True)


@pytest.fixture(params=["postgresql@15", "mariadb@11.8", "mysql@9"])
def alone(request: pytest.FixtureRequest) -> Iterator[UsersServer]:
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        try:
            with users_server(request.param, Path(folder)) as server:
                tuner, right = f"{TUNER}@localhost", "ALL PRIVILEGES ON *.* TO"
                if request.param.startswith("postgresql"):
                    server.tell(f"CREATE ROLE {TUNER} LOGIN SUPERUSER")
                else:
                    server.tell(f"CREATE USER {tuner}", f"GRANT {right} {tuner}")
                yield server
        except EngineMissing as missing:
            pytest.skip(f"{request.param} is not here: {missing.message}")


def server_id(server: UsersServer) -> ServerId:
    with conversation(server.url) as ask:
        return registry.runtime_of(server.installation.engine).who(ask)


def ledger_of(server: UsersServer) -> ServerLedger:
    return ledger_on(server.url, server_id(server))


def test_no_note_is_lost_while_others_make_and_drop_the_ledger(alone: UsersServer) -> None:
    """Several Dynos of several machines begin and end at the same time."""
    ledger = ledger_of(alone)

    def seen(run: str) -> list[bool]:
        found = []
        for _ in range(15):
            ledger.note(run, SETTING, {"a": "what stood", "b": "there"})
            found.append([row.name for row in ledger.rows() if row.run == run] == ["a", "b"])
            ledger.forget(run)
        return found

    with ThreadPoolExecutor(3) as dynos:
        assert all(all(found) for found in dynos.map(seen, ("first", "second", "third")))
    sql = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'dyno_ledger'"
    [[left]] = alone.tell(sql)
    assert float(str(left)) == 0
    # A Dyno died between the two statements that drop it.
    alone.tell("CREATE SCHEMA dyno_ledger")
    ledger.forget("first")
    [[left]] = alone.tell(sql)
    assert float(str(left)) == 0


def test_of_two_that_begin_at_once_one_notes_and_the_other_is_told_of_it(alone: UsersServer) -> None:
    ledger = ledger_of(alone)
    with ThreadPoolExecutor(2) as dynos:
        told = list(
            dynos.map(lambda run: ledger.note(run, SETTING, {"a": run}, alone=True), ("first", "second"))
        )
    [row] = ledger.rows()
    assert sorted(other is None for other in told) == [False, True]
    [other] = filter(None, told)
    assert (other.run, other.content) == (row.run, row.content)


def test_a_dyno_lives_whose_servers_clock_was_set_back(
    alone: UsersServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_back_module, "BEAT_S", 0.5)
    ledger = ledger_of(alone)
    ledger.note("first", SCHEMA, {"dyno_a": server_id(alone).model_dump_json()})
    ahead = f"UPDATE {TABLE} SET beat = beat + 3600"
    alone.tell(ahead)
    over = threading.Event()

    def beats() -> None:
        while not over.wait(0.05):
            alone.tell(f"UPDATE {TABLE} SET beat = beat + 1")

    living = threading.Thread(target=beats)
    living.start()
    try:
        with pytest.raises(UserError, match="may live"):
            put_back_noted(alone.url)
    finally:
        over.set()
        living.join()
    assert put_back_noted(alone.url) == [f"server schema dyno_a of {alone.url}"]
    assert ledger.rows() == []


@pytest.mark.parametrize("alone", ["mariadb@11.8", "mysql@9"], indirect=True)
def test_a_clock_that_was_set_back_does_not_make_a_server_another_or_started_again(
    alone: UsersServer,
) -> None:
    runtime = registry.runtime_of(alone.installation.engine)
    with conversation(alone.url) as ask:
        meant = runtime.who(ask)
        for hours in (-1, 1):
            # Its session's own clock, from which it counts how long it is up.
            ask("SET timestamp = DEFAULT")
            ask(f"SET timestamp = UNIX_TIMESTAMP() + {hours * 3600}")
            assert runtime.who(ask) == meant


MAY_BE_EMPTY = {
    "postgresql": (
        "log_line_prefix",
        "ALTER SYSTEM SET log_line_prefix = '{}'",
        ("SELECT pg_reload_conf()",),
    ),
    "mariadb": ("init_connect", "SET GLOBAL init_connect = '{}'", ()),
    "mysql": ("init_connect", "SET GLOBAL init_connect = '{}'", ()),
}


def test_a_setting_that_is_empty_is_put_back_and_put_in_like_any_other(alone: UsersServer) -> None:
    name, write, after = MAY_BE_EMPTY[alone.installation.engine]
    runtime = registry.runtime_of(alone.installation.engine)
    for stood, moved_to in (("SET @mine = 1", ""), ("", "SET @own = 1")):
        alone.tell(write.format(stood), *after)
        with conversation(alone.url) as ask:
            meant = runtime.who(ask)
            line = runtime.standing(ask, (name,)).value[name]
            assert line == stood
            runtime.move(ask, {name: moved_to}, FoundSettings({name: line}, meant))
            assert runtime.standing(ask, (name,)).value[name] == moved_to
        way = SettingWay(name=name, does="moved", now=stood)
        [found] = put_back(alone.url, (SettingBefore.of(meant, way, line, (moved_to,), ""),))
        assert (found.left, found.after) == ("", stood)
        with conversation(alone.url) as ask:
            assert runtime.standing(ask, (name,)).value[name] == stood


def test_a_right_that_lacks_is_told_from_other_refusals(alone: UsersServer) -> None:
    alone.tell(
        "CREATE ROLE other LOGIN"
        if alone.installation.engine == "postgresql"
        else "CREATE USER other@localhost"
    )
    if alone.installation.engine != "postgresql":
        alone.tell("GRANT SELECT ON dyno.* TO other@localhost")
    url = alone.url.replace(f"{TUNER}@", "other@")
    for sql, lacks in (("CREATE SCHEMA dyno_x", True), ("SELECT nonsense", False)):
        with pytest.raises(DriverFailed) as refused:
            query(url, sql)
        assert lacks_right(refused.value) is lacks
    assert not lacks_right(DriverFailed("no route (error 1044)", kind="connect"))
