"""The variants of a study: which combinations of levels its design compares."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product

from dbdyno.frozen import Level, level_text
from dbdyno.study import fraction
from dbdyno.study.builds import changed_levels, is_placebo
from dbdyno.study.nouns import BASELINE, TWIN, Design, Study
from dbdyno.study.restarts import control_of, restarted_variant, turns
from dbdyno.study.trials import Variant


def variants_of(study: Study) -> tuple[Variant, ...]:
    """Every variant once, the baseline first and its copies last. No order of trials is drawn."""
    variants: dict[str, Variant] = {}
    for name, levels in _DESIGNS[study.design](study):
        placebo = is_placebo(changed_levels(levels, study.baseline))
        variants.setdefault(name, Variant(name=name, levels=levels, placebo=placebo))
    if study.aa:
        variants[TWIN] = Variant(name=TWIN, levels=study.baseline, twin=True)
    for number in range(2, study.baselines + 1):
        name = f"{BASELINE}-{number}"
        variants[name] = Variant(name=name, levels=study.baseline, twin=True, shares=True)
    return tuple(variants.values())


def extremes_of(study: Study) -> tuple[Variant, ...]:
    """Variants that show what a study may do to the host: in a search, the baseline and each factor at each
    other level of its list, or at the ends of its range; else all variants."""
    if study.search is None:
        return variants_of(study)
    shown = [_named(study, study.baseline)]
    for factor in study.factors:
        ends = (factor.rising[0], factor.rising[-1]) if factor.rising else factor.levels[1:]
        shown += [_named(study, {**study.baseline, factor.name: level}) for level in ends]
    return tuple(Variant(name=name, levels=levels) for name, levels in dict(shown).items())


def counted_variants(study: Study) -> tuple[Variant, ...]:
    """Those whose work is counted once beside the timed blocks: all but copies of the baseline."""
    if not study.goal.counted:
        return ()
    return tuple(variant for variant in variants_of(study) if not variant.twin)


def restarted_variants(study: Study) -> tuple[Variant, ...]:
    """Those whose engines are restarted beside the timed blocks: all but copies of the baseline."""
    if study.restarts is None:
        return ()
    return tuple(restarted_variant(study, variant) for variant in variants_of(study) if not variant.twin)


def restart_trial_count(study: Study) -> int:
    """How many trials of restarts a run has, that of the control included."""
    return turns(study) * len(restarted_variants(study)) + (control_of(study) is not None)


def trials_in_all(study: Study, left_out: int = 0) -> int:
    """How many trials a run of the study has, those beside the blocks included, where blocks after the first
    leave so many variants out, which have no work to count."""
    return trial_count(study, left_out) + beside_count(study, left_out)


def beside_count(study: Study, left_out: int = 0) -> int:
    """How many trials stand beside the blocks, where so many variants have no work to count."""
    return max(0, len(counted_variants(study)) - left_out) + restart_trial_count(study)


def _one_at_a_time(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """The baseline, then each other level of each factor, all else as in the baseline."""
    yield _named(study, study.baseline)
    for factor in study.factors:
        for level in factor.levels[1:]:
            yield _named(study, {**study.baseline, factor.name: level})


def _ladder(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """Each rung moves one factor on to its next level and keeps what was reached, in the order written."""
    levels = study.baseline
    yield _named(study, levels)
    for factor in study.factors:
        for level in factor.levels[1:]:
            levels = {**levels, factor.name: level}
            yield _named(study, levels)


def _factorial(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """Every combination of levels; the baseline, of first levels, comes first."""
    names = [factor.name for factor in study.factors]
    for levels in product(*(factor.levels for factor in study.factors)):
        yield _named(study, dict(zip(names, levels, strict=True)))


def _fractional(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """The variants of a fraction of the two-level factorial, the baseline first."""
    for signs in fraction.points(len(study.factors)):
        levels = zip(study.factors, signs, strict=True)
        yield _named(study, {factor.name: factor.levels[sign > 0] for factor, sign in levels})


def _list(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    for variant in study.variants:
        yield variant.name, variant.levels


def _search(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """The baseline alone: what a search compares with it follows from its records."""
    yield _named(study, study.baseline)


_DESIGNS: dict[Design, Callable[[Study], Iterator[tuple[str, dict[str, Level]]]]] = {
    Design.ONE_AT_A_TIME: _one_at_a_time,
    Design.LADDER: _ladder,
    Design.FACTORIAL: _factorial,
    Design.FRACTIONAL: _fractional,
    Design.LIST: _list,
    Design.SEARCH: _search,
}


def _named(study: Study, levels: dict[str, Level]) -> tuple[str, dict[str, Level]]:
    """A variant's levels under their name: those that are not the baseline's, in the order of the factors."""
    baseline = {name: level_text(level) for name, level in study.baseline.items()}  # 1 == True, "1" != "true"
    texts = {name: level_text(level) for name, level in levels.items()}
    changed = [f"{name}={_quoted(text)}" for name, text in texts.items() if text != baseline[name]]
    return ", ".join(changed) or BASELINE, levels


def _quoted(text: str) -> str:
    """In quotes where two variants could otherwise have one name."""
    return json.dumps(text, ensure_ascii=False) if set(text) & set(',"') else text


def trial_count(study: Study, left_out: int = 0) -> int:
    """How many trials the study's blocks hold, where blocks after the first leave so many variants out."""
    variants = len(variants_of(study))
    return variants + (study.blocks - 1) * (variants - left_out) if study.blocks else 0
