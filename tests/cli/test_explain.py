"""`dyno explain`, on stored runs: what it tells of a gap, and which runs it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import complaint, dyno
from tests.cli.explain_cases import Stored, text
from tests.cli.explain_cases import stored as stored


def test_a_factorial_run_is_explained(stored: Stored) -> None:
    stored("factorial", 2)
    said = dyno("explain", "gap", "--json")
    shares = {share["factor"]: share["share"]["ratio"] for share in json.loads(said.stdout)["shares"]}
    assert shares == pytest.approx({"config.f0": 2.0, "config.f1": 1.0}, rel=0.01)


@pytest.mark.parametrize(
    ("form", "beginning"), [("html", "<!doctype html>"), ("markdown", "# "), ("json", "{")]
)
def test_a_gap_is_written_in_every_form(stored: Stored, tmp_path: Path, form: str, beginning: str) -> None:
    stored("factorial", 2)
    path = tmp_path / "gap"
    said = dyno("explain", "gap", "--format", form, "--output", str(path))
    assert said.stdout.strip() == str(path), said.stderr
    text = path.read_text().lstrip()
    assert text.startswith(beginning) and "f0" in text and "2.0" in text


def test_a_list_is_explained_by_its_steps(stored: Stored) -> None:
    stored("list", 2)
    said = dyno("explain", "gap", "--json")
    shares = {share["factor"]: share["share"]["ratio"] for share in json.loads(said.stdout)["shares"]}
    assert shares == pytest.approx({"config.f0": 2.0, "config.f1": 1.0}, rel=0.01)
    assert "each variant over the one before it" in " ".join(dyno("explain", "gap").stdout.split())


def test_a_study_of_defaults_is_written_for_two_versions_alone(stored: Stored, tmp_path: Path) -> None:
    stored("factorial", 2)
    target = tmp_path / "apart.toml"
    said = complaint("explain", "gap", "--write", str(target))
    assert "do not differ in the version alone" in said and not target.exists()
    target.write_text("mine")
    assert f"{target} is there already" in complaint("explain", "gap", "--write", str(target))


def test_a_fraction_is_explained_with_its_residual_and_what_it_cannot_tell_apart(stored: Stored) -> None:
    stored("fractional-factorial", 7)
    said = dyno("explain", "gap")
    assert said.returncode == 0, said.stderr
    assert "not explained" in said.stdout and "C×E + F×G" in said.stdout
    assert "33 of 128 variants" in " ".join(said.stdout.split())


def test_a_fraction_has_no_inner_gaps(stored: Stored) -> None:
    stored("fractional-factorial", 7)
    end = "config.f0=1, config.f1=1, config.f2=1, config.f3=1, config.f4=1, config.f5=1, config.f6=1"
    assert "to every factor's second level" in complaint("explain", "gap", "--from", end)


def test_runs_that_measured_too_little_are_refused_with_the_design_that_would_do(stored: Stored) -> None:
    stored("one-at-a-time", 2)
    assert 'design = "factorial"' in complaint("explain", "gap")


def test_more_factors_than_can_be_shared_out_exactly_are_refused(stored: Stored) -> None:
    stored("factorial", 7)
    said = complaint("explain", "gap")
    assert "they differ in 7 factors, which is 128 variants" in said
    assert 'design = "fractional-factorial"' in said


def test_variants_are_listed_one_a_line_and_taken_by_their_number(stored: Stored) -> None:
    stored("factorial", 2)
    said = complaint("explain", "gap", "--from", "nosuch").splitlines()
    assert said[0].endswith("the run has no variant 'nosuch'")
    assert [line.split(maxsplit=1) for line in said[2:]] == [
        ["0", "baseline"],
        ["1", "config.f1=1"],
        ["2", "config.f0=1"],
        ["3", "config.f0=1, config.f1=1"],
    ]
    by_number = dyno("explain", "gap", "--from", "0", "--to", "2", "--json")
    by_name = dyno("explain", "gap", "--from", "baseline", "--to", "config.f0=1", "--json")
    assert by_number.returncode == 0 and by_number.stdout == by_name.stdout
    assert "no variant '4'" in complaint("explain", "gap", "--to", "4")


def test_a_plan_says_what_its_fraction_cannot_tell_apart(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(text("fractional-factorial", 7))
    said = dyno("plan", str(path))
    assert "resolution IV" in said.stdout and "C×E + F×G" in said.stdout
    assert "G = config.f6" in said.stdout


def test_too_many_factors_are_a_mistake_of_the_study(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(text("fractional-factorial", 13))
    assert "for 5 to 12 factors, and here are 13" in complaint("plan", str(path))
