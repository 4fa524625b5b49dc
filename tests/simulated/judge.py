"""What must hold of a simulated run, whatever befell it. Each judgement is a line that says what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.findings import analyse
from dbdyno.kinds.registry import ask_for
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import SoakRun
from dbdyno.records.store import Store
from dbdyno.study.trials import Trial
from tests.simulated.process import REFERENCE, Ended, left_behind
from tests.simulated.studies import Case, Ordeal
from tests.simulated.world import World, outcome_of

STEPS_EACH = 15
"""More steps than this for each slice, phase and image are a circle."""
PREFIXES_MOST = 8


class Kept:
    """What is kept of a run, from one of its processes to the next."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, int], str] = {}

    def changed(self, world: World) -> Iterator[str]:
        """What is gone or is another, and what was told of and not kept."""
        now = {(one.run, one.trial): one.model_dump_json() for one in stored() if one.whole}
        for key, document in self.documents.items():
            if now.get(key) != document:
                yield f"the record of {key} was kept and is {'another' if key in now else 'gone'}"
        self.documents = now
        told = world.root / "told"
        for line in told.read_text().splitlines() if told.exists() else ():
            run, trial = line.split()
            if (run, int(trial)) not in now:
                yield f"trial {trial} of {run} was told of and is not kept"


def stored() -> list[Record]:
    """All records of both runs, in the order of their trials."""
    with Store(store_url()) as store:
        return [*store.records("first"), *store.records(REFERENCE)]


def left(world: World) -> Iterator[str]:
    """What the last process of a run left."""
    yield from (f"left: {what}" for what in left_behind(world))


def outcomes(case: Case, ordeal: Ordeal, stages: Sequence[str]) -> Iterator[str]:
    """Whether each trial ended as the table says, where the fault struck in these stages."""
    fault = ordeal.fault
    for record in stored():
        expected: Outcome | None = Outcome.MEASURED
        struck = fault is not None and fault.trial == f"{record.run}-{record.trial}" and stages
        # Nobody compares the speeds of a soak.
        if fault is not None and struck and (fault.kind != "saturated" or not isinstance(case.run, SoakRun)):
            expected = outcome_of(fault.kind, stages[-1], case.embedded)
        if record.outcome is not expected:
            which = f"trial {record.trial} of {record.run}"
            yield f"{which} is {record.outcome} and not {expected}: {record.cause}"
        if record.outcome is not Outcome.MEASURED and not record.cause:
            yield f"nothing says why trial {record.trial} is {record.outcome}"
        # Nobody goes on with a reference.
        if not record.whole and record.run == case.run.run:
            yield f"the record of trial {record.trial} is a part"


def images(ended: Ended) -> Iterator[str]:
    """Whether each record names the image that its server began with."""
    for record in stored():
        image = ended.world.images.get(f"{record.run}-{record.trial}")
        if image is not None and record.reset and record.reset["image"] != image - 1:
            yield f"trial {record.trial} had image {image - 1}, its record says {record.reset['image']}"


def kept_first(ended: Ended) -> Iterator[str]:
    """Whether each record is on disk before the host is restored: an interruption then costs nothing."""
    kept = set[str]()
    for step in ended.world.steps:
        if step.name == "recorded":
            kept.add(step.trial)
        elif step.name == "stage" and step.stage == "restore" and step.trial not in kept:
            yield f"{step.trial} is restored before its record is kept"


def ratios(case: Case) -> Iterator[str]:
    """Whether what has no speed has no ratio either."""
    records = [record for record in stored() if record.run == case.run.run]
    if isinstance(case.run, SoakRun) or not records:
        return
    by_trial = {record.trial: record for record in records}
    found = analyse(case.study, case.run, records)
    for one in found.trials:
        if one.response is not None and one.record.outcome is not Outcome.MEASURED:
            yield f"trial {one.record.trial} is {one.record.outcome} and has a speed"
    sound = {(one.block, one.variant) for one in records if one.outcome is Outcome.MEASURED}
    for variant in found.variants:
        for ratio in variant.block_ratios:
            baseline = (ratio.block, found.variants[0].name)
            if by_trial[ratio.trial].outcome is not Outcome.MEASURED or baseline not in sound:
                yield f"{variant.name} has a ratio in block {ratio.block}, without a speed on either side"
        if variant.effect and variant.effect.pairs != len(variant.block_ratios):
            yield f"{variant.name} has {variant.effect.pairs} pairs from {len(variant.block_ratios)} blocks"


def bounded(case: Case, ended: Ended) -> Iterator[str]:
    """Whether the run came to its end in as many steps as its trials need."""
    records = stored()
    parts = sum(
        4 + sum(2 + len(phase.tally.slices if phase.tally else ()) for phase in record.phases)
        for record in records
    )
    if len(ended.world.steps) > STEPS_EACH * (1 + parts):
        yield f"{len(ended.world.steps)} steps for {len(records)} trials"


def ask_alike(case: Case, ended: Ended) -> Iterator[str]:
    """Whether what comes next follows from the records alone, at every prefix and in any order of them."""
    if ended.how != "whole":
        return
    ask, records = ask_for(case.run), ended.records
    reread = {record.trial: record for record in stored() if record.run == case.run.run}
    if lost := [record.trial for record in records if record.trial not in reread]:
        yield f"trials {lost} ended and are not kept"
        return
    every = max(1, len(records) // PREFIXES_MOST)
    for count in [*range(0, len(records), every), len(records)]:
        prefix = [reread[record.trial] for record in records[:count]]
        due = _due(ended.asked, count, {record.trial for record in prefix})
        by_trial = sorted(prefix, key=lambda record: record.trial)
        for order in (prefix, by_trial, random.Random(case.seed).sample(prefix, count)):
            found = ask(case.study, case.run, order)
            if list(found) != due:
                yield f"after {count} records {_names(found)} come next, and were {_names(due)}"


def _due(asked: Sequence[tuple[int, Sequence[Trial]]], count: int, done: set[int]) -> list[Trial]:
    """What was left of the last trials that were asked for, after so many records."""
    answers = [trials for after, trials in asked if after <= count]
    return [trial for trial in answers[-1] if trial.index not in done]


def _names(trials: Sequence[Trial]) -> str:
    return ", ".join(f"{trial.index} ({trial.variant.name})" for trial in trials) or "none"


def alike(case: Case, whole: Ended, records: Sequence[Record]) -> Iterator[str]:
    """Whether a run that was cut short came to the same trials as one that was not. A reference has no trials
    but beside a run that was not, and what is known to have no baseline needs not even the rest of its
    block."""
    before = {one.trial: _about(one) for one in whole.records if one.run == case.run.run}
    after = {one.trial: _about(one) for one in records if one.run == case.run.run}
    for key in sorted(before.keys() | after.keys() if whole.how == "whole" else after.keys()):
        if before.get(key) != after.get(key):
            yield f"trial {key} is {after.get(key)} and undisturbed {before.get(key)}"


def _about(record: Record) -> dict[str, Any]:
    """What of a record does not depend on when it was made."""
    return {
        "block": record.block,
        "position": record.position,
        "variant": record.variant,
        "levels": record.levels,
        "purpose": record.purpose,
        "outcome": record.outcome,
        "cause": record.cause,
        "image": record.reset.get("image"),
        "phases": [phase.name for phase in record.phases],
        "seeds": [phase.tally.seed for phase in record.phases if phase.tally],
        "operations": [phase.tally.operations for phase in record.phases if phase.tally],
    }
