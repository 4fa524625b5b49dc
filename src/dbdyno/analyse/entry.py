"""From a run to its analysis, whatever the design of its study."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.analysis import analyse_blocks
from dbdyno.analyse.model import Analysis
from dbdyno.analyse.search import analyse_search
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import Design, Study


def analyse(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of a run from its study and its records, in any order, finished or not."""
    of_design = analyse_search if study.design is Design.SEARCH else analyse_blocks
    return of_design(study, run, records)
