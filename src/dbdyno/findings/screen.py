"""One screen of a run: the answer, its table, what changes what one should believe, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.engines import ranked_defaults
from dbdyno.analyse.found import EnginesCompared
from dbdyno.analyse.model import Analysis, Kept, Role, Verdict
from dbdyno.findings import gap, verdicts
from dbdyno.findings.engines import default_text
from dbdyno.findings.registered import departures, departures_text
from dbdyno.frozen import listed
from dbdyno.records.chain import Rerun
from dbdyno.records.in_use import InUse
from dbdyno.report.document import ColumnKind, Mark, Screen, Table, Tone, Words, plain, table
from dbdyno.report.words import answer, naming, noise, numbers, remarks, safe
from dbdyno.report.words.verdicts import marked, ranked_variants

VARIANTS_MOST = 4
COSTS = ("p99_ms", "server_cpu_us_per_op")


def of_run(analysis: Analysis, reruns: Sequence[Rerun] | None = None) -> Screen:
    """The screen of a run that was held against no other one. `reruns` are all runs of the same study that
    the store knows, where it was asked."""
    run = safe.argument(analysis.run.run)
    to_go_on = answer.to_go_on(analysis)
    steps = [one for one in to_go_on if "dyno run" in one]
    last = f"Details: dyno report {run} --details"
    if analysis.study.untimed:
        return Screen((), _of_platforms(analysis), (last,))
    lines = (
        *_answers(analysis),
        *_beside_load(analysis),
        _of_last(analysis),
        noise.smallest_text(analysis),
        _counted(analysis),
        _published(analysis),
        *_warnings(analysis),
        _others(analysis, reruns),
        _too_noisy(analysis, to_go_on),
    )
    size = f"{naming.size_text(analysis)}, {numbers.plural(len(analysis.trials), 'trial')}"
    facts = naming.engine_text(analysis), naming.workload_text(analysis), size
    return Screen(
        (*(_of_parts(analysis) or _of_factors(analysis) or _layouts(analysis)),),
        tuple(line for line in lines if plain(line)),
        (*steps, last),
        " · ".join(facts),
        row="row" if analysis.statements_compared or analysis.phases else "variant",
        answer=(gap.title(analysis.gap),) if _is_of_a_gap(analysis) and analysis.gap is not None else (),
    )


def _is_of_a_gap(analysis: Analysis) -> bool:
    """Whether the run was to explain a gap: each factor has its two ends, and there are more variants than a
    screen has rows."""
    factors = analysis.study.factors
    return len(analysis.candidates) > VARIANTS_MOST and all(len(one.levels) == 2 for one in factors)


def _others(analysis: Analysis, reruns: Sequence[Rerun] | None) -> str:
    """That the study was run before or again, because whoever runs it often enough finds something."""
    others = sum(one.run != analysis.run.run for one in reruns or ())
    return (
        f"The store knows {numbers.plural(others, 'other run')} of this study: see the details"
        if others
        else ""
    )


def _counted(analysis: Analysis) -> str:
    """The instructions of the variants as ratios, where a study asks for a count beside its blocks."""
    ratios = [one for one in analysis.counted if one.ratio is not None]
    behind = [f" {numbers.ratio_text(one.ratio)}{'' if one.told else '~'}" for one in ratios if one.ratio]
    told = listed([naming.factor_text(one.variant) for one in ratios], VARIANTS_MOST, behind)
    return f"Counted work, instructions as a ratio: {told}" if told else ""


def _published(analysis: Analysis) -> str:
    """How figures of others lie beside those of this run, where the study has some."""
    if not analysis.published:
        return ""
    # Here, because few studies have them.
    from dbdyno.findings.published import inside_text

    return inside_text(analysis)


def _too_noisy(analysis: Analysis, to_go_on: Sequence[str]) -> str:
    """That more blocks would not do, and what may; empty where they would, or where nothing is open."""
    if not {answer.LESS_NOISE, answer.LESS_NOISE_IN_USE} & {*to_go_on}:
        return ""
    margin = numbers.share_text(analysis.method.margin)
    return f"! Too noisy to tell a margin of {margin}: measure longer (workload.duration)"


def _of_last(analysis: Analysis) -> str:
    if analysis.phases is None:
        return ""
    from dbdyno.findings.phases import of_last

    return of_last(analysis)


def _of_parts(analysis: Analysis) -> list[Table]:
    """A row a statement, where each was sent by itself, or a row a phase of a load that has several."""
    if analysis.phases is not None:
        # Here, because few runs have them.
        from dbdyno.findings.phases import LAYOUTS as LAYOUTS_OF_PHASES
        from dbdyno.findings.phases import phases_table

        found_phases = analysis.phases
        return [phases_table(analysis, found_phases, left_out) for left_out in LAYOUTS_OF_PHASES]
    found = analysis.statements_compared
    if found is None or not found.ratios:
        return []
    # Here, because few runs have them.
    from dbdyno.findings.statements import LAYOUTS, compared_table, ranked

    return [compared_table(analysis, ranked(found), brief=True, left_out=left_out) for left_out in LAYOUTS]


def _answers(analysis: Analysis) -> Iterator[Words]:
    """Of each variant with other answers, which; and that the others have none."""
    found = analysis.statements_compared
    if found is None:
        return
    from dbdyno.findings.statements import answers_line, schema_line

    for each in found.answers:
        wrong = each.why_not or any(not one.harmless for one in each.differences)
        yield (Mark("! ", Tone.BAD) if wrong else "", answers_line(each))
    for one in found.schemas:
        if one.differences:
            yield schema_line(one)


def _beside_load(analysis: Analysis) -> Iterator[Words]:
    """What became of each variant's load while something was done beside it."""
    if analysis.meanwhile is None:
        return
    from dbdyno.findings.meanwhile import clauses

    yield from (f"Meanwhile, {clause}" for clause in clauses(analysis.meanwhile, naming.called(analysis)))


def _of_factors(analysis: Analysis) -> list[Table]:
    """What each factor has of the gap, where the run was to explain one: its variants are a way to that."""
    if analysis.gap is None or analysis.gap.total is None or not _is_of_a_gap(analysis):
        return []
    told = [
        (gap.named(one), *gap.cells(one.share))
        for one in sorted(analysis.gap.shares, key=gap.distance, reverse=True)
        if one.share is not None
    ]
    whole = ("the whole gap", *gap.cells(analysis.gap.total))
    return [
        table(("factor", "ratio", "interval"), (whole, *told), {"interval": ColumnKind.PHRASE}, dense=True)
    ]


def _layouts(analysis: Analysis) -> Iterator[Table]:
    """The table with the costs that differ, then with fewer columns. The best variants come first, because a
    screen may hold no more."""
    shown = (analysis.baseline, *ranked_variants(analysis))
    name = naming.told_apart(analysis)
    called = {one.name: safe.clean(name[one.name]) for one in shown}
    differing = [
        cost
        for cost in COSTS
        if any(ratio is not None and numbers.differs(ratio) for ratio in (one.cost(cost) for one in shown))
    ]
    for costs in (differing, differing[:1], []):
        yield verdicts.layout(analysis, tuple(costs), called, brief=True)
    yield verdicts.layout(analysis, (), called, response=False, brief=True)


def _warnings(analysis: Analysis) -> Iterator[Words]:
    """What changes what one should believe, the gravest first, each in a line."""
    if analysis.run.of_logs:
        tool = safe.clean(analysis.run.of_logs.tool)
        yield f"! From logs of {tool}, not measured by Dyno: nothing proves them."
    if analysis.engines is not None:
        yield from _of_engines(analysis.engines)
    yield from _of_museum(analysis)
    if any(one.role is Role.PLACEBO for one in analysis.variants):
        yield "placebo: the baseline’s code at other addresses, which shows luck of layout"
    yield from _of_guards(analysis)
    yield from _of_losses(analysis)
    yield from _of_doubts(analysis)
    yield noise.neighbours_warning(analysis)
    run = analysis.run
    if run.in_use is not None:
        yield from _of_server(run.in_use)
    if not run.of_logs and (found := departures(analysis.study, run)):
        yield f"! It was registered, but was carried out otherwise: {departures_text(found)}"


def _of_server(found: InUse) -> Iterator[Words]:
    """Whether the user's server is as it was, and what else became of it."""
    if found.identity.replica:
        yield f"The server is {found.identity.replica}. It was only read."
    if back := [one.name for one in found.moved if one.after is not None and not one.left]:
        yield f"Put back on {found.url} and read again: {listed(back)}"
    if left := [one.name for one in found.moved if one.after is None or one.left]:
        yield f"! Not as it was on {found.url}: {listed(left)}"
    if found.others_moved:
        yield f"! While the run went on, others changed {listed([*found.others_moved])}."
    if found.seen is not None and found.seen.stopped:
        yield f"! The run was stopped, because {found.seen.stopped}."


def _of_engines(found: EnginesCompared) -> Iterator[Words]:
    if found.other_rows:
        others = listed([*dict.fromkeys(one.level for one in found.other_rows)])
        yield f"! {others} began with other rows than {found.ran[0].level}: do not compare their speeds."
    for beside in found.defaults:
        for one in [one for one in ranked_defaults(beside) if one.seen][:1]:
            change = f"{one.name} {default_text(one.before)} -> {default_text(one.after)}"
            yield f"! {beside.level} had more “{one.seen}”: see its default {change}"


def _of_museum(analysis: Analysis) -> Iterator[Words]:
    """What was broken or failed. What was blocked in all its trials stands in the answer."""
    told = (Verdict.BROKEN, Verdict.FAILED, Verdict.BLOCKED, Verdict.INERT)
    silent = analysis.search is None and answer.not_measured(analysis)
    for room in remarks.rooms(analysis):
        first = room[0]
        in_answer = silent if first.verdict is Verdict.BLOCKED else first.variant == analysis.baseline.name
        if first.verdict not in told or in_answer:
            continue
        names = listed([safe.clean(one.variant) for one in room], 1)
        cause = remarks.exhibit_text(first, analysis)
        yield (Mark(marked(first.verdict), first.verdict), f" {names}: {cause}")


def _of_guards(analysis: Analysis) -> Iterator[Words]:
    for one in analysis.candidates:
        for guard in one.guards:
            if guard.state in (Kept.UNDECIDED, Kept.UNREAD) and one.verdict not in verdicts.NOT_MEASURED:
                told = f"{safe.clean(one.name)}: guard {guard.state.value}, {remarks.guard_text(guard)}"
                yield (Mark("! ", Tone.DOUBT), told)


def _of_losses(analysis: Analysis) -> Iterator[Words]:
    """Which variants lost something when their power was cut."""
    for one in analysis.survivors:
        damaged, lost = one.loss
        if damaged or lost:
            rounds = numbers.plural(sum(act.rounds for act in one.power), "power cut")
            what = "damaged its data" if damaged else f"lost up to {numbers.plural(lost, 'commit')}"
            yield (Mark("! ", Tone.BAD), f"{safe.clean(one.variant)}: in {rounds} it {what}.")


def _of_doubts(analysis: Analysis) -> Iterator[Words]:
    for doubt, advice in remarks.WARNINGS.items():
        count = sum(doubt in trial.warnings for trial in analysis.trials)
        if count:
            of = f"{count} of {numbers.plural(len(analysis.trials), 'trial')}"
            yield (Mark("! ", Tone.DOUBT), f"{of}: {advice.brief}")


def _of_platforms(analysis: Analysis) -> tuple[Words, ...]:
    """What did not work, and why."""
    return tuple(
        f"{safe.clean(one.variant)}: {safe.clause('; '.join(one.faults) or one.cause)}."
        for one in analysis.survivors
        if one.faults or one.cause
    )
