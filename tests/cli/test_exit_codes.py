"""Exit codes by verdict: what a pipeline stops by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dbdyno.cli.exit_codes import exit_code, gate_fails_on
from dbdyno.cli.options import fail_on_option
from dbdyno.findings import analyse
from dbdyno.records.record import Outcome
from tests.analyse.factory import Change, a_run, a_study, broken, ended, records_of
from tests.analyse.platforms_cases import BLOCKED, EMULATED, LOSING, NATIVE, analysed
from tests.cli.calls import complaint, dyno
from tests.study_texts import STUDY

VARIANT = "config.page_cache=64k"
NO_SERVER = ended(Outcome.FAILED, "the server did not start", "")


def code_of(
    fail_on: str, ratios: Mapping[str, float] | None = None, changes: Mapping[str, Change] | None = None
) -> int:
    study = a_study()
    analysis = analyse(study, a_run(study), records_of(study, ratios or {}, changes or {}))
    return exit_code(analysis, tuple(fail_on.split(",")))


@pytest.mark.parametrize(
    ("fail_on", "ratio", "code"),
    [
        ("slower", 0.5, 6),
        ("slower", 2.0, 0),
        ("broken", 0.5, 0),
        ("broken,slower", 0.5, 6),
        ("slower,inconclusive", 2.0, 0),
        ("slower,broken", 1.02, 0),
    ],
)
def test_a_verdict_has_a_code_where_it_is_asked_for(fail_on: str, ratio: float, code: int) -> None:
    assert code_of(fail_on, {VARIANT: ratio}) == code


def test_the_worst_verdict_gives_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("broken", changes={VARIANT: broken("account 118, history 117")}) == 4
    assert code_of("slower,failed", changes={VARIANT: NO_SERVER}) == 5
    assert f"exit code 5, failed: {VARIANT}" in capsys.readouterr().err


def test_an_inert_level_has_a_code_of_its_own() -> None:
    same = ended(Outcome.INERT, "12,431 functions are equal")
    assert code_of("inert", changes={VARIANT: same}) == 8
    assert code_of("failed,inconclusive", changes={VARIANT: same}) == 0


@pytest.mark.parametrize("change", [NO_SERVER, broken("account 118, history 117")])
def test_a_baseline_without_a_speed_is_never_a_success(change: Change) -> None:
    assert code_of("", changes={"baseline": change}) == 3


def test_a_run_ends_with_the_code_of_its_verdict_and_so_does_its_report(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(STUDY)
    said = dyno("run", str(path), "--quiet", "--blocks", "1", "--fail-on", "slower,inconclusive")
    assert said.returncode == 7, said.stderr
    assert "exit code 7, inconclusive: config.synchronous=OFF" in said.stderr
    assert dyno("report", "--fail-on", "inconclusive").returncode == 7
    assert dyno("report", "--fail-on", "slower").returncode == 0
    assert dyno("report").returncode == 0


@pytest.mark.parametrize(
    ("preferred", "given", "stops_by"),
    [
        ("", [], "broken,failed,slower"),
        ("inconclusive", [], "broken,failed,slower,inconclusive"),
        ("broken", [], "broken,failed,slower"),
        ("inconclusive", ["--fail-on", "broken"], "broken"),
        ("inconclusive", ["--fail-on", "none"], "broken,failed,slower"),
    ],
)
def test_a_preference_only_adds_to_what_a_gate_stops_by(
    homes: Path, monkeypatch: pytest.MonkeyPatch, preferred: str, given: list[str], stops_by: str
) -> None:
    @click.command()
    @fail_on_option
    def gate(fail_on: tuple[str, ...]) -> None:
        click.echo(",".join(gate_fails_on(fail_on)))

    monkeypatch.setenv("DYNO_FAIL_ON", preferred)
    assert CliRunner().invoke(gate, given).output.strip() == stops_by


def test_a_verdict_that_there_is_not_is_refused(homes: Path) -> None:
    assert "'sloer' is none of broken, failed, slower, inconclusive" in complaint(
        "report", "--fail-on", "sloer"
    )


def test_a_platform_that_does_not_work_has_a_code_and_emulated_speed_has_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ("broken", "failed")
    assert exit_code(analysed(NATIVE, EMULATED), asked) == 0
    assert exit_code(analysed(NATIVE, LOSING), asked) == 4
    assert exit_code(analysed(NATIVE, BLOCKED), asked) == 5
    assert exit_code(analysed(BLOCKED), ()) == 3
    assert "exit code 3, no platform works" in capsys.readouterr().err
