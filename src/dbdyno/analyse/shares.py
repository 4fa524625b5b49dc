"""Each change's own part in what a variant gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.analyse.analysis import explain_gap
from dbdyno.analyse.family import FACTORS_MOST
from dbdyno.analyse.model import Analysis, Gap, Ratio, VariantResult
from dbdyno.frozen import Level
from dbdyno.records.record import Record
from dbdyno.study import Design
from dbdyno.study.designs import variants_of


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
