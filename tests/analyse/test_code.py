"""Two builds compared: what counts as equal, and what makes a build inert."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.code import compare_code
from dbdyno.records.binary import (
    Datum,
    Function,
    Likeness,
    Matching,
    Relro,
)
from tests.analyse.code_cases import HARDENING, a_build, a_function


def matching(equal: int = 0, differing: int = 0, only_left: int = 0, only_right: int = 0) -> Matching:
    return Matching(equal=equal, differing=differing, only_left=only_left, only_right=only_right)


FUNCTIONS = st.lists(
    st.builds(
        a_function,
        st.sampled_from(["", "open", "read", "write", "close"]),
        st.sampled_from("abc"),
        st.sampled_from("xy"),
        st.integers(1, 99),
    ),
    max_size=12,
)


@given(FUNCTIONS, st.randoms())
def test_a_build_is_inert_beside_itself_in_any_order(functions: list[Function], chance: object) -> None:
    shuffled = sorted(functions, key=lambda _: chance.random())  # type: ignore[attr-defined]
    found = compare_code(a_build(*functions), a_build(*shuffled))
    assert found.likeness is Likeness.INERT and found.changes == ()


@given(FUNCTIONS, FUNCTIONS)
def test_the_other_way_round_says_the_same(left: list[Function], right: list[Function]) -> None:
    one, other = (compare_code(a_build(*a), a_build(*b)) for a, b in ((left, right), (right, left)))
    assert one.likeness is other.likeness
    assert one.functions.equal == other.functions.equal
    assert one.functions.only_left == other.functions.only_right
    assert {change.name: change.growth_bytes for change in one.changes} == {
        change.name: -change.growth_bytes for change in other.changes
    }


def test_each_function_is_counted_once() -> None:
    left = a_build(a_function("same"), a_function("differs", "a", size=10), a_function("gone"))
    right = a_build(a_function("same"), a_function("differs", "b", size=80), a_function("added"))
    found = compare_code(left, right)
    assert found.functions == matching(equal=1, differing=1, only_left=1, only_right=1)
    assert [change.name for change in found.changes] == ["differs", "added", "gone"], "the largest first"
    assert found.changes[0].growth_bytes == 70 and found.changes[2].right is None


def test_the_parts_of_a_function_are_compared_together() -> None:
    whole = a_function("scan", "whole", size=40)
    parts = a_function("scan", "hot", size=20), a_function("scan", "cold", size=25)
    found = compare_code(a_build(whole), a_build(*parts))
    assert found.functions == matching(differing=1)
    assert found.changes[0].right is not None and found.changes[0].right.parts == 2


def test_functions_without_a_name_are_matched_by_their_code() -> None:
    left = a_build(a_function("", "a"), a_function("", "a"), a_function("", "b"))
    right = a_build(a_function("", "a"), a_function("", "b"), a_function("", "c"))
    found = compare_code(left, right)
    assert found.functions == matching(equal=2, only_left=1, only_right=1)
    assert found.likeness is Likeness.DIFFERENT and found.changes == ()


def test_equal_functions_that_lie_elsewhere_are_counted() -> None:
    left = a_build(a_function("open"), a_function("read"), a_function("write", "a"))
    places = {"open": 0, "read": 64, "write": 128}
    moved = (one._replace(address=places[one.name]) for one in left.functions)
    found = compare_code(left, a_build(*moved))
    assert (found.likeness, found.moved) == (Likeness.INERT, 2)
    assert found.beside.same and found.beside.changed == 0


def test_a_stripped_build_is_never_told_to_be_the_same() -> None:
    bare = a_build(a_function("", "a"))
    bare = bare._replace(binary=bare.binary.but(named=False))
    found = compare_code(bare, bare)
    assert found.likeness is Likeness.INERT and not found.beside.same


def test_other_constants_data_or_libraries_are_no_other_code() -> None:
    plain = a_build(a_function("read"), data=(Datum("sizes", 4, b"1"),), libraries=("libc.so.6",))
    constants = plain._replace(functions=(a_function("read", constants="other"),))
    data = plain._replace(data=(Datum("sizes", 4, b"2"),))
    libraries = plain._replace(binary=plain.binary.but(libraries=("libjemalloc.so.2",)))
    loose = HARDENING.but(relro=Relro.NONE)
    protections = plain._replace(binary=plain.binary.but(hardening=loose))
    for other in (constants, data, libraries, protections):
        assert compare_code(plain, other).likeness is Likeness.CONSTANTS
    assert compare_code(plain, constants).other_constants == 1
    assert compare_code(plain, data).changed_data == ("sizes",)
