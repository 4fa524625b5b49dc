"""A real application in front of a real server: filled, started, proved, loaded, checked, and ended."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.host.journal import open_journal
from dbdyno.prepare_run.stored_study import asked_by
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.run import run_trial
from dbdyno.study import Factor, Workload
from dbdyno.study.trials import Trial, Variant, phases_of
from dbdyno.trial import prepare
from tests.applications.shop import SCRIPT as SHOP_SCRIPT
from tests.applications.shop import behind_shop
from tests.cli.calls import dyno
from tests.trials import bench_of, study_of

VARIABLE = "DYNO_TEST_KEYSTONE"
ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "application.toml"


def test_a_study_whose_application_is_missing_is_not_begun(homes_with_engines: Path) -> None:
    said = dyno("run", str(STUDY))
    assert said.returncode == 2, said.stderr
    assert "[front.keystone] needs keystone==30.0.0" in " ".join(said.stderr.split())
    assert "pip install keystone==30.0.0 gunicorn PyMySQL" in " ".join(said.stderr.split())


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"needs Keystone: set {VARIABLE} to its environment")
def test_keystone_takes_the_load_in_front_of_mariadb(homes_with_engines: Path) -> None:
    shelf = paths.cache() / "applications"
    shelf.mkdir()
    (shelf / "keystone-30.0.0").symlink_to(os.environ[VARIABLE])
    study = asked_by(STUDY.read_text(), str(STUDY), STUDY.parent, None).but(
        settings={
            "front.kind": "keystone",
            "front.identity.password_hash_rounds": 4,
            "front.token.expiration": 600,
        },
        factors=(Factor(name="config.innodb_flush_log_at_trx_commit", levels=(1,)),),
        blocks=1,
    )
    study = study.but(workload=study.workload.but(clients=3, warmup_s=0.5, duration_s=3.0))
    variant = Variant(name="baseline", levels=study.baseline)
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    with open_journal() as journal:
        record = run_trial(trial, bench_of(study, journal))
    assert record.outcome is Outcome.MEASURED, (record.cause, record.server_log)
    proofs = {one.factor: one for one in record.evidence}
    assert {"front.workers", "front.packages", "front.server"} <= proofs.keys()
    assert proofs["front.workers"].requested == str(study.fronts["keystone"].workers)
    assert proofs["front.token.expiration"].effective is not None
    assert all(one.in_effect for one in record.evidence), record.evidence
    [users] = [check for check in record.checks if check.name == "every_acknowledged_user_is_there"]
    assert users.holds, users
    assert record.tally is not None and not record.tally.errors, record.tally
    assert record.observation is not None
    totals = record.observation.totals
    assert totals["application_cpu_user_s"] > 0
    assert totals["application_busy_s"] > totals["application_database_s"] > 0
    assert totals["application_requests"] >= record.tally.operations
    left = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
    assert not [command for command in left if "gunicorn" in command]


@pytest.fixture(scope="module")
def shop_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests: data are made for a script once."""
    script = tmp_path_factory.mktemp("shop") / "shop.toml"
    script.write_text(SHOP_SCRIPT)
    return script


def behind_the_shop(manner: str, script: Path, **levels: Level) -> Record:
    """A short trial of MariaDB behind the shop, which leaves no process behind."""
    # Long enough for a client to be refused a hundred times; most trials end before.
    workload = Workload(name="script", clients=3, duration_s=3.0, warmup_s=0.0, options={"file": str(script)})
    wanted = {f"config.{name}": level for name, level in levels.items()}
    study = behind_shop(study_of("mariadb", wanted).but(workload=workload), manner)
    variant = Variant(name="baseline", levels=wanted)
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    with open_journal() as journal:
        record = run_trial(trial, bench_of(study, journal))
    left = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
    assert not [command for command in left if "shop_served" in command or "mariadbd" in command], left
    return record


def test_an_application_that_works_is_measured(homes_with_data: Path, shop_script: Path) -> None:
    record = behind_the_shop("sells", shop_script)
    assert record.outcome is Outcome.MEASURED, (record.cause, record.server_log)
    assert record.tally is not None and record.tally.operations > 0 and not record.tally.errors


def test_an_application_that_does_not_start_fails_the_trial_with_what_it_said(
    homes_with_data: Path, shop_script: Path
) -> None:
    record = behind_the_shop("does not start", shop_script)
    assert record.outcome is Outcome.FAILED
    assert record.cause.startswith("shop ") and "while it was starting" in record.cause, record.cause
    assert "the shelf has no column `price`" in record.cause
    assert record.remedy.startswith("read its log")


def test_an_application_that_answers_500_alone_fails_the_trial_with_its_answer(
    homes_with_data: Path, shop_script: Path
) -> None:
    record = behind_the_shop("breaks", shop_script)
    assert record.outcome is Outcome.FAILED
    assert "POST /buy was answered with 500 Internal Server Error" in record.cause, record.cause
    assert "the till is empty" in record.cause and record.remedy == "read the log of the application"


def test_an_application_that_answers_503_now_and_then_makes_the_trial_doubtful(
    homes_with_data: Path, shop_script: Path
) -> None:
    record = behind_the_shop("stumbles", shop_script)
    assert record.outcome is Outcome.MEASURED, (record.cause, record.server_log)
    assert "503 Service Unavailable (" in record.doubts[Doubt.ERRORS_IN_LOAD], record.doubts


def test_an_application_that_leaves_its_server_no_connection_fails_the_trial_with_the_servers_words(
    homes_with_data: Path, shop_script: Path
) -> None:
    record = behind_the_shop("leaks", shop_script, max_connections=10)
    assert record.outcome is Outcome.FAILED, (record.outcome, record.cause)
    assert record.cause.startswith("the server accepts no connection beside those of shop:")
    assert "Too many connections (error 1040)" in record.cause, record.cause
    assert "500 Internal Server Error" in record.cause, record.cause
    assert "max_connections" in record.remedy and "leak" in record.remedy, record.remedy


def test_an_application_that_gives_no_answer_loses_its_clients(
    homes_with_data: Path, shop_script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "REQUEST_PATIENCE_S", 0.5)
    record = behind_the_shop("sleeps", shop_script)
    assert record.outcome is Outcome.BROKEN
    assert "3 of 3 clients lost their connection" in record.cause, record.cause
    assert "no answer (3)" in record.cause, record.cause


def test_an_application_that_never_answers_start_fails_the_trial_with_the_place_of_the_request(
    homes_with_data: Path, shop_script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "REQUEST_PATIENCE_S", 0.5)
    record = behind_the_shop("never lets in", shop_script)
    assert record.outcome is Outcome.FAILED
    assert "still waits for the answer to start (" in record.cause, record.cause
    assert "shop.toml:" in record.cause, record.cause


def test_an_application_that_dies_breaks_the_trial_and_leaves_its_log(
    homes_with_data: Path, shop_script: Path
) -> None:
    record = behind_the_shop("dies", shop_script)
    assert (record.outcome, record.cause) == (Outcome.BROKEN, "shop died under the load")
    assert "the roof came down" in record.server_log
