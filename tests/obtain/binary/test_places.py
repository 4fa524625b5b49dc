"""A digest does not depend on where anything stands, and does depend on what is referred to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.obtain.binary.image import Image, ImageSection, Slot, Symbol
from dbdyno.obtain.binary.places import AddressReference, Places, Uses, decoded, without_padding
from dbdyno.obtain.binary.read import function_of
from dbdyno.records.binary import Function

TEXT, CALLED, CONSTANTS, VARIABLES, IMPORTS = 0x10_0000, 0x20_0000, 0x30_0000, 0x40_0000, 0x50_0000
SHIFTS = st.integers(0, 0xFFF).map(lambda steps: 16 * steps)


def relative(opcode: str, at: int, target: int) -> bytes:
    """An instruction that ends in the distance from its end to a target."""
    code = bytes.fromhex(opcode)
    return code + (target - at - len(code) - 4).to_bytes(4, "little", signed=True)


def digested(
    shifts: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0),
    called: str = "called",
    text: bytes = b"a text that has no name\0",
    imported: str = "memcpy",
    cases: tuple[int, ...] = (0, 5),
) -> Function:
    """A function that calls another, takes a text, a variable, an import and a jump table, all of them moved
    by their own shift."""
    start, callee, constants, variable, slot = (
        base + shift
        for base, shift in zip((TEXT, CALLED, CONSTANTS, VARIABLES, IMPORTS), shifts, strict=True)
    )
    table = constants + len(text)
    code = b""
    for opcode, target in (
        ("e8", callee), ("488d05", constants), ("8b05", variable), ("ff15", slot), ("488d15", table),
    ):  # fmt: skip
        code += relative(opcode, start + len(code), target)
    code += bytes.fromhex("ebfe c3")
    entries = b"".join((start + case - table).to_bytes(4, "little", signed=True) for case in cases)
    image = Image(
        sections=(
            ImageSection(".text", start, len(code), code, False, True),
            ImageSection(".text.other", callee, 16, bytes(16), False, True),
            ImageSection(".rodata", constants, len(text + entries), text + entries, False, False),
            ImageSection(".data", variable, 8, bytes(8), True, False),
            ImageSection(".got", slot, 8, bytes(8), True, False),
        ),
        symbols=(Symbol("one", start, len(code), True), Symbol(called, callee, 16, True),
                 Symbol("counter", variable, 8, False)),
        thread_locals=(),
        slots={slot: Slot(imported, 0)},
        ranges=(),
        named=True,
        movable=True,
    )  # fmt: skip
    one = decoded(image, image.sections[0], "one", start, start + len(code), Uses())
    places = Places(image, [reference.address for reference in one.references])
    return function_of(one, places)._replace(address=0)


@given(st.tuples(SHIFTS, SHIFTS, SHIFTS, SHIFTS, SHIFTS))
def test_no_shift_changes_a_digest(shifts: tuple[int, int, int, int, int]) -> None:
    assert digested(shifts) == digested()


@pytest.mark.parametrize(
    "other", [{"called": "another"}, {"imported": "memmove"}, {"cases": (0, 12)}, {"cases": (5, 0)}], ids=str
)
def test_another_target_is_another_code(other: dict[str, object]) -> None:
    assert digested(**other).code != digested().code  # type: ignore[arg-type]


@given(st.binary(min_size=5, max_size=40).map(lambda text: b"text" + text.replace(b"\0", b"") + b"\0"))
def test_another_text_is_the_same_code_with_another_constant(text: bytes) -> None:
    found = digested(text=text)
    assert found.code == digested().code
    assert found.constants != digested().constants


def test_instructions_are_counted() -> None:
    assert (digested().instructions, digested().name) == (7, "one")


def test_a_vector_of_addresses_is_told_word_by_word() -> None:
    image = Image(
        sections=(ImageSection(".data.rel.ro", VARIABLES, 16, bytes(16), True, False),),
        symbols=(),
        thread_locals=(),
        slots={VARIABLES: Slot("one", 0), VARIABLES + 8: Slot("two", 0)},
        ranges=(),
        named=True,
        movable=True,
    )
    places = Places(image, [])
    assert places.told(AddressReference(VARIABLES, 16), 0, 1) == ("slot one two", b"")
    assert places.told(AddressReference(VARIABLES, 8), 0, 1) == ("slot one", b"")


def told_of(content: bytes, size: int, other: str) -> tuple[str, bytes]:
    """What a function `one` refers to by an operand of that size, in a program with one other function."""
    image = Image(
        sections=(
            ImageSection(".text", TEXT, 16, bytes(16), False, True),
            ImageSection(".text.other", CALLED, 16, bytes(16), False, True),
            ImageSection(".rodata", CONSTANTS, len(content), content, False, False),
        ),
        symbols=(Symbol("one", TEXT, 16, True), Symbol(other, CALLED, 16, True)),
        thread_locals=(),
        slots={},
        ranges=(),
        named=True,
        movable=True,
    )
    return Places(image, [CONSTANTS]).told(AddressReference(CONSTANTS, size), TEXT, TEXT + 16)


@pytest.mark.parametrize("size", [0, 16])
def test_a_constant_that_looks_like_a_distance_is_no_table(size: int) -> None:
    value = (CALLED - CONSTANTS).to_bytes(4, "little", signed=True) + b"a constant"
    assert told_of(value, size, "another") == (".rodata", value[: size or None])


def test_a_table_leads_to_parts_of_its_function_elsewhere() -> None:
    entries = [TEXT + 4 - CONSTANTS, CALLED - CONSTANTS]
    table = b"".join(entry.to_bytes(4, "little", signed=True) for entry in entries)
    assert told_of(table, 0, "one.cold") == ("table +4 one", b"")


PADDING = st.sampled_from(["90", "6690", "0f1f00", "662e0f1f840000000000", "cc"]).map(bytes.fromhex)


@given(st.lists(PADDING, max_size=4), st.lists(PADDING, max_size=4))
def test_padding_around_code_is_left_out(before: list[bytes], after: list[bytes]) -> None:
    ahead, code = b"".join(before), bytes.fromhex("b801000000c3")
    assert without_padding(ahead + code + b"".join(after), 64) == (64 + len(ahead), 64 + len(ahead + code))
    assert without_padding(ahead + b"".join(after), 64) is None
