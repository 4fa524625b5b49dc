"""A search: whether its space and its time are enough, what comes next, and how it is told as it goes on.

Before it, a trial of the baseline tells the engine's proposals apart, so that it may begin with few. After
it, the winner can be measured on a workload for which it was not tuned, as a study of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.analyse.model import Analysis
from dbdyno.driver.job import REPLAY
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine, Searchable
from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import Level, level_shown
from dbdyno.host import fingerprint, paths
from dbdyno.host.cache import Tell
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.host.room import available_memory_bytes
from dbdyno.host.writers import Allowed
from dbdyno.kinds.kind import KindOfRun, no_memory
from dbdyno.layers.setup import Running
from dbdyno.layers.workload import files_of_workload
from dbdyno.obtain.installation import Installation
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.plan.search import ask as search
from dbdyno.plan.search.ask import fits, least_s
from dbdyno.plan.search.sampler import TRIES_MAX, Levels, first_levels
from dbdyno.prepare_run.adapted import room_bytes, server_bytes
from dbdyno.prepare_run.begun import Begun, bench_of, new_run
from dbdyno.prepare_run.checked import require_statements
from dbdyno.prepare_run.estimate import overhead_s
from dbdyno.prepare_run.stored_run import analysis_of
from dbdyno.prepare_run.stored_study import is_of
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.records import metrics
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import ComparisonRun, SearchRun
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import about_text, clock_text, is_or_are, plural, ratio_text
from dbdyno.report.words.search import DOING
from dbdyno.run import Unwatched, run_trial
from dbdyno.study import (
    BASELINE,
    Arrangement,
    Design,
    Factor,
    Goal,
    ListedVariant,
    Study,
    Workload,
    WorkloadOffer,
)
from dbdyno.study.document import line, toml, toml_text
from dbdyno.study.nouns import STATEMENTS, GivenData, Search
from dbdyno.study.sections import WITH_SETUP
from dbdyno.study.tables import KNOBS
from dbdyno.study.trials import ACT_OF_METRIC, Purpose, Trial, Variant, phases_of
from dbdyno.study.values import ValueFault
from dbdyno.study.written import CLIENTS, filled, parse_workload, winner_on

if TYPE_CHECKING:
    from dbdyno.plan import Ask
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told


class Searching(KindOfRun):
    """A search finds its variants itself, in the time that it has."""

    def ask(self, run: Any, memory: Memory = no_memory, decided: Told | None = None) -> Ask:
        return lambda study, _, records: search.ask(memory, study, run, records)

    def require(self, begun: Begun, tell: Tell, allowed: Allowed) -> None:
        require_statements(begun.study, tell, allowed)

    def progress(self, study: Study, run: Any, say: Callable[[str], None]) -> Unwatched:
        return Candidates(study, run, say)


SEARCH = Searching()


class Candidates(Unwatched):
    """A line when a trial has ended; and after each block the best candidate so far, and the time left."""

    def __init__(self, study: Study, run: SearchRun, say: Callable[[str], None]) -> None:
        self._study = study
        self._run = run
        self._say = say
        self._response = metrics.find(study.goal.response)
        self._doing = ""

    def seen(self, records: Sequence[Record]) -> None:
        """The search looks for its next trials, with these records."""
        if not records:
            return
        # Here and below, because few runs search.
        from dbdyno.plan.search.ask import spent_s

        left_s = max(0.0, self._run.budget_s - spent_s(records))
        last = max(records, key=lambda record: record.trial)
        told = self._tried(records) if last.purpose is Purpose.SEARCH else self._blocks(records, last)
        self._say(f"{told}; {about_text(left_s)} left")

    def _tried(self, records: Sequence[Record]) -> str:
        """How many candidates the search has tried, and the one beside which it tries the next."""
        from dbdyno.analyse.elimination import candidates_of

        tried = candidates_of(self._study, records)
        if not tried:
            return "the baseline is measured"
        # Here, because other progress has no use for numpy.
        from dbdyno.plan.search.model import Model

        best = Model(self._study, tried).leading(tried)
        found = "none seems better than the baseline yet"
        if best is not None:
            ratio = math.exp(best.worth if self._response.higher_is_better else -best.worth)
            told = f"{ratio_text(ratio)} times the baseline in its own blocks"
            found = f"best {best.name}, {told}, not confirmed"
        return f"{plural(len(tried), 'candidate')} tried; {found}"

    def _blocks(self, records: Sequence[Record], last: Record) -> str:
        """How many blocks of the confirmation, or of the elimination's round, are over."""
        blocks = {record.block for record in records if record.purpose is last.purpose}
        done = 1 + (len(blocks) - 1) % self._study.blocks
        return f"{done} of {plural(self._study.blocks, 'block')}"

    def trial_began(self, trial: Trial) -> None:
        doing = DOING[trial.purpose] if trial.purpose else ""
        if doing != self._doing:
            self._say(f"{doing} ...")
            self._doing = doing

    def trial_ended(self, record: Record) -> None:
        self._say(f"  {record.variant}: {self._result(record)}")

    def say(self, line: str) -> None:
        self._say(line)

    def _result(self, record: Record) -> str:
        if record.outcome is not Outcome.MEASURED:
            return f"{record.outcome.value}: {record.cause}"
        value = self._response.read(record)
        return "measured" if value is None else f"{self._response.format(value)} {self._response.unit}"


def require_space(study: Study, budget_s: float) -> None:
    """Raises UserError where there is nothing to vary or nothing of it may be tried, and where the time is
    too short to try anything and to confirm it."""
    if not study.factors:
        raise UserError(
            "the space is empty, because there are no factors",
            f"dyno tune {study.path} --suggest proposes what this load may depend on",
        )
    if first_levels(study, str(study.seed), partial(_may_be_tried, study)) is None:
        raise UserError(
            f"nothing of the space may be tried: none of {TRIES_MAX} draws keeps the constraints and has room"
            " in memory beside the baseline",
            "relax the constraints, or take levels that need less memory",
        )
    needed_s = least_s(study, expected_duration_s(1, study, overhead_s(study)))
    if budget_s < needed_s:
        raise UserError(
            f"{about_text(budget_s)} are too few for a search: the first candidates and their confirmation"
            f" take about {about_text(needed_s)}",
            f"give at least {math.ceil(needed_s / 60)}m, or shorten `duration` and `warmup` under [workload]",
        )


def _may_be_tried(study: Study, levels: Levels) -> bool:
    """Whether a server of these levels may run in a block of its own with the baseline."""
    search, memory = study.search or Search(), partial(server_bytes, study)
    return search.keeps(levels) and fits(memory, study, room_bytes(), [study.baseline, levels])


def header_of_search(study: Study, run: SearchRun, kept: int, now_unix_s: float) -> str:
    """What begins: the study, the run, how large the space is, and when the search will end."""
    end = clock_text(now_unix_s + run.budget_s)
    done = f"; {plural(kept, 'trial')} of it {is_or_are(kept)} kept" if kept else f"; until {end}"
    asked = f"a search of {space_text(study)}, for {about_text(run.budget_s)}"
    return f"{study.title}\nrun {run.run}: {asked}{done}"


def space_text(study: Study) -> str:
    """How many factors and points the space has."""
    points = math.prod(len(factor.levels) for factor in study.factors)
    shown = f"{points:,}" if points < 10**6 else f"about 10^{len(str(points)) - 1}"
    return f"{plural(len(study.factors), 'factor')} with {shown} points"


LEVELS_SHOWN = 6
"""Of a list; the rest are counted."""


def space_row(factor: Factor) -> tuple[str, str, str, str]:
    """A factor, its baseline, its levels, and when it matters."""
    levels = [level_shown(level) for level in factor.rising or factor.levels]
    if factor.rising:
        shown = f"{levels[0]} to {levels[-1]}, {plural(len(levels), 'step')}"
    else:
        more = f" and {len(levels) - LEVELS_SHOWN} more" if levels[LEVELS_SHOWN:] else ""
        shown = ", ".join(levels[:LEVELS_SHOWN]) + more
    conditions = [f"{one.factor} is {' or '.join(map(level_shown, one.levels))}" for one in factor.only_if]
    return factor.name, level_shown(factor.baseline), shown, ", ".join(conditions)


def limits_of_search(study: Study) -> list[str]:
    """The constraints, and what may be given up."""
    if study.search is None:
        return []
    told = [f"constraint: {constraint.text}" for constraint in study.search.constraints]
    if study.search.allow:
        told.append(f"levels may give up: {', '.join(study.search.allow)}")
    return told


WITH_OWN_STATEMENTS = frozenset(("script", STATEMENTS, "lua", REPLAY))
"""Workloads whose statements are the user's, on tables of the user's."""
NAME_LENGTH_MAX = 100
"""Of what names the load in the name of its study's file."""


def study_on(path: Path, study: Study, text: str, store: str | None, tell: Tell) -> Path:
    """Writes the study of a search's baseline and winner on another workload, and returns its path. `text`
    names that workload, and gives options of it. Raises UserError for a workload or an option that does not
    exist, and where no search of the study ended with a winner."""
    offer, load = load_on(study, text)
    found = _latest(path, study, store)
    name = found.search.winner if found.search is not None else None
    winner = next(one for one in found.variants if one.name == name)
    require_options(winner.changed, offer)
    goal = goal_on(study.goal, load, offer, tell)
    target = paths.data() / "studies" / f"{found.run.run}-on-{_file_name(text)}.toml"
    target.parent.mkdir(parents=True, exist_ok=True)
    data = data_on(study, load, tell)
    target.write_text(winner_on(study, winner.name, winner.changed, load, goal, data), encoding="utf-8")
    return target


def _file_name(text: str) -> str:
    """A name for each load, so that the study of another one stays."""
    return re.sub(r"[^\w.=]+", "-", text.strip())[:NAME_LENGTH_MAX]


def load_on(study: Study, text: str) -> tuple[WorkloadOffer, Workload]:
    """The other load: with the options given, those that the study's own load has as well, and defaults,
    which are left out. It has the study's clients and times. Raises UserError."""
    try:
        offer, given = parse_workload(text, catalogue(ask_engines=False).workloads, (CLIENTS,))
        # The study that is written lies elsewhere, so its paths count from nothing.
        given = _placed(offer.name, given, Path.cwd())
        of_study = _placed(study.workload.name, study.workload.options, study.folder)
        options = filled(offer, given, of_study)
    except ValueFault as fault:
        raise UserError(f"--on: {fault.message}", fault.hint) from None
    defaults = {option.name: option.default for option in offer.options}
    return offer, Workload(
        name=offer.name,
        clients=int(given.get("clients", study.workload.clients)),
        warmup_s=study.workload.warmup_s,
        duration_s=study.workload.duration_s,
        options={name: level for name, level in options.items() if level != defaults[name]},
    )


def _placed(workload: str, options: Mapping[str, Level], folder: Path) -> dict[str, Level]:
    """The options of a workload, with the paths of its files whole, which count from a folder."""
    own = {name: level for name, level in options.items() if name != CLIENTS.name}
    files = {named.option for named in files_of_workload(workload, own, folder) if not named.named_at}
    return {
        name: str(folder.absolute() / Path(str(level)).expanduser()) if name in files else level
        for name, level in options.items()
    }


def require_options(changed: Collection[str], offer: WorkloadOffer) -> None:
    """Raises UserError where a winner changes an option that the other workload does not have."""
    known = {*KNOBS, *(option.name for option in offer.options)}
    strange = [name for name in changed if name.startswith("workload.")]
    strange = [name for name in strange if name.removeprefix("workload.") not in known]
    if strange:
        raise UserError(
            f"the winner changes {', '.join(strange)}, which the workload {offer.name} does not have",
            "name a workload that has it",
        )


def goal_on(goal: Goal, load: Workload, offer: WorkloadOffer, tell: Tell) -> Goal:
    """The study's goal as far as the other load has its metrics. What goes is told."""
    kept = tuple(guard for guard in goal.guards if _has(guard.metric, load, offer))
    for guard in goal.guards:
        if guard not in kept:
            told = f"the guard {guard.text} is left out, because {load.name} has no {guard.metric}"
            tell(told)
    response = goal.response
    if not _has(response, load, offer):
        response = Goal().response
        told = f"{response} is compared and not {goal.response}, which {load.name} does not have"
        tell(told)
    return goal.but(guards=kept, response=response)


def data_on(study: Study, load: Workload, tell: Tell) -> GivenData | None:
    """The data of the study that the other load uses as well. A built-in workload makes its own in the place
    of data that were brought for statements of the user's, because these lack its tables."""
    data = study.data
    if data is None:
        return None
    if study.workload.name in WITH_OWN_STATEMENTS and load.name not in WITH_OWN_STATEMENTS:
        tell(f"[data] is left out, because {load.name} makes its own tables")
        return None
    return data.but(setup=data.setup and load.name == WITH_SETUP)


def _has(metric: str, load: Workload, offer: WorkloadOffer) -> bool:
    """Whether trials of a load can have a metric. Those of restarts need a ledger."""
    if metric in ACT_OF_METRIC:
        return load.keeps_ledger
    kind = metrics.METRICS[metric].transaction if metric in metrics.METRICS else ""
    return not kind or kind in offer.transactions


def _latest(path: Path, study: Study, store: str | None) -> Analysis:
    """The latest search of the study that ended with a winner."""
    with Store(store_url(store)) as opened:
        for summary in opened.runs():
            if summary.finished and is_of(summary.run, study):
                found = analysis_of(opened, summary.run)
                if found.search is not None and found.search.winner is not None:
                    return found
    raise UserError(f"no search of {path} ended with a winner yet", f"dyno tune {path}")


OVERHEAD_S = 30.0
"""What the trial may take beside its load: it may have to make the data."""


@dataclass
class CountersAroundLoad:
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
    counted = CountersAroundLoad()
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


def table_of(engine: Engine, installation: Installation, study: Study, counted: CountersAroundLoad) -> str:
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


def _row(engine: Engine, one: Searchable, counted: CountersAroundLoad) -> tuple[str, bool | None]:
    """A line of the table, and whether the load exercised the setting; None where no counter tells."""
    shown = engine.counters.exercised(one.name, counted.before, counted.after)
    unmoved = engine.counters.unmoved(one.name, counted.before, counted.after)
    told = unmoved or (shown.value if shown is not None else "")
    why = f"{one.why} ({told})" if told else one.why
    return line(
        (toml(f"config.{one.name}"), toml_text(one.space), why)
    ), None if shown is None else not unmoved


def _allocators() -> list[str]:
    """A line with the allocators that are installed here, if there are any."""
    found = [name for name in fingerprint.ALLOCATORS if fingerprint.find_library(name) is not None]
    if not found:
        return []
    return [line((toml("memory.allocator"), toml(["libc", *found]), "what takes memory from the kernel"))]
