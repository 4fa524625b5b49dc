"""Which trials are counted under Valgrind, and what is told of them."""

from __future__ import annotations

from dbdyno.host.counters import counts
from dbdyno.records.run import Counting
from dbdyno.report.words import numbers
from dbdyno.report.words.numbers import about_text
from dbdyno.study import Study
from dbdyno.study.designs import counted_variants
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP


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
