"""A run that measures each variant until its verdict stands, in as many blocks as its study says at most."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dbdyno.analyse import analyse
from dbdyno.analyse.model import Role
from dbdyno.plan.blocks import next_trials
from dbdyno.records.record import Record, Run
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Trial


def ask(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
    """The variants that are not decided; nothing when all are."""
    return next_trials(study, records, partial(_left_out, study, run))


def decided(study: Study, run: Run, records: Sequence[Record]) -> frozenset[str]:
    """The variants whose verdict stands, whatever may follow."""
    return frozenset(
        variant.name
        for variant in analyse(study, run, records).variants
        if variant.role is Role.CANDIDATE and variant.decided
    )


def _left_out(study: Study, run: Run, records: Sequence[Record]) -> frozenset[str]:
    """The decided variants; all of them, the baseline too, when it has none left to be compared with."""
    variants, over = variants_of(study), decided(study, run, records)
    candidates = [variant.name for variant in variants[1:] if not variant.twin]
    if over and over >= set(candidates):
        return frozenset(variant.name for variant in variants)
    return over
