"""Profiles: shares of samples become microseconds, and changes add up to the whole change."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.profile import Profile, changed_times, functions, profile_of

SERVER, KERNEL = "/opt/server", "[kernel.kallsyms]"
SAMPLES = [
    (2, (("main", SERVER), ("search", SERVER))),
    (1, (("main", SERVER), ("search", SERVER), ("[unknown]", SERVER))),
    (1, (("main", SERVER), ("read", KERNEL))),
]


def made(samples: list[tuple[int, tuple[tuple[str, str], ...]]], us: float = 100.0) -> Profile:
    profile = profile_of("baseline", samples, us)
    assert profile is not None
    return profile


def test_own_and_whole_times_are_shares_of_the_cpu_time() -> None:
    times = {time.name: time for time in functions(made(SAMPLES))}
    assert times["search"].own_us == pytest.approx(50.0)
    assert times["search"].whole_us == pytest.approx(75.0)
    assert times["main"].own_us == 0.0 and times["main"].whole_us == pytest.approx(100.0)
    assert times["read_[k]"].own_us == pytest.approx(25.0)
    assert times["[server] below search"].own_us == pytest.approx(25.0)


def test_what_has_no_symbol_is_counted() -> None:
    assert made(SAMPLES).unresolved_share == pytest.approx(0.25)


def test_recursion_is_counted_once() -> None:
    frames = (("visit", SERVER),) * 5
    (time,) = functions(made([(3, frames)]))
    assert time.whole_us == pytest.approx(100.0) == time.own_us


def test_no_sample_is_no_profile() -> None:
    assert profile_of("baseline", [], 100.0) is None


def test_the_error_of_sampling_falls_with_the_count() -> None:
    few, many = (functions(made(SAMPLES * count))[0].half_us for count in (10, 1000))
    assert many == pytest.approx(few / 10.0)


names = st.sampled_from("abcdef")
some_samples = st.lists(
    st.tuples(st.integers(1, 1000), st.lists(st.tuples(names, st.just(SERVER)), min_size=1).map(tuple)),
    min_size=1,
    max_size=20,
)


@given(some_samples, some_samples, st.floats(1, 1e5), st.floats(1, 1e5))
def test_changes_add_up_to_the_whole_change(
    ours: list[tuple[int, tuple[tuple[str, str], ...]]],
    theirs: list[tuple[int, tuple[tuple[str, str], ...]]],
    us: float,
    against_us: float,
) -> None:
    found = changed_times(made(ours, us), made(theirs, against_us))
    total = math.fsum(one.change_us for one in found)
    assert total == pytest.approx(us - against_us, abs=1e-6 * (us + against_us))
    sizes = [abs(one.change_us) for one in found]
    assert sizes == sorted(sizes, reverse=True)
