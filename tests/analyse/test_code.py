"""Two builds compared: what counts as equal, and what makes a build inert."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.code import changed_functions, compare_code, counted_work, spread
from dbdyno.findings import analyse
from dbdyno.records.binary import Datum, Function, Likeness, Matching, Relro
from dbdyno.records.record import Counted, Outcome
from tests.analyse.code_cases import HARDENING, a_build, a_function
from tests.analyse.counted_cases import (
    FAST,
    FAST_WORK,
    SLOW_WORK,
    STUDY,
    analysed,
    beside,
    counted,
    counted_records,
)
from tests.analyse.factory import a_run, ended, records_of


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


def test_the_largest_change_comes_first_and_what_stays_is_left_out() -> None:
    found = changed_functions(
        counted({"parse": 50.0, "read": 30.0}), counted({"parse": 50.0, "read": 20.0, "lock": 90.0})
    )
    assert [(one.name, one.own, one.against, one.change) for one in found] == [
        ("lock", 0.0, 90.0, -90.0),
        ("read", 30.0, 20.0, 10.0),
    ]
    assert [one.share for one in found] == [pytest.approx(90 / 80), pytest.approx(-10 / 80)]


def test_parts_and_copies_of_a_function_are_compared_as_one() -> None:
    """Another build splits and copies its functions otherwise."""
    whole = counted({"scan": 60.0, "read": 10.0})
    split = counted({"scan": 20.0, "scan.part.0": 25.0, "scan.constprop.1": 5.0, "read.isra.0": 10.0})
    assert [(one.name, one.change) for one in changed_functions(split, whole)] == [("scan", -10.0)]


def test_without_a_change_of_the_whole_there_is_no_share() -> None:
    found = changed_functions(counted({"a": 1.0, "b": 2.0}), counted({"a": 2.0, "b": 1.0}))
    assert [one.share for one in found] == [None, None]


def test_the_spread_is_of_the_repeats() -> None:
    assert spread(counted({}, (100.0, 101.0, 100.5))) == pytest.approx(0.01)
    assert spread(counted({})) == 0.0


owns = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000).map(float))


@given(owns, owns)
def test_changes_add_up_to_the_whole(ours: dict[str, float], theirs: dict[str, float]) -> None:
    found = changed_functions(counted(ours), counted(theirs))
    assert sum(one.change for one in found) == sum(ours.values()) - sum(theirs.values())
    back = {one.name: one.change for one in changed_functions(counted(theirs), counted(ours))}
    assert back == {one.name: -one.change for one in found}


def test_counted_work_stands_beside_the_timed_effects_and_changes_none() -> None:
    plain = analyse(STUDY, a_run(STUDY), records_of(STUDY, {FAST: 1.5}))
    found = analysed(("baseline", SLOW_WORK), (FAST, FAST_WORK))
    assert found.but(counted=()) == plain
    baseline, fast = found.counted
    assert (baseline.variant, baseline.ratio, baseline.changes) == ("baseline", None, ())
    assert baseline.spread == pytest.approx(0.02)
    assert (fast.instructions_per_op, fast.told) == (70.0, True)
    assert fast.ratio == pytest.approx(0.7)
    assert [(one.name, one.change) for one in fast.changes] == [("read", -30.0)]


def test_counts_whose_repeats_overlap_are_not_told_apart() -> None:
    wide = counted({"parse": 101.0}, (99.0, 101.0, 103.0))
    assert [one.told for one in analysed(("baseline", SLOW_WORK), (FAST, wide)).counted] == [False, False]


def test_repeats_are_compared_with_those_that_do_the_same_work() -> None:
    """Of two builds of SQLite: the repeats of one differ by 14 %, and their ratios by less than 1 %."""
    slow = counted({"parse": 49_698.526}, (55_964.635, 49_698.526, 49_030.844))
    fast = counted({"parse": 49_076.052}, (54_900.161, 49_076.052, 48_479.038))
    other = counted({"parse": 49_698.526}, (55_970.0, 49_698.526, 49_020.0))
    for found, told in ((fast, True), (other, False), (slow, False)):
        assert [one.told for one in analysed(("baseline", slow), (FAST, found)).counted] == [False, told]


def test_the_ratio_is_that_of_the_repeat_in_the_middle() -> None:
    slow, other = (
        counted({"parse": 110.0}, (100.0, 110.0, 120.0)),
        counted({"parse": 90.0}, (90.0, 88.0, 132.0)),
    )
    [_, found] = analysed(("baseline", slow), (FAST, other)).counted
    assert found.ratio == pytest.approx(0.9), "each repeat beside the baseline's of its number"


def test_what_a_server_does_now_and_then_is_no_difference() -> None:
    """A placebo of PostgreSQL: its autovacuum ran in one of the repeats."""
    plain = counted({"parse": 43_613.0}, (43_641.0, 43_613.0, 43_524.0))
    placebo = counted({"parse": 43_725.0}, (43_725.0, 43_587.0, 225_416.0))
    [_, found] = analysed(("baseline", plain), (FAST, placebo)).counted
    assert found.ratio == pytest.approx(43_725 / 43_641) and not found.told


def test_ten_equal_builds_are_seldom_told_from_the_baseline() -> None:
    """Each by itself at 95 %, some build of ten is told in four runs of ten."""
    random, like, wrong = np.random.default_rng(3), records_of(STUDY)[0], 0
    for _ in range(200):
        own = [(f"build {one}", drawn(random)) for one in range(10)]
        found = counted_work(counted_records(like, ("baseline", drawn(random)), *own), "baseline")
        wrong += any(one.told for one in found)
    assert 1 <= wrong <= 20


def drawn(random: np.random.Generator) -> Counted:
    """Repeats of equal work that differ by 1 %."""
    repeats = 1000.0 * np.exp(random.normal(0.0, 0.01, 3))
    return counted({"parse": 1000.0}, tuple(repeats.tolist()))


def test_a_difference_that_addresses_make_is_not_told() -> None:
    slow, placebo = (counted({"parse": one}, (one, one + 0.001, one)) for one in (1000.0, 1001.0))
    assert not analysed(("baseline", slow), (FAST, placebo)).counted[1].told


def test_what_could_not_be_counted_says_why() -> None:
    baseline, fast = analysed(("baseline", None), (FAST, FAST_WORK)).counted
    assert (baseline.instructions_per_op, baseline.cause) == (None, "no answer under Valgrind")
    assert (fast.instructions_per_op, fast.ratio, fast.cause) == (70.0, None, "")


def test_a_trial_that_broke_is_no_count() -> None:
    broken = ended(Outcome.BROKEN, "balances differ")
    records = [record for record in beside(("baseline", SLOW_WORK)) if record.of_no_block]
    [found] = counted_work([broken(records[0])], "baseline")
    assert (found.instructions_per_op, found.cause) == (None, "balances differ")


def test_a_run_that_counts_nothing_says_nothing_of_it() -> None:
    assert "counted" not in analysed().model_dump()
