"""What `encode` writes, the reader of the driver's histograms reads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.analyse.latency import summed
from dbdyno.imported.tallies import encode

LATENCIES = some.dictionaries(some.integers(0, 2**42), some.integers(1, 2**40), min_size=1, max_size=60)


@given(LATENCIES)
def test_what_was_counted_comes_back_to_three_digits(counted: dict[int, int]) -> None:
    values = sorted(counted)
    read = summed([encode(np.array(values), np.array([counted[value] for value in values]))])
    assert read.count == sum(counted.values())
    slots = read.values[np.searchsorted(read.values, values)].tolist()
    assert all(value <= slot <= value * 1.001 + 1 for value, slot in zip(values, slots, strict=True))


def test_nothing_is_no_histogram() -> None:
    nothing = np.array([], np.int64)
    assert encode(nothing, nothing) == ""
