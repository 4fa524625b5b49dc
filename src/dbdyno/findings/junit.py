"""Verdicts as JUnit XML, which pipelines show beside their tests: a test case for each comparison and each
guard. What a pipeline stops by is a failure; what the data cannot say is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Collection
from xml.etree import ElementTree

from dbdyno.analyse.gate import Gate
from dbdyno.analyse.model import Analysis, Kept, VariantResult, Verdict
from dbdyno.analyse.soak import Rung, SoakResult, SoakVerdict
from dbdyno.analyse.steady import Standing
from dbdyno.findings import gate as gate_part
from dbdyno.findings import soak as soak_part
from dbdyno.records import metrics
from dbdyno.records.run import Run
from dbdyno.report.words import numbers, platforms, remarks, safe, verdicts

NO_VERDICT = (Verdict.INCONCLUSIVE, Verdict.INERT)
"""What is skipped: a pipeline learns nothing of it."""


def render(analysis: Analysis, failing: Collection[Verdict]) -> str:
    """A run's verdicts, ending in a newline. Those in `failing` are failures."""
    suite = _Suite(analysis.study.title, analysis.run)
    if analysis.study.untimed:
        _platforms(suite, analysis, failing)
        return suite.text(platforms.headline(analysis))
    held = gate_part.gate_in(analysis)
    if held is not None:
        name = f"{metrics.find(held.method.response).title} against {held.against}"
        suite.judged(name, held.result, failing, gate_part.sentence(held))
    broken = analysis.answer.baseline_broken
    suite.case("baseline", f"the baseline did not hold: {broken}" if broken else "", "broken")
    for variant in analysis.candidates:
        name = f"{variant.name}: {metrics.find(analysis.method.response).title}"
        why = "; ".join(filter(None, [_seen(variant), remarks.remark(variant, analysis)]))
        suite.judged(name, variant, failing, why)
    losing = [one for one in analysis.candidates if verdicts.losses_of_variant(one)]
    return suite.text(*(f"{one.name}: {_seen(one)}" for one in losing))


def _platforms(suite: _Suite, analysis: Analysis, failing: Collection[Verdict]) -> None:
    """A test case for each platform. One that works passes, because nothing else is asked of it."""
    by_name = {one.variant: one for one in analysis.survivors}
    for variant in analysis.variants:
        found = by_name.get(variant.name)
        if found is not None and platforms.works(found):
            suite.case(variant.name, "")
            continue
        fails = variant.verdict is not None and variant.verdict in failing
        why = variant.cause or "it was not tried"
        suite.case(variant.name, why, variant.verdict.value if variant.verdict and fails else "")


def gate(found: Gate, failing: Collection[Verdict]) -> str:
    """A run held against another, ending in a newline. Verdicts in `failing` are failures."""
    suite = _Suite(gate_part.title(found), found.run)
    name = f"{metrics.find(found.method.response).title} against {found.against}"
    suite.judged(name, found.result, failing, gate_part.sentence(found))
    told = [gate_part.sentence(found)] if found.result.gives_up else []
    return suite.text(*told, gate_part.changes_text(found), *gate_part.notes(found))


def soak(found: SoakResult) -> str:
    """A soak, ending in a newline: a test case for each phase and each gauge of each rung. What broke, failed
    or grows is a failure; what is open is skipped."""
    suite = _Suite(soak_part.title(found), found.run)
    for rung in found.rungs:
        _phases(suite, rung)
        for drift in soak_part.worth_telling(rung):
            kind = "drift" if drift.standing is Standing.RISING and drift.fault else ""
            why = (
                soak_part.says(drift)
                if drift.fault and (drift.standing in soak_part.MATTERS or drift.open)
                else ""
            )
            suite.case(f"{soak_part.rung_name(rung)}: {soak_part.gauge_text(drift)}", why, kind)
    return suite.text(soak_part.headline(found), *soak_part.notes(found))


ENDED_BADLY = (SoakVerdict.BROKEN, SoakVerdict.FAILED)


def _phases(suite: _Suite, rung: Rung) -> None:
    """The phases of a rung. Its cause is that of the last one, where it ended badly."""
    for phase in rung.phases:
        last = phase is rung.phases[-1] and rung.verdict in ENDED_BADLY
        not_done = phase.recovery.blocked if phase.recovery else ""
        why = "; ".join(phase.broken) or (rung.cause if last else not_done)
        kind = rung.verdict.value if phase.broken or last else ""
        suite.case(f"{soak_part.rung_name(rung)}: {phase.name}", why, kind)
    if not rung.phases:
        kind = rung.verdict.value if rung.verdict in ENDED_BADLY else ""
        suite.case(soak_part.rung_name(rung), rung.cause, kind)


def _seen(variant: VariantResult) -> str:
    verdict = variant.verdict.value if variant.verdict is not None else "no verdict"
    verdict = verdicts.losing(verdict, verdicts.losses_of_variant(variant))
    if variant.effect is None:
        return verdict
    return f"{verdict}: {numbers.effect_text(variant.effect)}"


class _Suite:
    """The cases of one run in the making."""

    def __init__(self, title: str, run: Run) -> None:
        self._suite = ElementTree.Element(
            "testsuite",
            name=safe.clean(title),
            timestamp=numbers.timestamp(run.created_unix_s),
            hostname=safe.clean(run.host.name or ""),
        )
        self._class = safe.clean(f"dyno.{run.study_path}")

    def judged(self, name: str, variant: VariantResult, failing: Collection[Verdict], why: str) -> None:
        """A comparison and its guards."""
        verdict = variant.verdict
        if verdict in failing and verdict is not None:
            self.case(name, why, verdict.value)
        else:
            self.case(name, why if verdict in NO_VERDICT else "")
        for guard in variant.guards:
            broken = guard.state is Kept.BROKEN and Verdict.BROKEN in failing
            told = "" if guard.state is Kept.KEPT else f"{guard.state.value}, {remarks.guard_text(guard)}"
            self.case(f"{variant.name}: guard {guard.text}", told, "guard" if broken else "")

    def case(self, name: str, why: str, kind: str = "") -> None:
        """Passed without a `why`; else a failure of a `kind`, or skipped without one."""
        case = ElementTree.SubElement(
            self._suite, "testcase", classname=self._class, name=safe.clean(name), time="0"
        )
        if why and kind:
            failure = ElementTree.SubElement(case, "failure", message=safe.clean(why), type=kind)
            failure.text = safe.clean(why)
        elif why:
            ElementTree.SubElement(case, "skipped", message=safe.clean(why))

    def text(self, *said: str) -> str:
        """The document, with the sentences that are said beside its cases."""
        counts = {
            "tests": len(self._suite.findall("testcase")),
            "failures": len(self._suite.findall("testcase/failure")),
            "errors": 0,
            "skipped": len(self._suite.findall("testcase/skipped")),
        }
        if said:
            ElementTree.SubElement(self._suite, "system-out").text = "\n".join(map(safe.clean, said))
        root = ElementTree.Element("testsuites")
        root.append(self._suite)
        for element in (root, self._suite):
            element.attrib |= {name: str(count) for name, count in counts.items()}
        del root.attrib["skipped"]  # Jenkins' schema has it for a suite alone.
        ElementTree.indent(root)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
