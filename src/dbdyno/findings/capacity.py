"""How much each variant takes under the promise of a study: a table, and latencies over the rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.capacity import (
    Capacities,
    CapacityTold,
    broken_by,
    knee_per_s,
    rates_told,
    steps_tried,
)
from dbdyno.analyse.columns import OUTCOME
from dbdyno.analyse.estimate import Trials, summary_of
from dbdyno.analyse.model import Analysis, Role
from dbdyno.records.metrics import number_text
from dbdyno.records.record import Outcome
from dbdyno.report.document import Figure, Notes, Row, Section, TableCell, table
from dbdyno.report.words import naming, numbers
from dbdyno.study.nouns import CAPACITY

TITLE = "Capacity"
LATENCIES = {"p50_ms": "median", "p99_ms": "99th percentile", "p99_9_ms": "99.9th percentile"}


def find(basis: Basis) -> Capacities | None:
    """What each variant takes; None where no trial found a capacity."""
    price = basis.study.price_per_hour
    found = [_found(each, basis, price) for each in basis.compared if each.role is not Role.TWIN]
    told = tuple(one for one in found if one is not None)
    if not told:
        return None
    return Capacities(
        promise=tuple(one.text for one in basis.study.goal.promise),
        step_s=basis.study.workload.duration_s,
        price_per_hour=price,
        variants=told,
    )


def _found(each: Trials, basis: Basis, price: float | None) -> CapacityTold | None:
    summary = summary_of(CAPACITY, each.values(CAPACITY), basis.confidence)
    if summary is None:
        return None
    columns, places = each.rows.columns, each.rows.places
    measured = columns.having(OUTCOME, places, Outcome.MEASURED.value)
    records = list(columns.records(measured.tolist()))
    steps = list(steps_tried(records))
    rates = rates_told(steps)
    return CapacityTold(
        variant=each.variant.name,
        per_s=summary.mean,
        low=summary.low,
        high=summary.high,
        blocks=summary.trials,
        at_least=sum(bool(one.capacity and one.capacity.at_least) for one in records),
        broke=broken_by(steps),
        knee_per_s=knee_per_s(rates),
        rates=rates,
        took_s=sum(one.took_s for one in records),
        per_money=summary.mean * 3600.0 / price if price else None,
    )


def sections(analysis: Analysis) -> Iterator[Section]:
    """The sentence, the table and the figure."""
    found = analysis.capacities
    assert found is not None, "it is told where it was found"
    called = naming.called(analysis)
    heads = ["variant", "per s", "broken by", "knee, per s", "took"]
    heads += ["transactions per unit of money"] if found.price_per_hour else []
    rows = [_row(one, called, found) for one in found.variants]
    names = [called[one.variant] for one in found.variants]
    body = (
        table(heads, rows),
        Figure(
            "dbdyno.report.figures.search:latency_over_rate",
            (names, points(found, called)),
            words="Filled: the promise held in most steps.",
        ),
        Notes((note(found),)),
    )
    yield Section(TITLE, body, aside=aside(found, called))


def aside(found: Capacities, called: Mapping[str, str]) -> str:
    """What the baseline takes, and whoever takes most."""
    first, most = found.variants[0], max(found.variants, key=lambda one: one.per_s)
    told = f"{', '.join(found.promise)}: {called[first.variant]} keeps that up to {_per_s(first)} per second"
    if most is first:
        return f"{told}."
    return f"{told}, and {called[most.variant]} up to {_per_s(most)}."


def _per_s(one: CapacityTold) -> str:
    at_least = "at least " if one.at_least else ""
    return f"{at_least}{number_text(one.per_s)}"


def _row(one: CapacityTold, called: Mapping[str, str], found: Capacities) -> Row:
    interval = f"{number_text(one.low)} {numbers.DASH} {number_text(one.high)}"
    cells: list[TableCell | str] = [
        called[one.variant],
        TableCell(_per_s(one), (interval,) if one.blocks > 1 else ()),
        _broken(one),
        numbers.DASH if one.knee_per_s is None else number_text(one.knee_per_s),
        numbers.seconds_text(round(one.took_s)),
    ]
    if found.price_per_hour:
        cells.append(numbers.DASH if one.per_money is None else number_text(one.per_money))
    return cells


def _broken(one: CapacityTold) -> str:
    """What of the promise breaks first, as most steps had it."""
    if not one.broke:
        return "nothing"
    return " and ".join(name for name in one.broke if 2 * one.broke[name] > max(one.broke.values()))


def note(found: Capacities) -> str:
    """How the figures were made."""
    text = (
        f"The rate in open loop at which a step of {numbers.seconds_text(found.step_s)} keeps the promise as"
        " often as not; geometric mean over blocks with its interval. Latencies count from the moment at"
        " which a transaction was due, so none is hidden by a client that waits. Broken by: what most of the"
        " steps broke that did not keep it; `rate` where what was due was not done. Knee: from there on the"
        " 99th percentile grows faster."
    )
    if any(one.at_least for one in found.variants):
        text += " At least: in some block nothing but the driver, or no rate, broke the promise."
    if found.price_per_hour:
        text += f" Money: transactions at the capacity in an hour, which costs {found.price_per_hour:g}."
    return text


def points(found: Capacities, called: Mapping[str, str]) -> list[dict[str, Any]]:
    """Latencies over the rate, for the figure."""
    return [
        {
            "variant": called[one.variant],
            "latency": title,
            "rate": rate.rate_per_s,
            "ms": value,
            "kept": 2 * rate.kept > rate.steps,
            "told_rate": f"{number_text(rate.rate_per_s)} per second",
            "told_ms": f"{number_text(value)} ms",
            "told_kept": f"{rate.kept} of {rate.steps}",
        }
        for one in found.variants
        for rate in one.rates
        for name, title in LATENCIES.items()
        if (value := getattr(rate, name))
    ]
