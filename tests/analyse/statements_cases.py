"""What the tests of statements share with others."""

from __future__ import annotations

from typing import Any

from dbdyno.records.record import Record
from tests.analyse.factory import counted
from tests.fakes import make_tally


def a_statement(count: int, sum_us: float, errors: int = 0) -> dict[str, Any]:
    latency_us = make_tally().latency_us.but(count=count, sum=sum_us)
    return {"errors": errors, "latency_us": latency_us}


def timed(record: Record, **statements: dict[str, Any]) -> Record:
    """The record of a trial of 100 transactions in which the driver timed these statements."""
    return counted(record, operations=100, by_statement=statements)
