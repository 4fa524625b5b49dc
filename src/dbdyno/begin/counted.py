"""Which trials are counted under Valgrind, and what is told of them.

How a run that begins now counts the instructions of its builds, where its study leaves that open.
"""

from __future__ import annotations

from dbdyno.begin.building import wishes_of
from dbdyno.errors import Blocked, UserError
from dbdyno.host.callgrind import require_valgrind
from dbdyno.host.perf import counts
from dbdyno.records.run import Counting
from dbdyno.report.words import numbers
from dbdyno.report.words.numbers import about_text
from dbdyno.study import Study
from dbdyno.study.designs import counted_variants
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


def why_counted(study: Study) -> str:
    """Why the study's trials are counted under Valgrind in place of timed; empty for other studies."""
    why = counts("instructions") if study.goal.response == INSTRUCTIONS_PER_OP else ""
    return f"trials are counted under Valgrind, with one client, and not timed: {why}" if why else ""


def counted_text(study: Study) -> str:
    """The trials whose work is counted beside the timed ones; empty where there are none."""
    counted = len(counted_variants(study))
    if not counted:
        return ""
    return (
        f"after the timed blocks, {numbers.plural(counted, 'trial')} under Valgrind, with one client: each "
        "variant's instructions are counted once"
    )


def with_counting(study: Study, counting: Counting | None) -> Study:
    """The study with what a run decided on that it leaves open."""
    if counting is None:
        return study
    goal = study.goal.but(counted=counting.by == "valgrind")
    return study.but(goal=goal)


def counting_text(counting: Counting | None, counted_s: float) -> str:
    """What a user is told of it; empty where the study itself says what is counted. `counted_s` is about what
    the trials under Valgrind take."""
    if counting is None:
        return ""
    told = {
        "counters": "each build's instructions are read from the CPU's counters in its timed trials",
        "valgrind": f"the counts take about {about_text(counted_s)}, and tell half a per cent where times do "
        "not; `counted = false` under [goal] leaves them out",
        "nothing": f"instructions are not counted: {counting.why_not}",
    }
    return told[counting.by]
