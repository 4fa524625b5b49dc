"""The stages of a trial."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """A stage by the name that records have of it, with what happens in it, in the order of a trial. A trial
    with several phases comes back to the stages of a load, and keeps its record after each phase."""

    contents: str

    PREPARE = "prepare", "data restored, server started"
    VERIFY = "verify", "levels proved"
    GATE = "gate", "the build's correctness"
    FILL = "fill", "caches of an index"
    DRIVE = "drive", "connecting, counters"
    CHECK = "check", "invariants, log"
    PLANS = "plans", "plans of the statements"
    RESTART = "restart", "server ended and started again"
    RECORD = "record", "to disk"
    RESTORE = "restore", "server stopped, host restored"

    def __new__(cls, name: str, contents: str) -> Stage:
        member = str.__new__(cls, name)
        member._value_ = name
        member.contents = contents
        return member
