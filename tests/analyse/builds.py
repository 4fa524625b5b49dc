"""A study of builds as a run would leave it: one is inert, two are placebos. Nothing here was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.frozen import Level
from dbdyno.records.binary import CodeBeside, Likeness, Matching
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Goal, Study
from tests.analyse.factory import Change, a_study, ended, records_of

INERT, FASTEST = "build.flags=-Wall", "build.optimisation=-O3"
LEVELS: dict[str, Sequence[Level]] = {
    "build.optimisation": ["-O2", "-O3"],
    "build.flags": ["none", "-Wall"],
    "config.page_cache": ["2k", "64k"],
    "build.layout": ["none", 1, 2],
}


def code_beside(differing: int = 0, moved: int = 0, named: bool = True) -> CodeBeside:
    """Two builds of which so many functions differ."""
    return CodeBeside(
        likeness=Likeness.DIFFERENT if differing else Likeness.INERT,
        functions=Matching(equal=12_431 - differing, differing=differing, only_left=0, only_right=0),
        other_constants=0,
        moved=moved,
        data=Matching(equal=2_400, differing=0, only_left=0, only_right=0),
        code_bytes=1_000_000 + 40 * differing,
        code_bytes_against=1_000_000,
        named=named,
    )


def with_code(code: CodeBeside) -> Change:
    """A record of a trial whose build was compared with the baseline's."""
    return lambda record: record.but(code=code)


def inert(record: Record) -> Record:
    cause = "12,431 functions and all constants and variables are equal to the baseline's"
    found = ended(Outcome.INERT, cause, "take it out of the study")(record)
    return found.but(code=code_beside(), evidence=())


def builds(
    ratios: Mapping[str, float] | None = None,
    levels: Mapping[str, Sequence[Level]] = LEVELS,
    blocks: int = 8,
    margin: float = 0.005,
    seed: int = 1,
) -> tuple[Study, list[Record]]:
    """The study and its records. An inert variant has a trial in the first block alone."""
    study = a_study(levels, blocks=blocks, goal=Goal(margin=margin), title="Which build?")
    changes = {
        INERT: inert,
        FASTEST: with_code(code_beside(differing=3, moved=40)),
        **{f"build.layout={number}": with_code(code_beside(moved=12_400)) for number in (1, 2)},
    }
    luck = {"build.layout=1": 1.02, "build.layout=2": 0.99, **(ratios or {})}
    records = records_of(study, luck, changes, trial_sd=0.001, seed=seed)
    return study, [one for one in records if one.outcome is not Outcome.INERT or one.block == 0]
