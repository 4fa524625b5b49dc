"""The exit code of a verb that shows verdicts, so that a pipeline can stop by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from dbdyno.analyse.model import Analysis, Reason, VariantResult, Verdict
from dbdyno.cli.options import CODES
from dbdyno.errors import BaselineFailed
from dbdyno.report.words.answer import not_measured
from dbdyno.report.words.platforms import works

if TYPE_CHECKING:
    from dbdyno.analyse.gate import Gate

NO_BASELINE = BaselineFailed.exit_code
"""No ratio can be trusted, because the baseline has no speed or did not hold."""

NOT_CHECKED = 12
"""What was checked of a published folder holds, and not all was checked. Its faults are 9 to 11."""

NOT_MEASURED = 13
"""No variant that was to be compared with the baseline could be put into effect on this host."""

FAIL_ON = {
    name: (CODES[name], verdicts)
    for name, verdicts in {
        "broken": (Verdict.BROKEN,),
        "failed": (Verdict.FAILED, Verdict.BLOCKED),
        "slower": (Verdict.SLOWER,),
        "inconclusive": (Verdict.INCONCLUSIVE,),
        "inert": (Verdict.INERT,),
    }.items()
}
"""Exit codes and verdicts by what `--fail-on` names, the worst first."""

GATE_FAILS_ON = ("broken", "failed", "slower")
"""A gate that lets a slower run through unless it is told otherwise would be none."""


def gate_fails_on(fail_on: tuple[str, ...]) -> tuple[str, ...]:
    """What the gate of this command stops by: an option chooses, and a preference only adds, because no file
    of a machine may let a slower run through."""
    if click.get_current_context().get_parameter_source("fail_on") is ParameterSource.COMMANDLINE:
        return fail_on or GATE_FAILS_ON
    return tuple(name for name in FAIL_ON if name in (*GATE_FAILS_ON, *fail_on))


def verdicts_of(fail_on: tuple[str, ...]) -> frozenset[Verdict]:
    """The verdicts that a pipeline stops by."""
    return frozenset(verdict for name in fail_on for verdict in FAIL_ON[name][1])


def exit_code(analysis: Analysis, fail_on: tuple[str, ...]) -> int:
    """0, or the code of the worst finding, which is said on standard error."""
    baseline = analysis.baseline
    if analysis.study.untimed:
        if not any(map(works, analysis.survivors)):
            return _told(NO_BASELINE, "no platform works")
        return _worst(analysis.variants, fail_on)
    if analysis.answer.baseline_broken or baseline.response is None:
        cause = analysis.answer.baseline_broken or "it was not measured"
        return _told(NO_BASELINE, f"the baseline has no speed to compare with: {cause}")
    code = _worst(analysis.variants, fail_on)
    blocked = [one.verdict is Verdict.BLOCKED and one.response is None for one in analysis.candidates]
    if code == 0 and blocked and all(blocked):
        return _told(NOT_MEASURED, f"nothing was compared: {not_measured(analysis)}")
    return code


def gate_code(gate: Gate, fail_on: tuple[str, ...]) -> int:
    """0, or the code of what was found of a run against another, which is said on standard error."""
    if gate.reference_result.response is None or gate.result.reason is Reason.BASELINE_BROKEN:
        return _told(NO_BASELINE, f"{gate.against} has no speed to compare with")
    return _worst([gate.result], fail_on)


def end_code(stopped_by: str, why: str) -> int:
    """0, or the code of what a pipeline is stopped by, in a word of `--fail-on`; told on standard error."""
    return _told(FAIL_ON[stopped_by][0], why) if stopped_by else 0


def _worst(variants: Sequence[VariantResult], fail_on: tuple[str, ...]) -> int:
    for name, (code, verdicts) in FAIL_ON.items():
        found = [variant.name for variant in variants if variant.verdict in verdicts]
        if name in fail_on and found:
            return _told(code, f"{name}: {'; '.join(found)}")
    return 0


def _told(code: int, why: str) -> int:
    click.echo(f"exit code {code}, {why}", err=True)
    return code
