"""Which levels a search tries next, and which candidates of a block have been seen enough of.

The first candidates change a few factors at random. From then on each block has three ways of looking, all of
them around the best candidate. The first new candidate has the levels that are expected to be best by all
that was measured (`model.py`). In the next two a few factors are open, and have the levels of which most may
be hoped. In the last one a few factors are open as well, and the tree-structured Parzen estimator (TPE: J.
Bergstra et al., NeurIPS 2011) picks their levels: it takes nothing for a sum, so it finds what the model
cannot expect. Few factors of a server matter, and many levels hurt: so a candidate that differs from the best
in all factors is mostly worse, whatever one of them does.

Model and estimator are made anew from all that was measured. So what they pick follows from the records and
the seed alone.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from dbdyno.analyse.elimination import Candidate
from dbdyno.frozen import Level, level_text
from dbdyno.study import BASELINE, Factor, Study

if TYPE_CHECKING:
    from optuna import Study as Estimated
    from optuna import Trial as Picked
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from dbdyno.plan.search.model import Model, Vector

Levels = dict[str, Level]
Allowed = Callable[[Levels], bool]
Score = Callable[[Sequence[Mapping[str, Level]]], "Vector"]
"""Rates each of some levels; more is better."""

AT_RANDOM = 6
"""So many candidates are drawn before there is enough to go by."""
CHANGED_SHARE = 0.3
"""Of the factors, what a candidate that is drawn changes on average."""
BY_MODEL = 3
"""So many new candidates of a block have their levels from the model, and the rest from the estimator."""
OPEN_TO_MODEL, OPEN_TO_ESTIMATOR = (1, 2, 4), (1, 2, 4, 8)
"""How many factors of the best candidate are open at a time; each as often."""
PASSES_MAX = 3
"""So often a climb goes through the factors. It mostly ends before, where no factor has a better level."""
MODEL_TRIES_MAX = 12
"""Where so many climbs lead to what was tried, the model has nothing to hope for near the best."""
TRIES_MAX = 200
"""A space in which so many draws find nothing that is allowed and untried is taken for exhausted."""


def first_levels(study: Study, seed: str, allowed: Allowed) -> Levels | None:
    """Levels other than the baseline's with which a search may begin; None where none could be found."""
    draw, known = random.Random(seed), _key(study, study.baseline)
    drawn = (_drawn(study, draw) for _ in range(TRIES_MAX))
    return next((levels for levels in drawn if _key(study, levels) != known and allowed(levels)), None)


def propose(
    study: Study,
    candidates: Sequence[Candidate],
    model: Model,
    beside: Sequence[Levels],
    seed: str,
    allowed: Allowed,
) -> Levels | None:
    """Levels of every factor that are allowed, and that neither a candidate had nor those have which the same
    block holds `beside`. None where none could be found.

    The model is of the candidates, and takes those beside for as good as it expects.
    """
    draw = random.Random(seed)
    tried = [study.baseline, *beside, *(one.levels for one in candidates)]
    known = {_key(study, levels) for levels in tried}
    best = _leader(study, candidates, model)
    estimated: Estimated | None = None
    for number in range(TRIES_MAX):
        if len(candidates) + len(beside) < AT_RANDOM:
            levels = _drawn(study, draw)
        elif not beside and number == 0:
            levels = _climbed(study, best, list(best), model.expected, allowed)
        elif len(beside) < BY_MODEL and number < MODEL_TRIES_MAX:
            levels = _hoped_for(study, best, model, draw, allowed)
        else:
            estimated = estimated or _estimated(study, candidates, draw)
            levels = _around(study, best, estimated, draw)
        if _key(study, levels) not in known and allowed(levels):
            return levels
    return None


def _leader(study: Study, candidates: Sequence[Candidate], model: Model) -> Levels:
    """The levels of the candidate that is expected to be best; the baseline's while none is better."""
    first = next(iter(model.ranked(candidates)), None)
    return dict(first.levels if first is not None and first.worth > 0.0 else study.baseline)


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


def _hoped_for(study: Study, best: Levels, model: Model, draw: random.Random, allowed: Allowed) -> Levels:
    """The best levels, with those of some factors of which most may be hoped."""
    [least] = model.expected([best])

    def hopeful(levels: Sequence[Mapping[str, Level]]) -> Vector:
        return model.hopeful(levels, least)

    return _climbed(study, best, _opened(study, OPEN_TO_MODEL, draw), hopeful, allowed)


def _climbed(study: Study, start: Levels, names: Sequence[str], score: Score, allowed: Allowed) -> Levels:
    """Where it leads to give one of these factors after the other its best level."""
    levels = start
    for _ in range(PASSES_MAX):
        before = levels
        for factor in study.factors:
            if factor.name not in names or not is_active(factor, levels):
                continue
            others = [settled(study, {**levels, factor.name: one}) for one in factor.levels]
            own, *scores = score([levels, *others])
            rising = sorted(range(len(others)), key=lambda place: scores[place], reverse=True)
            ahead = (others[place] for place in rising if scores[place] > own)
            levels = next(filter(allowed, ahead), levels)
        if levels == before:
            break
    return levels


def _around(study: Study, best: Levels, estimated: Estimated, draw: random.Random) -> Levels:
    """The best levels, with those of some factors as the estimator picks them."""
    names = _opened(study, OPEN_TO_ESTIMATOR, draw)
    picked, levels = estimated.ask(), Levels()
    for factor in study.factors:
        if factor.name in names and is_active(factor, levels):
            levels[factor.name] = _picked(factor, picked)
        else:
            levels[factor.name] = best[factor.name]
    return settled(study, levels)


def _opened(study: Study, counts: Sequence[int], draw: random.Random) -> list[str]:
    """Factors that are open this time, as many as one of the counts says."""
    count = counts[int(draw.random() * len(counts))]
    return sorted((factor.name for factor in study.factors), key=lambda name: draw.random())[:count]


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


SLICES_LEAST = 4
"""Fewer pairs of slices tell nothing by ranks."""
BEHIND = 0.9
"""What is closer to the best than this is worth all its slices."""
RATES = ("throughput", "queries_per_s", "new_orders_per_minute")
"""The responses that are high where clients are told of much."""


def can_drop(study: Study) -> bool:
    """Whether what clients were told of shows how good a candidate is. It does not where a guard counts as
    well: a fast candidate that breaks it would have all others dropped."""
    guarded = any(guard.bound is not None for guard in study.goal.guards)
    return study.goal.response in RATES and not guarded


def hopeless(told: Mapping[str, Sequence[int]]) -> frozenset[str]:
    """The candidates that are behind the best of their block, in pairs of slices of the same round
    (Wilcoxon's signed ranks). `told` counts the transactions of each by the end of its warm-up and of each
    slice. The baseline always goes on, because all are compared with it."""
    slices = {name: [after - before for before, after in pairwise(counts)] for name, counts in told.items()}
    shared = min(map(len, slices.values()), default=0)
    if shared < SLICES_LEAST:
        return frozenset()
    slices = {name: each[:shared] for name, each in slices.items()}
    best = max(slices, key=lambda name: sum(slices[name]))
    behind = [name for name, each in slices.items() if sum(each) < BEHIND * sum(slices[best])]
    return _worse(slices[best], {name: slices[name] for name in behind if name != BASELINE})


def _worse(best: Sequence[int], others: Mapping[str, Sequence[int]]) -> frozenset[str]:
    """Those that the pruner tells from the best."""
    if not others:
        return frozenset()
    # Here, because it takes longer to import than most commands run.
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    estimated = optuna.create_study(direction="maximize")
    estimated.add_trial(_trial(best))
    with warnings.catch_warnings():
        # Optuna may still change how it is made.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        pruner = optuna.pruners.WilcoxonPruner(n_startup_steps=SLICES_LEAST)
    return frozenset(name for name, each in others.items() if pruner.prune(estimated, _trial(each)))


def _trial(slices: Sequence[int]) -> FrozenTrial:
    import optuna

    return optuna.trial.create_trial(
        value=float(sum(slices)), intermediate_values=dict(enumerate(map(float, slices)))
    )
