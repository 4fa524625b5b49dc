"""What one execution of each statement of a load takes: CPU of the server's processes, and what the engine
says that it read and spilled.

Each is sent once more after the load and its checks, in one session, in every trial and in the same order. No
timed part holds that. An embedded engine tells the CPU of its calls, and what it counted where it was asked
for its answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from dbdyno.driver.passwords import Ask, conversation
from dbdyno.engines.engine import StatementMeter
from dbdyno.engines.facts import numbers
from dbdyno.errors import DriverFailed, DynoError
from dbdyno.host.process import cpu_taken
from dbdyno.layers.setup import Running
from dbdyno.records.load_words import StatementCost, StatementCosts
from dbdyno.trial.bench import SentStatement

Counted = Mapping[str, float]


def statement_costs(running: Running, sent: Sequence[SentStatement], counted: bool = True) -> StatementCosts:
    """The cost of each statement. A failure is told of, and is none of the trial's. `counted` says that this
    trial's own answers told what an embedded engine counted."""
    try:
        embedded = running.setup.engine.embedded
        costs = _in_load(running, sent, counted) if embedded else _in_session(running, sent)
        return StatementCosts(statements=tuple(of_each_name(costs)))
    except DynoError as failure:
        return StatementCosts(why_not=failure.message)


def _in_load(running: Running, sent: Sequence[SentStatement], counted: bool) -> Iterator[StatementCost]:
    """Those of an engine that lives in the load process."""
    counts = dict[str, Counter[str]]()
    for one in sent if counted else ():
        counts.setdefault(one.name, Counter()).update(one.counted)
    job = running.setup.job
    for name in dict.fromkeys(one.name for one in sent if not one.why_not):
        tally = running.load.run(job.but(options={**job.options, "rounds": 1, "only": name}))
        taken_s = tally.engine_cpu_s
        yield StatementCost(
            statement=name,
            cpu_ms=None if taken_s is None else round(1000.0 * taken_s, 4),
            counted=dict(counts.get(name, {})),
        )
    yield from (StatementCost(statement=one.name, why_not=one.why_not) for one in sent if one.why_not)


def _in_session(running: Running, sent: Sequence[SentStatement]) -> Iterator[StatementCost]:
    meter = running.setup.engine.meter
    with conversation(running.server.url) as ask:
        for sql in running.setup.job.opening.sql:
            ask(sql)
        counts = _counting(meter, ask) if meter is not None else _nothing
        for one in sent:
            if one.why_not:
                yield StatementCost(statement=one.name, why_not=one.why_not)
                continue
            try:
                yield _cost(one, ask, counts, running.process_ids)
            except DriverFailed as refusal:
                if refusal.kind != "server":
                    raise
                yield StatementCost(statement=one.name, why_not=refusal.message)


Execute = Callable[[str], float]
"""Executes a statement, whose CPU it returns in seconds."""
Count = Callable[[str, Execute], tuple[float, Counted]]
"""Executes a statement, for its CPU and for what the engine counts of it."""


def _cost(one: SentStatement, ask: Ask, count: Count, process_ids: Sequence[int]) -> StatementCost:
    def execute(sql: str) -> float:
        before = cpu_taken(process_ids)
        ask(sql)
        return cpu_taken(process_ids).since(before)

    taken_s, counted = count(one.sql, execute)
    return StatementCost(statement=one.name, cpu_ms=round(1000.0 * taken_s, 4), counted=dict(counted))


def _nothing(sql: str, execute: Execute) -> tuple[float, Counted]:
    return execute(sql), {}


def _counting(meter: StatementMeter, ask: Ask) -> Count:
    """How statements are executed whose engine counts what they do."""

    def explained(sql: str, execute: Execute) -> tuple[float, Counted]:
        counted: Counted = {}
        # Not all statements can be explained.
        with undone(ask), suppress(DriverFailed, ValueError, LookupError, TypeError):
            counted = meter.read(ask(f"{meter.explain}{sql}"))
        with undone(ask):
            return execute(sql), counted

    if meter.explain:
        return explained

    def counters() -> Counted:
        return numbers(ask(meter.counters))

    def around(act: Callable[[], float]) -> tuple[float, dict[str, float]]:
        before = counters()
        with undone(ask):
            taken_s = act()
        # MariaDB 11 counts the pages of a transaction when that is over.
        return taken_s, {name: value - before.get(name, 0.0) for name, value in counters().items()}

    around(lambda: 0.0)
    _, of_asking = around(lambda: 0.0)

    def gained(sql: str, execute: Execute) -> tuple[float, Counted]:
        taken_s, found = around(lambda: execute(sql))
        own = {name: max(0.0, value - of_asking.get(name, 0.0)) for name, value in found.items()}
        return taken_s, meter.read([*own.items()])

    return gained


@contextmanager
def undone(ask: Ask) -> Iterator[None]:
    """Whatever is changed within is rolled back."""
    ask("START TRANSACTION")
    try:
        yield
    finally:
        ask("ROLLBACK")


def of_each_name(costs: Iterable[StatementCost]) -> Iterator[StatementCost]:
    """One for each name: those of a transaction of several statements are summed up."""
    found: dict[str, StatementCost] = {}
    for one in costs:
        before = found.get(one.statement)
        found[one.statement] = one if before is None else _sum(before, one)
    yield from found.values()


def _sum(one: StatementCost, other: StatementCost) -> StatementCost:
    if one.why_not or other.why_not:
        return StatementCost(statement=one.statement, why_not=one.why_not or other.why_not)
    known = one.cpu_ms is not None and other.cpu_ms is not None
    return StatementCost(
        statement=one.statement,
        cpu_ms=(one.cpu_ms or 0.0) + (other.cpu_ms or 0.0) if known else None,
        counted={
            name: one.counted.get(name, 0.0) + other.counted.get(name, 0.0)
            for name in {**one.counted, **other.counted}
        },
    )
