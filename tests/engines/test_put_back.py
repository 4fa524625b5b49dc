"""What is put back on a server that is not Dyno's, and what is left alone."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.driver.query import conversation
from dbdyno.engines.postgresql import running
from dbdyno.engines.put_back import Standing, drop_schema, put_back, restart
from dbdyno.engines.runtime import Found, one_server
from dbdyno.errors import AnotherServer, EngineMissing, ServerFailed
from dbdyno.records.in_use import ServerId
from tests.running_server import TUNER, replica, users_server

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
    standing = Standing(server=SERVER, name="jit", does="", line=None, before="on", levels=("off",))
    assert standing.words == "jit on"
    assert standing.model_copy(update={"line": "on"}).words == "jit on, set as on"


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
            running.move(ask, {"deadlock_timeout": "3s"}, Found({"deadlock_timeout": before}, meant))
        standing = Standing(
            server=meant, name="deadlock_timeout", does="", line=before, before="1s", levels=("3s",)
        )
        standby.tell("SELECT pg_promote()::int")
        [moved] = put_back(standby.url, (standing,))
        assert (moved.after, moved.left) == ("1s", "")
        with pytest.raises(AnotherServer, match="another server answers"):
            put_back(primary.url, (standing,))
