"""What engines permit a power cut to take along, by their own word."""

from __future__ import annotations

import pytest

from dbdyno.engines import registry
from dbdyno.frozen import Level
from dbdyno.layers.registry import gives_up
from dbdyno.records.record import Loss
from dbdyno.study.nouns import Promise

CASES: list[tuple[str, dict[str, Level], Loss]] = [
    ("mariadb", {}, Loss.NOTHING),
    ("mariadb", {"innodb_flush_log_at_trx_commit": 3}, Loss.NOTHING),
    ("mariadb", {"innodb_flush_log_at_trx_commit": "2"}, Loss.COMMITS),
    ("mariadb", {"innodb_flush_log_at_trx_commit": 0}, Loss.COMMITS),
    ("mariadb", {"innodb_doublewrite": "OFF", "innodb_flush_log_at_trx_commit": 0}, Loss.DATA),
    ("mariadb", {"innodb_doublewrite": False}, Loss.DATA),
    ("mariadb", {"innodb_doublewrite": "fast"}, Loss.DATA),
    ("mariadb", {"innodb_flush_method": "nosync"}, Loss.DATA),
    ("mariadb", {"innodb_flush_method": "O_DIRECT_NO_FSYNC"}, Loss.DATA),
    ("mariadb", {"innodb_flush_method": "O_DIRECT"}, Loss.NOTHING),
    ("mariadb", {"innodb_checksum_algorithm": "none"}, Loss.NOTHING),
    ("mariadb", {"sync_binlog": 0}, Loss.NOTHING),
    ("mariadb", {"log_bin": "ON"}, Loss.COMMITS),
    ("mariadb", {"log_bin": True, "sync_binlog": 1}, Loss.NOTHING),
    ("mysql", {}, Loss.NOTHING),
    ("mysql", {"sync_binlog": 0}, Loss.COMMITS),
    ("mysql", {"innodb_doublewrite": "DETECT_ONLY"}, Loss.DATA),
    ("mysql", {"innodb_doublewrite": "DETECT_AND_RECOVER"}, Loss.NOTHING),
    ("postgresql", {}, Loss.NOTHING),
    ("postgresql", {"synchronous_commit": "local"}, Loss.NOTHING),
    ("postgresql", {"synchronous_commit": "off"}, Loss.COMMITS),
    ("postgresql", {"synchronous_commit": False}, Loss.COMMITS),
    ("postgresql", {"fsync": "off", "synchronous_commit": "off"}, Loss.DATA),
    ("postgresql", {"full_page_writes": "off"}, Loss.DATA),
    ("firebird", {}, Loss.NOTHING),
    ("firebird", {"forced_writes": False}, Loss.DATA),
    ("sqlite", {}, Loss.COMMITS),
    ("sqlite", {"synchronous": "extra"}, Loss.NOTHING),
    ("sqlite", {"synchronous": 3}, Loss.NOTHING),
    ("sqlite", {"journal_mode": "WAL", "synchronous": "FULL"}, Loss.NOTHING),
    ("sqlite", {"journal_mode": "truncate"}, Loss.NOTHING),
    ("sqlite", {"journal_mode": "wal", "synchronous": 1}, Loss.COMMITS),
    ("sqlite", {"journal_mode": "wal", "synchronous": "OFF"}, Loss.DATA),
    ("sqlite", {"journal_mode": "memory"}, Loss.DATA),
]


@pytest.mark.parametrize(("engine", "settings", "loss"), CASES)
def test_a_loss_is_permitted_by_what_is_set(engine: str, settings: dict[str, Level], loss: Loss) -> None:
    assert registry.engine(engine).settings.permits(settings) is loss


@pytest.mark.parametrize("engine", sorted(registry.ENGINES))
def test_what_gives_durability_up_may_lose_something(engine: str) -> None:
    risks = registry.engine(engine).settings.RISKS.values()
    assert all(risk.loss is not Loss.NOTHING for risk in risks if risk.promise is Promise.DURABILITY)


@pytest.mark.parametrize("engine", sorted(registry.ENGINES))
def test_the_control_s_settings_permit_a_loss(engine: str) -> None:
    settings = registry.engine(engine).settings
    assert settings.LOSING
    assert settings.permits(settings.LOSING) is not Loss.NOTHING


@pytest.mark.parametrize("engine", sorted(registry.ENGINES))
def test_pages_are_whole_sectors(engine: str) -> None:
    settings = registry.engine(engine).settings
    assert settings.page_bytes({}) in (4096, 8192, 16384)
    assert settings.page_bytes({"page_size": 4096, "innodb_page_size": "16k"}) % 512 == 0


@pytest.mark.parametrize("engine", sorted(registry.ENGINES))
def test_a_first_study_proposes_at_the_end_what_gives_something_up(engine: str) -> None:
    found = registry.engine(engine)
    given_up = [
        any(gives_up(one.name, level, found) for level in one.levels)
        for one in found.settings.proposals(16 << 30)
    ]
    assert not given_up[0]
    assert given_up == sorted(given_up)
