"""What a kind of run says of itself. What stands here holds for a kind that says nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import asked_of, measured_installation, study_of

if TYPE_CHECKING:
    from dbdyno.host.cache import Tell
    from dbdyno.host.writers import Allowed
    from dbdyno.obtain.source.build import Foreseen
    from dbdyno.plan import Ask
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told
    from dbdyno.prepare_run.begun import Begun
    from dbdyno.records.record import Record
    from dbdyno.run import Unwatched
    from dbdyno.study import Study
    from dbdyno.trial.bench import Bench


def no_memory(_levels: Mapping[str, Level]) -> int:
    """Of servers whose memory nobody asks for."""
    return 0


@dataclass(frozen=True)
class Beginning:
    """A run that is to be carried out: the reference that takes turns with it, the builds that both need, and
    how many seconds its trials, 0 where nobody knows, and all of it will take. `lines` say what begins, after
    so many trials that are kept and at that time. `trials` are all that it has; None where nobody knows. Its
    store has it as over where it `reopens`. `ask` finds its trials where only its verb knows them."""

    begun: Begun
    trials_s: float
    whole_s: float
    lines: Callable[[int, float], Sequence[str]]
    trials: int | None = None
    reference: Begun | None = None
    builds: tuple[Foreseen, ...] = ()
    reopens: bool = False
    ask: Callable[[Memory], Ask] | None = None


class KindOfRun:
    """A kind of run, from its beginning to what it found. `result` is the name of what it found among the
    results that are shown. Where it `knows_builds`, all of them are made before its first trial."""

    result = "report"
    knows_builds = True

    def goes_on(self, run: Any) -> Begun:
        """A stored run as it was begun. Raises UserError where its engine or a file is another one now."""
        # Here, because a run that is only read begins nothing.
        from dbdyno.prepare_run.begun import Begun

        study = study_of(run)
        return Begun(study, run, measured_installation(study, run))

    def require(self, begun: Begun, tell: Tell, allowed: Allowed) -> None:
        """Raises StudyError for what only a server can refuse, before a new run is kept. The host is this
        run's by now."""

    def counts(self, begun: Begun, tell: Tell) -> bool:
        """Whether instructions are counted under Valgrind, in its trials or beside them; tells it."""
        # Here, because a run that is only read counts nothing.
        from dbdyno.prepare_run.building import counted_text, why_counted
        from dbdyno.trial.count import require_countable

        told = why_counted(begun.study) or counted_text(begun.study)
        if told:
            require_countable(begun.study)
            tell(told)
        return bool(told)

    def at_bench(self, bench: Bench) -> Bench:
        """The bench as the run has it: slices become longer that are too short, unless the study has given
        their length."""
        run = bench.run
        return replace(bench, lengthens=lambda: asked_of(run).slice_s is None)

    def ask(self, run: Any, memory: Memory = no_memory, decided: Told | None = None) -> Ask:
        """How a run finds its next trials; see `registry.ask_for`."""
        raise UserError(f"run {run.run} has no trials to carry out", "name another one; see: dyno runs")

    def before(self, ask: Ask, bench: Bench, tell: Tell) -> Ask:
        """The same answers, with what has to be done before the trials that they give."""
        return ask

    def progress(self, study: Study, run: Any, say: Callable[[str], None]) -> Unwatched | None:
        """Who says how a run goes on that does not count its trials; None for one that does."""
        return None

    def found(self, study: Study, run: Any, records: Sequence[Record]) -> Any:
        """What a run found, from itself and its records alone."""
        return analysed(study, run, records)

    def ends_with(self, found: Any) -> tuple[str, str]:
        """What a pipeline stops by, as `--fail-on` names it, and what is said of it; empty where it goes on.
        For results that no option of the verb judges."""
        return "", ""


IMPORTED = KindOfRun()
"""Logs of another tool: nothing of them is carried out, and they are read as every comparison."""
