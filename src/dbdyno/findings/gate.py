"""A run held against another: its verdict, the figures below it, and what makes the verdict honest."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.floor import smallest
from dbdyno.analyse.gate import RUNS_OWN_LEAST, Gate, GateWay, HeldAnalysis, Source
from dbdyno.analyse.model import Analysis, Ratio, Reason, VariantResult, Verdict
from dbdyno.frozen import level_shown
from dbdyno.records import metrics
from dbdyno.records.run import Run
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Detail,
    Document,
    Figure,
    From,
    Lines,
    Mark,
    Notes,
    RowLook,
    Screen,
    Section,
    Steps,
    Table,
    Words,
    table,
)
from dbdyno.report.words import answer, noise, numbers, remarks, safe, verdicts
from dbdyno.report.words.numbers import day_text, moment_text
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP

HEADS = ("what", "reference", "run", "run / reference", "says")
SIDE_HEADS = ("", "reference", "run")
CAPTION = (
    "Dot and line: the ratio and its interval. Ticks: single blocks. Below it: where a difference counts as"
    " no effect, and how far two runs of one setup lie apart on this host."
)


def answered(found: Gate) -> tuple[Words, ...]:
    """The sentence in the look of its verdict."""
    verdict = found.result.verdict
    mark = (Mark(verdicts.LOOKS[verdict].glyph, verdict), " ") if verdict else ()
    return ((*mark, sentence(found)),)


def document(found: Gate) -> Document:
    """The verdict, the figures, and what they rest on."""
    return Document(
        title=title(found),
        answer=answered(found),
        sections=tuple(_sections(found)),
        eyebrow="gate",
        footer=f"Dyno {found.run.dyno_version} · run {found.run.run}",
        titled=False,
        numbered=True,
        screen=screen(found),
    )


def screen(found: Gate) -> Screen:
    """What was held against what, in one screen: the response, the costs that differ, and the guards."""
    lines = rows(found)
    costs = zip(found.result.costs, lines[1:], strict=False)
    told = [lines[0], *(line for cost, line in costs if numbers.differs(cost))]
    guards = [line for line in lines if line[0].startswith("guard ")]
    last = f"Details: dyno report {safe.argument(found.run.run)} --details"
    layout = table(HEADS, (*told, *guards), {"says": ColumnKind.TEXT})
    return Screen((layout,), (changes_text(found),), (*next_steps(found), last))


def gate_in(analysis: Analysis) -> Gate | None:
    """What a run found that was held against another one; None for others."""
    return analysis.gate if isinstance(analysis, HeldAnalysis) else None


def headline(analysis: Analysis) -> str:
    """The answer of a run in one sentence: that of its gate, where it was held against another one."""
    found = gate_in(analysis)
    return answer.headline(analysis) if found is None else sentence(found)


def sections(found: Gate) -> Iterator[Section]:
    """What stands before all else in the report of a run that was held against another one."""
    first, *others = _sections(found)
    yield Section(f"Held against {found.against}", first.body)
    yield from others


def title(found: Gate) -> str:
    """The study, and the name that the run is held against."""
    return f"{found.title or found.run.study_path} (against {found.against})"


def _sections(found: Gate) -> Iterator[Section]:
    figures = table(HEADS, rows(found), {"says": ColumnKind.TEXT})
    yield Section("The ratio", (Figure("dbdyno.report.figures.drawn:bars", (found,), words=CAPTION), figures))
    changes, facts = Lines((changes_text(found),)), From(Detail.PAGE, (_sides_table(found),))
    yield Section("What was compared", (changes, facts, Notes((way_text(found),))))
    yield Section("How honest this host is", (Notes((floor_text(found), alarms_text(found))),))
    yield Section("What to do", (Steps(tuple(next_steps(found))),))


def _sides_table(found: Gate) -> Table:
    lines = sides(found)
    columns = (
        Column(SIDE_HEADS[0], ColumnKind.NAME),
        *(Column(head, ColumnKind.CODE) for head in SIDE_HEADS[1:]),
    )
    looks = {place: RowLook.DIFFERS for place, (_, theirs, ours) in enumerate(lines) if theirs != ours}
    return Table(columns, tuple(lines), looks=looks)


def changes_text(found: Gate) -> str:
    """What differs between the two runs, as far as Dyno knows; their names and days always do."""
    told = [
        f"{name} {theirs or numbers.DASH} -> {ours or numbers.DASH}"
        for name, theirs, ours in sides(found)
        if theirs != ours and name not in OF_EACH_RUN
    ]
    if not told:
        return "Nothing that Dyno knows of changed (engine, build, levels, host, Dyno)."
    return f"What changed: {'; '.join(told)}."


OF_EACH_RUN = ("run", "began", "study", "trials")
"""Facts of a run that say nothing of what it measured."""


def sentence(found: Gate) -> str:
    """The verdict with its interval, and why it is no better known."""
    result, metric = found.result, metrics.find(found.method.response)
    word = (result.verdict or Verdict.INCONCLUSIVE).value.capitalize()
    if result.verdict in (Verdict.BROKEN, Verdict.FAILED, Verdict.BLOCKED):
        return f"{word}: {remarks.cause(result) or 'a trial ended so'}."
    word = verdicts.losing(word, result.gives_up)
    head = f"{word}: the {metric.title} is {_told(result.effect)} times that of {found.against}."
    return " ".join(filter(None, (head, _why_open(found), _smallest(found))))


def _smallest(found: Gate) -> str:
    """What an open gate could have told; empty where it has no interval."""
    least = smallest([found.result.effect])
    if found.result.reason is not Reason.SPREAD or least is None:
        return ""
    seen = f"{noise.SMALLEST}: {numbers.rough_share_text(least)}."
    if found.method.response == INSTRUCTIONS_PER_OP:
        return seen
    counts = f'`response = "{INSTRUCTIONS_PER_OP}"` under [goal] counts them'
    return f"{seen} Instructions repeat better than time: {counts}."


def rows(found: Gate) -> list[tuple[str, ...]]:
    """The response, what it cost, and the guards."""
    result, metric = found.result, metrics.find(found.method.response)
    sides = (found.reference_result.response, result.response)
    figures = [numbers.DASH if side is None else metric.format(side.mean) for side in sides]
    said = remarks.verdict_text(result)
    lines = [(f"{metric.title}, {metric.unit}".strip(", "), *figures, _told(result.effect), said)]
    for cost in result.costs:
        known = metrics.find(cost.metric)
        sides = (found.reference_result.summary(cost.metric), result.summary(cost.metric))
        figures = [numbers.DASH if side is None else known.format(side.mean) for side in sides]
        lines.append((f"{known.title}, {known.unit}".strip(", "), *figures, _told(cost), ""))
    return [
        *lines,
        *((f"guard {remarks.guard_text(guard)}", "", "", "", guard.state.value) for guard in result.guards),
    ]


def notes(found: Gate) -> tuple[str, ...]:
    """How the two were held against each other, this host's noise floor, and its false alarms."""
    return way_text(found), floor_text(found), alarms_text(found)


def way_text(found: Gate) -> str:
    """How the two were held against each other, and what the interval is made of."""
    pairs = found.result.effect.pairs if found.result.effect else 0
    if found.way is GateWay.SIDE_BY_SIDE:
        return (
            f"The two runs took turns on this host: their trials ran next to each other in"
            f" {numbers.plural(pairs, 'block')}, and ratios are paired by block."
        )
    return (
        f"{found.against} was measured on {day_text(found.reference.created_unix_s)} and not"
        " again, so the run is the unit: the interval is of the spread between runs of one setup on"
        f" this host, the reference’s own where it has {RUNS_OWN_LEAST} runs. The ratio includes what changed"
        " between the days."
    )


def sides(found: Gate) -> list[tuple[str, str, str]]:
    """What was held against what: a row for each fact of the two runs, those that say nothing left out."""
    runs = (found.reference, found.run)
    results = (found.reference_result, found.result)
    levels = [{name: level_shown(level) for name, level in one.levels.items()} for one in results]
    facts = [
        ("run", *(run.run for run in runs)),
        ("began", *(moment_text(run.created_unix_s) for run in runs)),
        ("study", *(run.study_path for run in runs)),
        ("engine", *(_engine(run) for run in runs)),
        ("from", *(run.installation.origin for run in runs)),
        ("build", *(run.installation.digest[:DIGEST_LETTERS] for run in runs)),
        ("trials", *(_trials(result) for result in results)),
        ("Dyno", *(run.dyno_version for run in runs)),
        ("host", *(run.host.name or "" for run in runs)),
        *(
            (name, *(one.get(name, numbers.DASH) for one in levels))
            for name in sorted({name for one in levels for name in one})
        ),
    ]
    return [(name, theirs, ours) for name, theirs, ours in facts if theirs or ours]


DIGEST_LETTERS = 16


def next_steps(found: Gate) -> Iterator[str]:
    """What whoever reads the verdict can do, the most useful first."""
    run, study = safe.argument(found.run.run), safe.argument(found.run.study_path)
    against = safe.argument(found.against)
    moved = f"dyno baseline set {'NAME' if found.against == found.reference.run else against} {run}"
    verdict = found.result.verdict or Verdict.INCONCLUSIVE
    if verdict in (Verdict.FASTER, Verdict.NO_EFFECT):
        yield f"Once the change is merged, later runs are held against it: {moved}"
    elif verdict is Verdict.SLOWER:
        yield f"See where the time of an operation goes: dyno report {run} --details"
        yield f"If the change is worth its price, later runs are held against it: {moved}"
    elif verdict is not Verdict.INCONCLUSIVE:
        yield f"See which trials ended so, and why: dyno report {run} --trials"
    elif found.way is GateWay.STORED:
        yield f"If the reference's engine can be restored, measure both: dyno run {study} --against {against}"
    elif found.result.effect is not None and found.result.effect.images:
        yield (
            "The copies of the data favour the change differently, and more blocks of these do not settle it."
            f" Set `images = 10` in the study, and measure both: dyno run {study} --against {against}."
            " A fresh run is a fresh chance to be wrong."
        )
    elif found.result.reason in (Reason.SPREAD, Reason.TOO_FEW_PAIRS):
        # A fresh run each time would be a fresh chance to be wrong each time.
        told = found.result.blocks_more_even or found.result.blocks_more
        more = told or max(found.run.blocks, found.method.blocks_least - found.run.blocks)
        yield f"Measure more blocks of both: dyno run --resume {run} --add-blocks {more}"
    else:
        yield f"See what the trials left: dyno report {run} --trials"
    if found.alarms.share_low > found.alarms.promised:
        yield (
            "This host calls equal runs different more often than promised: look for what disturbs it (dyno"
            f" probe), calibrate it (dyno calibrate {study}), or take a wider margin."
        )


def _why_open(found: Gate) -> str:
    if found.result.verdict is not Verdict.INCONCLUSIVE:
        return ""
    if found.way is GateWay.STORED and found.result.reason is Reason.TOO_FEW_PAIRS:
        return (
            "One run cannot tell a change from the difference of two days; a verdict needs"
            f" {RUNS_OWN_LEAST} runs of the reference’s setup on this host, or the reference's engine, to"
            " measure both side by side."
        )
    why = {
        Reason.GUARD: "a guard is not shown to hold",
        Reason.FAILS_MORE: "more transactions failed, and what fails is no part of the figure",
        Reason.BASELINE_BROKEN: "the reference itself did not hold",
        Reason.NO_BASELINE: "this Dyno knows no run of the reference's setup with this load on this host",
        Reason.NO_RESPONSE: "the run gave no response above zero",
        Reason.NOT_RUN: "the run has no trial",
        Reason.SPREAD: "the interval is too wide to tell",
        Reason.TOO_FEW_PAIRS: f"a verdict needs {numbers.plural(found.method.blocks_least, 'block')}",
        None: "",
    }[found.result.reason]
    return f"It is open because {why}." if why else ""


def floor_text(found: Gate) -> str:
    """How far two runs of one setup lie apart on this host."""
    floor = found.floor
    if floor is None:
        return (
            "The noise floor of this host is not known: the store holds no two runs of one setup with this"
            " load."
        )
    sure = numbers.share_text(found.method.confidence)
    since, until = day_text(floor.since_unix_s), day_text(floor.until_unix_s)
    of = {
        Source.OWN: "the reference’s setup",
        Source.POOLED: numbers.plural(floor.setups, "setup"),
        Source.NOISIEST: f"{numbers.plural(floor.setups, 'setup')}, the noisiest of which tells the most",
    }[floor.source]
    return (
        f"Noise floor: by {numbers.plural(floor.runs, 'run')} on this host from {since} to {until} of {of},"
        f" two runs of one setup differ by less than {numbers.rough_share_text(floor.ratio - 1.0)} in {sure}"
        " of cases."
    )


def alarms_text(found: Gate) -> str:
    """How often this host's history called runs of one setup different."""
    alarms = found.alarms
    how = "took turns" if found.way is GateWay.SIDE_BY_SIDE else "came after others"
    if not alarms.comparisons:
        return f"False alarms: no runs of one setup {how} here yet, so none can be counted."
    low, high, promised = map(numbers.tenth_text, (alarms.share_low, alarms.share_high, alarms.promised))
    return (
        f"False alarms: of {numbers.plural(alarms.comparisons, 'run')} of an unchanged setup that {how},"
        f" {alarms.called} were called different; the true share lies between {low} and {high}, and at most"
        f" {promised} is promised."
    )


def _told(ratio: Ratio | None) -> str:
    if ratio is None:
        return numbers.DASH
    if ratio.low is None:
        return numbers.ratio_text(ratio.ratio)
    return numbers.effect_text(ratio)


def _engine(run: Run) -> str:
    return f"{run.installation.engine} {run.installation.version}".strip()


def _trials(result: VariantResult) -> str:
    return ", ".join(f"{count} {outcome.value}" for outcome, count in result.outcomes.items())
