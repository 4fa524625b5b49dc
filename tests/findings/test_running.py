"""What a report says of a server that ran already."""

from __future__ import annotations

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse
from dbdyno.findings import running as part
from dbdyno.records.in_use import GuardSeen, Identity, InUse, Means, Moved, SettingWay
from tests.analyse.factory import a_run, a_study, records_of
from tests.report.forms import as_markdown

URL = "postgresql://tuner@db1/shop"
RELOAD = SettingWay(
    name="checkpoint_timeout", means=Means.SERVER, does="ALTER SYSTEM and a reload", now="7min"
)
IN_USE = InUse(
    url=URL,
    identity=Identity(version="15.18", digest="d", account="tuner", replica="a standby", others=2),
    here=False,
    data="mine",
    ways=(RELOAD, SettingWay(name="work_mem", means=Means.SESSION, does="SET", now="4MB")),
    moved=(Moved(name="checkpoint_timeout", does=RELOAD.does, line="7min", before="7min", after="7min"),),
    ledger="in the journal of this host",
    guard="nothing slow (pg_stat_activity)",
    seen=GuardSeen(looks=9, p99_s=1.5, stopped="its statements were slow"),
)


def analysed(in_use: InUse | None) -> Analysis:
    study = a_study()
    return analyse(study, a_run(study).but(in_use=in_use), records_of(study))


def test_settings_stand_with_how_they_were_moved_and_what_was_read_afterwards() -> None:
    told = as_markdown(analysed(IN_USE))
    assert part.TITLE in told
    assert "| checkpoint_timeout | ALTER SYSTEM and a reload | 7min | 7min, put back and read |" in told
    assert f"| work_mem | {part.BY_SESSION} | 4MB | – |" in told
    for sentence in (
        "It is a standby. It was only read.",
        "it had 2 sessions of others",
        "in sessions that the server held read-only",
        "The most that 9 looks, a second apart, saw were 1.500 s",
        "The run was stopped, because its statements were slow.",
        part.UNKNOWN,
        part.UNKNOWN_HOST,
    ):
        assert sentence in told, sentence


def test_the_command_that_goes_on_allows_the_server_again() -> None:
    study = a_study()
    cut_short = records_of(study, {"config.page_cache=64k": 1.01})[:-1]
    told = as_markdown(analyse(study, a_run(study).but(in_use=IN_USE), cut_short))
    assert f"--allow-server {URL}" in told.replace("\\", "")


def test_what_was_not_put_back_is_not_said_to_be() -> None:
    moved = IN_USE.moved[0]
    told = as_markdown(analysed(IN_USE.but(moved=(moved.but(after=None),))))
    assert "not read: the journal puts it back" in told
    others = as_markdown(
        analysed(IN_USE.but(moved=(moved.but(after="9min", left="others have changed it"),)))
    )
    assert "9min: others have changed it" in others


def test_what_others_changed_meanwhile_is_told() -> None:
    told = as_markdown(analysed(IN_USE.but(others_moved=("max_connect_errors from 100 to 1234",))))
    assert "others changed max_connect_errors from 100 to 1234" in told
    assert "others changed" not in as_markdown(analysed(IN_USE))


def test_a_run_that_started_its_server_says_nothing_of_that() -> None:
    assert part.TITLE not in as_markdown(analysed(None))
