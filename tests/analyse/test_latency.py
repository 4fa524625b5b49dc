"""Histograms: what the driver wrote is what is read, and rubbish is refused."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.latency import added, curve, decode
from tests.analyse.factory import encode_histogram

durations_us = st.lists(st.integers(1, 3_600_000_000), min_size=1, max_size=200)


@given(durations_us)
def test_values_come_back_to_three_digits(values: list[int]) -> None:
    histogram = decode(encode_histogram(values))
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
    both = added([decode(encode_histogram(one)), decode(encode_histogram(other))])
    whole = decode(encode_histogram(one + other))
    assert both.values.tolist() == whole.values.tolist()
    assert both.counts.tolist() == whole.counts.tolist()


def test_nothing_added_is_an_empty_histogram_without_a_curve() -> None:
    assert added([]).count == 0
    assert curve(added([]), "ns") == ()


def test_the_curve_rises_and_ends_where_ten_operations_lie_above() -> None:
    points = curve(decode(encode_histogram(list(range(1, 100_001)))), "us")
    latencies = [point.latency_ms for point in points]
    assert latencies == sorted(latencies)
    assert points[-1].above == pytest.approx(1e-4)
    median = min(points, key=lambda point: abs(point.above - 0.5))
    assert median.latency_ms == pytest.approx(50, rel=0.02)
    few = curve(decode(encode_histogram(list(range(1, 101)))), "us")
    assert few[-1].above == pytest.approx(0.1)


@given(st.text(max_size=60))
def test_rubbish_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HdrHistogram"):
        decode(text)


@given(st.integers(0, 10_000))
def test_a_histogram_cut_short_is_refused_or_shorter(cut: int) -> None:
    whole = encode_histogram([1, 10, 1000, 10_000])
    part = whole[: cut % len(whole) // 4 * 4]
    try:
        assert decode(part).count <= 4
    except ValueError as error:
        assert "HdrHistogram" in str(error)


def test_a_bomb_does_not_fill_memory() -> None:
    payload = struct.pack(">iiiiqqd", 0x1C849313, 1 << 30, 0, 3, 1, 3_600_000_000, 1.0) + bytes(200 << 20)
    compressed = zlib.compress(payload, 9)
    text = base64.b64encode(struct.pack(">ii", 0x1C849314, len(compressed)) + compressed).decode()
    assert decode(text).count == 0
