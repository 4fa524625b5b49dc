"""What proves a run: trials that read the same share a row, and each trial has one of its own."""

from __future__ import annotations

from dbdyno.findings import evidence
from dbdyno.report.document import Facts, Fold, Section, Table, TableCell, cell, plain
from tests.report.cases import all_verdicts


def section(title: str) -> Section:
    [found] = [one for one in evidence.sections(all_verdicts()) if one.title == title]
    return found


def test_trials_with_the_same_readings_share_a_row() -> None:
    [fold] = [one for one in section("Evidence").body if isinstance(one, Fold)]
    [table] = fold.body
    assert isinstance(table, Table) and table.rows
    rows = [[plain(cell(one).words) for one in row] for row in table.rows]
    assert len({tuple(row[:-1]) for row in rows}) == len(rows)
    assert max(int(row[-1]) for row in rows) > 1
    trials = cell(table.rows[0][-1])
    assert trials.below and "variant" in plain(trials.below[0])


def test_every_trial_has_a_row_and_what_failed_has_its_cause_and_its_log() -> None:
    analysis = all_verdicts()
    [fold] = [one for one in section("Records").body if isinstance(one, Fold)]
    [table] = [one for one in fold.body if isinstance(one, Table)]
    assert len(table.rows) == len(analysis.trials)
    outcomes = [column.head for column in table.columns].index("outcome")
    for row, trial in zip(table.rows, analysis.trials, strict=True):
        ended = cell(row[outcomes])
        assert ended == TableCell(
            trial.record.outcome.value, (trial.record.cause,) if trial.record.cause else ()
        )


def test_the_host_and_the_study_are_named() -> None:
    folds = [one for one in section("Host and study").body if isinstance(one, Fold)]
    [facts] = [one for fold in folds for one in fold.body if isinstance(one, Facts)]
    names = [name for name, _ in facts.facts]
    assert "study" in names and "seed" in names and "installation.engine" in names


def test_what_a_trial_read_back_is_told_without_pointing_at_it() -> None:
    [fold] = [one for one in section("Records").body if isinstance(one, Fold)]
    [table] = fold.body
    assert isinstance(table, Table)
    told = [plain(line) for row in table.rows for line in cell(row[-1]).below]
    assert any(line.startswith("read back: ") for line in told)
