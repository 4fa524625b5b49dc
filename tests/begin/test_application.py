"""The application in front of a server, as a plan shows it."""

from __future__ import annotations

import json
from pathlib import Path

from dbdyno.begin.building import builds_of
from dbdyno.begin.study_file import study_at
from tests.applications.keystone.obtaining_cases import ALL, environment
from tests.cli.calls import dyno

ROOT = Path(__file__).parents[2]


def a_study(folder: Path, name: str, file: str = "application.toml") -> str:
    text = (ROOT / "studies" / file).read_text()
    script = ROOT / "docs" / "guides" / "keystone.toml"
    text = text.replace('name     = "keystone"', f'name     = "{name}"').replace(
        "../docs/guides/keystone.toml", str(script)
    )
    path = folder / "study.toml"
    path.write_text(text)
    return str(path)


def test_a_plan_names_the_application_with_its_version_and_its_settings(tmp_path: Path) -> None:
    here = environment(tmp_path / "here", ALL)
    study = a_study(tmp_path, f"keystone:{here}")
    told = dyno("plan", study)
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    [place] = [
        number for number, line in enumerate(lines) if line.startswith("application: Keystone 30.0.0 (")
    ]
    assert lines[place].endswith(", 4 workers")
    assert lines[place + 1] == "  identity.password_hash_rounds = 4"
    planned = json.loads(dyno("plan", study, "--json").stdout)["application"]
    assert (planned["name"], planned["version"], planned["workers"]) == ("Keystone", "30.0.0", 4)
    assert planned["digest"] and not planned["missing"]
    assert planned["settings"]["identity.max_password_length"] == 72


def test_a_plan_says_how_to_install_an_application_that_is_missing(tmp_path: Path) -> None:
    told = dyno("plan", a_study(tmp_path, "keystone@29"))
    assert told.returncode == 0, told.stderr
    said = " ".join(told.stdout.split())
    assert "application: Keystone 29, 4 workers" in said
    assert "Keystone 29 is not on this machine" in said and "pip install keystone==29" in said


def test_what_is_known_of_builds_names_the_applications_own_load_that_trains_them(tmp_path: Path) -> None:
    asked = study_at(Path(a_study(tmp_path, "keystone@30", "application-builds.toml")))
    trainers = [build.trainer for build in builds_of(asked)]
    assert trainers[0] == "" and len(trainers) == 3
    assert trainers[1].startswith("read_write ") and trainers[1].endswith("2,000 transactions of 4 clients")
    assert trainers[2].startswith("script ") and "docs/guides/keystone.toml" in trainers[2]
