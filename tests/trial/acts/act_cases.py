"""What the tests of act share with others."""

from __future__ import annotations

from dbdyno.frozen import Level

DURABLE: dict[str, dict[str, Level]] = {
    "sqlite": {"config__synchronous": "full", "config__journal_mode": "wal"},
    "firebird": {"config__forced_writes": True},
    "mariadb": {"config__innodb_flush_log_at_trx_commit": 1},
}
