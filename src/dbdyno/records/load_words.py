"""What a load came to, in the words of checks, warnings and reports."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.driver.tally import Replay, Tally
from dbdyno.frozen import Frozen, absent

DRIVER_LATE_SHARE = 0.01
"""With more statements that the driver sends late the 99th percentile is the driver's."""
FAILED_SHARE = 0.01
"""More errors than this are a warning."""
RUN_WAIT_SHARE = 0.5
"""A driver thread that is ready for half of the time and does not run sets the pace as well, however little
it has to do: each answer waits for it."""


def by_kind(errors: Mapping[str, int]) -> str:
    """Errors with how often each kind came, the most frequent first."""
    return ", ".join(f"{kind} ({count})" for kind, count in sorted(errors.items(), key=lambda item: -item[1]))


def with_examples(tally: Tally) -> str:
    """The errors by kind, the most frequent first, each with what its first one said."""
    if not tally.error_examples:
        return by_kind(tally.errors)
    ordered = sorted(tally.errors.items(), key=lambda item: -item[1])
    kinds = (f"{kind} ({count})" + _example(tally.error_examples.get(kind, "")) for kind, count in ordered)
    return "; ".join(kinds)


def _example(text: str) -> str:
    return f": {' '.join(text.split())}" if text else ""


def came_to(tally: Tally) -> str:
    """What succeeded, what had no answer at all, and the errors."""
    text = f"{tally.operations} transactions succeeded"
    if tally.operations == 0 and tally.unfinished:
        text += f", and {tally.unfinished} had no answer when the load was over"
    return f"{text}; errors: {with_examples(tally)}" if tally.errors else text


def waited_for_cpu(tally: Tally) -> str:
    """How long the driver waited for a CPU where that set the pace; empty where it did not.

    A thread of an embedded engine is the server's own, and one under SCHED_BATCH is to wait.
    """
    if tally.backend == "blocking" or tally.sched_batch or not tally.driver_run_wait_share:
        return ""
    shares = zip(tally.driver_run_wait_share, tally.driver_busy_share, strict=True)
    wait, busy, thread = max((*share, thread) for thread, share in enumerate(shares))
    if wait < RUN_WAIT_SHARE:
        return ""
    return (
        f"driver thread {thread} was ready and had no CPU {wait:.0%} of the time, beside {busy:.0%} in "
        "which it ran"
    )


def driver_lagged(replay: Replay) -> str:
    """How much the driver was late where that is part of the figures; empty where it is not."""
    share = replay.late_by_driver / max(1, replay.statements)
    if share <= DRIVER_LATE_SHARE:
        return ""
    return f"{replay.late_by_driver} of {replay.statements} statements ({share:.1%}) began late by the driver"


class StatementAnswer(Frozen):
    """The answer to one statement, which was sent twice.

    Of `rows` rows the `digest` is over the values of all that were told, in any order; `rounded` is the same
    with doubles of 12 digits. A statement that says itself in which order its rows come has `in_order`, which
    is over them as they came, rounded. `columns` are names, and `types` those of the values below them.
    `shown` are the first rows, sorted where the statement names no order. Of a statement that changes rows
    they are those that it took away (`-`) and left (`+`). `differs` says in what the second answer was
    another than the first; empty where it was the same. Without an answer there is an `error`: its code, and
    what the server `said`. Rows beyond the first 20,000 are counted, and not compared.
    """

    statement: str
    rows: int = 0
    affected: int = absent(0)
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    digest: str = ""
    rounded: str = ""
    in_order: str = absent("")
    shown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = absent(())
    differs: str = absent("")
    error: str = absent("")
    said: str = absent("")


class SchemaNote(Frozen):
    """What is known of a value that a schema can have: `what` and `value` are patterns of a property and of
    its value, `since` the version that has it so, and `source` where that can be read."""

    what: str
    value: str
    says: str
    since: str = absent("")
    source: str = ""

    def holds(self, what: str, *values: str) -> bool:
        """Whether it is of this property, with one of these values."""
        same = re.fullmatch(self.what, what) is not None
        return same and any(re.fullmatch(self.value, one, re.IGNORECASE) for one in values)


class ServerSchema(Frozen):
    """The user's schema as a server of `engine` tells it: by each thing (a column is `table.column`) the
    value of each property that it says a word on. `reserved` are names in it that the server takes in quotes
    alone, and `notes` what is known of values that stand here. Things beyond the first are `left_out`. Where
    the server could not be asked, `why_not` says why."""

    engine: str
    told: dict[str, dict[str, str]] = absent({})
    reserved: tuple[str, ...] = absent(())
    notes: tuple[SchemaNote, ...] = absent(())
    left_out: int = absent(0)
    why_not: str = absent("")


def is_column(thing: str) -> bool:
    """Whether a thing of a schema is a column."""
    return "." in thing and " " not in thing


class StatementAnswers(Frozen):
    """The answers of a trial, and the schema that they were asked of. Where the statements could not be
    asked, `why_not` says why."""

    statements: tuple[StatementAnswer, ...] = ()
    schema_told: ServerSchema | None = absent(None)
    why_not: str = absent("")


class StatementCost(Frozen):
    """What one execution of a statement took: `cpu_ms` of the server's processes, None where that is not
    known, and by a title with its unit what its session read and spilled, as the engine `counted` it. Where
    it could not be sent, `why_not` says why."""

    statement: str
    cpu_ms: float | None = None
    counted: dict[str, float] = absent({})
    why_not: str = absent("")


class StatementCosts(Frozen):
    """The costs of a trial's statements. Where none could be sent, `why_not` says why."""

    statements: tuple[StatementCost, ...] = ()
    why_not: str = absent("")


BUILD_S, SIZE_BYTES = "_build_s", "_size_bytes"
"""Behind the name of a factor, what its index took: among what a trial began with."""
VALUES, ORDER, LAST_DIGITS, WARNINGS = "values", "order", "last digits of doubles", "warnings"
HARMLESS = (LAST_DIGITS, WARNINGS)
"""In what answers may differ that are as right as each other."""


def answer_difference(one: StatementAnswer, other: StatementAnswer) -> str:
    """In what two answers to a statement differ, the gravest first; empty where they are the same."""
    if one.error or other.error:
        return "" if one.error == other.error else "error"
    told = (
        ("columns", one.columns, other.columns),
        ("number of rows", one.rows, other.rows),
        ("rows changed", one.affected, other.affected),
        (VALUES, one.rounded, other.rounded),
        (ORDER, one.in_order, other.in_order),
        ("types", _known(one.types, other.types), _known(other.types, one.types)),
        (LAST_DIGITS, one.digest, other.digest),
        (WARNINGS, one.warnings, other.warnings),
    )
    return next((what for what, ours, theirs in told if ours != theirs), "")


def _known(types: tuple[str, ...], beside: tuple[str, ...]) -> tuple[str, ...]:
    """The types of columns that have values on both sides."""
    return tuple(one if other else "" for one, other in zip(types, beside, strict=False))
