"""What other tools call the metrics and workloads that Dyno knows by another name."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, str] = {
    "tps": "throughput",
    "tpm": "throughput",
    "ops": "throughput",
    "ops_per_s": "throughput",
    "transactions_per_s": "throughput",
    "qps": "queries_per_s",
    "tpmc": "new_orders_per_minute",
    "nopm": "new_orders_per_minute",
    "latency": "mean_ms",
    "latency_avg": "mean_ms",
    "avg_ms": "mean_ms",
    "median_ms": "p50_ms",
    "p50": "p50_ms",
    "p90": "p90_ms",
    "p95": "p95_ms",
    "p99": "p99_ms",
    "p999": "p99_9_ms",
    "p99_9": "p99_9_ms",
    "cpu": "server_cpu_us_per_op",
}
WORKLOADS: Mapping[str, str] = {
    "pgbench": "tpcb",
    "tpc-b": "tpcb",
    "tpc_b": "tpcb",
    "tpc-c": "tpcc",
    "tpc_c": "tpcc",
    "hammerdb": "tpcc",
    "sysbench": "read_write",
    "oltp": "read_write",
    "ycsb": "ycsb_a",
    "workloada": "ycsb_a",
    "ann": "vector_search",
    "oltp_read_write": "read_write",
    "oltp_read_only": "read_only",
    "oltp_write_only": "write_only",
    "oltp_point_select": "point_select",
    "oltp_update_index": "update_index",
    "oltp_update_non_index": "update_non_index",
    "oltp_insert": "insert",
    "oltp_delete": "delete",
}
