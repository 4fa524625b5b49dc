"""A soak: whether it stands, rung by rung; what drifts, and until when that would go well; how it ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dbdyno.analyse.soak import (
    Drift,
    PhaseSeen,
    Rung,
    SoakResult,
    SoakVerdict,
)
from dbdyno.analyse.steady import Rate, Standing
from dbdyno.records.load_words import by_kind
from dbdyno.records.metrics import GAUGES, Gauge, number_text
from dbdyno.records.record import Guested, Recovery
from dbdyno.report.document import (
    ColumnKind,
    Detail,
    Document,
    Element,
    Figure,
    Lines,
    Mark,
    Notes,
    Section,
    Steps,
    Table,
    Tone,
    table,
)
from dbdyno.report.words import numbers, safe
from dbdyno.report.words.numbers import moment_text
from dbdyno.study import BASELINE
from dbdyno.study.soak import GROWTH_LEAST_S, Act, Soak
from dbdyno.study.trials import SUSTAINED

LOOKS = {
    SoakVerdict.STANDS: ("✓", Tone.GOOD),
    SoakVerdict.OPEN: ("?", Tone.DOUBT),
    SoakVerdict.DRIFTS: ("↗", Tone.BAD),
    SoakVerdict.BROKEN: ("✗", Tone.BAD),
    SoakVerdict.FAILED: ("✗", Tone.BAD),
    SoakVerdict.BLOCKED: ("–", Tone.DOUBT),
}
"""Glyph and tone of each verdict."""
RUNG_HEADS = (
    "rung", "verdict", "transactions", "per s", "p99, ms", "errors", "stop", "ready again",
)  # fmt: skip
DRIFT_HEADS = ("what", "rung", "at the end", "growth", "per million transactions", "says")
STEP_HEADS = ("phase", "result", "clients", "per s", "p99, ms", "stop", "ready again", "remark")
PHASE_HEADS = ("phase", "clients", "transactions", "per s", "p99, ms", "errors", "beside the load", "remark")
KINDS = {
    **dict.fromkeys(("verdict", "result"), ColumnKind.PHRASE),
    **dict.fromkeys(
        ("rung", "phase", "what", "says", "errors", "beside the load", "remark"), ColumnKind.TEXT
    ),
}
"""What the columns hold that are no figures."""
MATTERS = (Standing.RISING, Standing.FILLING, Standing.EARLY)
"""What a reader must know of, wherever it was seen."""
GREW_NOTE = "Under the sustained load, less what grew at rest; with intervals."
HOURLY_FROM_S = 600.0
"""A growth is told by the hour where the load lasted this long."""
MONTH_H = 720.0
"""Beyond this many hours a limit is not told to the hour."""


def document(found: SoakResult) -> Document:
    """The answer, the rungs, what grew, and each rung by itself."""
    count, run, engine = numbers.plural(len(found.rungs), "rung"), found.run, found.run.installation
    facts = {
        "Study": run.study_path,
        "Run": run.run,
        "Began": moment_text(run.created_unix_s),
        "Engine": f"{engine.engine} {', '.join(found.versions) or engine.version}".strip(),
    }
    glyph, tone = LOOKS[found.verdict]
    return Document(
        title=title(found),
        answer=((Mark(glyph, tone), f" {headline(found)}"),),
        sections=tuple(_sections(found)),
        eyebrow=f"a soak of {count}",
        heading=found.title,
        facts=tuple((name, value) for name, value in facts.items() if value),
        footer=count,
    )


def _sections(found: SoakResult) -> Iterator[Section]:
    told = Lines(tuple(findings(found)), bullets=True)
    yield Section(
        "The rungs", (told, *_rungs(found)), aside="A rung is one number of clients, on a server of its own."
    )
    if rows := drift_rows(found):
        yield Section("What grew", (_table(DRIFT_HEADS, rows),), aside=GREW_NOTE)
    for place, rung in enumerate(found.rungs):
        curves = Figure(
            "dbdyno.report.figures.over_time:curves",
            (rung, rung_name(rung)),
            f"rung-{place}",
            "Dashed: a phase begins.",
        )
        phases = _table(PHASE_HEADS, phase_rows(rung))
        yield Section(rung_name(rung), (curves, phases), aside=f"{marked(rung.verdict)}.", detail=Detail.TEXT)
    yield Section("How to read it", (Notes(tuple(notes(found))), Steps(tuple(next_steps(found)))))


def _rungs(found: SoakResult) -> Iterator[Element]:
    """What is told of rungs, and of the phases where there is one rung alone. A short soak is its phases."""
    short = not found.run.soak.tells_growth
    if found.rungs and not short:
        yield _table(RUNG_HEADS, rung_rows(found))
    if len(found.rungs) == 1:
        yield _table(STEP_HEADS, step_rows(found.rungs[0]))


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return table(heads, rows, KINDS, first=ColumnKind.TEXT)


def title(found: SoakResult) -> str:
    """Which study was soaked."""
    return f"{found.title} (a soak)"


def headline(found: SoakResult) -> str:
    """The answer in a sentence or two."""
    worst = [rung for rung in found.rungs if rung.verdict is found.verdict]
    names = ", ".join(map(rung_name, worst))
    took_s = sum(rung.took_s for rung in found.rungs)
    asked = f"{sum(rung.operations for rung in found.rungs):,} transactions"
    whole = f"{asked} in {numbers.seconds_text(took_s)}"
    told = {
        SoakVerdict.STANDS: _stands(found, whole),
        SoakVerdict.OPEN: f"It is open whether it stands ({names}): {whole}. {_longer(found)}",
        SoakVerdict.DRIFTS: f"It drifts: {_risers(worst)}.",
        SoakVerdict.BROKEN: f"It broke: {names}.",
        SoakVerdict.FAILED: f"It failed: {names}.",
        SoakVerdict.BLOCKED: f"It could not be tried: {names}.",
    }[found.verdict]
    left = f" {numbers.plural(found.rungs_left, 'rung')} had no trial." if found.rungs_left else ""
    return told + left


def _stands(found: SoakResult, whole: str) -> str:
    """What is known where nothing went wrong: a short load says nothing of what grows."""
    soak = found.run.soak
    if soak.tells_growth:
        return (
            f"It stands: {whole}. Carried on for {numbers.seconds_text(soak.horizon_s)}, nothing would grow"
            f" by more than {numbers.share_text(soak.rise)} or reach a limit."
        )
    lasted = numbers.seconds_text(soak.duration_s)
    recoveries = [phase.recovery for rung in found.rungs for phase in rung.phases if phase.recovery]
    acts = {recovery.act for recovery in recoveries if not recovery.blocked}
    done = ", ".join(f"a {act.words}" for act in Act if act in acts)
    passed = f"It came back after {done}" if done else "Each phase passed"
    return f"{passed}: {whole}. A load of {lasted} says nothing of what grows."


def _longer(found: SoakResult) -> str:
    """How long a load is likely to settle what is open."""
    settles_s = _settles_s(found)
    if settles_s is None:
        return "Soak for longer."
    return f"{_load_text(settles_s, found.run.soak)} is likely to settle it."


def _settles_s(found: SoakResult) -> float | None:
    """The longest load that an open gauge asks for; None where it is not a gauge that is open."""
    asked = [drift.settles_s for rung in found.rungs for drift in rung.drifts if drift.settles_s is not None]
    return max(asked, default=None)


def _load_text(settles_s: float, soak: Soak | None) -> str:
    """A load of a length; one as long as the horizon is the shortest that shows what was asked."""
    told = numbers.seconds_text(60.0 * math.ceil(settles_s / 60.0))
    horizon_s = (soak or Soak()).horizon_s
    return f"No load shorter than {told}" if settles_s >= horizon_s else f"A load of {told}"


def rung_name(rung: Rung) -> str:
    """A rung by its clients, and by its variant where that is not the baseline."""
    clients = numbers.plural(rung.clients, "client")
    return clients if rung.variant == BASELINE else f"{rung.variant} with {clients}"


def findings(found: SoakResult) -> Iterator[str]:
    """What whoever deploys this must know of each rung, and what to do next."""
    for rung in found.rungs:
        if rung.cause:
            remedy = f" Next: {safe.clause(rung.remedy)}." if rung.remedy else ""
            yield f"{rung_name(rung)}: {safe.clause(rung.cause)}.{remedy}"
        for drift in rung.drifts:
            if matters(drift):
                yield f"{rung_name(rung)}: {gauge_text(drift)} {says(drift)}{_source(drift)}."
        if rung.unjudged:
            names = ", ".join(GAUGES[gauge].title for gauge in rung.unjudged)
            yield f"{rung_name(rung)}: there were too few readings to judge {names}."
        for phase in rung.phases:
            if phase.recovery is not None:
                yield from _ended(rung, phase.recovery)


def rung_rows(found: SoakResult) -> list[tuple[str, ...]]:
    """A row for each rung."""
    return [
        (
            rung_name(rung),
            marked(rung.verdict),
            f"{rung.operations:,}",
            *_speed(_sustained(rung)),
            _errors(rung.phases),
            _seconds([phase.recovery.stop_s for phase in rung.phases if phase.recovery]),
            _seconds([phase.recovery.ready_s for phase in rung.phases if phase.recovery]),
        )
        for rung in found.rungs
    ]


def step_rows(rung: Rung) -> list[tuple[str, ...]]:
    """A row for each phase of a rung: whether it passed, and what came of it."""
    return [
        (
            PHASE_TITLES.get(phase.name, phase.name),
            result_of(phase, rung),
            f"{phase.clients:,}",
            *_speed(phase),
            _seconds([phase.recovery.stop_s if phase.recovery else None]),
            _seconds([phase.recovery.ready_s if phase.recovery else None]),
            "; ".join([*phase.broken, *_lost(phase), *_acted(phase), *_logged(phase)]),
        )
        for phase in rung.phases
    ]


def result_of(phase: PhaseSeen, rung: Rung) -> str:
    """Whether a phase passed. One that could not be done has no result; the last one of a rung that ended
    early is what it ended in."""
    last = phase is rung.phases[-1] and rung.verdict in (SoakVerdict.BROKEN, SoakVerdict.FAILED)
    if phase.recovery is not None and phase.recovery.blocked:
        return f"{LOOKS[SoakVerdict.BLOCKED][0]} not done"
    if phase.broken or phase.clients_lost or last:
        return f"{LOOKS[SoakVerdict.BROKEN][0]} fail"
    return f"{LOOKS[SoakVerdict.STANDS][0]} pass"


PHASE_TITLES = {
    "cut": "power cut",
    "tear": "torn page",
    "stop": "clean stop",
}
"""What a phase is called where its name alone does not say it."""


def drift_rows(found: SoakResult) -> list[tuple[str, ...]]:
    """A row for each gauge of each rung, and for what grew beside guests."""
    return [
        (
            gauge_text(drift),
            rung_name(rung),
            GAUGES[drift.gauge].format(drift.slope.last),
            _growth(drift, found),
            _by_the_million(drift),
            says(drift),
        )
        for rung in found.rungs
        for drift in worth_telling(rung)
    ]


def _growth(drift: Drift, found: SoakResult) -> str:
    """What a gauge gains by the hour, or in the load where that was too short to speak of hours."""
    gauge, soak = GAUGES[drift.gauge], found.run.soaked
    lasted_s = HOURLY_FROM_S if soak is None else soak.duration_s
    if lasted_s >= HOURLY_FROM_S:
        return f"{gauge.format(drift.per_s.value * 3600.0)} per hour"
    return f"{gauge.format(drift.per_s.value * lasted_s)} in {numbers.seconds_text(lasted_s)}"


def matters(drift: Drift) -> bool:
    """Whether a gauge keeps a setup from standing."""
    return drift.fault and (drift.standing in MATTERS or drift.open)


def worth_telling(rung: Rung) -> list[Drift]:
    """The drifts under the sustained load, and those beyond it that matter."""
    return [drift for drift in rung.drifts if drift.phase == SUSTAINED or drift.standing in MATTERS]


def gauge_text(drift: Drift) -> str:
    """A gauge, with the phase where that is not the sustained load."""
    title = GAUGES[drift.gauge].title
    return title if drift.phase == SUSTAINED else f"{title}, beside `{drift.phase}`"


def phase_rows(rung: Rung) -> list[tuple[str, ...]]:
    """A row for each phase of a rung."""
    return [
        (
            phase.name,
            f"{phase.clients:,}",
            f"{phase.operations:,}" if phase.operations else numbers.DASH,
            *_speed(phase),
            by_kind(phase.errors),
            "; ".join(map(_guest, phase.guests)),
            "; ".join([*phase.broken, *_lost(phase), *_recovered(phase), *_logged(phase)]),
        )
        for phase in rung.phases
    ]


def says(drift: Drift) -> str:
    """What may be said of a gauge: until when it would go well, or down to what nothing grew."""
    gauge = GAUGES[drift.gauge]
    if drift.standing is Standing.RISING:
        said = "rises" if drift.fault else "rises with the load"
        if drift.per_thousand is not None:
            said += f" by {gauge.format(drift.per_thousand.value)} for a thousand connections"
        if drift.hours is not None and drift.limit is not None:
            said += f"; {_hours(drift.hours)} until the limit of {gauge.format(drift.limit.most)}"
        beyond = drift.beyond_baseline
        if beyond is not None and beyond.low <= 0.0:
            said += "; no faster than the baseline, as far as this tells"
        return said
    if drift.standing is Standing.FILLING:
        return "still filling: it rose, and more slowly towards the end"
    if drift.standing is Standing.EARLY:
        told = f"rises by {gauge.format(drift.per_s.value * 3600.0)} per hour"
        return f"{told}, and it is too early to tell whether that goes on"
    if drift.standing is Standing.BRIEF:
        least = f"{gauge.judged_after_s / 60.0:.0f} minutes"
        return f"rises, as it does at first; a load of {least} shows whether that goes on"
    if drift.standing is Standing.WITHIN:
        return "rises, and no higher than the load alone had taken it"
    if drift.standing is Standing.NEGLIGIBLE:
        return f"rises, by at most {gauge.format(drift.slope.high * 3600.0)} per hour, which is allowed"
    if drift.standing is Standing.UNSURE:
        per_hour = gauge.format(max(drift.slope.high, 0.0) * 3600.0)
        return f"open: up to {per_hour} per hour may be, and that would be too much"
    if drift.per_million is not None:
        bound = gauge.format(max(drift.per_million.high, 0.0))
        return f"no growth down to {bound} per million transactions"
    return f"no growth down to {gauge.format(max(drift.per_s.high, 0.0) * 3600.0)} per hour"


def notes(found: SoakResult) -> Iterator[str]:
    """How the figures were made."""
    sure = numbers.share_text(found.confidence)
    if not found.run.soak.tells_growth:
        yield f"Growth is judged in a load of {numbers.seconds_text(GROWTH_LEAST_S)} or more (--duration)."
        return
    yield (
        "Each rung is a trial on a server of its own, on pristine data. Growth is Theil and Sen's slope under"
        " the sustained load, without its autocorrelation, and without the beginning that grew less and less,"
        f" which is warm-up. None of the intervals is wrong, with a confidence of {sure}."
    )
    asked = found.run.soak
    yield (
        f"A gauge may grow by {numbers.share_text(asked.rise)} within"
        f" {numbers.seconds_text(asked.horizon_s)} (`rise` and `horizon` under [soak]), and up to its limit."
        " It stands where the upper bound of its slope, carried on in a straight line, keeps within that. It"
        " drifts where it has grown by as much already: until then half a slow wave looks like a leak."
    )
    if any(drift.control is not None for rung in found.rungs for drift in rung.drifts):
        yield (
            "From each slope that of a control is taken off: the same server, with as many connections that"
            " ask nothing. Where other clients disturb the load, the control is the sustained load."
        )
    yield "Data on the disk and the redo log grow with what the load writes. They are told, and not judged."


def next_steps(found: SoakResult) -> Iterator[str]:
    """What whoever reads this can do."""
    run, study = safe.argument(found.run.run), safe.argument(found.run.study_path)
    if found.verdict in (SoakVerdict.BROKEN, SoakVerdict.FAILED):
        yield f"See the server's log and all checks: dyno report {run} --trials"
    elif found.verdict is SoakVerdict.OPEN:
        settles_s = _settles_s(found) or 2 * found.run.soak.duration_s
        yield f"Soak for longer: dyno soak {study} --duration {math.ceil(settles_s / 60.0)}m"
    if found.rungs_left and found.verdict not in (SoakVerdict.BROKEN, SoakVerdict.FAILED):
        yield f"Go on: dyno soak --resume {run}"


def marked(verdict: SoakVerdict) -> str:
    """A verdict with its glyph."""
    return f"{LOOKS[verdict][0]} {verdict.value}"


def _risers(rungs: Sequence[Rung]) -> str:
    told = [
        f"{gauge_text(drift)} {says(drift)}{_source(drift)} ({rung_name(rung)})"
        for rung in rungs
        for drift in rung.drifts
        if drift.standing is Standing.RISING and drift.fault
    ]
    more = f", and {len(told) - 1} more" if told[1:] else ""
    return "".join(told[:1]) + more


def _sustained(rung: Rung) -> PhaseSeen | None:
    """The phase whose speed stands for the rung: the one with the most transactions."""
    return max(rung.phases, key=lambda phase: phase.operations, default=None)


def _speed(phase: PhaseSeen | None) -> tuple[str, str]:
    if phase is None or phase.throughput_per_s is None:
        return numbers.DASH, numbers.DASH
    p99 = numbers.DASH if phase.p99_ms is None else number_text(phase.p99_ms)
    return number_text(phase.throughput_per_s), p99


def _errors(phases: Sequence[PhaseSeen]) -> str:
    """Errors of the load over all phases, by kind."""
    total: dict[str, int] = {}
    for phase in phases:
        for kind, count in phase.errors.items():
            total[kind] = total.get(kind, 0) + count
    return by_kind(total) or "none"


def _seconds(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return ", ".join(map(numbers.seconds_text, known)) or numbers.DASH


def _rate_text(gauge: Gauge, rate: Rate) -> str:
    return f"{gauge.format(rate.value)} ({gauge.format(rate.low)} {numbers.DASH} {gauge.format(rate.high)})"


def _source(drift: Drift) -> str:
    """What says the limit of a rise."""
    known = drift.standing is Standing.RISING and drift.hours is not None and drift.limit is not None
    return f" ({drift.limit.source})" if known and drift.limit else ""


def _by_the_million(drift: Drift) -> str:
    if drift.per_million is None:
        return numbers.DASH
    return _rate_text(GAUGES[drift.gauge], drift.per_million)


def _hours(hours: float) -> str:
    if hours > MONTH_H:
        return "more than a month"
    return numbers.seconds_text(hours * 3600.0)


def _guest(guest: Guested) -> str:
    """Who came along, how often, and what the server told them."""
    told = f"{guest.name}: {numbers.plural(guest.clients, 'client')}, {numbers.plural(guest.rounds, 'round')}"
    return f"{told}; {by_kind(guest.errors)}" if guest.errors else told


def _lost(phase: PhaseSeen) -> Iterator[str]:
    if phase.clients_lost:
        yield f"{numbers.plural(phase.clients_lost, 'client')} lost"


def _logged(phase: PhaseSeen) -> Iterator[str]:
    if phase.log:
        yield f"the server's log: {phase.log}"


def _recovered(phase: PhaseSeen) -> Iterator[str]:
    recovery = phase.recovery
    if recovery is None:
        return
    if recovery.blocked:
        yield f"not done: {recovery.blocked}"
        return
    if recovery.stop_s is not None:
        yield f"ended within {numbers.seconds_text(recovery.stop_s)}"
    if recovery.ready_s is not None:
        yield f"ready again after {numbers.seconds_text(recovery.ready_s)}"
    yield from _found_again(phase, recovery)


def _acted(phase: PhaseSeen) -> Iterator[str]:
    """The same without the times, which have columns of their own."""
    if phase.recovery is not None and phase.recovery.blocked:
        yield phase.recovery.blocked
    elif phase.recovery is not None:
        yield from _found_again(phase, phase.recovery)


def _found_again(phase: PhaseSeen, recovery: Recovery) -> Iterator[str]:
    if recovery.torn_pages is not None:
        yield _torn(recovery.torn_pages)
    if price := _price(recovery):
        yield price
    elif not phase.broken:
        yield "everything was found"


def _torn(pages: int) -> str:
    return f"{numbers.plural(pages, 'page')} torn" if pages else "no page was on its way, so none was torn"


def _price(recovery: Recovery) -> str:
    """What an act took along that the settings permit; empty where it took nothing."""
    if recovery.fault or not (recovery.lost or recovery.damage):
        return ""
    lost = (
        f"{recovery.lost:,} of {recovery.acknowledged:,} acknowledged transactions were gone,"
        f" the first of them {number_text(recovery.lost_ms)} ms old"
    )
    told = filter(None, [lost if recovery.lost else "", recovery.damage])
    return f"{'; '.join(told)}; the settings permit that"


def _ended(rung: Rung, recovery: Recovery) -> Iterator[str]:
    """What whoever deploys this must know of an act: that it was left out, or what it took along."""
    if recovery.blocked:
        told = f"{recovery.blocked}; {recovery.remedy}" if recovery.remedy else recovery.blocked
        yield f"Not done, {recovery.act.value}: {safe.clause(told)}."
    elif price := _price(recovery):
        last = " Nothing was done to the server after it." if recovery.damage else ""
        yield f"{rung_name(rung)}: after a {recovery.act.words}, {price}.{last}"
