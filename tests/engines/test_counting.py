"""What engines make of their own counters."""

from __future__ import annotations

import pytest

from dbdyno.engines.counting import numbers, proved, unmoved, viewed


def test_what_is_no_number_is_left_out() -> None:
    rows: list[list[str | float | None]] = [
        ["a", "4"],
        ["b", "ON"],
        ["c", None],
        ["d", 2.5],
        ["e", "1", "more"],
    ]
    assert numbers(rows) == {"a": 4.0, "d": 2.5, "e": 1.0}


def test_a_view_sums_the_counters_it_has_in_its_own_unit() -> None:
    view = {"waits, us": (1000.0, ("first", "second")), "absent": (1.0, ("third",))}
    assert viewed(view, {"first": 1.5, "second": 0.5, "other": 9.0}) == {"waits, us": 2000.0}


@pytest.mark.parametrize(("setting", "counters"), [("unknown", {"hits": 1.0}), ("cache", {"other": 1.0})])
def test_a_setting_without_a_counter_is_not_proved(setting: str, counters: dict[str, float]) -> None:
    assert proved({"cache": ("hits",)}, setting, counters, counters, "the status") is None


def test_what_a_counter_gained_proves_the_use() -> None:
    reading = proved({"cache": ("hits", "misses")}, "cache", {"hits": 1.0}, {"hits": 4.0}, "the status")
    assert reading is not None
    assert reading.value == "hits +3"
    assert reading.source == "the status, after the load less before it"


@pytest.mark.parametrize(
    ("after", "partial", "told"),
    [
        ({"hits": 1.0, "misses": 0.0}, frozenset(), "hits, misses did not move during the load"),
        ({"hits": 1.0, "misses": 2.0}, frozenset(), ""),
        ({"hits": 1.0, "misses": 0.0}, frozenset({"cache"}), ""),
        ({"other": 1.0}, frozenset(), ""),
    ],
)
def test_a_setting_is_idle_where_all_its_counters_stand_still(
    after: dict[str, float], partial: frozenset[str], told: str
) -> None:
    before = {"hits": 1.0, "misses": 0.0, "other": 0.0}
    assert unmoved({"cache": ("hits", "misses")}, partial, "cache", before, after) == told
