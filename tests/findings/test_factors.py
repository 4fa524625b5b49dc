"""The grid: baseline = 100, every setting in its place, words where there is no speed."""

from __future__ import annotations

from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from dbdyno.analyse.model import Verdict
from dbdyno.findings import analyse
from dbdyno.findings.factors import FactorCell, grid, grid_sections
from dbdyno.frozen import Level
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Design
from tests.analyse.factory import a_run, a_study, broken, changed, records_of
from tests.report.forms import print_sections

FACTORS: dict[str, list[Level]] = {"config.a": [1, True], "storage.filesystem": ["raw", "ext4", "xfs"]}


def blocked(record: Record) -> Record:
    return changed(record, outcome=Outcome.BLOCKED, tally=None, cause="cannot")


def test_every_setting_stands_in_its_place() -> None:
    study = a_study(FACTORS, Design.FACTORIAL)
    ratios = {"config.a=true, storage.filesystem=xfs": 0.5}
    records = records_of(study, ratios, {"config.a=true": blocked})
    analysis = analyse(study, a_run(study), records)
    found = grid(analysis)
    assert found is not None
    assert (found.across, found.down, found.heads) == (
        "storage.filesystem",
        ("config.a",),
        ("raw", "ext4", "xfs"),
    )
    [(first, plain), (second, changed)] = found.rows
    assert (first, second) == (("1",), ("true",))
    assert plain[0] == FactorCell("100")
    assert changed[0] == FactorCell("blocked", verdict=Verdict.BLOCKED)
    by_name = {variant.name: variant for variant in analysis.variants}
    effect = by_name["config.a=true, storage.filesystem=xfs"].effect
    assert effect is not None and effect.low is not None
    assert 40 < float(changed[2].value) < 60
    assert changed[2].value == f"{effect.ratio * 100:.1f}"
    assert changed[2].spread.startswith(f"{effect.low * 100:.1f}")


def test_a_broken_setup_has_a_word_and_no_speed() -> None:
    study = a_study(FACTORS, Design.FACTORIAL)
    failing = broken("account 118, history 117")
    changes = {"config.a=true": lambda record: failing(record) if record.block == 2 else record}
    found = grid(analyse(study, a_run(study), records_of(study, changes=changes)))
    assert found is not None
    assert found.rows[1][1][0] == FactorCell("broken", verdict=Verdict.BROKEN)


@pytest.mark.parametrize(("width", "fits"), [(200, True), (60, True), (20, False)])
def test_a_grid_is_shown_with_all_its_labels_or_not_at_all(width: int, fits: bool) -> None:
    levels: list[Level] = ["raw", "ext2", "ext3", "ext4", "xfs", "btrfs"]
    study = a_study(
        {"config.a": ["defaults", "sync,noatime"], "storage.filesystem": levels}, Design.FACTORIAL
    )
    console = Console(file=StringIO(), width=width)
    print_sections(grid_sections(analyse(study, a_run(study), records_of(study))), console)
    printed = cast(StringIO, console.file).getvalue()
    shown = [str(label) in printed for label in (*levels, "defaults", "sync,noatime", "100")]
    assert all(shown) if fits else printed == ""


def test_one_factor_makes_no_grid() -> None:
    study = a_study({"config.a": [1, 2]}, Design.FACTORIAL)
    assert grid(analyse(study, a_run(study), [])) is None


def test_other_designs_have_none() -> None:
    study = a_study(FACTORS)
    assert grid(analyse(study, a_run(study), [])) is None
