"""Engines as a factor: which ran, whether their rows were the same, and what differs between defaults."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.engines import engines_compared, ranked_defaults
from dbdyno.analyse.found import DefaultsBeside, EnginesCompared, RatioPosition, RowsDiffer
from dbdyno.analyse.model import Analysis, VariantResult, Verdict
from dbdyno.frozen import ENGINE_FACTOR, level_shown, level_text, listed
from dbdyno.records import metrics
from dbdyno.report.document import (
    ColumnKind,
    Detail,
    Element,
    Fold,
    From,
    Lines,
    Notes,
    Section,
    Words,
    table,
)
from dbdyno.report.words.naming import metric_title
from dbdyno.report.words.numbers import effect_text, plural
from dbdyno.report.words.remarks import cause

TITLE = "Engines"
HEADS = ("engine", "version", "from", "proof")
COMPILER = "compiled by"
KINDS = {
    "version": ColumnKind.PHRASE,
    "from": ColumnKind.TEXT,
    "proof": ColumnKind.TEXT,
    COMPILER: ColumnKind.PHRASE,
}
ABSENT = "–"
LIST_COMMAS = 4
"""From so many commas on a value is a long list."""
ROWS_MOST = 12
"""On a terminal; the page and Markdown have all."""
PRODUCTS = (
    "These are different products. Each ran with its own defaults but for the levels of this study, and"
    " settings of one name need not mean the same. The figures hold for this load and these levels: they do"
    " not say which product is better."
)
DEFAULTS = (
    "The values are the servers' own word on what a setting has where nobody sets it. Those come first on"
    " which something rests that this version had more of. This lists changes; it does not prove a cause."
)
SEEN_HEAD = "it had more of"
COMPILERS = (
    "Their compilers differ as well, so a ratio is of the compiler and its options as much as of the version."
)


def find(basis: Basis) -> EnginesCompared | None:
    """What ran at each level of the engine."""
    return engines_compared(basis.study, list(basis.columns.records(basis.shown.tolist())))


def sections(found: EnginesCompared) -> Iterator[Section]:
    """Who ran with its proof, the rows, and a table of the defaults for each other version."""
    yield Section(TITLE, (*_body(found),))
    for beside in found.defaults:
        yield Section(f"What differs between the defaults: {beside.level}", (*_defaults(found, beside),))


ANSWERS = {
    Verdict.FASTER: "faster than",
    Verdict.SLOWER: "slower than",
    Verdict.NO_EFFECT: "as fast as",
    Verdict.INCONCLUSIVE: "not told from",
}
"""What a version is beside the first one."""


def answer_of_versions(analysis: Analysis) -> tuple[Words, ...]:
    """A sentence for each version of one product: its speed, and what else an upgrade changes. None where
    more is varied than the version."""
    found = analysis.engines
    if found is None or found.products > 1 or len(analysis.study.factors) > 1:
        return ()
    errors = _errors(analysis)
    return tuple(
        _answer(analysis, found, one, errors)
        for one in analysis.candidates
        if one.verdict is not None and ENGINE_FACTOR in one.changed
    )


def _brief(*compilers: str) -> list[str]:
    """Compilers without who packed them, where that does not make two of them one."""
    brief = [re.sub(r" ?\([^)]*\)", "", one) for one in compilers]
    return brief if len({*brief}) == len(brief) else [*compilers]


def _errors(analysis: Analysis) -> Counter[str]:
    """How many errors each variant had in its measured parts."""
    counted = Counter[str]()
    for trial in analysis.trials:
        if (tally := trial.record.tally) is not None:
            counted[trial.record.variant] += sum(tally.errors.values())
    return counted


def _answer(
    analysis: Analysis, found: EnginesCompared, one: VariantResult, errors: Mapping[str, int]
) -> Words:
    level, first = level_text(one.levels[ENGINE_FACTOR]), found.ran[0].level
    if one.verdict not in ANSWERS:
        why = cause(one)
        return f"{level} is {one.verdict}{f': {why}' if why else ''}."
    speed = f"{metric_title(analysis)} {effect_text(one.effect)} times"
    parts = [f"{level} is {ANSWERS[one.verdict]} {first}: {speed}"]
    if level in found.compiled_apart:
        ours, theirs = _brief(found.compiled_apart[level], found.ran[0].compiler)
        parts.append(f"compiled by {ours} and not by {theirs}")
    if (statements := analysis.statements_compared) is not None:
        told = Counter(each.told for each in statements.ratios if each.variant == one.name)
        slower, faster = told[RatioPosition.ABOVE], told[RatioPosition.BELOW]
        parts.append(f"{slower} slower and {faster} faster of {plural(told.total(), 'statement')}")
    if analysis.plans is not None:
        changed = len(analysis.plans.of(one.name))
        parts.append(f"{plural(changed, 'statement')} with another plan")
    before = errors[analysis.baseline.name]
    parts.append(f"{plural(errors[one.name], 'error')}{f' ({before:,} before)' if before else ''}")
    parts += [
        f"{plural(len(beside.changed), 'changed default')} of {beside.compared:,}"
        for beside in found.defaults
        if beside.level == level
    ]
    return f"{parts[0]}; {', '.join(parts[1:])}."


def _body(found: EnginesCompared) -> Iterator[Element]:
    told = (*HEADS, COMPILER) if found.compiled_apart else HEADS
    rows = [
        (one.level, one.version or ABSENT, one.origin, one.proof, one.compiler or ABSENT)[: len(told)]
        for one in found.ran
    ]
    brief = table(HEADS[:2], [row[:2] for row in rows], KINDS, dense=True)
    yield From(Detail.DETAILS, (table(told, rows, KINDS, dense=True),), (brief,))
    if any(one.upgraded_by for one in found.ran):
        yield from _upgrades(found)
    yield Lines((*_rows(found),))
    if found.products > 1:
        yield Notes((PRODUCTS,))
    elif found.compiled_apart:
        yield Notes((COMPILERS,))


def _upgrades(found: EnginesCompared) -> Iterator[Element]:
    baseline, *others = found.ran
    kinds = {"by": ColumnKind.PHRASE, "took": ColumnKind.PHRASE}
    rows = [(one.level, one.upgraded_by, _seconds(one.upgrade_s)) for one in others if one.upgraded_by]
    yield table(("upgraded", "by", "took"), rows, kinds, dense=True)
    made = (
        f"{baseline.level} has the first data, and each other version took over those of the one before it."
    )
    took = "The seconds of all steps count, from one clean stop to the next. Copying is left out."
    several = " There is one number for each copy of the data." if len(others[0].upgrade_s) > 1 else ""
    yield Notes((f"{made} {took}{several}",))


def _seconds(upgrade_s: Sequence[float]) -> str:
    return " and ".join(f"{seconds:.2f} s" for seconds in upgrade_s)


def _rows(found: EnginesCompared) -> Iterator[str]:
    baseline = found.ran[0].level
    if found.same_rows:
        levels = listed(found.same_rows)
        yield f"Checksums over all tables show that {levels} began with the same rows as {baseline}."
    for other in found.other_rows:
        yield _difference(baseline, other)
    told = {*found.same_rows, *(other.level for other in found.other_rows)}
    if open_levels := [one.level for one in found.ran[1:] if one.level not in told]:
        yield f"Nothing shows whether {listed(open_levels)} began with the same rows as {baseline}."


def _difference(baseline: str, other: RowsDiffer) -> str:
    before, after = other.before.split("; "), other.after.split("; ")
    own = [f"{one} ({other.level})" for one in after if one not in before]
    theirs = [f"{one} ({baseline})" for one in before if one not in after]
    return (
        f"{other.level} did not begin with the same rows as {baseline}, so their speeds cannot be compared."
        f" By checksum these tables differ in copy {other.image + 1}: {'; '.join([*theirs, *own])}."
    )


def _defaults(found: EnginesCompared, beside: DefaultsBeside) -> Iterator[Element]:
    baseline, known = found.ran[0].level, plural(beside.compared, "setting")
    if not beside.changed:
        yield Notes((f"The defaults of all {known} are those of {baseline}.",))
        return
    seen = any(one.seen for one in beside.changed)
    heads = ("setting", baseline, beside.level, *((SEEN_HEAD,) if seen else ()))
    rows = [
        (one.name, *_shown_beside(one.before, one.after), *((_seen(one.seen),) if seen else ()))
        for one in ranked_defaults(beside)
    ]
    kinds = {baseline: ColumnKind.CODE, beside.level: ColumnKind.CODE, SEEN_HEAD: ColumnKind.TEXT}
    first, rest = (table(heads, some, kinds, dense=True) for some in (rows[:ROWS_MOST], rows[ROWS_MOST:]))
    if rest.rows:
        folded = Fold(f"{plural(len(rest.rows), 'more setting')}", (rest,))
        more = Notes((f"and {len(rest.rows)} more: the page and Markdown have them",))
        yield From(Detail.TEXT, (first, folded), (first, more))
    else:
        yield first
    yield Notes((f"{len(rows)} of {known} differ. {ABSENT}: it has no such setting. {DEFAULTS}",))


def _seen(what: str) -> str:
    """What the level showed more of: an error by its code, a metric by its title."""
    return metrics.METRICS[what].title if what in metrics.METRICS else what


def _shown_beside(before: str | None, after: str | None) -> tuple[str, str]:
    """Both values; of long lists the members alone that the other one lacks."""
    if before is None or after is None or min(before.count(","), after.count(",")) < LIST_COMMAS:
        return default_text(before), default_text(after)
    own, other = before.split(","), after.split(",")
    return _members(own, other), _members(other, own)


def _members(own: Sequence[str], other: Sequence[str]) -> str:
    return ",".join(["…", *(member for member in own if member not in other)])


def default_text(value: str | None) -> str:
    """A default as people read it."""
    return ABSENT if value is None else level_shown(value)
