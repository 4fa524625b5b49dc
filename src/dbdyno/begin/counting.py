"""How a run that begins now counts the instructions of its builds, where its study leaves that open."""

from __future__ import annotations

from dbdyno.begin.building import wishes_of
from dbdyno.errors import Blocked, UserError
from dbdyno.host.callgrind import require_valgrind
from dbdyno.host.counters import counts
from dbdyno.records.run import Counting
from dbdyno.study import Study
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP
from dbdyno.trial.count import require_countable


def counting_of(study: Study, budget_s: float | None = None) -> Counting | None:
    """None for a study that says what is counted, that compares no builds, or that times nothing."""
    if study.of_platforms:
        return None
    said = study.goal.counted is not None or study.goal.response == INSTRUCTIONS_PER_OP
    if said or len(wishes_of(study)) < 2:
        return None
    if not counts("instructions"):
        # They are read in the timed trials anyway, so they take no time.
        return Counting(by="counters")
    return counted_where_valgrind_runs(study, budget_s)


def counted_where_valgrind_runs(study: Study, budget_s: float | None = None) -> Counting:
    """In trials under Valgrind, or not at all where something forbids them."""
    why_not = _why_not(study, budget_s)
    return Counting(by="nothing", why_not=why_not) if why_not else Counting(by="valgrind")


def _why_not(study: Study, budget_s: float | None) -> str:
    """What forbids a trial of each build under Valgrind; empty where nothing does."""
    if budget_s is not None:
        return "a budget holds only for trials whose length is known"
    try:
        require_valgrind()
        require_countable(study)
    except Blocked as missing:
        return f"{missing.message}; {missing.hint}"
    except UserError as alike:
        return alike.message
    return ""
