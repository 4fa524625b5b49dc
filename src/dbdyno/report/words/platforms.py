"""The answer of a study of platforms in one sentence."""

from __future__ import annotations

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import OnMachine, Survivor
from dbdyno.records.record import Outcome
from dbdyno.report.words.numbers import plural


def machine_resets(one: Survivor) -> tuple[int, OnMachine] | None:
    """How often a variant's machine was reset, and what that came to; None where it was not."""
    return next(((act.rounds, act.machine) for act in one.acts if act.machine is not None), None)


def machine_headline(analysis: Analysis) -> str:
    """After which resets the logs explain the TPM, and after which they do not."""
    found = filter(None, map(machine_resets, analysis.survivors))
    parts = [_explained(rounds, machine) for rounds, machine in found]
    return f"Do the logs explain the TPM? {'. '.join(parts)}." if parts else "No machine was reset yet."


def _explained(rounds: int, machine: OnMachine) -> str:
    explained = min(machine.firmware_explains, machine.kernel_explains)
    if explained in (0, rounds):
        return f"After {plural(rounds, f'{machine.way} reset')} they {'do' if explained else 'do not'}"
    return f"After {explained} of {plural(rounds, f'{machine.way} reset')} they do"


def works(one: Survivor) -> bool:
    """Whether a variant started, kept its invariants, and had all of its commits after each restart."""
    return one.outcome is Outcome.MEASURED and not one.faults


def headline(analysis: Analysis) -> str:
    """How many variants work, and who does not."""
    if analysis.study.in_guest:
        return machine_headline(analysis)
    ran = [one for one in analysis.survivors if one.outcome is not None]
    if not ran:
        return "No platform was tried yet."
    bad = [one.variant for one in ran if not works(one)]
    if not bad:
        count = plural(len(ran), "platform") if len(ran) > 1 else "platform"
        return f"All of {count} tried work." if len(ran) > 1 else "The platform that was tried works."
    return f"{len(ran) - len(bad)} of {plural(len(ran), 'platform')} tried work. Not: {'; '.join(bad)}."
