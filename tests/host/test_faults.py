"""Faults at the system calls of note, act and undo: whatever strikes, no change outlives its journal.

`DYNO_FAULTS` is the number of cases (0 for all), and `DYNO_FAULTS_SEED` draws them: `make faults SEED=7`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from dbdyno.host import journal
from tests.host.changes import CHANGES, lacking
from tests.host.tracer import MACHINE

CASES = int(os.environ.get("DYNO_FAULTS", "120"))
SEED = int(os.environ.get("DYNO_FAULTS_SEED", "1"))
PARTS = (
    ("kernel_value", "tree", "process"),
    ("cgroup", "cgroup_delegation", "loop"),
    ("mount",),
    ("together",),
)
"""Kinds that are tried side by side: what waits for the kernel does not keep the others waiting."""


OF_SERVERS = set(journal.OF_SERVERS)
"""Kinds that are no changes of the host. They are struck in `tests/engines/test_struck.py`."""


def test_every_kind_of_entry_is_struck() -> None:
    for module in journal.UNDOING:
        __import__(module)
    struck = {kind for part in PARTS for kind in part}
    # Tests of this process may have kinds of their own.
    known = {kind for kind, undo in journal._undo_of_kind.items() if undo.__module__.startswith("dbdyno.")}
    assert struck == set(CHANGES) and known - OF_SERVERS == struck - {"together"}
    assert known >= OF_SERVERS


@pytest.mark.skipif(os.uname().machine != MACHINE, reason=f"the tracer is written for {MACHINE}")
@pytest.mark.timeout(0 if CASES == 0 else 300 + 5 * CASES)
def test_no_change_outlives_its_journal() -> None:
    for kind in CHANGES:
        if why := lacking(kind):
            print(f"{kind} is left out: {why}")
    here = [[kind for kind in part if not lacking(kind)] for part in PARTS]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.host.faults", str(CASES // len(PARTS)), str(SEED), *kinds],
            stdout=subprocess.PIPE,
            text=True,
        )
        for kinds in here
        if kinds
    ]
    said = [each.communicate()[0].splitlines() for each in running]
    assert [each.returncode for each in running] == [0] * len(running), said
    counted = [json.loads(lines[-1]) for lines in said]
    tried = sum((Counter(each["tried"]) for each in counted), Counter[str]())
    print(f"{tried.total()} of {sum(each['all'] for each in counted)} cases by ptrace, seed {SEED}")
    for words, what in enumerate(("kind", "phase", "fault", "Dynos")):
        by = Counter[str]()
        for name, count in tried.items():
            by[name.split()[words]] += count
        print(f"  by {what}: {', '.join(f'{name} {count}' for name, count in sorted(by.items()))}")
    assert tried.total() > 0.9 * sum(min(CASES // len(PARTS) or each["all"], each["all"]) for each in counted)
