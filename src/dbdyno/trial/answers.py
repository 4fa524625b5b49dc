"""Whether an engine answers right: fixed queries whose answers are known by arithmetic, and a checksum over
all rows, by which two engines that made data from the same seeds are shown to have the same ones.

Some of them ask for what a compiler gives up under -ffast-math: numbers below the least normal one, the end
of the range, and sums that keep what rounding cuts off.

A build that is told to be careless with floating point takes tiny numbers for zero and infinite ones for
finite, and what it then puts into the graph of an index is found no more.

What the statements of a load are answered is told in the same way, so that variants can be compared.

A row counts by its values alone, and rows by their sum, so that neither the order in which an engine gives
them nor its way of writing a number matters.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from random import Random
from typing import TYPE_CHECKING

from dbdyno.driver.passwords import conversation
from dbdyno.engines.engine import Ask, Engine, VectorWords
from dbdyno.engines.values import answer_text
from dbdyno.errors import DriverFailed, DynoError
from dbdyno.frozen import Frozen
from dbdyno.passwords import without_passwords
from dbdyno.records.load_words import (
    ServerSchema,
    StatementAnswer,
    StatementAnswers,
    answer_difference,
    is_column,
)
from dbdyno.records.record import Check
from dbdyno.trial.bench import SentStatement

if TYPE_CHECKING:
    from dbdyno.driver.load import LoadDriver, RowsAnswered, StatementAnswered
    from dbdyno.engines.facts import ComparedBy
    from dbdyno.layers.setup import Running

TABLE, VECTORS, DIMENSIONS, QUERIES, NEAREST = "dyno_known_vectors", 600, 16, 40, 10
SEED = 1
FOUND_LEAST = 0.8
"""Of the nearest neighbours: right builds find nearly all of so few vectors."""
DISTANCE_TOLERANCE = 1e-5
"""Elements have single precision, and an engine may add up in that."""
LEAST, SMALL = 2.0**-140, 2.0**-70
"""Below the least normal number of single precision, and with such a square; both are exact."""
TOO_LARGE = (1e39, 0.0)
"""No element of single precision is so large."""

Vector = Sequence[float]

DISTANCES: dict[str, tuple[str, Vector, Vector, float]] = {
    "euclidean": ("euclidean", (3.0, 4.0), (0.0, 0.0), 5.0),
    "euclidean_tiny": ("euclidean", (LEAST, 0.0), (0.0, 0.0), LEAST),
    "euclidean_long": (
        "euclidean",
        [float(number % 7) for number in range(768)],
        [float(number % 5) for number in range(768)],
        math.sqrt(sum((number % 7 - number % 5) ** 2 for number in range(768))),
    ),
    "cosine": ("cosine", (1.0, 2.0, 3.0), (-1.0, -2.0, -3.0), 2.0),
    "cosine_tiny": ("cosine", (SMALL, 0.0), (SMALL, SMALL), 1.0 - math.sqrt(0.5)),
}
"""By name: the distance, of which two vectors, and what it is."""


def known_vectors(ask: Ask, words: VectorWords) -> tuple[Check, ...]:
    """Checks of distances, of a vector that must be refused, and of an index that is made now."""
    distances = (
        _distance(ask, words, name, metric, one, other, known)
        for name, (metric, one, other, known) in DISTANCES.items()
    )
    return (*distances, _refusal(ask, words), _neighbours(ask, words))


def _distance(
    ask: Ask, words: VectorWords, name: str, metric: str, one: Vector, other: Vector, known: float
) -> Check:
    expression = words.euclidean if metric == "euclidean" else words.cosine
    sql = expression.format(one=_value(words, one), other=_value(words, other))
    said = ask(f"SELECT {sql}")[0][0]
    # Relative, because next to nothing is not zero.
    holds = said is not None and math.isclose(float(said), known, rel_tol=DISTANCE_TOLERANCE)
    detail = "all values are right" if holds else f"{said} in place of {known:.9g}"
    return Check(name=f"distance_{name}", holds=holds, detail=detail)


def _refusal(ask: Ask, words: VectorWords) -> Check:
    """That no vector is made of what single precision cannot hold."""
    try:
        said = ask(f"SELECT {_value(words, TOO_LARGE)} IS NULL")[0][0]
    except DriverFailed as refusal:
        if refusal.kind != "server":
            raise
        return Check(name="vector_refused", holds=True, detail=refusal.message)
    holds = said is not None and bool(float(said))
    detail = "no vector is made of 1e39" if holds else "a vector is made of 1e39, which it cannot hold"
    return Check(name="vector_refused", holds=holds, detail=detail)


def _neighbours(ask: Ask, words: VectorWords) -> Check:
    """That searches by an index that the build makes find what lies nearest."""
    random = Random(SEED)
    made = [[round(random.gauss(), 3) for _ in range(DIMENSIONS)] for _ in range(VECTORS + QUERIES)]
    rows, queries = made[:VECTORS], made[VECTORS:]
    for statement in words.table:
        ask(statement.format(table=TABLE, dimensions=DIMENSIONS))
    listed = ", ".join(f"({number}, {_value(words, row)})" for number, row in enumerate(rows))
    ask(f"INSERT INTO {TABLE} VALUES {listed}")
    found = sum(
        len(_found(ask, words, query) & near)
        for query, near in zip(queries, _nearest(rows, queries), strict=True)
    )
    share = found / (QUERIES * NEAREST)
    detail = f"{share:.3f} of the nearest neighbours by an index of its own"
    return Check(name="index_of_its_own", holds=share >= FOUND_LEAST, detail=detail)


def _found(ask: Ask, words: VectorWords, query: Vector) -> set[int]:
    distance = words.euclidean.format(one="v", other=_value(words, query))
    rows = ask(f"SELECT id FROM {TABLE} ORDER BY {distance} LIMIT {NEAREST}")
    return {int(row[0]) for row in rows if row[0] is not None}


def _nearest(rows: Sequence[Vector], queries: Sequence[Vector]) -> list[set[int]]:
    """The exact neighbours of each query."""
    return [
        set(sorted(range(len(rows)), key=lambda row: math.dist(rows[row], query))[:NEAREST])
        for query in queries
    ]


def _value(words: VectorWords, vector: Vector) -> str:
    return words.value.format(text="[" + ",".join(map(repr, vector)) + "]")


ROWS = 500
"""Engines end a recursion at 1,000 rows or more unless they are told otherwise."""
NUMBERS = range(1, ROWS + 1)
MADE_UP = (
    "WITH RECURSIVE n(i, one) AS (SELECT 1, CAST(1 AS {double}){dual} "
    f"UNION ALL SELECT i + 1, one FROM n WHERE i < {ROWS}) "
)
"""Each row has its number and a 1 in double precision, because a literal 1e0 is a decimal to some engines."""
TOLERANCE = 1e-9
"""Sums of fractions differ by the order in which they were added."""

KNOWN: Mapping[str, tuple[str, Sequence[float]]] = {
    "sums": (
        "SELECT COUNT(*), SUM(i), MIN(i), MAX(i), SUM(i * i) FROM n",
        (ROWS, sum(NUMBERS), 1, ROWS, sum(number**2 for number in NUMBERS)),
    ),
    "fractions": ("SELECT SUM(one / i) FROM n", (math.fsum(1 / number for number in NUMBERS),)),
    "join": (
        "SELECT COUNT(*), SUM(a.i), SUM(b.i) FROM n a JOIN n b ON b.i = a.i + a.i",
        (ROWS // 2, sum(range(1, ROWS // 2 + 1)), sum(range(2, ROWS + 1, 2))),
    ),
    "groups": (
        "SELECT COUNT(*), SUM(c) FROM (SELECT COUNT(*) AS c FROM n GROUP BY CASE WHEN i < 100 THEN 0 "
        "WHEN i < 300 THEN 1 ELSE 2 END HAVING COUNT(*) > 100) g",
        (2, ROWS - 99),
    ),
    "order": (
        "SELECT i FROM n WHERE NOT EXISTS (SELECT 1 FROM n m WHERE m.i = n.i + 450) ORDER BY i DESC",
        range(ROWS, 50, -1),
    ),
    "tiny": ("SELECT SUM(one / 1e200 / 1e110 * 1e110 * 1e200) FROM n", (ROWS,)),
}
"""By name: a query of the rows `n`, and all values of its answer, row by row."""
COMPENSATED = (
    f"SELECT SUM(CASE i WHEN 1 THEN one * 1e17 WHEN {ROWS} THEN one * -1e17 ELSE one END) FROM n",
    (ROWS - 2,),
)
"""1e17 is rounded to multiples of 16, so a 1 that is added lasts only where SUM keeps what it cuts off."""
OVERFLOW = "SELECT SUM(one) * 1e300 * 1e300 FROM n"
INFINITE = frozenset(("inf", "infinity"))


def known_answers(ask: Ask, engine: Engine, version: str) -> tuple[Check, ...]:
    """A check for each query that an engine of this version is asked."""
    made_up = MADE_UP.format(dual=f" FROM {engine.dual}" if engine.dual else "", double=engine.double)
    queries = {**KNOWN, "compensated": COMPENSATED} if engine.compensates(version) else KNOWN
    return (
        *(_judged(name, ask(made_up + sql), known) for name, (sql, known) in queries.items()),
        _overflow(ask, made_up + OVERFLOW, engine.holds_infinity),
    )


def _overflow(ask: Ask, sql: str, holds_infinity: bool) -> Check:
    """That what is too large for double precision comes out as infinity, or as an error."""
    try:
        rows = ask(sql)
    except DriverFailed as refusal:
        if refusal.kind != "server":
            raise
        return Check(name="answer_overflow", holds=not holds_infinity, detail=refusal.message)
    values = [str(value).lower() for row in rows for value in row]
    expected = "infinity" if holds_infinity else "an error"
    return Check(
        name="answer_overflow",
        holds=holds_infinity and len(values) == 1 and values[0] in INFINITE,
        detail=f"{', '.join(values) or 'no row'}, {expected} expected",
    )


def _judged(name: str, rows: Sequence[Sequence[str | float | None]], known: Sequence[float]) -> Check:
    values = [value for row in rows for value in row]
    fault = _fault(values, known)
    return Check(name=f"answer_{name}", holds=not fault, detail=fault or "all values are right")


def _fault(values: Sequence[str | float | None], known: Sequence[float]) -> str:
    """What is wrong with an answer; empty where it is right."""
    if len(values) != len(known):
        return f"{len(values)} values, {len(known)} expected"
    wrong = next((pair for pair in zip(values, known, strict=True) if not _same(*pair)), None)
    return f"{wrong[0]} in place of {wrong[1]:.15g}" if wrong else ""


def _same(value: str | float | None, known: float) -> bool:
    try:
        return value is not None and math.isclose(float(value), known, rel_tol=TOLERANCE)
    except ValueError:
        return False


ROWS_AT_A_TIME = 50_000
"""About how many rows are asked for at once."""
DIGEST_BITS = 64

Value = str | float | None

ROWS_SHOWN, ROW_MOST = 100, 160
"""Rows of an answer that a record keeps, and letters of each."""
DIGITS = 12
"""Of a double, those that an order of addition does not touch."""


def answers_of(running: Running, seed: int) -> tuple[StatementAnswers, tuple[SentStatement, ...]]:
    """What the server answers to each statement of the load, with values that are drawn from `seed`, the same
    in all variants, and how each was sent. A failure is told of, and is none of the trial's."""
    try:
        told = running.load.answers(running.data_job.but(seed=seed)).statements
    except DynoError as failure:
        return StatementAnswers(why_not=failure.message), ()
    answers = StatementAnswers(statements=tuple(_statement(one) for one in told))
    return answers, tuple(_sent(one) for one in told)


THINGS_MOST, NAMES_MOST = 5_000, 2_000
"""Of a schema, what a record keeps, and how many names a server is asked whether it takes them."""
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def schema_of(running: Running) -> ServerSchema | None:
    """The user's schema in the server's own words; None where the engine has none. A failure is told of, and
    is none of the trial's."""
    engine = running.setup.engine
    if engine.compared is None or not engine.compared.schema:
        return None
    try:
        if engine.embedded:
            return read_schema(running.ask, engine, engine.compared)
        with conversation(running.server.url) as ask:
            for sql in running.setup.job.opening.sql:
                ask(sql)
            return read_schema(ask, engine, engine.compared)
    except DynoError as failure:
        return ServerSchema(engine=engine.name, why_not=failure.message)


def read_schema(ask: Ask, engine: Engine, asked: ComparedBy) -> ServerSchema:
    things: dict[str, dict[str, str]] = {}
    for query in asked.schema:
        for thing, *values in ask(query.sql):
            known = zip(query.properties, values, strict=True)
            told = {what: answer_text(value) for what, value in known if value is not None}
            things.setdefault(str(thing), {}).update(told)
    kept = dict([*things.items()][:THINGS_MOST])
    reserved = tuple(_reserved(ask, engine, kept))
    notes = tuple(
        note
        for note in asked.notes
        if (reserved and note.holds("name", "reserved"))
        or any(note.holds(what, value) for told in kept.values() for what, value in told.items())
    )
    return ServerSchema(
        engine=engine.name, told=kept, reserved=reserved, notes=notes, left_out=len(things) - len(kept)
    )


def _reserved(ask: Ask, engine: Engine, things: Iterable[str]) -> Iterator[str]:
    """Which names of tables and columns the server takes in quotes alone, by trying each."""
    columns = [thing.split(".") for thing in things if is_column(thing)]
    dual = f" FROM {engine.dual}" if engine.dual else ""
    for name in [*dict.fromkeys(name for parts in columns for name in parts)][:NAMES_MOST]:
        # One with other letters or with a blank needs quotes everywhere.
        if PLAIN_NAME.fullmatch(name) is None:
            continue
        try:
            ask(f"SELECT 1 FROM (SELECT 1 AS one{dual}) AS {name}")
        except DriverFailed as refusal:
            if refusal.kind != "server":
                raise
            yield name


AGAIN_MOST = 100_000
"""An answer of more rows is not asked for once more: whoever asks keeps all of them."""


def _sent(asked: StatementAnswered) -> SentStatement:
    refused = next((run.error.message for run in asked.runs if run.error is not None), "")
    rows = max((run.count for run in asked.runs), default=0)
    why_not = refused or (f"its answer has {rows:,} rows" if rows > AGAIN_MOST else "")
    # The first time caches are cold.
    return SentStatement(asked.name, asked.sql, why_not, dict(asked.runs[-1].counted) if asked.runs else {})


def _statement(asked: StatementAnswered) -> StatementAnswer:
    first, *others = (_one_answer(asked, run) for run in asked.runs)
    return first.but(differs=next(filter(None, (answer_difference(first, other) for other in others)), ""))


def _one_answer(asked: StatementAnswered, run: RowsAnswered) -> StatementAnswer:
    if run.error is not None:
        code = " ".join(filter(None, [run.error.code, run.error.sqlstate]))
        said = without_passwords(run.error.message)
        return StatementAnswer(statement=asked.name, error=code or "refused", said=said)
    signed = _changed_rows(run)
    rows = [row for _, row in signed] if signed is not None else list(run.rows)
    marks = [mark for mark, _ in signed] if signed is not None else [""] * len(rows)
    exact = [[_exact(value) for value in row] for row in rows]
    rounded = [[_rounded(value) for value in row] for row in exact]
    shown = [f"{mark}{_shown(row)}" for mark, row in zip(marks, rows, strict=True)]
    ordered = asked.is_ordered and signed is None
    if run.count > len(run.rows) and not ordered:
        # Which of its rows came first says nothing.
        rows, marks, exact, rounded, shown = [], [], [], [], []
    return StatementAnswer(
        statement=asked.name,
        rows=run.count,
        affected=run.affected,
        columns=run.columns,
        types=run.types,
        digest=_digest_of_all(marks, exact),
        rounded=_digest_of_all(marks, rounded),
        in_order=_in_order(rounded) if ordered else "",
        shown=tuple((shown if ordered else sorted(shown))[:ROWS_SHOWN]),
        warnings=tuple(_shown(row) for row in run.warnings),
    )


def _changed_rows(run: RowsAnswered) -> list[tuple[str, Sequence[Value]]] | None:
    """The rows of a table that a statement took away, and those that it left; None for one that reads."""
    if run.before is None or run.after is None:
        return None
    if any(one.count > len(one.rows) for one in (run.before, run.after)):
        return []
    before, after = Counter(run.before.rows), Counter(run.after.rows)
    gone, come = (before - after).elements(), (after - before).elements()
    return [*(("-", row) for row in gone), *(("+", row) for row in come)]


def _digest_of_all(marks: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    total = sum(_digest([mark, *row]) for mark, row in zip(marks, rows, strict=True))
    return f"{total % 2**DIGEST_BITS:0{DIGEST_BITS // 4}x}"


def _in_order(rows: Sequence[Sequence[Value]]) -> str:
    whole = hashlib.sha256()
    for row in rows:
        whole.update(_digest(row).to_bytes(DIGEST_BITS // 8))
    return whole.hexdigest()[: DIGEST_BITS // 4]


def _exact(value: Value) -> Value:
    """A value whose trailing blanks count, unless it is a number."""
    return f"{value}\x02" if isinstance(value, str) and _number(value) is None else value


def _rounded(value: Value) -> Value:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _shown(row: Sequence[Value]) -> str:
    text = " | ".join("NULL" if value is None else str(value) for value in row)
    return text if len(text) <= ROW_MOST else f"{text[: ROW_MOST - 1]}…"


class TableRows(Frozen):
    """How many rows a table has, and the checksum over them."""

    name: str
    rows: int
    digest: str

    @property
    def text(self) -> str:
        return f"{self.name}: {self.rows} rows, {self.digest}"


def rows_of(load: LoadDriver, url: str, asked: ComparedBy) -> tuple[TableRows, ...]:
    """Of every table of the database at a URL. Reads all of it. Raises DriverFailed where a table cannot be
    read."""
    columns: dict[str, list[str]] = {}
    for table, column in load.query(url, asked.columns):
        columns.setdefault(str(table), []).append(asked.quoted(str(column)))
    return tuple(
        _table(load, url, name, asked.quoted(name), named) for name, named in sorted(columns.items())
    )


def _table(load: LoadDriver, url: str, name: str, table: str, columns: list[str]) -> TableRows:
    """The names of `table` and `columns` are in quotes."""
    count, total = 0, 0
    for where in _parts(load, url, table, columns[0]):
        for row in load.query(url, f"SELECT {', '.join(columns)} FROM {table}{where}"):
            count += 1
            total += _digest(row)
    shown = f"{total % 2**DIGEST_BITS:0{DIGEST_BITS // 4}x}"
    return TableRows(name=name.lower(), rows=count, digest=shown)


def _parts(load: LoadDriver, url: str, table: str, key: str) -> Iterator[str]:
    """Conditions that take a table apart by its first column, so that not all of it is in memory at once. One
    whose first column holds no numbers is read whole."""
    [[count, low, high]] = load.query(url, f"SELECT COUNT(*), MIN({key}), MAX({key}) FROM {table}")
    least, most = _number(low), _number(high)
    parts = -(-int(float(count or 0)) // ROWS_AT_A_TIME)
    if parts < 2 or least is None or most is None:
        yield ""
        return
    step = int((most - least) // parts) + 1
    begin = int(least // 1)
    yield f" WHERE {key} IS NULL"
    while begin <= most:
        yield f" WHERE {key} >= {begin} AND {key} < {begin + step}"
        begin += step


def _digest(row: Sequence[Value]) -> int:
    text = "\x1f".join(map(_plain, row))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: DIGEST_BITS // 8])


PLAIN_INTEGER = re.compile(r"-?[1-9][0-9]{0,26}")
"""A number that all engines write in this way; a longer one is rounded."""
NUMBER_FORM = re.compile(r"_*[-+]?[\d_]*\.?[\d_]*(?:[eE]_*[-+]?[\d_]+)?_*")
"""Whatever `Decimal` takes for a finite number. Most texts are none, and it would raise for each of them."""


def _plain(value: Value) -> str:
    """A value as all engines would write it: a number without what does not change it, a text without the
    spaces that a fixed width adds."""
    if value is None:
        return "\0"
    text = str(value)
    if PLAIN_INTEGER.fullmatch(text) is not None:
        return text
    number = _number(text)
    return text.rstrip() if number is None else f"{number.normalize():f}"


def _number(value: Value) -> Decimal | None:
    text = "" if value is None else str(value).strip()
    if NUMBER_FORM.fullmatch(text) is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
