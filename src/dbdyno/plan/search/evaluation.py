"""What an evaluation measures next, by its records: the noise floor, the levels that a searcher of others
asks for, candidates of Dyno's own search, and the best of both once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.analyse.elimination import (
    Candidate,
    candidates_of,
    of_purpose,
    ranked_candidates,
    side_of_candidate,
)
from dbdyno.analyse.estimate import log_ratios
from dbdyno.analyse.intervals import usable
from dbdyno.frozen import Level, level_text
from dbdyno.plan.search.ask import (
    FINALISTS,
    Block,
    Memory,
    at_once,
    even,
    finalists,
    fits,
    held_bytes,
    making_s,
    next_candidate,
    spent_s,
    trial_s,
    trials_of,
)
from dbdyno.plan.search.sampler import Levels
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import EvaluationRun
from dbdyno.study import BASELINE, CANDIDATE, TWIN, Study
from dbdyno.study.nouns import OWN_CANDIDATE, Search
from dbdyno.study.trials import Purpose, Trial, Variant

FLOOR_BLOCKS = 4
"""Blocks of two servers of the baseline, whose log ratios tell how far equal servers lie apart."""


@dataclass(frozen=True)
class EvaluationSoFar:
    """How far an evaluation is, by its whole records in the order of their trials."""

    study: Study
    run: EvaluationRun
    records: Sequence[Record]

    @property
    def next_index(self) -> int:
        return 1 + max((record.trial for record in self.records), default=-1)

    @property
    def _next_number(self) -> int:
        return 1 + max((record.block for record in self.records), default=-1)

    def held(self, purpose: Purpose) -> dict[int, dict[str, Record]]:
        """The records of each block for a purpose, by variant."""
        held: dict[int, dict[str, Record]] = {}
        for record in of_purpose(self.records, purpose):
            held.setdefault(record.block, {})[record.variant] = record
        return held

    def next_floor(self) -> Block | None:
        """The next block of the noise floor; None once it is known, or candidates were measured."""
        held = self.held(Purpose.FLOOR)
        if sum(len(block) == 2 for block in held.values()) >= FLOOR_BLOCKS or self.held(Purpose.SEARCH):
            return None
        names = (BASELINE, TWIN)
        both = tuple(Variant(name=name, levels=self.study.baseline) for name in names)
        return Block(self._next_number, Purpose.FLOOR, both)

    def logs(self, held: Mapping[int, Mapping[str, Record]], name: str) -> list[float]:
        """The log ratios of a variant to the baseline, block by block."""
        metric = metrics.find(self.study.goal.response)
        sides: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
        for number, block in held.items():
            for side, variant in zip(sides, (name, BASELINE), strict=True):
                record = block.get(variant)
                if record is not None and record.outcome is Outcome.MEASURED:
                    value = metric.read(record)
                    if value is not None and usable(value):
                        side["", number] = value
        return list(log_ratios(*sides).values())

    def name_of(self, levels: Levels) -> str:
        """The name of levels that were asked for, or of those that are to be."""
        known = key_of(self.study, levels)
        names: dict[str, None] = {}
        for record in of_purpose(self.records, Purpose.SEARCH):
            if record.variant != BASELINE and side_of_candidate(record.variant) == "theirs":
                if key_of(self.study, record.levels) == known:
                    return record.variant
                names[record.variant] = None
        return f"{CANDIDATE}-{len(names) + 1}"

    def blocks_of(self, name: str) -> list[int]:
        """The blocks that hold both a candidate and the baseline, in their order."""
        held = self.held(Purpose.SEARCH)
        return sorted(number for number, block in held.items() if {name, BASELINE} <= set(block))

    def block_of(self, levels: Levels) -> Block:
        """The next block that holds these levels and the baseline."""
        return self._beside_baseline(self.name_of(levels), levels)

    def _beside_baseline(self, name: str, levels: Levels) -> Block:
        baseline = Variant(name=BASELINE, levels=self.study.baseline)
        return Block(self._next_number, Purpose.SEARCH, (baseline, Variant(name=name, levels=levels)))

    def why_not(self, levels: Levels, memory: Memory) -> str:
        """Why levels are not measured; empty where they are."""
        if hindered := self._hindered(levels, memory):
            return hindered
        if of_purpose(self.records, Purpose.CONFIRMATION):
            return "the best candidates are being measured again, so nothing more is asked"
        needed_s = 2 * trial_s(self.records)
        if self.left_s < needed_s:
            return f"{self.left_s:.1f} s are left for what is asked, and a block takes {needed_s:.1f} s"
        return ""

    def _hindered(self, levels: Levels, memory: Memory) -> str:
        """Why levels can never be measured here; empty where they can."""
        search = self.study.search or Search()
        broken = next((one.text for one in search.constraints if not one.holds(levels)), "")
        if broken:
            return f"these levels break the constraint {broken}"
        if not fits(memory, self.study, self.run.room_bytes, [self.study.baseline, levels]):
            return "there is no room in memory for a server of these levels beside the baseline"
        return ""

    @property
    def reserved_s(self) -> float:
        """What measuring the best again takes."""
        variants = 1 + len(self.study.variants) + FINALISTS * (2 if self.run.own else 1)
        return self.study.blocks * variants * trial_s(self.records) + making_s(self.records)

    @property
    def left_s(self) -> float:
        """Seconds that are left for what is asked: with Dyno's own search, half of what the budget has."""
        floor_s = spent_s(of_purpose(self.records, Purpose.FLOOR))
        whole_s = self.run.budget_s - floor_s - self.reserved_s
        return whole_s / (2 if self.run.own else 1) - self._searching_s("theirs")

    def _searching_s(self, side: str) -> float:
        """What the blocks of one side took."""
        blocks = [block for block in self.held(Purpose.SEARCH).values() if is_own(block) is (side == "own")]
        return spent_s([record for block in blocks for record in block.values()])

    def _tried(self, side: str) -> list[Candidate]:
        found = candidates_of(self.study, self.records)
        return [one for one in found if side_of_candidate(one.name) == side]

    def next_own(self, memory: Memory) -> Block | None:
        """The next block of Dyno's own search; None where none was asked for, or its time is over."""
        needed_s = 2 * trial_s(self.records) if self.records else 0.0
        over = self._searching_s("own") + needed_s > self._searching_s("theirs")
        if not self.run.own or over or of_purpose(self.records, Purpose.CONFIRMATION):
            return None
        asked = [
            record.levels
            for record in of_purpose(self.records, Purpose.SEARCH)
            if record.variant != BASELINE and side_of_candidate(record.variant) == "own"
        ]
        tried = self._tried("own")
        found = next_candidate(
            self.study, self.run.seed, tried, asked, lambda levels: not self._hindered(levels, memory)
        )
        if found is None:
            return None
        known = {key_of(self.study, one.levels): one.name for one in tried}
        name = known.get(key_of(self.study, found[0]), f"{OWN_CANDIDATE}-{len(tried) + 1}")
        return self._beside_baseline(name, found[0])

    def next_confirming(self, memory: Memory) -> Sequence[Trial]:
        """What is left of the next block that measures the best again; nothing when all are over."""
        variants = self._finalists()
        if not variants:
            return ()
        over = [one for one in self.records if one.purpose is not Purpose.CONFIRMATION]
        first, index = even(1 + max(one.block for one in over)), 1 + max(one.trial for one in over)
        done = {record.trial for record in self.records}
        for number in range(self.study.blocks):
            block = Block(first + number, Purpose.CONFIRMATION, variants)
            trials = trials_of(self.study, self.run, block, index + number * len(variants))
            if left := [trial for trial in trials if trial.index not in done]:
                return at_once(memory, self.study, self.run, left, held_bytes(self.records))
        return ()

    def _finalists(self) -> tuple[Variant, ...]:
        """The baseline, the best of each side, and the variants that the study names; nothing without them.
        Theirs are best by their own blocks, because this is what their searcher would deploy."""
        theirs = [one for one in self._tried("theirs") if one.worth > 0.0 and one.changes]
        best = sorted(ranked_candidates(theirs), key=lambda one: one.worth, reverse=True)[:FINALISTS]
        taken = [one.levels for one in best]
        own = finalists(self.study, self._tried("own")) if self.run.own else []
        best += [one for one in own if one.levels not in taken]
        named = [Variant(name=one.name, levels=one.levels) for one in best]
        named += [Variant(name=one.name, levels=one.levels) for one in self.study.variants]
        return (Variant(name=BASELINE, levels=self.study.baseline), *named) if named else ()


def is_own(block: Mapping[str, Record]) -> bool:
    return any(side_of_candidate(name) == "own" for name in block)


def key_of(study: Study, levels: Mapping[str, Level]) -> tuple[str, ...]:
    """What tells levels from others."""
    return tuple(level_text(levels[factor.name]) for factor in study.factors)
