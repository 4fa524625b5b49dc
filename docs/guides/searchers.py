"""A searcher asks `dyno evaluate`: `python searchers.py NAME STUDY [ASKED [OPTION]...]`. NAME is optuna,
smac, mlos or mlos_bench.

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
turned round. ASKED is how often it asks at most. `pip install optuna smac "mlos_core[flaml]" mlos_bench pytz`
gets all four.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
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
        # What a block takes at most, at first by the blocks of the noise floor.
        self._block_s = self.opening["spent_s"] / (self.opening["floor"] or {"blocks": 1})["blocks"]

    def cost(self, places: dict[str, int]) -> float | None:
        """The cost of the levels at these places; None once Dyno measures nothing more."""
        answer = self.answer(places)
        if answer is None:
            return None
        return LOSS_OF_FAILED if answer["worth"] is None else -answer["worth"]

    def answer(self, places: dict[str, Any]) -> dict[str, Any] | None:
        """What Dyno says of the levels at these places; None once it measures nothing more."""
        levels = {one["name"]: one["levels"][int(places[one["name"]])] for one in self.factors}
        assert self._dyno.stdin is not None
        self._dyno.stdin.write(json.dumps({"levels": levels}) + "\n")
        self._dyno.stdin.flush()
        answer = self._heard()
        if answer["line"] == "refused":
            raise SystemExit(f"{answer['why']}; {answer['hint']}")
        if answer["outcome"] == "not measured" and answer["left_s"] < self._block_s:
            return None
        self._block_s = max(self._block_s, answer["cost_s"])
        return answer

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
        optimizer_kwargs={"seed": evaluation.opening["seed"]},
    )
    for _ in range(asked):
        suggestion = searcher.suggest()
        if (cost := evaluation.cost(dict(suggestion.config))) is None:
            return
        searcher.register(suggestion.complete(pandas.Series({"cost": cost})))


def mlos_bench(evaluation: Evaluation, asked: int) -> None:
    """MLOS's own bench, whose local environment asks and hears through two pipes. Levels without a speed are
    failed trials there."""
    from mlos_bench.storage import from_config

    with TemporaryDirectory() as name:
        folder, left = Path(name), asked
        for own, told in _bench(evaluation, folder).items():
            (folder / own).write_text(json.dumps(told))
        for pipe in PIPES:
            os.mkfifo(folder / pipe)
        # It notes the remote and the commit that its configuration is of, and does not begin without.
        whose = ("-c", "user.name=searchers", "-c", "user.email=searchers@localhost")
        commit = (*whose, "commit", "--quiet", "--allow-empty", "--message=dyno")
        for git in (("init", "--quiet"), ("remote", "add", "origin", name), commit):
            subprocess.run(["git", *git], cwd=folder, check=True)
        # Version 0.6.2 ends where it loads a failed trial by itself. Its storage holds that with the others,
        # so it goes on when it begins anew.
        while left > 0 and (answered := _benched(evaluation, folder, left)):
            left -= answered
        trials = from_config(config=str(folder / "storage.json")).experiments["dyno"].results_df
        failed = (trials["status"] != "SUCCEEDED").sum()
        best = trials.loc[trials["result.cost"].idxmin()]
        levels = {
            one["name"]: one["levels"][int(best[f"config.{one['name']}"])] for one in evaluation.factors
        }
        print(f"mlos_bench: {len(trials)} trials, {failed} failed; its best: {json.dumps(levels)}")


PIPES = ("asks", "answers")


def _bench(evaluation: Evaluation, folder: Path) -> dict[str, dict[str, Any]]:
    """The files of `mlos_bench`'s configuration."""
    places: dict[str, dict[str, Any]] = {}
    for one in evaluation.factors:
        count, own = len(one["levels"]), one["levels"].index(one["baseline"])
        ranged = {"type": "int", "range": [0, count - 1], "default": own}
        listed = {
            "type": "categorical",
            "values": [str(place) for place in range(count)],
            "default": str(own),
        }
        places[one["name"]] = ranged if one["ordered"] and count > 1 else listed
    environment = {
        "tunable_params": ["levels"],
        "temp_dir": str(folder),
        "dump_params_file": "places.json",
        # Nothing asks once this process is gone.
        "run": [
            f"kill -0 {os.getpid()}",
            "cat places.json > asks",
            "echo > asks",
            "head -n 1 answers | grep cost",
        ],
        "results_stdout_pattern": "(cost)=(.+)",
    }
    optimizer = {"optimizer_type": "FLAML", "optimization_targets": {"cost": "min"}}
    storage = {"drivername": "sqlite", "database": str(folder / "trials.sqlite")}
    return {
        "environment.json": {
            "class": "mlos_bench.environments.local.LocalEnv",
            "name": "dyno",
            "include_tunables": ["tunables.json"],
            "config": environment,
        },
        "tunables.json": {"levels": {"cost": 1, "params": places}},
        "optimizer.json": {
            "class": "mlos_bench.optimizers.MlosCoreOptimizer",
            "config": {**optimizer, "seed": evaluation.opening["seed"]},
        },
        "storage.json": {"class": "mlos_bench.storage.sql.storage.SqlStorage", "config": storage},
    }


def _benched(evaluation: Evaluation, folder: Path, most: int) -> int:
    """Lets the bench ask until it ends. Returns how often it was answered; 0 once Dyno measures nothing
    more."""
    files = [f"--{one}={one}.json" for one in ("environment", "optimizer", "storage")]
    own = ["--config_path", str(folder), "--experiment_id=dyno", f"--max_suggestions={most}"]
    command = [sys.executable, "-m", "mlos_bench.run", *files, *own, "--log_level=WARNING"]
    log, answered = folder / "log", 0
    with (
        log.open("w") as told,
        subprocess.Popen(command, cwd=folder, stderr=told) as bench,
        ExitStack() as held,
    ):
        held.callback(bench.terminate)
        # Both ends of each pipe are held open here, so that nothing waits for a process that is gone.
        asks, answers = (held.enter_context((folder / one).open("rb+", buffering=0)) for one in PIPES)
        while bench.poll() is None:
            if not select([asks], [], [], 0.2)[0]:
                continue
            text = b""
            while not text.endswith(b"\n"):
                text += asks.read(4096)
            if (answer := evaluation.answer(json.loads(text))) is None:
                return 0
            worth = answer["worth"]
            answers.write(b"failed\n" if worth is None else f"cost={-worth}\n".encode())
            answered += 1
    if not answered:
        raise SystemExit(f"mlos_bench asked nothing:\n{log.read_text()}")
    return answered


SEARCHERS: dict[str, Callable[[Evaluation, int], None]] = {
    "optuna": optuna,
    "smac": smac,
    "mlos": mlos,
    "mlos_bench": mlos_bench,
}


def main(name: str, study: str, asked: str = "1000", *options: str) -> None:
    evaluation = Evaluation(study, *options)
    SEARCHERS[name](evaluation, int(asked))
    ended = evaluation.end()
    print(ended["why"])
    for one in ended["judged"]:
        print(f"{one['side']} {one['name']}: told {one['told']:.3f}, again {one['again']:.3f}")
    print(ended["report"])


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        raise SystemExit(130) from None
