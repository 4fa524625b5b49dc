"""What the tests of museum share with others."""

from __future__ import annotations

from functools import cache

from dbdyno.analyse.museum import Museum
from dbdyno.findings import analyse
from tests.analyse.collection_cases import museum_of, ran
from tests.analyse.factory import a_run, every_verdict


@cache
def found() -> Museum:
    study, records = every_verdict()
    return museum_of([analyse(study, a_run(study), records), ran(1, 0.5), ran(2, 0.6)], unread=["older"])
