"""What is said of a bisection: the change with its evidence, or why there is none."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.analyse.bisect import bisected
from dbdyno.findings.bisect import document
from dbdyno.records.record import Outcome
from dbdyno.report.document import plain
from dbdyno.report.renderers import markdown
from dbdyno.study.trials import Along
from tests.bisections import World, carried_out


def said(world: World) -> tuple[str, str]:
    """The answer of a bisection, and its whole report as Markdown without its escapes."""
    run, records = carried_out(world)
    shown = document(bisected(world.study, run, records))
    return plain(shown.answer[0]), markdown.render(shown).replace("\\", "")


def test_the_change_is_named_with_how_each_point_was_placed() -> None:
    answer, report = said(World(last=8, slow=7, executed=0.05, ends={4: Outcome.FAILED}))
    assert "c7 (Change 7) made it slower" in answer
    assert "the compiler refused it" in report and "instructions" in report


def test_of_versions_it_says_between_which_two_it_became_slower() -> None:
    world = World(last=5, slow=3, loss=0.1, along=Along.VERSIONS, strange=frozenset({4}))
    answer, report = said(world)
    assert "It became slower between 2 and 3 (PostgreSQL 3.4): 0." in answer
    assert 'engine = ["postgresql@2", "postgresql@3"]' in report
    assert "postgresql@2, postgresql@3 and postgresql@5 began with the same rows as postgresql@0" in report
    skipped, _ = said(replace(world, ends={2: Outcome.BLOCKED}))
    assert "It became slower between 1 and 3: 1 point could not be measured" in skipped


def test_a_version_with_other_rows_is_told() -> None:
    _, report = said(World(last=4, slow=2, loss=0.1, along=Along.VERSIONS, strange=frozenset({2})))
    assert "postgresql@2 did not begin with the same rows as postgresql@0" in report


def test_a_range_says_what_stands_between() -> None:
    answer, report = said(World(last=8, slow=5, executed=0.05, ends={4: Outcome.FAILED}))
    assert "from c4 to c5: 1 point could not be measured" in answer
    assert "Where it may be" in report


def test_without_a_change_it_says_why() -> None:
    answer, _ = said(World(last=8, executed=0.0))
    assert answer.startswith("– None of 8 commits made it slower: bad to good is ")
    same, _ = said(World(last=8, ends={8: Outcome.INERT}))
    assert "the bad end has the good end's code" in same
