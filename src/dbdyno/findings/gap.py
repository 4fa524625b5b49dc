"""The gap explained: the product as a table, and each part as a bar from 1 on a log axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.analyse.analysis import AnalysisInput, Basis, basis_of
from dbdyno.analyse.estimate import Estimator, Trials
from dbdyno.analyse.found import DefaultChanged
from dbdyno.analyse.model import Analysis, Gap, LeftOut, Ratio, Share, VariantResult
from dbdyno.analyse.quantiles import FACTORS_MOST, explains_gap
from dbdyno.findings.factors import GivenUp, cells_of, given_up_at
from dbdyno.findings.gap_shares import explain, explain_chain, explain_fraction
from dbdyno.frozen import Level, level_shown
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.report.document import Document, Element, Figure, Lines, Mark, Notes, Section, Tone, table
from dbdyno.report.words import naming, numbers, verdicts
from dbdyno.study import Design, Study, designs
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Variant

RESIDUAL = "not explained"


def find(basis: Basis) -> Gap | None:
    """From the baseline to the variant of every factor's last level, where the study measured all between, or
    a fraction made for it."""
    study = basis.study
    if not explains_gap(study):
        return None
    fast = {factor.name: factor.levels[-1] for factor in study.factors}
    found = _gap_between(study, basis.compared, study.baseline, fast, basis.estimator, in_head=True)
    if found.total is None and not found.left_out:
        return None
    return gap_with_losses(found, study, basis.run.given_up)


def gap_with_losses(gap: Gap, study: Study, given_up: GivenUp | None) -> Gap:
    """A gap whose shares say what the fast level of their factor gives up."""
    if not given_up:
        return gap
    shares = tuple(one.but(gives_up=given_up_at(study, given_up, one.factor, one.fast)) for one in gap.shares)
    return gap.but(shares=shares)


def explain_gap(study: Study, run: Run, records: Sequence[Record], slow: Variant, fast: Variant) -> Gap:
    """The gap between two variants of a factorial study, shared out among the factors in which they
    differ.
    """
    basis = basis_of(study, run, AnalysisInput.of(records), whole=False)
    return _gap_between(study, basis.compared, slow.levels, fast.levels, basis.estimator)


def explain_steps(study: Study, run: Run, records: Sequence[Record]) -> Gap:
    """The gap between the first and the last variant of a list, as a product of its steps: `steps_of` says
    whether it has some."""
    basis = basis_of(study, run, AnalysisInput.of(records), whole=False)
    cells = cells_of(study, basis.compared)
    return explain_chain(study, records, variants_of(study), cells, basis.estimator)


def _gap_between(
    study: Study,
    trials: Sequence[Trials],
    slow: Mapping[str, Level],
    fast: Mapping[str, Level],
    estimator: Estimator,
    in_head: bool = False,
) -> Gap:
    """The gap, without the factors whose fast level was blocked or failed wherever it was tried. A fraction
    needs them all."""
    left_out = tuple(
        LeftOut(factor=factor.name, level=fast[factor.name], cause=cause)
        for factor in study.factors
        if fast[factor.name] != slow[factor.name]
        and (cause := _why_never_measured(factor.name, fast[factor.name], trials))
    )
    cells = cells_of(study, trials)
    if study.design is Design.FRACTIONAL:
        found = explain_fraction(study.factors, cells, estimator, in_head)
    else:
        end = {**fast, **{one.factor: slow[one.factor] for one in left_out}}
        ends = [tuple(levels[factor.name] for factor in study.factors) for levels in (slow, end)]
        found = explain(study.factors, cells, ends[0], ends[1], estimator, in_head)
    return found.but(left_out=left_out)


def _why_never_measured(factor: str, level: Level, trials: Sequence[Trials]) -> str:
    """Why no trial at a level has a speed, in the words of the first of them; empty where one has, or where
    none was tried.
    """
    tried = [each for each in trials if each.variant.levels.get(factor) == level]
    if any(len(each.rows.ended(Outcome.MEASURED)) for each in tried):
        return ""
    records = (
        record for each in tried for record in each.rows.columns.records(each.rows.places[:1].tolist())
    )
    return next((record.cause or record.outcome.value for record in records), "")


def document(gap: Gap, heading: str) -> Document:
    """The gap between two variants, as a report of its own, whose answer is the whole in a sentence."""
    whole = Section(TITLE, (*_body(gap),))
    return Document(heading, (title(gap),), (whole,), eyebrow="the gap explained", titled=False)


TITLE = "The gap explained"


def sections(gap: Gap) -> Iterator[Section]:
    """The sentence, the product, and a row per factor."""
    yield Section(TITLE, (*_body(gap),), aside=title(gap))


def _body(gap: Gap) -> Iterator[Element]:
    if gap.total is not None:
        yield figure(gap)
    missing = (", ".join(_settings(gap, setting)) for setting in gap.missing)
    yield Lines((_product(gap),) if gap.total else tuple(f"not measured: {one}" for one in missing))
    yield Lines(tuple(Mark(line, Tone.DOUBT) for line in _left_out(gap)))
    if gap.total is None:
        return
    yield table(FRACTION_HEADS if _in_one_order(gap) else FULL_HEADS, _rows(gap))
    if gap.confounded:
        yield table(CONFOUNDED_HEADS, _confounded(gap))
    yield Notes((_note(gap), *_unset(gap)))


def figure(gap: Gap) -> Figure:
    """A bar from 1 for each factor's share and for the total, with its interval."""
    parts = [(naming.factor_text(share.factor), share.share) for share in gap.shares]
    bars = [
        bar(step, part, kind(part, gap), told(part))
        for step, part in [*parts, (RESIDUAL, gap.residual)]
        if part is not None
    ]
    assert gap.total is not None  # whoever draws has asked
    bars.append(bar("total", gap.total, "total", told(gap.total)))
    title = f"{gap.metric}: fast / slow (log scale)"
    return Figure("dbdyno.report.figures.charts:factors_of_gap", (bars, title), key="gap")


def bar(step: str, ratio: Ratio, kind: str, told: str) -> dict[str, Any]:
    """A row of that figure."""
    low, high = (ratio.ratio if end is None else end for end in (ratio.low, ratio.high))
    return {"step": step, "ratio": ratio.ratio, "low": low, "high": high, "kind": kind, "told": told}


def _in_one_order(gap: Gap) -> bool:
    """Whether each part is known by its share alone."""
    return gap.variants_measured is not None or gap.in_order


def _settings(gap: Gap, setting: Sequence[Level]) -> Iterator[str]:
    return (f"{name}={level_shown(level)}" for name, level in zip(gap.factors, setting, strict=True))


def title(gap: Gap) -> str:
    """The whole in a sentence: how far apart, and which factor has the largest part."""
    if gap.total is None:
        return "The gap cannot be split into parts, because some variants between the two were not measured."
    whole = f"{_with_interval(gap.total)} (fast / slow, {gap.metric})"
    if not numbers.differs(gap.total):
        return f"The data cannot say whether there is a gap: {whole} may be 1."
    shares = sorted(gap.shares, key=distance, reverse=True)
    largest = f"{named(shares[0])}, ×{_ratio(shares[0].share)}"
    if len(shares) > 1 and not _told_apart(shares[0], shares[1]):
        return f"The gap is {whole}. The data cannot say which part is the largest; it may be {largest}."
    return f"The gap is {whole}. Its largest part is {largest}."


def distance(share: Share) -> float:
    """How far a share is from 1, whichever way."""
    return abs(_log(share.share))


def cells(ratio: Ratio) -> tuple[str, str]:
    """A ratio and its interval, as two cells."""
    return numbers.ratio_text(ratio.ratio), numbers.interval_text(ratio)


def _told_apart(one: Share, other: Share) -> bool:
    """Whether one share is larger than another, on the log scale, by intervals that do not overlap: they hold
    together, so this errs on the safe side.
    """
    least, most = _ends(one), _ends(other)
    return least is not None and most is not None and least[0] > most[1]


def _ends(share: Share) -> tuple[float, float] | None:
    """The least and the largest distance from 1 that a share's interval allows."""
    found = share.share
    if found is None or found.low is None or found.high is None:
        return None
    ends = abs(math.log(found.low)), abs(math.log(found.high))
    return (min(ends) if numbers.differs(found) else 0.0), max(ends)


def named(share: Share) -> str:
    """A share's factor, with what its fast level gives up."""
    return verdicts.losing(naming.factor_text(share.factor), share.gives_up)


def _product(gap: Gap) -> str:
    """The gap as a product that multiplies out."""
    parts = [f"{_ratio(share.share)} {naming.factor_text(share.factor)}" for share in gap.shares]
    if gap.residual is not None:
        parts.append(f"{_ratio(gap.residual)} {RESIDUAL}")
    return f"{_ratio(gap.total)} = {' × '.join(parts)}"


def _left_out(gap: Gap) -> list[str]:
    """A sentence per factor that is not in the product."""
    return [
        f"Left out: {naming.factor_text(one.factor)}, because {level_shown(one.level)} was never measured:"
        f" {one.cause}."
        for one in gap.left_out
    ]


def _note(gap: Gap) -> str:
    """How the columns were made."""
    over = f"All ratios fast / slow, geometric means over {numbers.plural(gap.blocks, 'block')}. "
    if gap.variants_measured is not None:
        return over + _note_of_fraction(gap)
    if gap.in_order:
        return (
            f"{over}Share: each variant over the one before it, so the shares multiply to the total exactly."
            " They hold for this order: in another one the same step may gain more, or less. None of the"
            " intervals of total and shares is wrong, with a confidence of"
            f" {numbers.share_text(gap.confidence)}."
        )
    return (
        f"{over}Share: averaged over every order of the changes (Shapley), so the shares multiply to the "
        f"total exactly, and nothing is left over. None of the intervals of total and shares is wrong, "
        f"with a confidence of {numbers.share_text(gap.confidence)}; each of all others holds by itself. "
        "Alone: on the slow variant. Last: when all others have been changed. Step: in the study's order. "
        "Interactions: the total over the product of the gains alone; 1 where the factors multiply."
    )


def _unset(gap: Gap) -> Iterator[str]:
    """Which changed defaults are part of the version's step, because no variant sets them."""
    groups = (
        ("that both versions have and that no variant sets", [_has_both(one) for one in gap.unset]),
        ("of the new version alone", [one.before is None for one in gap.unset]),
        ("of the old version alone", [one.after is None for one in gap.unset]),
    )
    for which, held in groups:
        names = [one.name for one, of_group in zip(gap.unset, held, strict=True) if of_group]
        if names:
            told = f"Counted with the version: {numbers.plural(len(names), 'changed default')} {which}"
            yield f"{told}: {', '.join(names)}."


def _has_both(one: DefaultChanged) -> bool:
    return one.before is not None and one.after is not None


def _note_of_fraction(gap: Gap) -> str:
    besides = max(len(share.holds_besides) for share in gap.shares)
    hidden = (
        f"Not seen in it: up to {numbers.plural(besides, 'such interaction')} per factor, which its share "
        "holds (named in the JSON). "
    )
    return (
        f"{gap.variants_measured} of {2 ** len(gap.factors):,} variants were measured. "
        "Share: the factor's effect, averaged over the settings of the others, clear of interactions of two "
        "factors; where no three interact it is Shapley's share. None of the intervals of total and shares "
        f"is wrong, with a confidence of {numbers.share_text(gap.confidence)}; nor is any of the table of "
        "interactions; what is not explained "
        "stands by itself. "
        "Not explained: the total, measured, over the product of the "
        "shares: interactions of three or more factors, and noise. "
        f"{hidden if besides else ''}Interactions of two factors do not change the total: what one "
        "gains before the other, it loses after it. Those in one line cannot be told apart."
    )


FULL_HEADS = ("factor", "share", "interval", "alone", "last", "step")
FRACTION_HEADS = ("factor", "share", "interval")
CONFOUNDED_HEADS = ("interactions (1: they multiply)", "ratio", "interval")


def _rows(gap: Gap) -> list[tuple[str, ...]]:
    """Factor, share, its interval, and where all variants were measured alone, last, step: as text, with the
    residual or the interactions, and the total, at the end."""
    lines = [_row(gap, index, share) for index, share in enumerate(gap.shares)]
    if gap.interactions is not None:
        lines.append(("interactions", "", _interval(gap.interactions), _ratio(gap.interactions), "", ""))
    if gap.residual is not None:
        lines.append((RESIDUAL, _ratio(gap.residual), _interval(gap.residual)))
    total = ("total", _ratio(gap.total), _interval(gap.total))
    lines.append(total if _in_one_order(gap) else (*total, _ratio(gap.total), "", _ratio(gap.total)))
    return lines


def _row(gap: Gap, index: int, share: Share) -> tuple[str, ...]:
    levels = f"{level_shown(share.slow)} -> {level_shown(share.fast)}"
    name = verdicts.losing(f"{naming.factor_text(share.factor)}: {levels}", share.gives_up)
    shown = (_ratio(share.share), _interval(share.share))
    if gap.variants_measured is not None:
        return (f"{designs.LETTERS[index]}  {name}", *shown)
    if gap.in_order:
        return (name, *shown)
    return (name, *shown, _ratio(share.alone), _ratio(share.last), _ratio(share.step))


def _confounded(gap: Gap) -> list[tuple[str, str, str]]:
    """The interactions of two factors by the letters of the table above, the largest first."""
    ranked = sorted(gap.confounded, key=lambda one: -abs(_log(one.effect)))
    return [(one.text, _ratio(one.effect), _interval(one.effect)) for one in ranked]


def kind(share: Ratio, gap: Gap) -> str:
    """Whether a share helps to close the gap, hurts, or cannot be told from 1."""
    if share.low is None or share.high is None or share.low <= 1.0 <= share.high:
        return "undecided"
    assert gap.total is not None
    return "helps" if (share.ratio > 1.0) == (gap.total.ratio > 1.0) else "hurts"


def told(share: Ratio | None) -> str:
    """A ratio and its interval, as the figure writes them."""
    return f"×{_ratio(share)} ({_interval(share)})"


def _ratio(ratio: Ratio | None) -> str:
    return numbers.ratio_text(ratio.ratio) if ratio else numbers.DASH


def _interval(ratio: Ratio | None) -> str:
    return numbers.interval_text(ratio) if ratio else numbers.DASH


def _with_interval(ratio: Ratio) -> str:
    return f"{_ratio(ratio)} [{_interval(ratio)}]"


def _log(ratio: Ratio | None) -> float:
    return math.log(ratio.ratio) if ratio else 0.0


def shares(analysis: Analysis, records: Sequence[Record], variant: VariantResult) -> dict[str, Ratio]:
    """The ratio that each changed level answers for, by factor: the variant's own effect where it changes one
    factor, what taking it back cost a search's winner, else what the gap to the baseline gives each. Empty
    where the run's design does not tell."""
    if analysis.search is not None and variant.name == analysis.search.winner:
        return {one.factor: one.share for one in analysis.search.changes if one.share is not None}
    if len(variant.changed) == 1:
        return {factor: variant.effect for factor in variant.changed if variant.effect is not None}
    gap = _gap(analysis, records, variant)
    return {one.factor: one.share for one in gap.shares if one.share is not None} if gap else {}


def _gap(analysis: Analysis, records: Sequence[Record], variant: VariantResult) -> Gap | None:
    """The gap between the baseline and the variant, where the run measured what shares it out."""
    study = analysis.study
    if study.design is Design.FACTORIAL and len(variant.changed) <= FACTORS_MOST:
        by_name = {each.name: each for each in variants_of(study)}
        return explain_gap(
            study, analysis.run, records, by_name[analysis.baseline.name], by_name[variant.name]
        )
    gap = analysis.gap
    return gap if gap is not None and _reaches(gap, variant.levels) else None


def _reaches(gap: Gap, levels: Mapping[str, Level]) -> bool:
    """Whether the fast end of a gap is the variant of these levels."""
    return not gap.left_out and gap.fast == tuple(levels[factor] for factor in gap.factors)
