"""What the confirming blocks of a search say: which of its best candidates is better, and by how much.

Those blocks have keys, images of the data and servers that the search never saw. So what made a candidate
lead by luck is gone, and their intervals hold as those of any study.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from dbdyno.analyse.analysis import analyse_blocks
from dbdyno.analyse.model import Analysis, VariantResult, Verdict
from dbdyno.frozen import Level
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import BASELINE, Design, ListedVariant, Study


def listed(study: Study, records: Iterable[Record]) -> Study:
    """A list of the variants that some blocks of a search hold, the baseline first."""
    levels: dict[str, dict[str, Level]] = {BASELINE: study.baseline}
    for record in sorted(records, key=lambda one: _natural(one.variant)):
        levels.setdefault(record.variant, record.levels)
    variants = tuple(ListedVariant(name=name, levels=own) for name, own in levels.items())
    return study.but(design=Design.LIST, variants=variants)


def analysed(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of some blocks of a search, by themselves."""
    own = listed(study, records)
    numbers = {record.block for record in records}
    return analyse_blocks(own.but(blocks=max(1, len(numbers))), run, records)


def winner_of(confirmed: Analysis) -> VariantResult | None:
    """The best of those that are faster. Of those that are as good within the margin, the one with the fewest
    changes, because each change has to be kept for good. None where nothing is faster."""
    faster = [one for one in confirmed.candidates if one.verdict is Verdict.FASTER]
    if not faster:
        return None
    sign = 1.0 if confirmed.method.higher_is_better else -1.0
    gains = {one.name: sign * _log_effect(one) for one in faster}
    enough = max(gains.values()) - math.log1p(confirmed.method.margin)
    near = [one for one in faster if gains[one.name] >= enough]
    return min(near, key=lambda one: (len(one.changed), -gains[one.name]))


def _log_effect(variant: VariantResult) -> float:
    assert variant.effect is not None  # nothing is faster without one
    return math.log(variant.effect.ratio)


def _natural(name: str) -> list[tuple[int, str]]:
    """Orders `candidate-9` before `candidate-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
