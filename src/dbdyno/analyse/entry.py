"""From a run to its analysis, whatever the design of its study."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.analysis import Given, analyse_blocks, analyse_given
from dbdyno.analyse.model import Analysis
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.study import Design, Study


def analyse(study: Study, run: Run, records: Sequence[Record] | Given) -> Analysis:
    """The analysis of a run from its study and its records, in any order, finished or not; or from what was
    read of them already, but for a search."""
    if isinstance(records, Given):
        return analyse_given(study, run, records)
    if study.design is not Design.SEARCH:
        return analyse_blocks(study, run, records)
    # Here, because few runs search.
    from dbdyno.analyse.search import analyse_search

    return analyse_search(study, run, records)
