"""Histograms: what the driver wrote is what is read, and rubbish is refused."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.latency import HEADER, SLOTS_MOST, TOGETHER, curve, summed
from tests.analyse.factory import encode_histogram

KINDS = ((3, 1), (2, 1), (3, 1000), (5, 4))
"""Significant digits, and the lowest value that is told from others."""
durations_us = st.lists(st.integers(1, 3_600_000_000), min_size=1, max_size=200)


@given(durations_us)
def test_values_come_back_to_three_digits(values: list[int]) -> None:
    histogram = summed([encode_histogram(values)])
    assert histogram.count == len(values)
    read = [
        int(value)
        for value, count in zip(histogram.values, histogram.counts, strict=True)
        for _ in range(count)
    ]
    for wrote, back in zip(sorted(values), read, strict=True):
        assert wrote <= back <= wrote * 1.001 + 1


@given(durations_us, durations_us)
def test_adding_is_counting_together(one: list[int], other: list[int]) -> None:
    both = summed([encode_histogram(one), encode_histogram(other)])
    whole = summed([encode_histogram(one + other)])
    assert both.values.tolist() == whole.values.tolist()
    assert both.counts.tolist() == whole.counts.tolist()


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(-300, 70_000).filter(bool), max_size=20),
            st.sampled_from(KINDS),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_histograms_of_all_kinds_are_summed_as_if_each_slot_were_counted_by_itself(
    drawn: list[tuple[list[int], tuple[int, int], bool]],
) -> None:
    # More than are unpacked at a time, and some of them are cut short within a number.
    texts = [_packed(_body(numbers) + b"\xff" * cut, *kind) for numbers, kind, cut in drawn] * TOGETHER
    counted = Counter[int]()
    for numbers, (digits, lowest), _ in drawn:
        counted.update(_one_by_one(numbers, digits, lowest))
    total = summed(texts)
    assert dict(zip(total.values.tolist(), total.counts.tolist(), strict=True)) == {
        value: TOGETHER * count for value, count in counted.items()
    }
    assert total.values.tolist() == sorted(counted)


def test_a_slot_far_beyond_all_latencies_takes_no_memory() -> None:
    far = SLOTS_MOST * 4
    total = summed([_packed(_body([5, -far, 7]), 5, 1), _packed(_body([3]), 5, 1)])
    assert total.counts.tolist() == [8, 7] and total.values[0] == 0
    huge = summed([_packed(_body([-(2**52), 1]), 3, 1)])
    assert huge.count == 1


def _one_by_one(numbers: list[int], digits: int, lowest: int) -> Counter[int]:
    """The highest value of each slot, and its count: half of a bucket's slots are those of the one before."""
    half = 1 << math.ceil(math.log2(2 * 10**digits)) - 1
    counts, slot = Counter[int](), 0
    for number in numbers:
        if number > 0:
            bucket = max(slot // half - 1, 0)
            within = slot - bucket * half
            counts[((within + 1) << (bucket + int(math.log2(lowest)))) - 1] += number
        slot += max(1, -number)
    return counts


def _body(numbers: list[int]) -> bytes:
    out = bytearray()
    for number in numbers:
        value = (number << 1) ^ (number >> 63)
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)


def _packed(body: bytes, digits: int, lowest: int) -> str:
    payload = HEADER.pack(0x1C849313, len(body), 0, digits, lowest, 3_600_000_000_000, 1.0) + body
    compressed = zlib.compress(payload)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(compressed)) + compressed).decode()


def test_nothing_added_is_an_empty_histogram_without_a_curve() -> None:
    assert summed([]).count == 0
    assert curve(summed([]), "ns") == ()


def test_the_curve_rises_and_ends_where_ten_operations_lie_above() -> None:
    points = curve(summed([encode_histogram(list(range(1, 100_001)))]), "us")
    latencies = [point.latency_ms for point in points]
    assert latencies == sorted(latencies)
    assert points[-1].above == pytest.approx(1e-4)
    median = min(points, key=lambda point: abs(point.above - 0.5))
    assert median.latency_ms == pytest.approx(50, rel=0.02)
    few = curve(summed([encode_histogram(list(range(1, 101)))]), "us")
    assert few[-1].above == pytest.approx(0.1)


@given(st.text(max_size=60))
def test_rubbish_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HdrHistogram"):
        summed([text])


@given(st.integers(0, 10_000))
def test_a_histogram_cut_short_is_refused_or_shorter(cut: int) -> None:
    whole = encode_histogram([1, 10, 1000, 10_000])
    part = whole[: cut % len(whole) // 4 * 4]
    try:
        assert summed([part]).count <= 4
    except ValueError as error:
        assert "HdrHistogram" in str(error)


def test_a_bomb_does_not_fill_memory() -> None:
    payload = struct.pack(">iiiiqqd", 0x1C849313, 1 << 30, 0, 3, 1, 3_600_000_000, 1.0) + bytes(200 << 20)
    compressed = zlib.compress(payload, 9)
    text = base64.b64encode(struct.pack(">ii", 0x1C849314, len(compressed)) + compressed).decode()
    assert summed([text]).count == 0
