"""What is known of a link: round trips, and how far apart two clocks are."""

from __future__ import annotations

import pytest

from dbdyno.driver.link import LinkReading, Stamps
from tests.load_hosts import make_load_host, reading


def test_an_offset_is_told_by_four_stamps_whatever_the_way_and_the_answer_take() -> None:
    # The clock there is 100 s ahead; each way takes 2 s, and the answer 3 s.
    stamps = Stamps(sent_s=10.0, received_s=112.0, answered_s=115.0, returned_s=17.0)
    assert (stamps.round_trip_s, stamps.offset_s) == (4.0, 100.0)


def test_a_way_that_is_slow_in_one_direction_stays_within_the_bound() -> None:
    stamps = Stamps(sent_s=10.0, received_s=114.0, answered_s=114.0, returned_s=14.0)
    assert abs(stamps.offset_s - 100.0) <= stamps.round_trip_s / 2


def test_the_shortest_request_tells_the_clock() -> None:
    slow = Stamps(sent_s=0.0, received_s=9.0, answered_s=9.0, returned_s=10.0)
    quick = Stamps(sent_s=20.0, received_s=21.5, answered_s=21.5, returned_s=21.0)
    found = LinkReading.of("before", [0.3, 0.1, 0.2], [slow, quick])
    assert (found.clock_offset_s, found.clock_within_s) == (1.0, 0.5)
    assert (found.network.min_s, found.network.median_s, found.network.max_s) == (0.1, 0.2, 0.3)
    assert (found.control.count, found.control.max_s) == (2, 10.0)


def test_a_load_host_tells_its_best_clock_and_its_whole_way() -> None:
    readings = (
        reading(100.0, within_us=80.0),
        reading(300.0, within_us=20.0),
        reading(200.0, within_us=60.0),
    )
    host = make_load_host(readings=readings)
    assert host.clock == readings[1]
    assert host.round_trip_s == pytest.approx(200e-6)
    assert host.round_trip_max_s == pytest.approx(600e-6)


def test_a_share_is_of_all_cpus() -> None:
    assert make_load_host(load_s=10.0, cpus=4).share(10.0) == 0.25
    assert make_load_host(load_s=0.0).share(1.0) == 0.0
