"""Engines side by side, as a report shows them."""

from __future__ import annotations

import pytest

from dbdyno.analyse.found import (
    DefaultChanged,
    DefaultsBeside,
    EngineRan,
    EnginesCompared,
    RatioPosition,
    StatementRatio,
    StatementsCompared,
)
from dbdyno.findings import analyse, run
from dbdyno.findings.engines import sections
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.records.record import Plans, Record
from dbdyno.report.document import Document, plain
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import Reference
from dbdyno.trial.around_load import planned
from tests.analyse.factory import a_run, a_study, changed, counted, records_of
from tests.analyse.plans_cases import BY_INDEX, BY_SCAN, TEXT
from tests.report.shown import in_every_form

OLD = EngineRan(level="mariadb@10.11", product="mariadb", version="10.11.19")
NEW = EngineRan(level="mariadb@11.8", product="mariadb", version="11.8.9")


def _shown(*ran: EngineRan) -> tuple[str, str, str]:
    found = EnginesCompared(ran=ran, same_rows=tuple(one.level for one in ran[1:]))
    return in_every_form(Document("Engines", (), (*sections(found),)))


def test_a_data_folder_that_was_taken_over_is_told_with_its_seconds() -> None:
    taken = NEW.but(upgraded_by="mariadb-upgrade", upgrade_s=(2.25, 2.5))
    for form in _shown(OLD, taken):
        told = " ".join(form.split())
        assert "mariadb-upgrade" in told and "2.25 s and 2.50 s" in told
        assert "took over those of the one before it" in told
        assert "one number for each copy of the data" in told


def test_data_that_each_version_made_are_not_called_upgraded() -> None:
    assert not any("took over" in form for form in _shown(OLD, NEW))


def test_the_default_behind_what_fails_leads_and_the_others_are_folded() -> None:
    changed = [DefaultChanged(name=f"aria_{n}", before="0", after="1") for n in range(30)]
    behind = DefaultChanged(
        name="innodb_snapshot_isolation", before="OFF", after="ON", seen="1020 record changed"
    )
    beside = DefaultsBeside(level=NEW.level, compared=600, changed=(*changed, behind))
    found = EnginesCompared(ran=(OLD, NEW), defaults=(beside,))
    terminal, page, markdown = in_every_form(Document("Engines", (), (*sections(found),)))
    for form in (terminal, page, markdown):
        told = form.replace("\\", "")
        assert told.index("innodb_snapshot_isolation") < told.index("aria_0")
        assert "1020 record changed" in told and "it does not prove a cause" in told
    assert "and 19 more: the page" in terminal and "19 more settings" in page and "aria_29" in markdown


def _upgrade(ratio: float, **factors: list[str]) -> tuple[Study, list[Record]]:
    """A run of two versions, of which the later has another plan, errors and a changed default."""
    study = a_study({ENGINE_FACTOR: [OLD.level, NEW.level], **factors}, blocks=8)
    study = study.but(engine=Reference("mariadb", "10.11"))
    later = next(one.name for one in variants_of(study) if ENGINE_FACTOR in one.name or NEW.level in one.name)

    def as_seen(record: Record) -> Record:
        new = record.variant == later
        record = counted(record, errors={"1020 record changed": 3} if new else {})
        plan = planned("q3", TEXT, (BY_SCAN if new else BY_INDEX,))
        defaults = {"a": "1", "b": "2" if new else "1"}
        return changed(record, defaults=defaults, plans=Plans(statements=(plan,)))

    return study, [as_seen(one) for one in records_of(study, {later: ratio})]


def _answer(study: Study, records: list[Record]) -> str:
    return " ".join(map(plain, run.document(analyse(study, a_run(study), records)).answer))


def test_an_upgrade_begins_with_what_it_changes() -> None:
    for ratio, told in ((1.3, "faster than"), (0.7, "slower than"), (1.0, "as fast as")):
        said = _answer(*_upgrade(ratio))
        assert said.startswith(f"{NEW.level} is {told} {OLD.level}: throughput "), said
        assert said.endswith("; 1 statement with another plan, 24 errors, 1 changed default of 2."), said


def test_an_upgrade_begins_with_the_statements_that_it_slows_down() -> None:
    study, records = _upgrade(0.7)
    analysis = analyse(study, a_run(study), records)
    later = analysis.candidates[0].name
    told = (RatioPosition.ABOVE, RatioPosition.ABOVE, RatioPosition.BELOW, RatioPosition.OPEN)
    ratios = tuple(
        StatementRatio(
            statement=f"q{number}", variant=later, baseline_ms=1.0, ms=1.0, blocks=8, ratio=1.0, told=one
        )
        for number, one in enumerate(told)
    )
    found = StatementsCompared(comparisons=4, confidence=0.95, ratios=ratios)
    said = " ".join(map(plain, run.document(analysis.but(statements_compared=found)).answer))
    assert "; 2 slower and 1 faster of 4 statements, 1 statement with another plan" in said


def test_a_run_that_varies_more_than_the_version_has_the_answer_of_any_run() -> None:
    assert "changed default" not in _answer(*_upgrade(1.3, **{"config.pool": ["64M", "1G"]}))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("gcc (Debian 12.2.0-14) 12.2.0", "gcc (Ubuntu) 7.5.0", "gcc 7.5.0 and not by gcc 12.2.0"),
        ("gcc (Debian) 12.2.0", "gcc (SUSE) 12.2.0", "gcc (SUSE) 12.2.0 and not by gcc (Debian) 12.2.0"),
        ("gcc 12.2.0", "gcc 12.2.0", ""),
        ("", "gcc 12.2.0", ""),
    ],
)
def test_a_version_that_another_compiler_made_is_told_with_it(before: str, after: str, told: str) -> None:
    study, records = _upgrade(1.3)
    analysis = analyse(study, a_run(study), records)
    found = EnginesCompared(ran=(OLD.but(compiler=before), NEW.but(compiler=after)))
    for form in in_every_form(run.document(analysis.but(engines=found))):
        shown = " ".join(form.replace("\\", "").split())
        assert (f"compiled by {told}" in shown) is bool(told)
        assert ("of the compiler and its options" in shown) is bool(told)
