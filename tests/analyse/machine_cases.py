"""What the tests of machines that are reset share with others."""

from __future__ import annotations

from typing import Any

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse
from dbdyno.records.record import Evidence, Outcome, Reading, Record, Recovery
from dbdyno.records.reset import Log, Reset
from dbdyno.study import Restarts
from dbdyno.study.nouns import MACHINE_FACTOR, PLATFORM_FACTOR
from dbdyno.study.soak import Act
from tests.analyse.factory import a_run, a_study
from tests.analyse.platforms_cases import platform
from tests.analyse.restarts_cases import record_of

FAST = f"{MACHINE_FACTOR}=kexec"
STUDY = a_study({MACHINE_FACTOR: ["full", "kexec"]}, blocks=0).but(
    settings={PLATFORM_FACTOR: "ppc64el"}, restarts=Restarts(resets=2)
)
EXPLAINED, OTHER = Log(events=12), Log(events=12, unexplained=(10,))


def reset(way: str, boot_s: float, register: str = "aa", **changes: Any) -> Recovery:
    full = way == "full"
    found = {
        "way": way,
        "staged_s": 0.1 if full else 9.5,
        "firmware_s": boot_s - 2 if full else None,
        "boot_s": boot_s,
        "ready_s": boot_s + 1,
        "firmware_again": full,
        "firmware": Log(events=2),
        "kernel": EXPLAINED if full else OTHER,
        "with_earlier": EXPLAINED,
        "registers": {"0": "11", "10": register},
    }
    return Recovery(act=Act.RESET, reset=Reset.model_validate({**found, **changes}))


def tried(number: int, variant: str, *recoveries: Recovery, **changes: Any) -> Record:
    found = Reading(value="Linux 6.1, pages of 64 kB", source="uname(2) in the guest")
    evidence = Evidence(factor=PLATFORM_FACTOR, requested="ppc64el", effective=found, in_effect=True)
    on = platform("ppc64el", emulator="qemu-system-ppc64 7.2.22, swtpm 0.7.1", page_bytes=None)
    return record_of(number, variant, *recoveries, **{"platform": on, "evidence": (evidence,), **changes})


IN_FULL = tried(0, "baseline", reset("full", 24.0), reset("full", 26.0))
BY_KEXEC = tried(
    1,
    FAST,
    reset("kexec", 12.5, "bb"),
    reset("kexec", 10.5, "cc", firmware=Log(events=0, unexplained=(0,), fault="it is none")),
)
BLOCKED = tried(
    1,
    FAST,
    platform=None,
    evidence=(),
    outcome=Outcome.BLOCKED,
    cause="no machine of ppc64el runs here: swtpm is not installed",
    remedy="apt-get install swtpm",
)


def analysed(*records: Record) -> Analysis:
    return analyse(STUDY, a_run(STUDY), records)
