"""Which candidates of a block have been seen enough of, after few of their slices."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from dbdyno.study import BASELINE, Study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

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
