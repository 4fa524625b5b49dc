"""From a run to its analysis, whatever the design of its study."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.analysis import Given, analyse_blocks, analyse_given
from dbdyno.analyse.model import Analysis
from dbdyno.analyse.search import analyse_search
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import Design, Study


def analyse(study: Study, run: Run, records: Sequence[Record] | Given) -> Analysis:
    """The analysis of a run from its study and its records, in any order, finished or not; or from what was
    read of them already, but for a search."""
    if isinstance(records, Given):
        return analyse_given(study, run, records)
    of_design = analyse_search if study.design is Design.SEARCH else analyse_blocks
    return of_design(study, run, records)
