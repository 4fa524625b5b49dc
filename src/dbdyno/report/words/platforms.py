"""The answer of a study of platforms in one sentence."""

from __future__ import annotations

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import Survivor
from dbdyno.records.record import Outcome
from dbdyno.report.words import machine
from dbdyno.report.words.numbers import plural


def works(one: Survivor) -> bool:
    """Whether a variant started, kept its invariants, and had all of its commits after each restart."""
    return one.outcome is Outcome.MEASURED and not one.faults


def headline(analysis: Analysis) -> str:
    """How many variants work, and who does not."""
    if analysis.study.of_machine:
        return machine.headline(analysis)
    ran = [one for one in analysis.survivors if one.outcome is not None]
    if not ran:
        return "No platform was tried yet."
    bad = [one.variant for one in ran if not works(one)]
    if not bad:
        count = plural(len(ran), "platform") if len(ran) > 1 else "platform"
        return f"All of {count} tried work." if len(ran) > 1 else "The platform that was tried works."
    return f"{len(ran) - len(bad)} of {plural(len(ran), 'platform')} tried work. Not: {'; '.join(bad)}."
