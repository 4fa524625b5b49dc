"""The front layer: what of it an engine rules out, and when a program shows what it was asked for."""

from __future__ import annotations

import pytest

from dbdyno.engines import registry
from dbdyno.frozen import Level
from dbdyno.layers.front import FRONT, InFront, shown_alike
from dbdyno.study import Factor


@pytest.mark.parametrize(
    ("asked", "found", "alike"),
    [
        ("20", "20", True),
        ("20", "20.0", True),
        ("yes", "1", True),
        ("false", "0", True),
        ("Transaction", "transaction", True),
        ("a  b", "a b", True),
        ("20", "21", False),
        ("1", "0", False),
        ("transaction", "session", False),
        ("transaction", "", False),
    ],
)
def test_a_setting_is_the_same_however_it_is_spelled(asked: str, found: str, alike: bool) -> None:
    assert shown_alike(asked, found) is alike


@pytest.mark.parametrize(
    ("engine", "kinds", "told"),
    [
        ("mariadb", ("none", "pgbouncer"), "PgBouncer cannot stand in front of MariaDB"),
        ("sqlite", ("none", "haproxy"), "SQLite runs in the load process"),
        ("postgresql", ("none", "pgbouncer", "haproxy", "mine"), ""),
        ("mysql", ("none", "haproxy"), ""),
    ],
)
def test_a_front_passes_on_what_its_server_speaks(engine: str, kinds: tuple[str, ...], told: str) -> None:
    factor = Factor(name="front.kind", levels=kinds)
    found = FRONT.mistakes(factor, registry.engine(engine), None)
    assert [one.message.startswith(told) for one in found] == [True] * bool(told)


def test_settings_ask_for_nothing_where_nothing_stands_in_front() -> None:
    engine = registry.engine("postgresql")
    levels: dict[str, Level] = {"kind": "pgbouncer", "pool_mode": "session"}
    [asked] = FRONT.ask(levels, engine)
    assert isinstance(asked, InFront)
    assert (asked.wish.kind, asked.wish.settings) == ("pgbouncer", {"pool_mode": "session"})
    assert FRONT.ask({**levels, "kind": "none"}, engine) == ()
    assert FRONT.ask({"pool_mode": "session"}, engine) == ()
