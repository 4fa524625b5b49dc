"""The space that a search may begin with: the engine's own proposals, told apart by a trial of the baseline
under the study's load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbdyno.begin.begun import Begun, bench_of, new_run
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine, Searchable
from dbdyno.errors import DynoError
from dbdyno.host import libraries
from dbdyno.host.allowed import Allowed
from dbdyno.host.cache import Tell
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.host.room import available_memory_bytes
from dbdyno.layers.setup import Running
from dbdyno.obtain.installation import Installation
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.records.record import Outcome
from dbdyno.records.run import ComparisonRun
from dbdyno.run import run_trial
from dbdyno.study import BASELINE, Arrangement, Design, ListedVariant, Study
from dbdyno.study.phases import phases_of
from dbdyno.study.toml import line, toml, written
from dbdyno.study.trials import Trial, Variant

OVERHEAD_S = 30.0
"""What the trial may take beside its load: it may have to make the data."""


@dataclass
class Counted:
    """The engine's own counters right before and right after the load."""

    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)

    @contextmanager
    def looking(self, running: Running) -> Iterator[None]:
        self.before = running.status()
        yield
        self.after = running.status()


def suggested(study: Study, allowed: Allowed, wait_s: float, tell: Tell) -> str:
    """A [factors] table for the study, as TOML, from one trial of its baseline that is not recorded. Raises
    DynoError where that trial has no speed."""
    engine = registry.engine(study.engine.engine)
    installation = registry.locate(study.engine)
    alone_study = _baseline_of(study)
    run = new_run(ComparisonRun, alone_study, installation, tell)
    trial = Trial(
        index=0,
        block=0,
        position=0,
        variant=Variant(name=BASELINE, levels={}),
        phases=phases_of(alone_study),
    )
    expected_s = expected_duration_s(1, alone_study, OVERHEAD_S)
    counted = Counted()
    with alone(study.title, expected_s, wait_s, tell), open_journal() as journal:
        bench = bench_of(Begun(alone_study, run, installation), journal, None, allowed)
        record = run_trial(trial, bench, beside=counted.looking)
    if record.outcome is not Outcome.MEASURED:
        raise DynoError(f"the baseline could not be measured: {record.cause}", record.remedy)
    return table_of(engine, installation, study, counted)


def _baseline_of(study: Study) -> Study:
    """The study of its baseline alone, in one trial."""
    return study.but(
        design=Design.LIST,
        variants=(ListedVariant(name=BASELINE, levels={}),),
        factors=(),
        search=None,
        blocks=1,
        arrangement=Arrangement.ONE_AFTER_THE_OTHER,
        settings={**study.settings, **study.baseline},
    )


def table_of(engine: Engine, installation: Installation, study: Study, counted: Counted) -> str:
    """The factors that the load exercised, or of which no counter tells; the others as comments."""
    known = engine.settings.names(installation)
    proposals = [
        one
        for one in engine.settings.searchable(available_memory_bytes())
        if one.name in known and f"config.{one.name}" not in study.settings
    ]
    rows = [_row(engine, one, counted) for one in proposals]
    used, unknown = ([row for row, of in rows if of is kind] for kind in (True, None))
    idle = [row for row, of in rows if of is False]
    parts = ["[factors]", *used, *_allocators()]
    parts += ["", "# No counter tells whether this load uses these.", *unknown] if unknown else []
    parts += ["", "# This load does not use these.", *(f"# {row}" for row in idle)] if idle else []
    return "\n".join(parts) + "\n"


def _row(engine: Engine, one: Searchable, counted: Counted) -> tuple[str, bool | None]:
    """A line of the table, and whether the load exercised the setting; None where no counter tells."""
    shown = engine.counters.exercised(one.name, counted.before, counted.after)
    unmoved = engine.counters.unmoved(one.name, counted.before, counted.after)
    told = unmoved or (shown.value if shown is not None else "")
    why = f"{one.why} ({told})" if told else one.why
    return line((toml(f"config.{one.name}"), written(one.space), why)), None if shown is None else not unmoved


def _allocators() -> list[str]:
    """A line with the allocators that are installed here, if there are any."""
    found = [name for name in libraries.ALLOCATORS if libraries.find_library(name) is not None]
    if not found:
        return []
    return [line((toml("memory.allocator"), toml(["libc", *found]), "what takes memory from the kernel"))]
