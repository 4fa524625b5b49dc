"""The action for GitHub and the template for GitLab hold a change against its target: their own steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml  # type: ignore[import-untyped]

from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint
from tests.study_texts import STUDY

ROOT = Path(__file__).parents[1]
SLOWER = 6
ALONE = STUDY.replace("blocks = 2", "blocks = 6").partition("[factors]")[0]
PLACE = "bench/study.toml"


def with_setting(level: str) -> str:
    return f'{ALONE}[settings]\n"config.synchronous" = "{level}"\n'


def git(clone: Path, *arguments: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(clone), *named, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(homes: Path) -> Path:
    """A clone whose last commit has `main`'s study, which does not wait for the disk, changed to one that
    does. The commit before has no study."""
    clone = homes / "clone"
    study = clone / PLACE
    study.parent.mkdir(parents=True)
    git(clone, "init", "--quiet", "--initial-branch", "main")
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "begin")
    git(clone, "tag", "begin")
    study.write_text(with_setting("OFF"))
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "target")
    git(clone, "tag", "target")
    study.write_text(with_setting("FULL"))
    git(clone, "commit", "--quiet", "--all", "--message", "change")
    return clone


def carried_out(script: str, clone: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A step as its pipeline runs it, with this Dyno on the path."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=clone,
        env={**os.environ, "PATH": programs, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def step(name: str) -> dict[str, Any]:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    return next(one for one in action["runs"]["steps"] if one["name"] == name)


def on_github(clone: Path, target: str) -> tuple[str, str]:
    """What the step that measures hands on, and what it writes into the job's summary."""
    output, summary = clone.parent / "output", clone.parent / "summary"
    done = carried_out(
        step("Measure side by side")["run"], clone, STUDY=PLACE, TARGET=target, OPTIONS="--quiet",
        GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return output.read_text(), summary.read_text()


def test_a_pull_request_that_slows_the_server_down_is_told_and_ends_its_job(clone: Path) -> None:
    handed_on, summary = on_github(clone, git(clone, "rev-parse", "target"))
    assert handed_on == f"code={SLOWER}\n"
    assert "**▼ Slower:" in summary
    assert (clone / "dyno-gate.md").read_text() in summary
    tell = step("Tell a finding")
    assert f'"{SLOWER}"' in tell["if"] and tell["run"].endswith("--body-file dyno-gate.md")
    ended = carried_out(step("End by the verdict")["run"], clone, CODE=str(SLOWER))
    assert ended.returncode == SLOWER
    assert git(clone, "status", "--porcelain") == "?? dyno-gate.md"
    with Store(store_url()) as store:
        assert len(store.runs()) == 2


def test_a_target_without_the_study_is_no_finding(clone: Path) -> None:
    handed_on, summary = on_github(clone, "begin")
    assert handed_on == "code=0\n"
    assert summary == f"There is no reference: begin has no {PLACE}, so nothing was measured.\n"


def test_a_merge_request_is_held_against_its_target(clone: Path) -> None:
    template = yaml.safe_load((ROOT / "pipelines/gitlab.yml").read_text())[".dyno-gate"]
    fetch = next(place for place, line in enumerate(template["script"]) if line.startswith("git fetch"))
    script = "\n".join(template["script"][fetch:])
    git(clone, "remote", "add", "origin", str(clone))
    git(clone, "branch", "target-branch", "target")
    variables = {
        "DYNO_STUDY": PLACE,
        "DYNO_OPTIONS": "--quiet",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "target-branch",
    }
    done = carried_out(script, clone, **variables)
    assert done.returncode == SLOWER, done.stderr
    junit = clone / template["artifacts"]["reports"]["junit"]
    assert ElementTree.parse(junit).getroot()[0].attrib["failures"] == "1"
    assert "Slower" in (clone / template["artifacts"]["paths"][0]).read_text()


def test_what_cannot_be_held_against_is_told(clone: Path, tmp_path: Path) -> None:
    study = str(clone / PLACE)
    told = complaint("run", study, "--against", "git:nowhere")
    assert "has no revision nowhere" in told
    told = complaint("run", study, "--against", "git:begin")
    assert f"has no {PLACE}, so there is nothing to hold against" in told
    outside = tmp_path / "outside.toml"
    outside.write_text(with_setting("OFF"))
    assert "git" in complaint("run", str(outside), "--against", "git:main")
