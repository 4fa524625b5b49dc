"""What the tests of counted share with others."""

from __future__ import annotations

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse
from dbdyno.records.record import INSTRUCTIONS, Counted, CountedFunction, Outcome, PhaseRecord, Record
from dbdyno.study import TRIALS_MAX, Goal, Study
from dbdyno.study.trials import NO_BLOCK
from tests.analyse.factory import a_run, a_study, records_of


def counted(own: dict[str, float], repeats: tuple[float, ...] = ()) -> Counted:
    functions = tuple(
        CountedFunction(name=name, module="server", own={INSTRUCTIONS: value}, whole=value)
        for name, value in own.items()
    )
    return Counted(
        operations=1, per_op={INSTRUCTIONS: sum(own.values())}, repeats=repeats, functions=functions
    )


FAST = "config.page_cache=64k"


STUDY = a_study(goal=Goal(counted=True))


def beside(*found: tuple[str, Counted | None], study: Study = STUDY) -> list[Record]:
    """The timed records of a study, and those of its counted trials."""
    timed = records_of(study, {FAST: 1.5})
    return [*timed, *counted_records(timed[0], *found)]


def counted_records(like: Record, *found: tuple[str, Counted | None]) -> list[Record]:
    """Those of counted trials: what each variant executed, or nothing."""
    return [
        like.but(
            trial=TRIALS_MAX + number,
            block=NO_BLOCK,
            variant=variant,
            outcome=Outcome.FAILED if one is None else Outcome.MEASURED,
            cause="" if one is not None else "no answer under Valgrind",
            phases=(PhaseRecord(name="counted", counted=one),),
        )
        for number, (variant, one) in enumerate(found)
    ]


SLOW_WORK = counted({"parse": 50.0, "read": 50.0}, (100.0, 100.0, 102.0))


FAST_WORK = counted({"parse": 50.0, "read": 20.0}, (70.0, 70.0, 71.0))


def analysed(*found: tuple[str, Counted | None]) -> Analysis:
    return analyse(STUDY, a_run(STUDY), beside(*found))
