"""The kinds of runs that Dyno knows, each imported when a run of it begins or is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.kinds.kind import KindOfRun, no_memory
from dbdyno.prepare_run.stored_run import some_of
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.record import Record
from dbdyno.records.run import Run, RunKind
from dbdyno.records.store import Store
from dbdyno.registry import LazyTable, registry

if TYPE_CHECKING:
    from dbdyno.plan import Ask
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told

KINDS: LazyTable[KindOfRun] = registry(
    {
        RunKind.COMPARISON: "dbdyno.kinds.comparison:COMPARISON",
        RunKind.SEARCH: "dbdyno.kinds.search:SEARCH",
        RunKind.SOAK: "dbdyno.kinds.soak:SOAK",
        RunKind.BISECTION: "dbdyno.kinds.bisection:BISECTION",
        RunKind.EVALUATION: "dbdyno.kinds.evaluation:EVALUATION",
        RunKind.IMPORTED: "dbdyno.kinds.kind:IMPORTED",
    }
)


def ask_for(run: Run, memory: Memory = no_memory, decided: Told | None = None) -> Ask:
    """How a run finds its next trials. A search asks `memory` what the servers of its candidates take. A run
    that measures until its verdicts stand tells of each, once, with the number of blocks."""
    return KINDS[run.kind].ask(run, memory, decided)


def found_by(run: Run, records: Sequence[Record]) -> tuple[str, Any]:
    """What a run of any kind found, from the run and its records alone, after the name of its kind of
    result. Raises UserError where it has no record yet."""
    kind = KINDS[run.kind]
    return kind.result, kind.found(study_of(run), run, some_of(records, run))


def without_speeds(store: Store, run: Run) -> tuple[str, Any] | None:
    """What a run found that compares no variants, after the name of its kind of result; None for others."""
    if run.compares:
        return None
    kind = KINDS[run.kind]
    return kind.result, kind.found(study_of(run), run, store.records(run.run))
