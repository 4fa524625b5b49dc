"""What a seed draws: a study, how it is carried out, and the faults that strike."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbdyno.records.run import Run, SearchRun, SoakRun, of_kind
from dbdyno.study import Arrangement, Design, Factor, Goal, Guard, Restarts, Study, Workload
from dbdyno.study.designs import trial_count
from dbdyno.study.nouns import Reference, Search
from dbdyno.study.soak import Act, Soak
from dbdyno.study.trials import phases_of
from tests.fakes import make_run
from tests.simulated.world import FAULTS, MAKING, Fault, Step, outcome_of

SPEEDS = (100, 101, 120, 80, 100)
SEARCHED_S = 1.0
KINDS = {"plain": 8, "restarts": 3, "sequential": 3, "budget": 3, "soak": 3, "in turn": 3, "search": 1}
"""How a run finds its next trials, and how often each is drawn."""


@dataclass(frozen=True)
class Case:
    """One study and its run. With `embedded` the engine lives in the load process."""

    seed: int
    kind: str
    study: Study
    run: Run
    embedded: bool

    @property
    def beside(self) -> bool:
        return self.study.arrangement is Arrangement.SIDE_BY_SIDE


@dataclass(frozen=True)
class Ordeal:
    """What befalls a case: a fault of a trial, and for each process of the run the strikes that end it."""

    fault: Fault | None = None
    strikes: Sequence[Mapping[int, str]] = field(default=())


def drawn_case(seed: int) -> Case:
    """The study of a seed."""
    draw = random.Random(f"case {seed}")
    [kind] = draw.choices(list(KINDS), list(KINDS.values()))
    study = _searched(draw) if kind == "search" else _study(draw, kind)
    run: Run = make_run(study).but(seed=draw.randrange(1000), mirrored=draw.random() < 0.8)
    run = run.but(arrangement=study.arrangement, created_unix_s=0.0)
    if kind == "sequential":
        run = run.but(sequential=True)
    if kind == "budget":
        run = run.but(budget_s=_budget_s(draw, study))
    if kind == "search":
        run = of_kind(SearchRun, run, budget_s=study.search.time_s if study.search else 0.0)
    if kind == "soak":
        run = of_kind(SoakRun, run, soak=_soak(draw))
    acts = kind in ("restarts", "soak") or len(phases_of(study)) > 1
    return Case(seed, kind, study, run, embedded=not acts and draw.random() < 0.2)


def _study(draw: random.Random, kind: str) -> Study:
    levels = tuple(range(1, draw.randint(2, 4) + 1)) if kind != "sequential" else (1, 2)
    factors = [Factor(name="config.speed", levels=tuple(SPEEDS[level - 1] for level in levels))]
    if draw.random() < 0.3 and kind != "sequential":
        factors.append(Factor(name="config.page", levels=(4096, 8192)))
    arrangement = draw.choice(list(Arrangement)) if kind != "soak" else Arrangement.ONE_AFTER_THE_OTHER
    goal, duration_s = Goal(), 1.0
    if kind in ("plain", "in turn") and arrangement is not Arrangement.SIDE_BY_SIDE and draw.random() < 0.3:
        # What comes before a kill goes on for as long by the real clock, because another thread counts it.
        duration_s = 0.004
        text = draw.choice(("ready_after_stop_s", "ready_after_kill_s"))
        goal = Goal(guards=(*goal.guards, Guard(text=f"{text} <= 9", metric=text, bound=9.0)))
    restarts = Restarts(kills=draw.randint(1, 7), stops=draw.randint(1, 7), load_s=0.002)
    return Study(
        title="Which speed?",
        engine=Reference("fake"),
        blocks=draw.randint(6, 9) if kind == "sequential" else draw.randint(1, 4),
        aa=kind in ("plain", "budget") and draw.random() < 0.2,
        images=draw.randint(1, 3),
        arrangement=arrangement,
        slice_s=draw.choice((0.25, 0.5)),
        workload=Workload(name="tpcb", warmup_s=0.5, duration_s=duration_s),
        settings={"host.value": draw.randint(1, 9)},
        factors=tuple(factors),
        restarts=restarts if kind == "restarts" else None,
        goal=goal,
        digest="d" * 64,
    )


def _searched(draw: random.Random) -> Study:
    rising = tuple(range(100, 108))
    return Study(
        title="What helps?",
        engine=Reference("fake"),
        design=Design.SEARCH,
        blocks=2,
        images=1,
        arrangement=draw.choice(list(Arrangement)),
        slice_s=0.25,
        workload=Workload(name="tpcb", warmup_s=0.5, duration_s=1.0),
        settings={"host.value": 1},
        factors=(
            Factor(name="config.speed", levels=rising, rising=rising),
            Factor(name="config.page", levels=(4096, 8192)),
        ),
        search=Search(time_s=draw.uniform(45.0, 60.0)),
        digest="e" * 64,
    )


def _budget_s(draw: random.Random, study: Study) -> float:
    """Room for a number of blocks and for half of one more, so that a step more or less makes none."""
    block_s = trial_count(study) / study.blocks * (study.workload.warmup_s + study.workload.duration_s)
    return (draw.randint(2, 4) + 0.5) * block_s


def _soak(draw: random.Random) -> Soak:
    ends = draw.choice(((), (Act.STOP,), (Act.KILL,), (Act.KILL, Act.STOP)))
    return Soak(
        clients=tuple(range(10, 10 * draw.randint(2, 4), 10)),
        duration_s=20.0,
        disturb=(),
        control_s=draw.choice((0.0, 2.0)),
        ends=ends,
        sessions=False,
    )


def drawn_fault(draw: random.Random, case: Case, steps: Sequence[Step]) -> Fault | None:
    """A fault that can strike at one of these steps; None where none can. Each name of a step is as likely,
    because there are many more queries than clones."""
    able: dict[str, list[tuple[Step, str]]] = {}
    for step in steps:
        for kind in FAULTS.get(step.name.removeprefix(MAKING), ()):
            if step.trial and _can_strike(case, step, kind):
                able.setdefault(f"{step.stage} {step.name} {kind}", []).append((step, kind))
    if not able:
        return None
    step, kind = draw.choice(able[draw.choice(sorted(able))])
    return Fault(step.trial, step.name, step.nth, kind)


def _can_strike(case: Case, step: Step, kind: str) -> bool:
    if step.name.startswith(MAKING) and kind in ("server dies", "blocked", "broken"):
        return False
    if kind == "server dies" and case.embedded:
        return False
    if step.stage == "restart" and step.name in ("begin", "go on", "rest", "note"):
        return False
    return outcome_of(kind, step.stage, case.embedded) is not None


def drawn_strikes(draw: random.Random, taken: Sequence[Step]) -> Sequence[Mapping[int, str]]:
    """What ends the first process of a run, and perhaps the second. That is an interruption, perhaps with a
    second one after it; a death, perhaps with a death in the midst of replaying the journal after it; or a
    disk on which nothing more can be written."""
    steps = len(taken)
    first = draw.randint(1, steps)
    if draw.random() < 0.1:
        written = [number for number, step in enumerate(taken, 1) if step.name in ("header", "record")]
        return [{draw.choice(written): "full"}]
    if draw.random() < 0.4:
        strikes: list[Mapping[int, str]] = [{first: "death"}]
        if draw.random() < 0.5:
            strikes.append({draw.randint(1, 12): "death"})
        return strikes
    both = {first: "interrupt"}
    if draw.random() < 0.5:
        both[first + draw.randint(1, 12)] = "interrupt"
    more: list[Mapping[int, str]] = [{draw.randint(1, steps): "interrupt"}] if draw.random() < 0.3 else []
    return [both, *more]
