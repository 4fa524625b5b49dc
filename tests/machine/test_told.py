"""What the console says becomes a reset: dated, with what its logs explain."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ServerFailed
from dbdyno.machine.guest import ConsoleLine
from dbdyno.machine.kinds import KINDS
from dbdyno.machine.told import (
    VIOLATION,
    Events,
    Resets,
    Started,
    firmware_events,
    kernel_events,
    unexplained,
)
from tests.machine.logs import BEGINNING, NO_ACTION, added_up, of_firmware, of_kernel

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


def lines(*texts: str) -> list[ConsoleLine]:
    """One each second."""
    return [ConsoleLine(text, ORDERED_S + number) for number, text in enumerate(texts, 1)]


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


MEASURED = st.lists(st.binary(max_size=80), max_size=8)


@given(MEASURED, MEASURED)
def test_a_log_explains_what_was_added_to_its_registers(first: list[bytes], third: list[bytes]) -> None:
    log = of_firmware([*((0, one) for one in first), *((2, one) for one in third)])
    found = firmware_events(log)
    assert (len(found.events), found.fault) == (len(first) + len(third), "")
    registers = {0: added_up(first), 1: bytes(32), 2: added_up(third)}
    assert unexplained(found.events, registers) == ()


@given(MEASURED)
def test_the_kernels_log_explains_its_register(measured: list[bytes]) -> None:
    found = kernel_events(of_kernel(measured))
    assert (len(found.events), found.fault) == (len(measured), "")
    assert unexplained(found.events, {10: added_up(measured)}) == ()


@given(MEASURED, MEASURED.filter(bool))
def test_a_log_that_begins_anew_does_not_explain_a_register_that_went_on(
    earlier: list[bytes], later: list[bytes]
) -> None:
    register = {10: added_up([*later, *earlier])}
    log = kernel_events(of_kernel(earlier)).events
    assert unexplained(log, register) == (10,)
    assert unexplained((*kernel_events(of_kernel(later)).events, *log), register) == ()


def test_an_event_that_is_in_the_log_alone_is_added_to_nothing() -> None:
    assert firmware_events(of_firmware([(0, b"said")], NO_ACTION)) == Events()
    assert firmware_events(b"") == Events()


def test_a_file_that_was_written_meanwhile_adds_ones() -> None:
    log = bytearray(of_kernel([b"measured"]))
    log[4 : 4 + len(VIOLATION)] = VIOLATION
    [event] = kernel_events(bytes(log)).events
    assert event.digest == b"\xff" * 32


@pytest.mark.parametrize(
    ("read", "log", "events", "said"),
    [
        (firmware_events, BEGINNING[:40], 0, "the log does not begin as one"),
        (firmware_events, b"\0" * 400, 0, "does not say which hashes follow"),
        (firmware_events, of_firmware([(0, b"one")]) + b"\0" * 64, 1, "it has no SHA-256"),
        (firmware_events, of_firmware([(0, b"one"), (0, b"two")])[:-1], 1, "3 bytes are said to follow"),
        (kernel_events, of_kernel([b"one"]) + of_kernel([b"two"], b"other"), 1, "not one of the kernel's"),
        (kernel_events, of_kernel([b"one"]) + b"\xff" * 40, 1, "4,294,967,295 bytes are said to follow"),
    ],
)
def test_a_log_is_read_as_far_as_it_is_one(
    read: Callable[[bytes], Events], log: bytes, events: int, said: str
) -> None:
    found = read(log)
    assert len(found.events) == events
    assert said in found.fault


@given(st.binary(max_size=400))
def test_no_bytes_are_worse_than_a_fault(log: bytes) -> None:
    for read in (firmware_events, kernel_events):
        assert isinstance(read(BEGINNING + log), Events) and isinstance(read(log), Events)
