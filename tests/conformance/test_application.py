"""A real application in front of a real server: filled, started, proved, loaded, checked, and ended."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from dbdyno.applications.registry import installed
from dbdyno.cli.progress import Quiet
from dbdyno.frozen import Level
from dbdyno.host.journal import open_journal
from dbdyno.records.record import Outcome
from dbdyno.run import run_trial
from dbdyno.study import Workload
from dbdyno.study.nouns import Application
from dbdyno.study.phases import phases_of
from dbdyno.study.trials import Trial, Variant
from tests.cli.test_cli import dyno
from tests.trials import bench_of, study_of

VARIABLE = "DYNO_TEST_KEYSTONE"
ROOT = Path(__file__).parents[2]
SCRIPT, STUDY = ROOT / "docs" / "guides" / "keystone.toml", ROOT / "studies" / "application.toml"
WORKERS = 2


def test_a_study_whose_application_is_missing_is_not_begun(homes_with_engines: Path) -> None:
    said = dyno("run", str(STUDY))
    assert said.returncode == 2, said.stderr
    assert "Keystone 30.0.0 is not on this machine" in said.stderr
    assert "pip install keystone==30.0.0 gunicorn PyMySQL" in " ".join(said.stderr.split())


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"needs Keystone: set {VARIABLE} to its environment")
def test_keystone_takes_the_load_in_front_of_mariadb(homes_with_engines: Path) -> None:
    settings: dict[str, Level] = {"identity.password_hash_rounds": 4, "token.expiration": 600}
    wish = Application(name="keystone", path=os.environ[VARIABLE], workers=WORKERS, settings=settings)
    workload = Workload(name="script", clients=3, warmup_s=0.5, duration_s=3.0, options={"file": str(SCRIPT)})
    study = study_of("mariadb", {}).model_copy(update={"workload": workload, "application": wish})
    variant = Variant(name="baseline", levels={})
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    with open_journal() as journal:
        bench = replace(bench_of(study, journal), application=installed(wish))
        record = run_trial(trial, bench, lambda _: None, Quiet())
    assert record.outcome is Outcome.MEASURED, (record.cause, record.server_log)
    proofs = {one.factor: one for one in record.evidence}
    assert proofs["application.workers"].requested == str(WORKERS)
    assert proofs["application.token.expiration"].effective is not None
    assert all(one.in_effect for one in record.evidence), record.evidence
    [users] = [check for check in record.checks if check.name == "every_acknowledged_user_is_there"]
    assert users.holds, users
    assert record.tally is not None and not record.tally.errors, record.tally
    assert record.observation is not None and record.observation.totals["application_cpu_user_s"] > 0
    left = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
    assert not [command for command in left if "gunicorn" in command]
