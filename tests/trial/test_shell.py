"""An embedded engine that is built for another machine, and asked by its shell of that machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.host.cache import silently
from dbdyno.host.journal import open_journal
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.obtain.architecture import ARCHITECTURES, of_this_machine
from dbdyno.plan.restarts import turn_of
from dbdyno.prepare_run.begun import Begun, bench_of, new_run
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import ComparisonRun
from dbdyno.run import run_trial
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.reader import parse_study

FOREIGN = next(name for name in ("ppc64el", "arm64") if ARCHITECTURES[name] != of_this_machine())
SHELL = r"""
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int row(void *unused, int count, char **values, char **names) {
    for (int i = 0; i < count; i++) printf("%s%s", i ? "|" : "", values[i] ? values[i] : "");
    return puts("") < 0 || fflush(stdout);
}

int main(int count, char **arguments) {
    static char line[4096], text[65536];
    char *why = 0;
    sqlite3 *database;
    if (!strcmp(arguments[1], "--version")) return printf("%s of a fork\n", sqlite3_libversion()) < 0;
    if (sqlite3_open(arguments[count - 1], &database)) return 1;
    while (fgets(line, sizeof line, stdin)) {
        if (!sqlite3_complete(strcat(text, line))) continue;
        if (sqlite3_exec(database, text, row, 0, &why)) return fprintf(stderr, "%s\n", why), 1;
        *text = 0;
    }
    return 0;
}
"""
"""A shell that takes statements and prints rows, as far as Dyno asks it."""
RECIPE = """
engine  = "sqlite"
program = "sqlite3"
[[steps]]
name    = "compile"
needs   = { "sqlite3.h" = "libsqlite3-dev" }
command = ["{cc}", "{cflags}", "-o", "{prefix}/sqlite3", "{source}/shell.c", "{ldflags}", "-lsqlite3"]
"""
STUDY = f"""
engine = "sqlite"
[workload]
name = "tpcb"
[settings]
"{PLATFORM_FACTOR}"  = "{FOREIGN}"
"source.origin"      = "fork"
"source.recipe"      = "recipe.toml"
"build.optimisation" = "-O1"
[restarts]
kills = 1
stops = 1
load  = "1s"
"""


def tried(folder: Path) -> Record:
    """A trial of the study, with a kill and a stop. Skips where a compiler, an emulator or packages lack."""
    (folder / "fork").mkdir()
    (folder / "fork" / "shell.c").write_text(SHELL)
    (folder / "recipe.toml").write_text(RECIPE)
    file = folder / "study.toml"
    file.write_text(STUDY)
    study = parse_study(file.read_bytes(), replace(catalogue(), lone=True), str(file))
    found = registry.locate(study.engine)
    run = new_run(ComparisonRun, study, found, silently)
    with open_journal() as journal:
        bench = bench_of(Begun(study, run, found), journal, None, NOTHING_ALLOWED)
        [trial] = turn_of(study, run, 0)
        record = run_trial(trial, bench)
    missing = ("there is no compiler", "nothing here runs programs", "fetch", "mirror", "signed")
    if record.outcome is Outcome.BLOCKED or (
        record.outcome is Outcome.FAILED and any(word in record.cause for word in missing)
    ):
        pytest.skip(f"sqlite of another architecture cannot be had here: {record.cause}")
    return record


@pytest.mark.engine
def test_a_build_for_another_machine_is_proved_and_keeps_what_it_acknowledged(
    homes_with_engines: Path, tmp_path: Path
) -> None:
    record = tried(tmp_path)
    assert (record.outcome, record.cause) == (Outcome.MEASURED, "")
    proofs = {one.factor: one for one in record.evidence}
    assert proofs.keys() == {PLATFORM_FACTOR, "source.origin", "source.recipe", "build.optimisation"}
    assert all(one.in_effect for one in record.evidence)
    machine, compiled = proofs[PLATFORM_FACTOR].effective, proofs["build.optimisation"].effective
    assert machine is not None and machine.value == f"{FOREIGN}, little-endian"
    assert "build id" in machine.source
    assert compiled is not None and "which /proc/PID/maps holds" in compiled.source
    assert record.platform is not None and record.platform.built == "gcc -O1"
    # A transaction of three changes takes tens of thousands, and a whole shell much more.
    assert record.platform.instructions is not None and 10_000 < record.platform.instructions < 1_000_000
    rounds = [phase.recovery for phase in record.phases if phase.recovery is not None]
    assert [(one.lost, one.damage) for one in rounds] == [(0, ""), (0, "")]
    assert all(one.acknowledged > 0 for one in rounds)
