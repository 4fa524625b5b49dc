"""Latencies as the driver keeps them: HdrHistogram's V2 payload, deflated, in base64.

`analyse/latency.py` reads it, and names the format's source.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

COOKIE, COMPRESSED_COOKIE = 0x1C849313, 0x1C849314
HEADER = struct.Struct(">iiiiqqd")
DIGITS = 3
"""Significant digits of a value."""
HALF_MAGNITUDE = 10
"""The binary logarithm of half the slots that values of one magnitude share."""

Integers = npt.NDArray[np.int64]


def encode(values: Integers, counts: Integers) -> str:
    """The histogram of whole `values`, none negative, rising, each with its count. Empty without one."""
    if not len(values):
        return ""
    slots, places = np.unique(_slots(values), return_inverse=True)
    summed = np.zeros(len(slots), dtype=np.int64)
    np.add.at(summed, places, counts)
    body = b"".join(map(_leb128, _runs(slots, summed)))
    payload = HEADER.pack(COOKIE, len(body), 0, DIGITS, 1, max(int(values[-1]), 2), 1.0) + body
    compressed = zlib.compress(payload)
    return base64.b64encode(struct.pack(">ii", COMPRESSED_COOKIE, len(compressed)) + compressed).decode()


def _slots(values: Integers) -> Integers:
    """The slot that each value falls into."""
    bits = np.frexp(np.maximum(values, 1).astype(np.float64))[1]
    magnitudes = np.maximum(bits - (HALF_MAGNITUDE + 1), 0)
    slots: Integers = (magnitudes << HALF_MAGNITUDE) + (values >> magnitudes)
    return slots


def _runs(slots: Integers, counts: Integers) -> Iterator[int]:
    """The counts in the order of their slots; a negative number stands for so many empty slots."""
    next_slot = 0
    for slot, count in zip(slots.tolist(), counts.tolist(), strict=True):
        if slot > next_slot:
            yield next_slot - slot
        yield count
        next_slot = slot + 1


def _leb128(number: int) -> bytes:
    """A whole number, zigzag, seven bits to a byte."""
    left = number * 2 if number >= 0 else -number * 2 - 1
    octets = bytearray()
    while left > 0x7F:
        octets.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*octets, left])
