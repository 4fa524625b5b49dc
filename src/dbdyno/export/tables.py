"""Records as tables: one row per trial, and one row per trial and second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars

from dbdyno.records.metrics import METRICS
from dbdyno.records.record import Record
from dbdyno.report.words.safe import csv_cell


def trials_table(records: Sequence[Record]) -> polars.DataFrame:
    """One row per trial: how it ended, its levels (`level.FACTOR`, as text), and every metric."""
    factors = sorted({name for record in records for name in record.levels})
    rows = [_trial(record, factors) for record in records]
    return polars.DataFrame(rows, infer_schema_length=None)


def series_table(records: Sequence[Record]) -> polars.DataFrame:
    """One row per trial and second, warm-up included (its seconds are negative), as the driver counted
    them."""
    rows = [
        {"run": record.run, "trial": record.trial, "variant": record.variant, "block": record.block,
         **dict(second)}
        for record in records
        for second in (record.tally.series if record.tally else ())
    ]  # fmt: skip
    return polars.DataFrame(rows, infer_schema_length=None)


def _trial(record: Record, factors: Sequence[str]) -> dict[str, Any]:
    return {
        "run": record.run,
        "trial": record.trial,
        "block": record.block,
        "position": record.position,
        "variant": record.variant,
        "host": record.host,
        "outcome": record.outcome.value,
        "cause": record.cause,
        "started_unix_s": record.started_unix_s,
        "finished_unix_s": record.finished_unix_s,
        # Levels of one factor may be of several types; a column has one.
        **{f"level.{name}": _text(record, name) for name in factors},
        **{name: metric.read(record) for name, metric in METRICS.items()},
        "warnings": ", ".join(warning.value for warning in record.doubts),
    }


def csv_of(table: polars.DataFrame) -> str:
    """A table as CSV whose texts steer nothing."""
    texts = [name for name, kind in table.schema.items() if kind == polars.String]
    shown = [polars.col(name).map_elements(csv_cell, return_dtype=polars.String) for name in texts]
    return table.with_columns(shown).rename({name: csv_cell(name) for name in table.columns}).write_csv()


def _text(record: Record, factor: str) -> str | None:
    return None if factor not in record.levels else str(record.levels[factor])
