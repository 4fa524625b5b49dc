"""The report of acts beside a load: a row a variant, what could be seen, who waited, one figure for all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dbdyno.analyse.model import Analysis
from dbdyno.driver.tally import Second
from dbdyno.findings import analyse, as_json
from dbdyno.findings.meanwhile import clauses, sections
from dbdyno.records.meanwhile import ActMeanwhile, LockWait
from dbdyno.records.record import Record
from dbdyno.report.document import Figure
from dbdyno.report.renderers import html
from dbdyno.study.soak import Meanwhile
from tests.analyse.factory import a_run, a_study, records_of
from tests.report.forms import as_markdown

FASTER = "config.page_cache=64k"
ACT = Meanwhile(name="alter", at_s=8.0, sql="ALTER TABLE a ADD b INT")
BEFORE = (1000, 1020, 980, 1010, 990, 1000, 1010, 990)
WAITED = LockWait(
    waiter="UPDATE a", blocker="alter", lock="metadata lock", looks=2, sessions=3, inferred=True
)


def with_act(*within: int, done: bool = True, command: bool = False) -> Any:
    """A change of records: the act went on beside a load with these seconds."""

    def change(record: Record) -> Record:
        counts: Sequence[int] = (*BEFORE, *within)
        series = [
            Second(
                second=at, phase="measured", operations=count, errors=0, p50_us=1.0, p99_us=2e3, max_us=9.0
            )
            for at, count in enumerate(counts)
            if count
        ]
        took: dict[str, Any] = {"cpu_s": 1.5, "read_bytes": 0.0, "written_bytes": 4096.0} if command else {}
        act = ActMeanwhile(
            name="alter", text=ACT.sql, at_s=8.0, began_s=8.0, took_s=2.0, done=done, looks=3, every_s=1.0,
            blocked=(WAITED,) if not within[0] else (), **took,
        )  # fmt: skip
        phase = record.phases[-1]
        assert phase.tally is not None
        tally = phase.tally.but(series=tuple(series), duration_s=float(len(counts)))
        return record.but(phases=(*record.phases[:-1], phase.but(tally=tally, meanwhile=(act,))))

    return change


@pytest.fixture
def told() -> Analysis:
    study = a_study().but(meanwhile=(ACT,))
    changes = {"baseline": with_act(0, 0, 1000, 1000), FASTER: with_act(1005, 995, 1000, 1000, command=True)}
    return analyse(study, a_run(study), records_of(study, {FASTER: 1.0}, changes))


def test_a_dip_is_told_with_its_figures_and_what_could_not_be_seen_is_never_none(told: Analysis) -> None:
    assert told.meanwhile is not None
    slow, fast = told.meanwhile.variants
    assert (slow.dips, slow.depth.median, slow.length_s.median) == (6, 1.0, 2.0)
    assert (fast.dips, fast.blocks) == (0, 6)
    first, second = clauses(told.meanwhile, {"baseline": "baseline", FASTER: FASTER})
    assert first == "alter took 2.000 s; -100 % in the worst second: baseline"
    assert second.startswith("alter took 2.000 s; no dip seen (could see ")


def test_markdown_and_json_say_who_waited_and_what_a_command_took(told: Analysis) -> None:
    text = as_markdown(told)
    assert "## Meanwhile" in text and "metadata lock (inferred)" in text
    assert "none seen (could see" in text and "4.000 KiB" in text
    document = json.loads(as_json.render(told))
    assert [one["variant"] for one in document["meanwhile"]["variants"]] == ["baseline", FASTER]
    assert document["meanwhile"]["variants"][0]["blocked"][0]["blocker"] == "alter"


def test_one_figure_has_all_variants_with_their_acts_shaded(told: Analysis) -> None:
    [section] = sections(told)
    [figure] = [one for one in section.body if isinstance(one, Figure)]
    names, rows, spans = figure.found
    assert names == ["baseline", FASTER]
    assert [len(one["second"]) for one in rows] == [12, 12]  # type: ignore[attr-defined]
    assert [(one["from"], one["to"]) for one in spans] == [(8.0, 10.0), (8.0, 10.0)]  # type: ignore[attr-defined]
    spec: Any = html.drawn(figure)
    *shades, lines = spec["layer"]
    assert [one["mark"]["type"] for one in shades] == ["rect", "rect"]
    assert len({one["mark"]["color"] for one in shades}) == 2
    assert lines["mark"]["type"] == "line" and lines["encoding"]["color"]["legend"]


def test_an_act_that_was_cut_short_is_told_as_at_least() -> None:
    study = a_study().but(meanwhile=(ACT,))
    changes = {"baseline": with_act(0, 0, done=False), FASTER: with_act(0, 0)}
    found = analyse(study, a_run(study), records_of(study, {FASTER: 1.0}, changes))
    text = as_markdown(found)
    assert "at least 2.000" in text and "not done within the load in 6 of 6" in text
    assert "not within the load" in text


def test_a_study_without_acts_has_no_such_part() -> None:
    study = a_study()
    found = analyse(study, a_run(study), records_of(study, {FASTER: 1.0}, {}))
    assert found.meanwhile is None and "## Meanwhile" not in as_markdown(found)
