"""Which levels a search tries next.

The first candidates change a few factors at random. From then on each candidate is the best one so far with
some factors open, and the tree-structured Parzen estimator (TPE: J. Bergstra et al., NeurIPS 2011) picks
their levels. Few factors of a server matter, and many levels hurt: so a candidate that differs from the best
in all factors is mostly worse, whatever one of them does.

The estimator is made anew for each candidate, from all that was measured. So what it picks follows from the
records and the seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dbdyno.analyse.candidates import Candidate, ranked
from dbdyno.frozen import Level, level_text
from dbdyno.study import BASELINE, Factor, Study

if TYPE_CHECKING:
    from optuna import Study as Estimated
    from optuna import Trial as Picked
    from optuna.distributions import BaseDistribution

Levels = dict[str, Level]
Allowed = Callable[[Levels], bool]

AT_RANDOM = 6
"""So many candidates are drawn before the estimator has enough to go by."""
CHANGED_SHARE = 0.3
"""Of the factors, what a candidate that is drawn changes on average."""
OPEN = (1, 2, 4, 8)
"""How many factors of the best candidate are open at a time; each as often."""
SIMPLER_TRIES_MAX = 8
"""So many draws look for a simpler candidate; the best one may have a single change."""
TRIES_MAX = 200
"""A space in which so many draws find nothing that is allowed and untried is taken for exhausted."""


def propose(
    study: Study, candidates: Sequence[Candidate], beside: Sequence[Levels], seed: str, allowed: Allowed
) -> Levels | None:
    """Levels of every factor that are allowed, and that neither a candidate had nor those have which the same
    block holds `beside`. None where none could be found.

    The first of a block is the best one with fewer changes, where there is one that was not tried: few
    changes carry a gain, and each that is left at the end has to be taken back in turn.
    """
    draw = random.Random(seed)
    tried = [study.baseline, *beside, *(one.levels for one in candidates)]
    known = {_key(study, levels) for levels in tried}
    best = _best(study, candidates)
    estimated: Estimated | None = None
    for number in range(TRIES_MAX):
        if len(candidates) + len(beside) < AT_RANDOM:
            levels = _drawn(study, draw)
        elif not beside and number < SIMPLER_TRIES_MAX:
            levels = _simpler(study, best, draw)
        else:
            estimated = estimated or _estimated(study, candidates, draw)
            levels = _around(study, best, estimated, draw)
        if _key(study, levels) not in known and allowed(levels):
            return levels
    return None


def settled(study: Study, levels: Mapping[str, Level]) -> Levels:
    """The levels with the baseline's for each factor whose conditions do not hold."""
    found: Levels = {}
    for factor in study.factors:
        active = is_active(factor, found)
        found[factor.name] = levels[factor.name] if active else factor.baseline
    return found


def is_active(factor: Factor, levels: Mapping[str, Level]) -> bool:
    """Whether a factor varies beside these levels of those before it."""
    return all(condition.holds(levels) for condition in factor.only_if)


def _best(study: Study, candidates: Sequence[Candidate]) -> Levels:
    """The levels of the best candidate; the baseline's while none is better."""
    first = next(iter(ranked(candidates)), None)
    return dict(first.levels if first is not None and first.worth > 0.0 else study.baseline)


def _key(study: Study, levels: Mapping[str, Level]) -> tuple[str, ...]:
    return tuple(level_text(levels[factor.name]) for factor in study.factors)


def _drawn(study: Study, draw: random.Random) -> Levels:
    """Some factors at another level than the baseline's, each level as likely."""
    levels: Levels = {}
    for factor in study.factors:
        changed = draw.random() < CHANGED_SHARE
        place = 1 + int(draw.random() * (len(factor.levels) - 1))
        levels[factor.name] = factor.levels[place if changed else 0]
    return settled(study, levels)


def _simpler(study: Study, best: Levels, draw: random.Random) -> Levels:
    """The best levels, with about half of the changes taken back."""
    levels = {
        factor.name: factor.baseline if draw.random() < 0.5 else best[factor.name] for factor in study.factors
    }
    return settled(study, levels)


def _around(study: Study, best: Levels, estimated: Estimated, draw: random.Random) -> Levels:
    """The best levels, with those of some factors as the estimator picks them."""
    count = OPEN[int(draw.random() * len(OPEN))]
    names = sorted(best, key=lambda name: draw.random())[:count]
    picked, levels = estimated.ask(), Levels()
    for factor in study.factors:
        if factor.name in names and is_active(factor, levels):
            levels[factor.name] = _picked(factor, picked)
        else:
            levels[factor.name] = best[factor.name]
    return settled(study, levels)


def _picked(factor: Factor, picked: Picked) -> Level:
    if factor.rising:
        return factor.rising[picked.suggest_int(factor.name, 0, len(factor.rising) - 1)]
    return factor.levels[int(picked.suggest_categorical(factor.name, tuple(range(len(factor.levels)))))]


def _estimated(study: Study, candidates: Sequence[Candidate], draw: random.Random) -> Estimated:
    """The estimator, told of the baseline and of all candidates."""
    # Here, because it takes longer to import than most commands run.
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed = int(draw.random() * 2**32)
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=1, multivariate=False)
    estimated = optuna.create_study(direction="maximize", sampler=sampler)
    baseline = Candidate(name=BASELINE, levels=study.baseline, log_ratios=(0.0,))
    for one in (baseline, *(one for one in candidates if one.log_ratios or one.cause)):
        active = [factor for factor in study.factors if is_active(factor, one.levels)]
        told = optuna.trial.create_trial(
            params={factor.name: _place(factor, one.levels[factor.name]) for factor in active},
            distributions={factor.name: _distribution(factor) for factor in active},
            value=one.worth,
        )
        estimated.add_trial(told)
    return estimated


def _place(factor: Factor, level: Level) -> int:
    texts = [level_text(one) for one in factor.rising or factor.levels]
    return texts.index(level_text(level))


def _distribution(factor: Factor) -> BaseDistribution:
    """Steps of a range lie in their order, so that near ones are thought alike; others do not."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if factor.rising:
        return IntDistribution(0, len(factor.rising) - 1)
    return CategoricalDistribution(tuple(range(len(factor.levels))))
