"""What the tests of replay share with others."""

from __future__ import annotations

from dbdyno.driver.tally import Latency, Replay

NONE = Latency(
    count=0,
    sum=0.0,
    mean=None,
    min=None,
    p50=None,
    p90=None,
    p95=None,
    p99=None,
    p99_9=None,
    p99_99=None,
    max=None,
)


LAG = NONE.model_copy(update={"count": 9, "sum": 2_500_000.0, "p50": 1000.0, "p99": 2000.0, "max": 3000.0})


REPLAY = Replay(
    recorded_s=60.0,
    speed=1.0,
    planned_s=60.0,
    took_s=61.5,
    sessions=3,
    sessions_refused=0,
    sessions_lost=0,
    statements=1000,
    unsent=0,
    late_by_server=0,
    late_by_driver=0,
    server_lag_us=LAG,
    driver_lag_us=LAG,
    failed=(),
    rows_compared=10,
    rows_differ=0,
    differing={},
)
