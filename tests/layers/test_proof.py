"""What a reading proves of a level."""

from __future__ import annotations

from dbdyno.layers.proof import proof
from dbdyno.records.record import Reading


def test_a_level_in_effect_needs_no_reason_and_another_has_one() -> None:
    found = Reading(value="bfq", source="queue/scheduler")
    held = proof("storage.scheduler", "bfq", found, True, "the kernel took it", "leave it out")
    assert (held.in_effect, held.reason, held.remedy) == (True, "", "")
    assert held.accepted == Reading(value="bfq", source="the kernel took it") and held.effective == found
    lost = proof("storage.scheduler", "none", found, False, "the kernel took it", "leave it out")
    assert (lost.reason, lost.remedy) == ("asked for none, found bfq", "leave it out")
