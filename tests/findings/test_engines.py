"""Engines side by side, as a report shows them."""

from __future__ import annotations

from dbdyno.analyse.found import DefaultChanged, DefaultsBeside, EngineRan, EnginesCompared
from dbdyno.findings.engines import sections
from dbdyno.report.document import Document
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
        assert "took over a copy of them" in told
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
