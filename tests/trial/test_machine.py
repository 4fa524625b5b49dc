"""An emulated machine is reset by kexec: its engine answers, and its log no longer explains its TPM."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.sqlite import shell
from dbdyno.errors import DynoError
from dbdyno.host.cache import silently
from dbdyno.host.journal import open_journal
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.machine import kinds, packages
from dbdyno.plan.restarts import turn_of
from dbdyno.prepare_run.begun import Begun, bench_of, new_run
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import ComparisonRun
from dbdyno.run import run_trial
from dbdyno.study.nouns import MACHINE_FACTOR, Reference
from dbdyno.study.reader import parse_study

STUDY = b"""
engine = "sqlite"
[workload]
name = "tpcb"
[settings]
"platform.architecture" = "ppc64el"
"machine.reset" = "kexec"
[restarts]
resets = 1
"""


def fetched() -> None:
    """Skips where the machine or its guest cannot be had."""
    try:
        kind = kinds.machine_kind("ppc64el")
        try:
            packages.locate(kind, shell.RECIPE)
        except DynoError:
            packages.fetch(kind, shell.RECIPE, "", "", silently)
    except DynoError as missing:
        pytest.skip(f"an emulated machine cannot be had here: {missing.message}")


def carried_out() -> Record:
    study = parse_study(STUDY, replace(catalogue(ask_engines=False), lone=True), "reset.toml")
    installed = registry.locate(Reference.of("sqlite"))
    run = new_run(ComparisonRun, study, installed, silently)
    with open_journal() as journal:
        bench = bench_of(Begun(study, run, installed), journal, None, NOTHING_ALLOWED)
        [trial] = turn_of(study, run, 0)
        return run_trial(trial, bench)


@pytest.mark.engine
def test_a_machine_that_was_reset_by_kexec_cannot_explain_its_tpm(homes_with_engines: Path) -> None:
    fetched()
    record = carried_out()
    assert (record.outcome, record.cause) == (Outcome.MEASURED, "")
    [recovery] = record.recoveries
    reset = recovery.reset
    assert reset is not None
    assert not reset.firmware_again and reset.firmware_s is None
    assert reset.firmware.explains and reset.firmware.events > 0
    assert reset.kernel.unexplained == (10,)
    assert reset.with_earlier.explains and reset.with_earlier.events > reset.kernel.events > 0
    assert [check.holds for check in record.checks] == [True]
    shown = {one.factor: one for one in record.evidence}
    assert shown[MACHINE_FACTOR].in_effect and "ppc64le, pages of 64 kB" in str(record.evidence[0].effective)
    assert record.platform is not None and record.platform.emulator.startswith("qemu-system-ppc64 ")
    assert record.platform.page_bytes == 65536


def test_a_host_without_an_emulator_blocks_the_trial_and_says_what_to_install(
    homes_with_engines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == kinds.TPM else f"/bin/{program}")
    record = carried_out()
    assert record.outcome is Outcome.BLOCKED
    assert record.cause == "no machine of ppc64el runs here: swtpm is not installed"
    assert record.remedy == "apt-get install swtpm"
