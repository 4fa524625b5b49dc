"""What is put back on a server that is not Dyno's, and what is left alone."""

from __future__ import annotations

import pytest

from dbdyno.engines.put_back import Standing, drop_schema, restart
from dbdyno.engines.runtime import one_server
from dbdyno.errors import ServerFailed
from dbdyno.records.in_use import ServerId

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
