"""Write and space amplification: what reaches the disk, and what lies there, over the rows that are meant.

The nouns are those of Athanassoulis et al., "Designing access methods: the RUM conjecture" (EDBT 2016,
section 2): update overhead is what is written over the size of the logical update, memory overhead is the
space taken over that of the base data. Callaghan's benchmarks of insertion call them write and space
amplification. There a secondary index is no base data, and here neither.

A row is as long as its values are as text, in bytes, because that is the same in each engine and each
variant, however these store it. A row that was changed counts whole, once for each change.

What is written is the disk's own count, because the kernel's count for processes (proc_pid_io(5)) is one of
pages made dirty, by whole folios of its cache: where these are large, as with ext4 and XFS, a write of 8 KiB
counts up to a megabyte there. A server with a volume of its own has a disk of its own for this.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.frozen import Frozen
from dbdyno.study.nouns import Goal

WRITE, SPACE = "write_amplification", "space_amplification"
WRITTEN, CHANGED, FILES, ROWS = "disk_written_bytes", "changed_row_bytes", "table_file_bytes", "row_bytes"
"""Names of an observation's totals."""
ALL_TABLES = ""
"""The name under which an engine counts the changes of all tables together."""
_OF_TEXT = "a row is as long as its values are as text, in bytes"

OF_ROWS = (
    (WRITE, "write amplification",
     "Bytes that the disk under the data wrote, whoever asked, with its file system synced before and after"
     " the load (log, double writes, indexes and the file system's own are in it, pages that the engine still"
     " keeps are not), over the bytes of the rows that were inserted, updated or deleted by the engine's own"
     " count, rolled back or not: both of the whole load, warm-up included. A row is as long as the mean of"
     f" its table after the load, where the engine counts by table, else of all tables; {_OF_TEXT}. Known"
     " where a study's response or a guard names it.",
     WRITTEN, CHANGED),
    (SPACE, "space amplification",
     "Bytes of the files that hold the tables with their indexes right after the load, without logs, over the"
     f" bytes of all rows; {_OF_TEXT}. Known where a study's response or a guard names it.",
     FILES, ROWS),
)  # fmt: skip
"""Metrics of rows: name, title, definition, and the totals of which one is divided by the other."""
NAMES = frozenset(name for name, *_ in OF_ROWS)


def rows_named(goal: Goal) -> tuple[str, ...]:
    """The metrics of rows that a response and its guards name."""
    return tuple(one for one in (goal.response, *(guard.metric for guard in goal.guards)) if one in NAMES)


class RowsHeld(Frozen):
    """What a table holds: its rows, and the bytes of all their values as text."""

    rows: float
    text_bytes: float


def changed_bytes(changed: Mapping[str, float], held: Mapping[str, RowsHeld]) -> float:
    """Bytes of so many `changed` rows, by their table, or of all tables together. Raises ValueError, which
    says why, where no row is left by which the length of others could be told."""
    known = {**held, ALL_TABLES: all_of(held)}
    return sum(count * _mean_bytes(table, known) for table, count in changed.items() if count)


def all_of(held: Mapping[str, RowsHeld]) -> RowsHeld:
    """What all tables hold together."""
    return RowsHeld(
        rows=sum(one.rows for one in held.values()), text_bytes=sum(one.text_bytes for one in held.values())
    )


def _mean_bytes(table: str, held: Mapping[str, RowsHeld]) -> float:
    found = held.get(table)
    if found is None or found.rows <= 0:
        where = f"in the table {table}" if table else "in any table"
        raise ValueError(f"rows were changed, and none is left {where} that tells how long they are")
    return found.text_bytes / found.rows
