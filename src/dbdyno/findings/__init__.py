"""What is found in runs and told of them: a file for each finding, from the trials to the page's sections.

`run.py` has the list of those that a run may have. `find` of a file makes its field of an Analysis of what
all findings stand on (`analyse.analysis.Basis`), and `sections` tells it. The nouns stand below, in
`analyse/found.py` and `analyse/model.py`, because an Analysis is one typed answer that others read without
its page. The file of a result of its own (`results.py`) has a `document` in the place of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbdyno.study import Design

if TYPE_CHECKING:
    from dbdyno.analyse.analysis import AnalysisInput
    from dbdyno.analyse.model import Analysis
    from dbdyno.records.record import Record
    from dbdyno.records.run import Run
    from dbdyno.study import Study


def analyse(study: Study, run: Run, records: Sequence[Record] | AnalysisInput) -> Analysis:
    """The analysis of a run from its study and its records, in any order, finished or not; or from what was
    read of them already, but for a search."""
    # Here, because who only plans a study must not wait for numpy, and few runs search.
    if not isinstance(records, Sequence):
        from dbdyno.findings.run import analyse_given

        return analyse_given(study, run, records)
    if study.design is not Design.SEARCH:
        from dbdyno.findings.run import analyse_blocks

        return analyse_blocks(study, run, records)
    from dbdyno.findings.searched import analyse_search

    return analyse_search(study, run, records)
