"""A searcher asks `dyno evaluate`: `python searchers.py optuna|smac|mlos STUDY [ASKED [OPTION]...]`.

The study has the design `search`. Each line is an object of JSON, and `dyno schema evaluate` has the schema,
whose `version` rises when an older searcher could not follow:

- Dyno's first line (`opening`) states seed, budget, what is left of it, the factors with their levels, and
  the noise floor: how far two servers of the baseline lie apart in one block.
- You write `{"levels": {"config.cache_size": "4M"}}`. Other factors stay at the baseline. `blocks` asks for
  several at once, and `id` comes back in the answer.
- Dyno measures them in a block beside the baseline and says (`answer`): response, `ratio` with its interval,
  `worth` (the log of the ratio, more is better), guards, `cost_s`, `left_s`; or `why` it did not measure. The
  interval of fewer than six blocks rests on the noise floor, so it takes levels to be as noisy as the
  baseline. Levels that are asked again get further blocks, and the answer is about all of them.
- A wrong line is answered (`refused`) with `why` and `hint`, and ends nothing.
- When your input ends, Dyno measures your best three again in fresh blocks, and says which hold (`end`). With
  `--own` Dyno's own search has as much time as yours took, and the best of both stand in the same blocks.

`dyno evaluate --resume RUN` answers at once what it measured before a crash (`kept`), if the same is asked.
`dyno evaluate STUDY --ask` turns it round: it prints a `candidate`, reads a line `{"levels": {...}, "ratio":
1.07}` or `"why"` there is no ratio, and prints the next. `--tell FILE` has earlier results or answers.

Here a searcher sees a factor as the places of its levels, and a cost of which less is better: the worth,
turned round. ASKED is how often it asks at most. `pip install optuna smac "mlos_core[flaml]"` gets all three.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

LOSS_OF_FAILED = 1.0
"""Levels without a speed that counts cost as much as a server of 37 % of the baseline's speed."""


class Evaluation:
    """`dyno evaluate` of a study: `opening` is its first line, and `ended` its last one."""

    def __init__(self, study: str, *options: str) -> None:
        self._dyno = subprocess.Popen(
            ["dyno", "evaluate", study, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.opening = self._heard()
        self.factors = self.opening["factors"]

    def cost(self, places: dict[str, int]) -> float | None:
        """The cost of the levels at these places; None once Dyno measures nothing more."""
        levels = {one["name"]: one["levels"][int(places[one["name"]])] for one in self.factors}
        assert self._dyno.stdin is not None
        self._dyno.stdin.write(json.dumps({"levels": levels}) + "\n")
        self._dyno.stdin.flush()
        answer = self._heard()
        if answer["line"] == "refused":
            raise SystemExit(f"{answer['why']}; {answer['hint']}")
        if answer["outcome"] == "not measured" and answer["left_s"] < self.opening["left_s"] / 100:
            return None
        return LOSS_OF_FAILED if answer["worth"] is None else -answer["worth"]

    def end(self) -> dict[str, Any]:
        """Ends the input. Dyno then measures the best again, which takes a while."""
        assert self._dyno.stdin is not None
        self._dyno.stdin.close()
        return self._heard()

    def _heard(self) -> dict[str, Any]:
        assert self._dyno.stdout is not None
        line = self._dyno.stdout.readline()
        if not line:
            raise SystemExit(self._dyno.wait() or 1)
        heard: dict[str, Any] = json.loads(line)
        return heard


def optuna(evaluation: Evaluation, asked: int) -> None:
    """Optuna's tree-structured Parzen estimator."""
    import optuna as library

    study = library.create_study(sampler=library.samplers.TPESampler(seed=evaluation.opening["seed"]))
    for _ in range(asked):
        trial = study.ask()
        places = {
            one["name"]: trial.suggest_int(one["name"], 0, len(one["levels"]) - 1)
            if one["ordered"]
            else trial.suggest_categorical(one["name"], list(range(len(one["levels"]))))
            for one in evaluation.factors
        }
        if (cost := evaluation.cost(places)) is None:
            return
        study.tell(trial, cost)


def _space(evaluation: Evaluation) -> Any:
    """The factors as ConfigSpace has them, for SMAC and MLOS."""
    from ConfigSpace import Categorical, ConfigurationSpace, Integer

    space = ConfigurationSpace(seed=evaluation.opening["seed"])
    for one in evaluation.factors:
        count = len(one["levels"])
        places = Integer(one["name"], (0, count - 1)) if one["ordered"] and count > 1 else None
        space.add(places or Categorical(one["name"], list(range(count))))
    return space


def smac(evaluation: Evaluation, asked: int) -> None:
    """SMAC's random forest, asked and told."""
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    scenario = Scenario(
        _space(evaluation), n_trials=asked, deterministic=True, seed=evaluation.opening["seed"]
    )
    searcher = HyperparameterOptimizationFacade(
        scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=40
    )
    for _ in range(asked):
        trial = searcher.ask()
        if (cost := evaluation.cost(dict(trial.config))) is None:
            return
        searcher.tell(trial, TrialValue(cost=cost))


def mlos(evaluation: Evaluation, asked: int) -> None:
    """MLOS, with FLAML below it."""
    import pandas
    from mlos_core.optimizers import OptimizerFactory, OptimizerType

    searcher = OptimizerFactory.create(
        parameter_space=_space(evaluation),
        optimization_targets=["cost"],
        optimizer_type=OptimizerType.FLAML,
    )
    for _ in range(asked):
        suggestion = searcher.suggest()
        if (cost := evaluation.cost(dict(suggestion.config))) is None:
            return
        searcher.register(suggestion.complete(pandas.Series({"cost": cost})))


SEARCHERS: dict[str, Callable[[Evaluation, int], None]] = {"optuna": optuna, "smac": smac, "mlos": mlos}


def main(name: str, study: str, asked: str = "1000", *options: str) -> None:
    evaluation = Evaluation(study, *options)
    SEARCHERS[name](evaluation, int(asked))
    ended = evaluation.end()
    print(ended["why"])
    for one in ended["judged"]:
        print(f"{one['side']} {one['name']}: told {one['told']:.3f}, again {one['again']:.3f}")
    print(ended["report"])


if __name__ == "__main__":
    main(*sys.argv[1:])
