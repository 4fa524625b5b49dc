"""What the levels of engines give up, and what a search may vary of them without that."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.engine import Risk
from dbdyno.frozen import Level, level_text
from dbdyno.layers.registry import given_up, gives_up
from dbdyno.records.record import Loss
from dbdyno.study.document import toml_text
from dbdyno.study.nouns import Promise

ENGINES = sorted(registry.ENGINES)


def test_a_level_keeps_its_promise_however_it_is_spelled() -> None:
    risk = Risk(Promise.DURABILITY, ("ON", 1))
    assert risk.gives_up("on") is risk.gives_up(True) is risk.gives_up("1") is None
    assert risk.gives_up("OFF") is risk.gives_up(2) is Promise.DURABILITY


@pytest.mark.parametrize("name", ENGINES)
def test_what_makes_a_commit_durable_gives_nothing_up(name: str) -> None:
    settings = registry.engine(name).settings
    assert settings.DURABLE
    for setting, levels in settings.DURABLE.items():
        assert setting in settings.RISKS
        assert all(settings.RISKS[setting].gives_up(level) is None for level in levels)


@pytest.mark.parametrize(
    ("engine", "factor", "level", "promise"),
    [
        ("mariadb", "config.innodb_flush_log_at_trx_commit", 2, Promise.DURABILITY),
        ("mariadb", "config.innodb_flush_log_at_trx_commit", 1, None),
        ("mariadb", "config.innodb_buffer_pool_size", "1G", None),
        ("mariadb", "config.innodb_snapshot_isolation", "OFF", Promise.ISOLATION),
        ("mysql", "config.transaction_isolation", "read-committed", Promise.ISOLATION),
        ("postgresql", "config.synchronous_commit", "off", Promise.DURABILITY),
        ("postgresql", "config.full_page_writes", False, Promise.INTEGRITY),
        ("sqlite", "config.synchronous", "normal", Promise.DURABILITY),
        ("firebird", "config.forced_writes", False, Promise.DURABILITY),
        ("firebird", "config.MaxUnflushedWrites", 1000, Promise.DURABILITY),
        ("firebird", "config.MaxUnflushedWriteTime", -1, Promise.DURABILITY),
        ("firebird", "config.WireCrypt", "Disabled", Promise.SECURITY),
        ("mariadb", "storage.device", "ram", Promise.DURABILITY),
        ("mariadb", "storage.mount", "noatime,nobarrier", Promise.DURABILITY),
        ("mariadb", "storage.mount", "noatime", None),
        ("mariadb", "build.hardening", "off", Promise.SECURITY),
        ("mariadb", "memory.allocator", "jemalloc", None),
        ("mariadb", "workload.clients", 8, None),
    ],
)
def test_each_layer_says_what_a_level_gives_up(
    engine: str, factor: str, level: Level, promise: Promise | None
) -> None:
    assert gives_up(factor, level, registry.engine(engine)) is promise


@pytest.mark.parametrize("name", ENGINES)
def test_what_is_proposed_for_a_search_gives_nothing_up(name: str) -> None:
    settings = registry.engine(name).settings
    proposals = settings.searchable(4 << 30)
    assert proposals and all(one.why for one in proposals)
    for one in proposals:
        space = tomllib.loads(f"space = {toml_text(one.space)}")["space"]
        assert space == one.space
        levels = space if isinstance(space, list) else [space["from"], space["to"]]
        risk = settings.RISKS.get(one.name)
        assert risk is None or all(risk.gives_up(level) is None for level in levels)


def levels_that_keep(risk: Risk) -> str:
    """The levels of a risk that give nothing up, as the documentation writes them."""
    text = ", ".join(_told(level) for level in (*risk.keeps, *risk.members)) or ""
    if risk.members:
        text = f"those with one of {text}"
    if risk.loses:
        text = f"all but {', '.join(_told(level) for level in risk.loses)}"
    if risk.up_to:
        up_to = f"1 to {risk.up_to:g}" if risk.up_to > 1 else "1"
        text = f"{text}, {up_to}" if text else up_to
    if risk.where is not None:
        levels = ", ".join(_told(level) for level in risk.where.levels)
        text = f"{text or 'none'}; where `{risk.where.setting}` is {levels}"
    return text


def _told(level: Level) -> str:
    return f"`{level_text(level)}`" if level_text(level) else "the empty one"


def test_the_documentation_names_exactly_what_gives_something_up() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "layers.md").read_text()
    section = page.split("## What levels give up")[1].split("| layer |")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line]
    told = {(engine, *row[1:4]) for row in rows[2:] for engine in row[0].split(", ")}
    known = {
        (engine.title, f"`{setting}`", str(risk.promise), levels_that_keep(risk))
        for engine in registry.ENGINES.values()
        for setting, risk in engine.settings.RISKS.items()
    }
    assert told == known
    assert all(len(row) == 5 and row[4] for row in rows[2:])


def test_the_amount_beyond_a_number_counts() -> None:
    risk = Risk(Promise.DURABILITY, loss=Loss.COMMITS, up_to=200)
    assert [risk.degree(level) for level in ("10ms", 200, "1s", "0", -1)] == [0, 0, 1000, math.inf, math.inf]


def test_a_list_counts_by_its_members() -> None:
    strict = Risk(Promise.INTEGRITY, members=("strict_all_tables",))
    assert strict.gives_up("ANSI_QUOTES, STRICT_ALL_TABLES") is None
    assert strict.gives_up("ANSI_QUOTES") is strict.gives_up("") is Promise.INTEGRITY
    weak = Risk(Promise.SECURITY, loses=("Legacy_Auth",))
    assert weak.gives_up("Srp256, Legacy_Auth") is Promise.SECURITY and weak.gives_up("Srp") is None


DURABILITY = (Promise.DURABILITY,)


@pytest.mark.parametrize(
    ("engine", "levels", "baseline", "promises"),
    [
        ("firebird", {"forced_writes": False}, {"forced_writes": True}, DURABILITY),
        ("firebird", {"forced_writes": True}, {"forced_writes": False}, ()),
        # Without forced writes, how long they wait counts; with them, nothing waits.
        (
            "firebird",
            {"MaxUnflushedWrites": 1000, "forced_writes": False},
            {"MaxUnflushedWrites": 2, "forced_writes": False},
            DURABILITY,
        ),
        (
            "firebird",
            {"MaxUnflushedWrites": -1, "forced_writes": "off"},
            {"MaxUnflushedWrites": 1000, "forced_writes": "off"},
            DURABILITY,
        ),
        (
            "firebird",
            {"MaxUnflushedWrites": 2, "forced_writes": False},
            {"MaxUnflushedWrites": 1000, "forced_writes": False},
            (),
        ),
        ("firebird", {"MaxUnflushedWrites": 1000}, {"MaxUnflushedWrites": 2}, ()),
        (
            "firebird",
            {"MaxUnflushedWriteTime": 60, "forced_writes": False},
            {"MaxUnflushedWriteTime": 5, "forced_writes": False},
            DURABILITY,
        ),
        (
            "mariadb",
            {"innodb_flush_log_at_trx_commit": 0, "innodb_doublewrite": "OFF"},
            {"innodb_flush_log_at_trx_commit": 2, "innodb_doublewrite": "ON"},
            (Promise.DURABILITY, Promise.INTEGRITY),
        ),
        (
            "mysql",
            {"innodb_flush_log_at_trx_commit": 2},
            {"innodb_flush_log_at_trx_commit": 0},
            (),
        ),
        ("postgresql", {"wal_writer_delay": "10s"}, {"wal_writer_delay": "200ms"}, ()),
    ],
)
def test_only_what_the_baseline_keeps_is_given_up(
    engine: str, levels: dict[str, Level], baseline: dict[str, Level], promises: tuple[Promise, ...]
) -> None:
    setup, before = ({f"config.{name}": level for name, level in one.items()} for one in (levels, baseline))
    assert given_up(setup, before, registry.engine(engine)) == promises
