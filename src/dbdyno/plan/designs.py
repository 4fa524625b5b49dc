"""From a Study to its trials: which variants, in which order, and how long they will take.

The design is a randomised complete block design: every block holds every variant once, in an order drawn from
the study's seed (R. A. Fisher, The Design of Experiments, 1935). The block is the unit of inference.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import product

from dbdyno.errors import UserError
from dbdyno.frozen import Level, level_text
from dbdyno.study import BASELINE, TRIALS_MAX, TWIN, Design, Study, fraction
from dbdyno.study.trials import Plan, Trial, Variant


def make_plan(study: Study) -> Plan:
    """The trials of a study: the same study and seed give the same plan, on every machine and Python.

    Raises UserError when there would be more than `TRIALS_MAX`.
    """
    size = study.size
    if size.trials > TRIALS_MAX:
        raise UserError(f"too many trials: {size.arithmetic}", f"at most {TRIALS_MAX:,} are allowed")
    variants = _variants(study)
    trials: list[Trial] = []
    for block in range(study.blocks):
        for position, variant in enumerate(_shuffled(variants, study.seed, block)):
            trials.append(Trial(index=len(trials), block=block, position=position, variant=variant))
    return Plan(variants=variants, trials=tuple(trials), seed=study.seed)


def expected_duration_s(plan: Plan, study: Study, overhead_s: float) -> float:
    """Seconds the plan takes: each trial's ramp, warm-up and measured part, and `overhead_s` for the rest."""
    workload = study.workload
    return len(plan.trials) * (workload.ramp_s + workload.warmup_s + workload.duration_s + overhead_s)


def _variants(study: Study) -> tuple[Variant, ...]:
    variants: dict[str, Variant] = {}
    for name, levels in _DESIGNS[study.design](study):
        variants.setdefault(name, Variant(name=name, levels=levels))
    if study.aa:
        variants[TWIN] = Variant(name=TWIN, levels=study.baseline, twin=True)
    return tuple(variants.values())


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
    """The setups of a fraction of the two-level factorial, the baseline first."""
    for signs in fraction.setups(len(study.factors)):
        levels = zip(study.factors, signs, strict=True)
        yield _named(study, {factor.name: factor.levels[sign > 0] for factor, sign in levels})


def _list(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    for variant in study.variants:
        yield variant.name, variant.levels


_DESIGNS: dict[Design, Callable[[Study], Iterator[tuple[str, dict[str, Level]]]]] = {
    Design.ONE_AT_A_TIME: _one_at_a_time,
    Design.LADDER: _ladder,
    Design.FACTORIAL: _factorial,
    Design.FRACTIONAL: _fractional,
    Design.LIST: _list,
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


def _shuffled(variants: tuple[Variant, ...], seed: int, block: int) -> list[Variant]:
    """One block's order: Fisher and Yates' shuffle in Durstenfeld's form.

    `random.shuffle` may change between versions of Python; the bits of its Mersenne Twister do not.
    """
    draw = random.Random(f"{seed} {block}")
    order = list(variants)
    for last in range(len(order) - 1, 0, -1):
        other = _below(draw, last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def _below(draw: random.Random, bound: int) -> int:
    """A whole number of 0 to `bound` - 1, each as likely: draws until the bits are in range."""
    bits = bound.bit_length()
    while (number := draw.getrandbits(bits)) >= bound:
        pass
    return number
