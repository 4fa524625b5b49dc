"""What the tests of platforms share with others."""

from __future__ import annotations

from typing import Any

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse
from dbdyno.records.record import Evidence, Outcome, Platform, Reading, Record, Recovery
from dbdyno.study import Restarts
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.soak import Act
from tests.analyse.factory import a_run, a_study
from tests.analyse.restarts_cases import record_of

FOREIGN = f"{PLATFORM_FACTOR}=s390x"
STUDY = a_study({PLATFORM_FACTOR: ["amd64", "s390x"]}, blocks=0).but(restarts=Restarts(kills=2, stops=1))


def platform(architecture: str, **changes: Any) -> Platform:
    foreign = architecture != "amd64"
    facts = {
        "architecture": architecture,
        "version": "5.0.4",
        "packages": "firebird 5.0.4-1, libc6 2.36-9",
        "byte_order": "big" if foreign else "little",
        "alignment_bytes": 4096,
        "page_bytes": 4096,
        "emulator": f"qemu-{architecture}-static 7.2.22" if foreign else "",
    }
    return Platform.model_validate({**facts, **changes})


def tried(number: int, architecture: str, *recoveries: Recovery, **changes: Any) -> Record:
    """The record of a trial on an architecture."""
    read = Reading(value=f"{architecture}, read", source=f"the server says {architecture}")
    evidence = Evidence(factor=PLATFORM_FACTOR, requested=architecture, effective=read, in_effect=True)
    variant = "baseline" if architecture == "amd64" else f"{PLATFORM_FACTOR}={architecture}"
    given = {"platform": platform(architecture), "evidence": (evidence,), **changes}
    return record_of(number, variant, *recoveries, **given)


def survived(act: Act, **found: Any) -> Recovery:
    return Recovery(act=act, **{"ready_s": 1.5, "stop_s": 0.5, "acknowledged": 100, "present": 100, **found})


def analysed(*records: Record) -> Analysis:
    return analyse(STUDY, a_run(STUDY), records)


KILLED, STOPPED = survived(Act.KILL), survived(Act.STOP)
NATIVE = tried(0, "amd64", KILLED, KILLED, STOPPED)
EMULATED = tried(1, "s390x", KILLED, survived(Act.KILL, acknowledged=20), STOPPED)
LOSING = tried(
    1,
    "s390x",
    survived(Act.KILL, lost=3, present=97),
    outcome=Outcome.BROKEN,
    cause="after a kill, 3 of 100 acknowledged transactions were gone",
)
BLOCKED = tried(
    1,
    "s390x",
    platform=None,
    evidence=(),
    outcome=Outcome.BLOCKED,
    cause="firebird@5 of s390x is not on this machine",
    remedy="`dyno engines fetch` obtains it",
)
