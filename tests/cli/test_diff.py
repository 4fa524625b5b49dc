"""`dyno diff`: two builds on the command line, in each form."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from dbdyno.cli.builds import kept_builds, next_command
from dbdyno.cli.diff import complete_build
from dbdyno.cli.verbs.read import diff
from dbdyno.engines import built as engines_built
from dbdyno.engines.sqlite import SQLITE
from dbdyno.host import cache
from dbdyno.obtain.source import making
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.needs import needs_gcc
from tests.obtain.binary import STORE, built
from tests.sqlite_fork import fork_wish, make_fork

pytestmark = needs_gcc


@pytest.fixture
def builds(tmp_path: Path, homes: Path) -> tuple[str, str]:
    left, right = built(tmp_path, "left"), built(tmp_path, "right", store=STORE.replace("* 31", "* 33"))
    return str(left), str(right)


def test_a_build_beside_itself_is_inert(builds: tuple[str, str]) -> None:
    assert "Inert: the code and data are the same" in " ".join(
        dyno("diff", builds[0], builds[0]).stdout.split()
    )


def test_the_function_that_differs_is_named(builds: tuple[str, str]) -> None:
    said = dyno("diff", *builds, "--json").stdout
    require_valid("diff", said)
    assert [change["name"] for change in json.loads(said)["changes"]] == ["hashed"]
    assert "hashed" in dyno("diff", *builds).stdout


@pytest.mark.parametrize(("ending", "beginning"), [("html", "<!doctype html>"), ("md", "# "), ("txt", "")])
def test_the_difference_is_written_in_every_form(
    builds: tuple[str, str], tmp_path: Path, ending: str, beginning: str
) -> None:
    path = tmp_path / f"difference.{ending}"
    assert dyno("diff", *builds, "--output", str(path)).stdout.strip() == str(path)
    text = path.read_text()
    assert text.lstrip().startswith(beginning) and "hashed" in text


def test_what_is_no_build_is_refused(builds: tuple[str, str], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert "no whole ELF file" in complaint("diff", builds[0], str(script))
    assert "names no format" in complaint("diff", *builds, "--output", str(tmp_path / "table.csv"))


@pytest.fixture
def kept(tmp_path: Path, homes: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of two kept builds."""
    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    make_fork(tmp_path / "study")
    wishes = [fork_wish(optimisation=level) for level in ("-O1", "-O3")]
    accounts = [engines_built.built(SQLITE, wish, tmp_path / "study").account for wish in wishes]
    return [f"sqlite-{account.key}" for account in accounts]


def test_kept_builds_are_compared_by_name(kept: list[str]) -> None:
    found = json.loads(dyno("diff", *kept, "--json").stdout)
    assert [name in found[side]["path"] for name, side in zip(kept, ("left", "right"), strict=True)] == [
        True,
        True,
    ]
    assert "fork_remark" in {change["name"] for change in found["changes"]}
    shorter = [kept[0][:-4], kept[1].removeprefix("sqlite-")[:12]]
    assert json.loads(dyno("diff", *shorter, "--json").stdout) == found


def test_the_verbs_of_builds_name_each_other(kept: list[str]) -> None:
    [told] = [line for line in dyno("cache", "builds").stderr.splitlines() if "dyno diff" in line]
    assert set(told.split()[-2:]) == set(kept)
    assert "dyno cache builds" in dyno("diff", *kept).stderr
    assert "dyno cache builds" not in dyno("diff", *kept, "--json").stderr


def test_builds_of_one_engine_are_offered_for_comparison(kept: list[str]) -> None:
    latest, earlier = kept_builds()
    other = latest.model_copy(update={"engine": "postgresql"})
    assert next_command([latest, other, earlier]).endswith(f" dyno diff {earlier.name} {latest.name}")
    assert next_command([other, latest]) == next_command([]) == ""


def test_a_name_that_could_be_several_builds_is_refused_with_them(kept: list[str]) -> None:
    said = complaint("diff", kept[0], "sqlite")
    assert "2 builds begin with sqlite" in said and all(name in said for name in kept)
    assert "there is no build and no file nosuch" in complaint("diff", kept[0], "nosuch")
    assert "there is no build and no file ./sqlite" in complaint("diff", kept[0], "./sqlite")


def test_a_build_of_an_older_dyno_is_named_by_its_file(kept: list[str]) -> None:
    cache.release()
    manifest = cache.shelf("builds").folder / kept[0] / making.MANIFEST
    account = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({name: value for name, value in account.items() if name != "program"}))
    assert "which file is its program" in complaint("diff", *kept)


def test_the_names_of_kept_builds_are_completed_beside_files(kept: list[str]) -> None:
    found = complete_build(click.Context(diff), diff.params[0], kept[1][:-1])
    assert [(item.value, item.type) for item in found] == [(kept[1], "plain"), (kept[1][:-1], "file")]
    assert found[0].help == "gcc -O3"
    by_key = complete_build(click.Context(diff), diff.params[0], kept[0].rpartition("-")[2][:8])
    assert [item.value for item in by_key if item.type == "plain"] == [kept[0]]


@pytest.mark.parametrize(
    ("given", "cause"),
    [("", "the name of a build is empty"), (".", ". is a folder"), ("./none", "no build and no file ./none")],
)
def test_what_names_no_program_is_told_by_its_cause(homes: Path, given: str, cause: str) -> None:
    assert cause in complaint("diff", given, given)
