"""What happened when, as a page tells it: errors, and quantities second by second."""

from __future__ import annotations

import json

from dbdyno.analyse import Analysis
from dbdyno.findings import over_time
from dbdyno.findings.run import document
from dbdyno.records.record import Observation, Record
from dbdyno.report.renderers import html, terminal
from tests.analyse.factory import DURATION_S, a_second, a_study, changed, records_of
from tests.report.browser import Outline
from tests.report.cases import CASES, analysed
from tests.report.forms import on_terminal
from tests.report.shown import packed_in

FAST = "config.page_cache=64k"
DEADLOCK = "1213 deadlock"


def with_errors(record: Record) -> Record:
    """Deadlocks in one second, all of one statement."""
    assert record.tally is not None
    series = [one.but(errors=7) if one.second == 3 else one for one in record.tally.series]
    latency = record.tally.latency_us.but(count=700)
    told = record.tally.but(
        errors={DEADLOCK: 7},
        error_examples={DEADLOCK: "Deadlock found\nwhen trying to get lock"},
        retries=7,
        series=tuple(series),
        by_statement={"UPDATE t SET a = ?": {"errors": 7, "latency_us": latency.model_dump()}},
    )
    return changed(record, tally=type(told).model_validate(told.model_dump()))


def failing() -> Analysis:
    study = a_study()
    return analysed(study, records_of(study, changes={FAST: with_errors}))


def test_errors_are_told_by_code_text_statement_number_and_second() -> None:
    report = document(failing())
    blocks = failing().study.blocks
    shown = Outline(html.render(report)).shown
    assert DEADLOCK in shown and "Deadlock found when trying to get lock" in shown
    assert "UPDATE t SET a = ?" in shown and f"{7 * blocks}" in shown and "second 3" in shown
    assert DEADLOCK in on_terminal(lambda console: terminal.render(report, console, details=True))


def test_a_run_without_an_error_has_no_such_section() -> None:
    assert [*over_time.error_sections(CASES["one_block"]())] == []


def figure_of(title: str, analysis: Analysis) -> dict[str, object] | None:
    """The panel of that title."""
    frame = over_time._Frame(analysis)
    panels = (*over_time.LOAD, *over_time.SERVER, *over_time.HOST)
    return over_time.drawn(frame, next(one for one in panels if one.title == title), legend=True)


def test_every_block_has_its_place_on_the_axis_and_every_second_its_point() -> None:
    analysis = failing()
    frame = over_time._Frame(analysis)
    rows = over_time._rows(over_time.LOAD[0], frame)
    blocks = analysis.study.blocks
    assert len(rows) == 2 * blocks and frame.seconds == DURATION_S
    assert {row["second"][0] for row in rows} == {block * DURATION_S for block in range(blocks)}
    one = next(row for row in rows if row["block"] == 2)
    record = next(record for record in frame.records if record.block == 1)
    assert record.tally is not None
    counts = {point.second: point.operations for point in record.tally.series}
    assert one["value"] == [float(f"{counts[second]:.4g}") for second in range(DURATION_S)]


def test_many_seconds_are_put_together_into_few_points() -> None:
    study = a_study(blocks=2)
    hour = [a_second(second, 100 + second % 2) for second in range(-5, 3600)]

    def long(record: Record) -> Record:
        assert record.tally is not None
        return changed(record, tally=record.tally.but(series=tuple(hour), duration_s=3600.0))

    changes = {"baseline": long, FAST: long}
    frame = over_time._Frame(analysed(study, records_of(study, changes=changes)))
    rows = over_time._rows(over_time.LOAD[0], frame)
    assert sum(len(row["value"]) for row in rows if row["variant"] == "baseline") <= over_time.POINTS_MOST
    assert {round(value, 1) for row in rows for value in row["value"]} == {100.5}


def test_what_the_server_and_the_host_did_stands_below_the_load() -> None:
    seen = {
        "server_cpu_s": [0.5] * DURATION_S,
        "host_busy_s": [0.75] * DURATION_S,
        "disk_reads": [3.0] * DURATION_S,
        "disk_writes": [1.0] * DURATION_S,
        "disk_wait_s": [0.008] * DURATION_S,
        "transactions_behind": [7.0] * DURATION_S,
    }

    def observed(record: Record) -> Record:
        assert record.observation is not None
        found: Observation = record.observation.but(
            series=seen, engine_series={"syncs": [2.0] * DURATION_S}, waits={"IO: WalSync": 1.5}
        )
        return changed(record, observation=found)

    study = a_study()
    analysis = analysed(study, records_of(study, changes={"baseline": observed, FAST: observed}))
    latency = over_time._rows(
        next(one for one in over_time.HOST if "latency" in one.title), over_time._Frame(analysis)
    )
    assert {value for row in latency for value in row["value"]} == {2.0}
    page = html.render(document(analysis))
    shown = Outline(page).shown
    assert "The server over time" in shown and "The host over time" in shown
    assert "IO: WalSync" in shown and "1.50" in shown
    titles = json.dumps(packed_in(page))
    assert "transactions not applied by the replica furthest behind" in titles
    assert "syncs, per s" in titles and "disk, latency in ms" in titles and "steal" not in titles
    assert figure_of("steal, CPUs", analysis) is None, "nothing was seen of it"
