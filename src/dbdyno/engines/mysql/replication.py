"""What MySQL calls the parts of its replication, which is MariaDB's in all else."""

from __future__ import annotations

from dbdyno.driver.passwords import Ask
from dbdyno.engines.mariadb.replication import GIVEN_UP_S, PASSWORD, REPLICA, Words
from dbdyno.engines.values import same_value

STATES = (
    "SELECT service_state FROM performance_schema.replication_connection_status",
    "SELECT service_state FROM performance_schema.replication_applier_status",
)
HAS_APPLIED = (
    "SELECT GTID_SUBSET(received_transaction_set, @@GLOBAL.gtid_executed)"
    " FROM performance_schema.replication_connection_status"
)


def _runs(ask: Ask) -> bool:
    return all(ask(sql) == [["ON"]] for sql in STATES)


def _has_applied(ask: Ask) -> bool:
    return [same_value(True, str(row[0])) for row in ask(HAS_APPLIED)] == [True]


MYSQL_WORDS = Words(
    start="START REPLICA",
    stop="STOP REPLICA",
    leave="RESET REPLICA ALL",
    change="CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {port},"
    " SOURCE_USER = '{user}', SOURCE_PASSWORD = '{password}', SOURCE_CONNECT_RETRY = 1,"
    " GET_SOURCE_PUBLIC_KEY = 1, SOURCE_AUTO_POSITION = 1",
    made=(
        "SET SESSION sql_log_bin = 0",
        f"CREATE USER {REPLICA}@'%' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT REPLICATION SLAVE ON *.* TO {REPLICA}@'%'",
        "RESET BINARY LOGS AND GTIDS",
    ),
    begun=(),
    applied="SELECT @@GLOBAL.gtid_executed",
    progress="SHOW GLOBAL STATUS LIKE 'Handler_commit'",
    has_applied=_has_applied,
    runs=_runs,
    sent="SELECT COUNT(*) FROM performance_schema.processlist WHERE command LIKE 'Binlog Dump%'",
    source="source",
    replica="replica",
    settings={
        "gtid_mode": True,
        "enforce_gtid_consistency": True,
        "skip_replica_start": True,
        "replica_net_timeout": GIVEN_UP_S,
        # A replica comes by the network, and asks for encryption or a key. Other servers make neither.
        "loose_auto_generate_certs": True,
        "loose_caching_sha2_password_auto_generate_rsa_keys": True,
    },
    semi_settings={"plugin_load_add": "semisync_source.so;semisync_replica.so"},
    # It names the server for all others.
    own=("auto.cnf",),
)
