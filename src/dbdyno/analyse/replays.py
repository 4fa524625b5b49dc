"""What became of a recording that trials played, summed for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from dbdyno.driver.tally import Replay
from dbdyno.frozen import Frozen
from dbdyno.records.record import Outcome, Record


class Replays(Frozen):
    """The replays of one variant's measured trials. `took_s` and the lags (99th percentiles, in ms) are
    medians over them; a lag is None where the recording was played without pauses. Counts are sums."""

    variant: str
    trials: int
    recorded_s: float
    took_s: float
    statements: int
    unsent: int
    late_by_server: int
    late_by_driver: int
    server_lag_p99_ms: float | None
    driver_lag_p99_ms: float | None
    failed: int
    rows_compared: int
    rows_differ: int


def replays(records: Sequence[Record]) -> tuple[Replays, ...]:
    """The replays of each variant, in the order of the records; empty where nothing was played."""
    by_variant: dict[str, list[Replay]] = {}
    for record in records:
        tally = record.tally if record.outcome is Outcome.MEASURED else None
        if tally is not None and tally.replay is not None:
            by_variant.setdefault(record.variant, []).append(tally.replay)
    return tuple(_of(variant, found) for variant, found in by_variant.items())


def _of(variant: str, found: Sequence[Replay]) -> Replays:
    return Replays(
        variant=variant,
        trials=len(found),
        recorded_s=found[0].recorded_s,
        took_s=median(one.took_s for one in found),
        statements=sum(one.statements for one in found),
        unsent=sum(one.unsent for one in found),
        late_by_server=sum(one.late_by_server for one in found),
        late_by_driver=sum(one.late_by_driver for one in found),
        server_lag_p99_ms=_median_ms([one.server_lag_us.p99 for one in found]),
        driver_lag_p99_ms=_median_ms([one.driver_lag_us.p99 for one in found]),
        failed=sum(failed.count for one in found for failed in one.failed),
        rows_compared=sum(one.rows_compared for one in found),
        rows_differ=sum(one.rows_differ for one in found),
    )


def _median_ms(lags_us: Sequence[float | None]) -> float | None:
    known = [lag_us / 1000 for lag_us in lags_us if lag_us is not None]
    return median(known) if known else None
