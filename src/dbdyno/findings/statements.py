"""How long a transaction waits for its statements: a row per kind, a column per variant.

How long a transaction waits for its statements, kind by kind, where the driver timed them.

The time in a kind of statement is summed over a trial and divided by the transactions that ended well in its
measured part, so that what retries and roll-backs cost is in it. Kinds are matched by their text, so that
those of two variants stand beside each other.

Under the workload `statements` each is sent by itself. Then each statement of each variant has a ratio to
the baseline, over the blocks, in one family of comparisons, and its answers stand beside that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import HAS_STATEMENTS, Block
from dbdyno.analyse.estimate import Trials, log_ratios
from dbdyno.analyse.found import (
    AnswerDifference,
    IndexCost,
    RatioPosition,
    StatementRatio,
    StatementsCompared,
    StatementTime,
    StatementTimes,
    VariantAnswers,
)
from dbdyno.analyse.guards import differing_answers, first_answers, first_schema
from dbdyno.analyse.intervals import position_of
from dbdyno.analyse.model import Analysis, Role, Verdict
from dbdyno.analyse.quantiles import blocks_least, confidence_each
from dbdyno.analyse.schema import SchemaDifference, VariantSchema, compared_schemas
from dbdyno.analyse.split import estimated_mean
from dbdyno.driver.tally import Tally
from dbdyno.findings.split import with_half
from dbdyno.records.load_words import BUILD_S, SIZE_BYTES, WARNINGS
from dbdyno.records.metrics import bytes_text, number_text
from dbdyno.records.record import Outcome, Record
from dbdyno.report.document import (
    ColumnKind,
    Detail,
    Element,
    Fold,
    From,
    Lines,
    Mark,
    Notes,
    Section,
    Table,
    TableCell,
    Text,
    Words,
    table,
)
from dbdyno.report.words import numbers, safe
from dbdyno.report.words.verdicts import marked
from dbdyno.study import Study


def statement_times(records: Sequence[Record], confidence: float) -> tuple[StatementTimes, ...]:
    """The times of each variant with measured trials that timed statements, in the order of the records."""
    by_variant: dict[str, list[Tally]] = {}
    for record in records:
        tally = record.tally if record.outcome is Outcome.MEASURED else None
        if tally is not None and tally.by_statement and tally.work > 0:
            by_variant.setdefault(record.variant, []).append(tally)
    return tuple(
        StatementTimes(variant=variant, trials=len(tallies), kinds=_kinds(tallies, confidence))
        for variant, tallies in by_variant.items()
    )


def _kinds(tallies: Sequence[Tally], confidence: float) -> tuple[StatementTime, ...]:
    texts = dict.fromkeys(text for tally in tallies for text in tally.by_statement)
    kinds = [_kind(text, tallies, confidence) for text in texts]
    return tuple(sorted(kinds, key=lambda kind: -kind.us_per_op.mean))


def _kind(text: str, tallies: Sequence[Tally], confidence: float) -> StatementTime:
    """One kind over all trials of a variant. A trial that never met it spent no time in it."""
    met = [(tally.by_statement[text], tally.work) for tally in tallies if text in tally.by_statement]
    times_us = [found.latency_us.sum / operations for found, operations in met]
    unmet = [0.0] * (len(tallies) - len(met))
    return StatementTime(
        text=text,
        per_op=sum(found.latency_us.count for found, _ in met) / sum(tally.work for tally in tallies),
        us_per_op=estimated_mean("us_per_op", [*times_us, *unmet], confidence),
        errors=sum(found.errors for found, _ in met),
    )


TITLE = "Time by statement"
NOTE = (
    "How long a client waited for the statements of each kind, in us per transaction that ended well. What "
    "retries and roll-backs cost is in it. Means over trials; ±: half the interval, each by itself. Per op: "
    "how many a transaction has, the mean of all variants. In a statement ? stands for a value, and N for "
    "the number at the end of a name."
)
KINDS_MOST = 15
"""Kinds with a row of their own; one row sums up the others."""
VARIANTS_MOST = 4
"""Variants beside each other on a terminal; the page has room for more."""


def find(basis: Basis) -> tuple[StatementTimes, ...]:
    """Of each variant whose statements were timed."""
    return statement_times(basis.whole(HAS_STATEMENTS), basis.confidence)


def sections(found: Sequence[StatementTimes]) -> Iterator[Section]:
    """The table, or where to find it when it has too many columns for a terminal."""
    if not found:
        return
    body = (kinds(found), Notes((NOTE,)))
    elsewhere = f"The page and Markdown have it for {numbers.plural(len(found), 'variant')}."
    below = body if len(found) <= VARIANTS_MOST else (Lines((elsewhere,)),)
    yield Section(TITLE, (From(Detail.TEXT, body, below),), detail=Detail.DETAILS)


def kinds(found: Sequence[StatementTimes]) -> Table:
    """A row per kind, with how many a transaction has and a column for each variant: those with the most time
    in all variants first, then one for all further kinds."""
    by_text = _by_text(found)
    shown = sorted(by_text, key=lambda text: -sum(kind.us_per_op.mean for kind in by_text[text].values()))
    lines = [_row(text, by_text[text], found) for text in shown[:KINDS_MOST]]
    rest = shown[KINDS_MOST:]
    if rest:
        sums = [
            sum(by_text[text][one.variant].us_per_op.mean for text in rest if one.variant in by_text[text])
            for one in found
        ]
        lines.append([numbers.plural(len(rest), "further kind"), "", *map(number_text, sums)])
    return table(["statement", "per op", *(one.variant for one in found)], lines, dense=True)


def _by_text(found: Sequence[StatementTimes]) -> dict[str, dict[str, StatementTime]]:
    """Each kind by the names of the variants that met it."""
    by_text: dict[str, dict[str, StatementTime]] = {}
    for one in found:
        for kind in one.kinds:
            by_text.setdefault(kind.text, {})[one.variant] = kind
    return by_text


def _row(text: str, kinds: dict[str, StatementTime], found: Sequence[StatementTimes]) -> list[str]:
    per_op = sum(kind.per_op for kind in kinds.values()) / len(found)
    times = (kinds.get(one.variant) for one in found)
    return [
        text,
        number_text(per_op),
        *(numbers.DASH if kind is None else with_half(kind.us_per_op) for kind in times),
    ]


def find_compared(basis: Basis) -> StatementsCompared | None:
    """The time of each statement under each variant against the baseline's, and what they were answered."""
    compared = [each for each in basis.compared if each.role in (Role.BASELINE, Role.CANDIDATE)]
    times = [_times(each) for each in compared]
    pairs = [
        (each, name, logs, own)
        for each, own in zip(compared[1:], times[1:], strict=True)
        for name in times[0]
        if (logs := log_ratios(own.get(name, {}), times[0][name]))
    ]
    confidence, calls = confidence_each(basis.confidence, len(pairs)), calls_of(basis.study)
    ratios = [
        found
        for each, name, logs, own in pairs
        if (found := _ratio(basis, each.variant.name, name, logs, own[name], times[0][name], confidence))
    ]
    every = dict.fromkeys(name for each in times for name in each)
    lacking = {
        each.variant.name: tuple(name for name in every if name not in own)
        for each, own in zip(compared, times, strict=True)
    }
    return StatementsCompared(
        comparisons=len(pairs),
        confidence=basis.confidence,
        ratios=tuple(one.but(calls=calls.get(one.statement)) for one in ratios),
        unanswered={name: missing for name, missing in lacking.items() if missing},
        answers=tuple(_answers(basis, compared)),
        schemas=tuple(_schemas(compared)),
        indexes=tuple(_index_costs(compared)),
    )


COLD = ", cold"
"""Behind the name of a statement that was sent to a server which was just started."""


def _times(trials: Trials) -> dict[str, dict[Block, float]]:
    """The mean time of each statement in ms by block; with copies, their geometric mean in the block."""
    logs: dict[str, dict[Block, list[float]]] = {}
    for one in trials.each:
        for record in one.rows.columns.records(one.rows.ended(Outcome.MEASURED).tolist()):
            kinds = record.tally.by_transaction if record.tally else {}
            warm = {
                name: kind.latency_us.mean / 1000.0 for name, kind in kinds.items() if kind.latency_us.mean
            }
            cold = {f"{name}{COLD}": time_ms for name, time_ms in record.cold_ms.items()}
            for name, time_ms in {**warm, **cold}.items():
                of_block = logs.setdefault(name, {}).setdefault((record.host, record.block), [])
                of_block.append(math.log(time_ms))
    return {
        name: {block: math.exp(fmean(values)) for block, values in blocks.items()}
        for name, blocks in logs.items()
    }


def _ratio(
    basis: Basis,
    variant: str,
    statement: str,
    logs: Mapping[Block, float],
    ours: Mapping[Block, float],
    theirs: Mapping[Block, float],
    confidence: float,
) -> StatementRatio | None:
    ratio = basis.estimator.ratio("mean_ms", logs, confidence)
    if ratio is None:
        return None
    least = blocks_least(confidence, basis.estimator.method.interval)
    return StatementRatio(
        statement=statement,
        variant=variant,
        baseline_ms=_middle(theirs, logs),
        ms=_middle(ours, logs),
        blocks=ratio.pairs,
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
        told=position_of(ratio, basis.method.but(blocks_least=least)),
    )


def _middle(values: Mapping[Block, float], blocks: Mapping[Block, float]) -> float:
    return math.exp(fmean(math.log(values[block]) for block in blocks))


def calls_of(study: Study) -> dict[str, int]:
    """How often a log had each statement, as the weights of a workload's file say; empty without one, and
    where all weigh as much, because a file that a person wrote gives none."""
    named = str(study.workload.options.get("file") or "").removeprefix("./")
    files = study.files or () if named.endswith(".toml") else ()
    file = next((one for one in files if one.path == named), None)
    return file.weights if file is not None and len(set(file.weights.values())) > 1 else {}


def _answers(basis: Basis, compared: Sequence[Trials]) -> Iterator[VariantAnswers]:
    before = first_answers(compared[0])
    for each in compared[1:]:
        after, name = first_answers(each), each.variant.name
        if before is None or after is None:
            continue
        why_not = before.why_not or after.why_not
        yield VariantAnswers(
            variant=name,
            compared=0 if why_not else len(after.statements),
            differences=differing_answers(before, after),
            why_not=why_not,
        )


def _schemas(compared: Sequence[Trials]) -> Iterator[VariantSchema]:
    before = first_schema(compared[0])
    for each in compared[1:]:
        after = first_schema(each)
        if before is not None and after is not None:
            own = any(factor.startswith("schema.") for factor in each.variant.levels)
            yield compared_schemas(each.variant.name, before, after, own_indexes=own)


def _index_costs(compared: Sequence[Trials]) -> Iterator[IndexCost]:
    for each in compared:
        resets = [record.reset for record in each.rows.columns.records(each.rows.places.tolist())]
        for factor in dict.fromkeys(name.removesuffix(BUILD_S) for one in resets for name in one):
            built = [float(one[f"{factor}{BUILD_S}"]) for one in resets if f"{factor}{BUILD_S}" in one]
            sizes = [float(one[f"{factor}{SIZE_BYTES}"]) for one in resets if f"{factor}{SIZE_BYTES}" in one]
            if built:
                yield IndexCost(
                    variant=each.variant.name,
                    factor=factor,
                    build_s=median(built),
                    size_bytes=median(sizes) if sizes else None,
                )


COMPARED_TITLE, ANSWERS_TITLE, INDEXES_TITLE = "Statements", "Answers", "Indexes"
SCHEMA_TITLE = "Schema as the servers tell it"
TOLD = {
    RatioPosition.ABOVE: Verdict.SLOWER,
    RatioPosition.BELOW: Verdict.FASTER,
    RatioPosition.LEVEL: Verdict.NO_EFFECT,
    RatioPosition.OPEN: Verdict.INCONCLUSIVE,
}
TIMES, INTERVAL = "times", "interval"
LAYOUTS: tuple[tuple[str, ...], ...] = ((), (TIMES,), (TIMES, INTERVAL))
"""What a table for one screen leaves out, where there is no room for more."""
STATEMENTS_MOST, PLAN_MOST, NAME_MOST = 30, 60, 20
"""Rows of a table on a terminal, and letters in one of a change of plan and, on a screen, of a name."""


def compared_sections(analysis: Analysis) -> Iterator[Section]:
    """A row a statement, then the answers that differ, and what indexes cost."""
    found = analysis.statements_compared
    assert found is not None  # it is told where it was found
    rows = ranked(found)
    whole, notes = compared_table(analysis, rows), Notes((*_notes(found),))
    cut = (compared_table(analysis, rows[:STATEMENTS_MOST]), Notes((_more(rows),)))
    yield Section(
        COMPARED_TITLE, (From(Detail.TEXT, (whole,), cut if rows[STATEMENTS_MOST:] else (whole,)), notes)
    )
    if found.answers:
        yield Section(ANSWERS_TITLE, (*_told_answers(found),))
    if any(one.differences or one.why_not for one in found.schemas):
        yield Section(SCHEMA_TITLE, (*_told_schemas(found.schemas),))
    if found.indexes:
        heads = ("variant", "index", "built in, s", "data grew by")
        lines = [
            (one.variant, one.factor, number_text(one.build_s), _size(one.size_bytes))
            for one in found.indexes
        ]
        note = "What its writes cost stands under Costs: written bytes per transaction, of the writes here."
        kinds = {"index": ColumnKind.CODE}
        yield Section(INDEXES_TITLE, (table(heads, lines, kinds), Notes((note,))))


def _size(size_bytes: float | None) -> str:
    return numbers.DASH if size_bytes is None else bytes_text(size_bytes)


def _more(rows: Sequence[StatementRatio]) -> str:
    return f"and {numbers.plural(len(rows) - STATEMENTS_MOST, 'row')} more: the page and Markdown have them"


def ranked(found: StatementsCompared) -> list[StatementRatio]:
    """By what the calls of a log cost or save, where that is known; else by how far the ratio is from 1."""
    return sorted(found.ratios, key=lambda one: (-abs(one.change_s or 0.0), -abs(math.log(one.ratio))))


def compared_table(
    analysis: Analysis, rows: Sequence[StatementRatio], brief: bool = False, left_out: Sequence[str] = ()
) -> Table:
    """A row for each statement of each variant. A `brief` one is for one screen, and cuts names;
    some columns may be `left_out` of it."""
    found = analysis.statements_compared
    assert found is not None  # its rows are shown
    several = len({one.variant for one in found.ratios}) > 1
    times, interval = TIMES not in left_out, INTERVAL not in left_out
    counted = times and any(one.calls is not None for one in rows)
    plans = _plan_changes(analysis)
    heads = [
        "statement",
        *(["variant"] if several else []),
        *(["baseline, ms", "variant, ms"] if times else []),
        "time ratio",
        *([INTERVAL] if interval else []),
        "verdict",
        *(["calls", "all calls, s"] if counted else []),
        *(["plan"] if plans and not brief else []),
    ]
    lines: list[list[Words | TableCell]] = []
    for one in rows:
        verdict = TOLD[one.told]
        plan = plans.get((one.variant, one.statement.removesuffix(COLD)), "")
        change = one.change_s
        lines.append(
            [
                _cut(one.statement) if brief else safe.clean(one.statement),
                *([_cut(one.variant) if brief else safe.clean(one.variant)] if several else []),
                *([number_text(one.baseline_ms), number_text(one.ms)] if times else []),
                numbers.ratio_text(one.ratio),
                *([_interval(one)] if interval else []),
                Mark(f"{marked(verdict)}{', new plan' if brief and plan else ''}", verdict),
                *(
                    [
                        numbers.DASH if one.calls is None else f"{one.calls:,}",
                        numbers.DASH if change is None else f"{change:+,.3g}",
                    ]
                    if counted
                    else []
                ),
                *([plan] if plans and not brief else []),
            ]
        )
    kinds = {
        "variant": ColumnKind.NAME,
        INTERVAL: ColumnKind.PHRASE,
        "verdict": ColumnKind.PHRASE,
        "plan": ColumnKind.CODE,
    }
    return table(heads, lines, kinds, dense=True)


def _interval(one: StatementRatio) -> str:
    if one.low is None or one.high is None:
        return "one block"
    return numbers.between_text(one.low, one.high)


def _cut(name: str) -> str:
    name = safe.clean(name)
    return name if len(name) <= NAME_MOST else f"{name[: NAME_MOST - 1]}…"


def _plan_changes(analysis: Analysis) -> dict[tuple[str, str], str]:
    """What changed in the plan of a statement, by variant and statement."""
    if analysis.plans is None:
        return {}
    return {
        (each.variant, one.statement): _short(one.change)
        for each in analysis.plans.variants
        for one in each.changes
    }


def _short(text: str) -> str:
    text = safe.clean(text)
    return text if len(text) <= PLAN_MOST else f"{text[: PLAN_MOST - 1]}…"


def _notes(found: StatementsCompared) -> Iterator[str]:
    yield (
        "Mean time of a statement in a trial, sent alone on one session; ratio: time of the variant / time of"
        f" the baseline. The intervals of all {numbers.plural(found.comparisons, 'comparison')} hold together"
        f" with {numbers.share_text(found.confidence)}."
    )
    for variant, missing in found.unanswered.items():
        names = ", ".join(map(safe.clean, missing))
        yield f"{safe.clean(variant)}: no execution of {names} ended well."


def _told_answers(found: StatementsCompared) -> Iterator[Element]:
    lines = [*map(answers_line, found.answers)]
    yield Lines(tuple(lines), bullets=len(lines) > 1)
    for each in found.answers:
        for one in each.differences:
            title = f"{safe.clean(each.variant)}: {safe.clean(one.statement)} differs in {one.what}"
            harmless = f" (harmless: {one.harmless})" if one.harmless else ""
            told, rows = f"{title}{harmless}", _rows(one)
            yield From(Detail.TEXT, (Fold(told, (Text(rows),)),), (Text(f"{told}\n{rows}"),))


def _rows(one: AnswerDifference) -> str:
    none = "no such warning" if one.what == WARNINGS else "no such row"
    before = [f"  baseline: {safe.clean(row)}" for row in one.before or (none,)]
    after = [f"  variant:  {safe.clean(row)}" for row in one.after or (none,)]
    return "\n".join([*before, *after])


def answers_line(each: VariantAnswers) -> str:
    """What the answers of a variant come to, in a sentence."""
    name = safe.clean(each.variant)
    if each.why_not:
        return f"{name}: the answers were not compared, because {safe.clause(safe.clean(each.why_not))}."
    wrong = [one for one in each.differences if not one.harmless]
    others = len(each.differences) - len(wrong)
    beside = f", and {numbers.plural(others, 'difference')} without harm" if others else ""
    if not wrong:
        return f"{name}: {numbers.plural(each.compared, 'statement')} answered as under the baseline{beside}."
    named = ", ".join(f"{safe.clean(one.statement)} ({one.what})" for one in wrong[:5])
    rest = f" and {len(wrong) - 5} more" if wrong[5:] else ""
    return f"{name}: {len(wrong)} of {each.compared} answers differ: {named}{rest}{beside}."


THINGS_NAMED, DIFFERENCES_MOST = 3, 40
"""Things of a schema that are named where they differ alike, and rows of that on a terminal."""
SCHEMA_NOTE = (
    "Each server was asked for its own schema, after the load. A property on which one of them says no word"
    " is not compared. Notes say what is known of a change, and decide nothing."
)


def _told_schemas(schemas: Sequence[VariantSchema]) -> Iterator[Element]:
    """A row for all things that differ alike, then what is known of their values."""
    yield Lines(tuple(map(schema_line, schemas)), bullets=len(schemas) > 1)
    for each in schemas:
        if not each.differences:
            continue
        rows = [_alike(key, some) for key, some in _groups(each.differences).items()]
        heads = ("what", "baseline", safe.clean(each.variant), "where")
        kinds = dict.fromkeys(heads[1:3], ColumnKind.CODE)
        whole, cut = (table(heads, some, kinds, dense=True) for some in (rows, rows[:DIFFERENCES_MOST]))
        yield From(Detail.TEXT, (whole,), (cut,))
    known: dict[str, dict[str, None]] = {}
    for one in (one for each in schemas for one in each.differences if one.known):
        known.setdefault(_known(one), {})[one.what] = None
    yield Notes((SCHEMA_NOTE, *(f"{', '.join(whats)}: {told}" for told, whats in known.items())))


def _groups(found: Sequence[SchemaDifference]) -> dict[tuple[str, str, str], list[SchemaDifference]]:
    groups: dict[tuple[str, str, str], list[SchemaDifference]] = {}
    for one in found:
        groups.setdefault((one.what, one.before, one.after), []).append(one)
    return groups


def _alike(key: tuple[str, str, str], some: Sequence[SchemaDifference]) -> list[Words | TableCell]:
    things = [safe.clean(one.thing) for one in some]
    more = len(things) - THINGS_NAMED
    where = f"{', '.join(things[:THINGS_NAMED])}{f' and {more} more' if more > 0 else ''}"
    return [*(_short(one) if one else "nothing" for one in key), where]


def _known(one: SchemaDifference) -> str:
    since = f" (since {safe.clean(one.since)})" if one.since else ""
    return f"{safe.clean(one.known)}{since}. Source: {safe.clean(one.source)}"


def schema_line(each: VariantSchema) -> str:
    """What the schema of a variant comes to, in a sentence."""
    name, why = safe.clean(each.variant), each.why_not and safe.clause(safe.clean(each.why_not))
    if why and not each.compared:
        return f"{name}: the schemas were not compared, because {why}."
    beside = f" Not all of it was compared, because {why}." if why else ""
    if not each.differences:
        return f"{name}: its server tells {numbers.plural(each.compared, 'thing')} as the baseline's.{beside}"
    things = Counter(one.what for one in each.differences)
    told = ", ".join(f"{what} ({count})" for what, count in things.most_common())
    return f"{name}: its server tells the same schema otherwise: {told}.{beside}"
