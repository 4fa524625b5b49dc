"""How much of the baseline's code each build has, in a table."""

from __future__ import annotations

from dbdyno.findings import analyse
from dbdyno.findings import builds as part
from tests.analyse.builds import FASTEST, INERT, builds, code_beside
from tests.analyse.factory import a_run, a_study, records_of
from tests.report.cases import placebos


def test_every_build_says_how_many_functions_it_changed() -> None:
    rows = {row[0]: row[1:] for row in part.rows(placebos())}
    assert rows[FASTEST] == ("3 of 12,431", "0", "+0.012 %", "40")
    assert rows[INERT] == ("0 of 12,431", "0", "the same", "0")
    assert rows["build.layout=1"][3] == "12,400"
    assert "baseline" not in rows and part.notes(placebos()) == [part.METHOD]


def test_a_stripped_build_is_named() -> None:
    study, records = builds()
    bare = [
        one.model_copy(update={"code": code_beside(named=False)}) if one.variant == FASTEST else one
        for one in records
    ]
    analysis = analyse(study, a_run(study), bare)
    assert part.notes(analysis)[1].startswith(f"{FASTEST}: a file is stripped")


def test_a_run_without_builds_has_no_table() -> None:
    study = a_study()
    assert part.compared(analyse(study, a_run(study), records_of(study))) == []
