"""Both logs are read back as they were written, and one that was changed does not explain its registers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.machine.measurements import VIOLATION, Events, firmware_events, kernel_events, unexplained
from tests.machine.logs import BEGINNING, NO_ACTION, added_up, of_firmware, of_kernel

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
