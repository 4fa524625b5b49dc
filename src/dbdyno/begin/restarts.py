"""What a plan says of a study's restarts."""

from __future__ import annotations

from collections import Counter

from dbdyno.begin.estimate import restarts_s
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.study import Study
from dbdyno.study.designs import restart_trial_count
from dbdyno.study.restarts import acts_of, control_of, restarted


def restarts_text(study: Study) -> str:
    """Which restarts come before the blocks, under which load and how long they take; empty where none do."""
    if study.restarts is None:
        return ""
    counts = Counter(acts_of(study.restarts))
    each = ", ".join(plural(count, act.words) for act, count in counts.items())
    control = ""
    if control_of(study) is not None:
        control = ", and of a control that must lose; on volumes of Dyno's own, which needs root"
    size = f"{plural(restart_trial_count(study), 'trial')}, about {about_text(restarts_s(study))}"
    load = "" if study.of_machine else f", under {restarted(study).workload.name}"
    when = "no blocks, because nothing is timed" if study.of_platforms else "before the blocks"
    return f"{when}{load}: {each} of each variant{control}; {size}"
