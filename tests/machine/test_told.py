"""What the console says becomes a reset: dated, with what its logs explain."""

from __future__ import annotations

from base64 import b64encode

import pytest

from dbdyno.errors import ServerFailed
from dbdyno.machine.console import Line
from dbdyno.machine.kinds import KINDS
from dbdyno.machine.told import Resets, Started
from tests.machine.logs import added_up, of_firmware, of_kernel

KIND = KINDS["ppc64el"]
FIRMWARE, FILES = [b"version"], [b"init", b"shell"]
ORDERED_S = 100.0


def started(register: list[bytes]) -> list[str]:
    """What the guest says of a start, with a register to which these were added."""
    return [
        "dyno:up",
        "dyno:answer ok",
        "dyno:ready",
        f"dyno:firmware {b64encode(of_firmware([(0, one) for one in FIRMWARE])).decode()}",
        f"dyno:measured {b64encode(of_kernel(FILES)).decode()}",
        f"dyno:register 0 {added_up(FIRMWARE).hex()}",
        f"dyno:register 10 {added_up(register).hex()}",
        "dyno:waiting",
    ]


def lines(*texts: str) -> list[Line]:
    """One each second."""
    return [Line(text, ORDERED_S + number) for number, text in enumerate(texts, 1)]


BEFORE = [*FILES, b"kexec"]
LOADED = [f"dyno:before {b64encode(of_kernel(BEFORE)).decode()}", "dyno:reset"]


def test_a_full_reset_is_dated_and_its_logs_explain_the_registers() -> None:
    booted = [KIND.banner, f"{KIND.handed_over} __start()", *started(FILES)]
    found = Resets(KIND, "full").add(ORDERED_S, lines("dyno:reset", *booted))
    assert (found.staged_s, found.firmware_s, found.boot_s, found.ready_s) == (1.0, 2.0, 3.0, 5.0)
    assert found.firmware_again and found.firmware.explains and found.kernel.explains
    assert (found.firmware.events, found.kernel.events) == (1, 2)


def test_fast_resets_are_explained_by_the_logs_of_all_starts_alone() -> None:
    resets = Resets(KIND, "kexec")
    for number in (1, 2):
        held = [*BEFORE * number, *FILES]
        found = resets.add(ORDERED_S, lines(*LOADED, *started(held)))
        assert (found.staged_s, found.firmware_s, found.firmware_again) == (2.0, None, False)
        assert found.firmware.explains
        assert found.kernel.unexplained == (10,)
        assert found.with_earlier.explains
        assert found.with_earlier.events == len(held)


def test_what_a_firmware_measures_anew_needs_no_earlier_log() -> None:
    resets = Resets(KIND, "kexec")
    resets.add(ORDERED_S, lines(*LOADED, *started([*BEFORE, *FILES])))
    found = resets.add(ORDERED_S, lines("dyno:reset", KIND.banner, *started(FILES)))
    assert found.with_earlier.explains and found.with_earlier.events == len(FILES)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (started(FILES), "the guest did not tell `reset`"),
        (["dyno:reset", "dyno:waiting"], "the guest did not tell `up`"),
        (["dyno:reset", *started(FILES), "dyno:register 3 none"], "the guest cannot read its TPM"),
        (["dyno:reset", "dyno:firmware ???", *started(FILES)], "the log `firmware` did not come whole"),
    ],
)
def test_a_guest_that_does_not_tell_has_failed(said: list[str], message: str) -> None:
    with pytest.raises(ServerFailed, match=message):
        Resets(KIND, "full").add(ORDERED_S, lines(*said))


def test_the_pages_of_the_guest_are_told_in_bytes() -> None:
    told = [f"dyno:pages KernelPageSize:       {size}" for size in ("64 kB", "a few")]
    assert [Started(KIND, lines(one)).page_bytes for one in told] == [65536, None]
