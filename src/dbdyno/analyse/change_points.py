"""Where a row of values changed: change points that nobody names before, each with a test.

This is E-divisive (D. S. Matteson and N. A. James, JASA 109, 2014, 334-345), by which Hunter and Apache Otava
search rows of benchmarks. A row is cut where the values before and some values after differ most by their
energy distance, which sees any change of law and not of the mean alone. The second side may end before the
row does, so that a change which was undone is seen as well. With all pairwise distances |x - y|, of a side of
m values and one of n it is

    Q = m n / (m + n) (2 mean between the sides - mean within one - mean within the other)

The cut counts if so few of the row's orders, of as many as `_orders` says, have a Q as large that this is
rarer than `1 - confidence`. Equal values are as likely in every order, so the test is exact for any law
(R. A. Fisher, The Design of Experiments, 1935): a row without a change gives an alarm no more often than
that. Then each side is searched alike. It needs independent values: a slow wave is taken for changes.

Where exactly a change lies is told as the places whose two means explain the row nearly as well as the best
ones do, by the ratio of likelihoods (D. Siegmund, Ann. Statist. 16, 1988, 492-506). Of simulated rows with a
change of two standard deviations or more, with 3 to 25 values on its shorter side and a law that is normal,
Student's with three degrees of freedom, or exponential, 90 to 100 % held the true place where 95 % are meant;
where the law is lognormal, 83 %.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

SIDE_LEAST = 3
"""Values on each side of a cut: one that stands out by itself is no change."""
WINDOW = 50
"""A longer row is searched in windows of this length that overlap by half, because the work grows with the
square of the length. The confidence is that of all windows together (Bonferroni)."""
RARER, RARER_LEAST, ORDERS_MOST = 10, 2, 2_000
"""Orders are drawn until so many of them, the row's own among them, may have as large a distance: fewer would
lose power. In many windows that would take more orders than the most, so there it is fewer of them."""
TOGETHER = 16
"""Orders looked at together, because one by itself is too short for numpy to be fast."""
SEED = "change points"
UNLIKE_MOST = -2.0 * math.log(1.0 - math.sqrt(0.95))
"""By so much may twice the log likelihood be below the best, at a place where the change may still lie."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cut:
    """A change: `place` is that of the first value after it. `p` is the share of orders of the row whose
    largest distance is no less. It may lie at any place from `earliest` to `latest`, as far as its row tells
    with 95 %."""

    place: int
    p: float
    earliest: int = 0
    latest: int = 0


def cuts(values: Sequence[float], confidence: float) -> list[Cut]:
    """The changes of a row, by their place. A row without one gives none with this confidence."""
    row = np.asarray(values, dtype=np.float64)
    starts = range(0, max(len(row) - WINDOW // 2, 1), WINDOW // 2)
    rarely = (1.0 - confidence) / len(starts)
    found = [
        Cut(start + cut.place, cut.p)
        for start in starts
        for cut in _searched(row[start : start + WINDOW], rarely)
    ]
    kept = sorted(_apart(found), key=lambda cut: cut.place)
    ends = [0, *(cut.place for cut in kept), len(row)]
    return [
        _placed(cut, row[start:stop], start)
        for cut, start, stop in zip(kept, ends[:-2], ends[2:], strict=True)
    ]


def _placed(cut: Cut, row: Values, start: int) -> Cut:
    """The cut with the places at which it may lie as well, of a row that begins at `start` and holds no other
    one."""
    sides = range(SIDE_LEAST, len(row) - SIDE_LEAST + 1)
    left = np.array([_squares(row[:side]) + _squares(row[side:]) for side in sides])
    best = left[cut.place - start - SIDE_LEAST]
    unlike = (len(row) - 2) * np.log(left / best) if best > 0.0 else np.where(left > 0.0, math.inf, 0.0)
    likely = start + SIDE_LEAST + np.flatnonzero(unlike <= UNLIKE_MOST)
    return replace(cut, earliest=int(likely[0]), latest=int(likely[-1]))


def _squares(values: Values) -> float:
    return float(((values - values.mean()) ** 2).sum())


def _apart(found: Sequence[Cut]) -> Iterator[Cut]:
    """One cut of those that two windows place within the shortest side of each other: the clearest."""
    kept: list[Cut] = []
    for cut in sorted(found, key=lambda cut: (cut.p, cut.place)):
        if all(abs(cut.place - other.place) >= SIDE_LEAST for other in kept):
            kept.append(cut)
            yield cut


def _searched(row: Values, rarely: float) -> Iterator[Cut]:
    """The cuts of a row that are rarer by chance, and those of its sides."""
    if len(row) < 2 * SIDE_LEAST:
        return
    distances = np.abs(row[:, np.newaxis] - row[np.newaxis, :])
    each = _largest(distances[np.newaxis])[0]
    place = int(each.argmax())
    p = _share(distances, float(each[place]), rarely, _seed(row))
    if p is None:
        return
    cut = SIDE_LEAST + place
    yield from _searched(row[:cut], rarely)
    yield Cut(cut, p)
    yield from (Cut(cut + later.place, later.p) for later in _searched(row[cut:], rarely))


def _largest(orders: npt.NDArray[np.float64]) -> Values:
    """The largest Q of each place of a cut, from the shortest first side on, wherever the second side ends.
    Takes the pairwise distances of each order's values; there is a row for each order."""
    count = orders.shape[-1]
    sums = orders.cumsum(axis=1).cumsum(axis=2)
    ours = np.arange(SIDE_LEAST, count - SIDE_LEAST + 1)
    ends = np.arange(2 * SIDE_LEAST, count + 1)
    theirs = ends[np.newaxis, :] - ours[:, np.newaxis]
    first = sums[:, ours - 1, ours - 1][:, :, np.newaxis]
    reach = sums[:, ours - 1][:, :, ends - 1]
    whole = sums[:, ends - 1, ends - 1][:, np.newaxis, :]
    of_ours, of_theirs = ours[:, np.newaxis].astype(np.float64), np.maximum(theirs, 2).astype(np.float64)
    # Each distance within a side is in its sum twice.
    within = first / (of_ours * (of_ours - 1.0)) + (whole - 2.0 * reach + first) / (
        of_theirs * (of_theirs - 1.0)
    )
    between = 2.0 * (reach - first) / (of_ours * of_theirs)
    found = of_ours * of_theirs / (of_ours + of_theirs) * (between - within)
    largest: Values = np.where(theirs >= SIDE_LEAST, found, -np.inf).max(axis=2)
    return largest


def _seed(row: Values) -> str:
    """Draws other orders for each row, because one set of them would err for all rows in the same way."""
    return f"{SEED} {' '.join(map(str, row.argsort(kind='stable').tolist()))}"


def _share(distances: Values, largest: float, rarely: float, seed: str) -> float | None:
    """The share of orders with as large a distance; None as soon as it cannot be as rare as that. The orders
    follow from the seed alone, by bits of SHAKE-256, so that the same row has the same answer everywhere."""
    count, orders = len(distances), _orders(rarely)
    # The largest of the same distances, added up in another order, may differ in its last bits.
    as_large = largest * (1.0 - 1e-9)
    seen = 1
    for start in range(0, orders, TOGETHER):
        some = min(TOGETHER, orders - start)
        bits = hashlib.shake_256(f"{seed} from {start}".encode()).digest(8 * some * count)
        drawn = np.frombuffer(bits, dtype="<u8").reshape(some, count).argsort(axis=1)
        found = _largest(distances[drawn[:, :, np.newaxis], drawn[:, np.newaxis, :]])
        seen += int((found.max(axis=1) >= as_large).sum())
        if seen > rarely * (orders + 1):
            return None
    return seen / (orders + 1)


def _orders(rarely: float) -> int:
    """How many orders are drawn at most."""
    return max(min(math.ceil(RARER / rarely), ORDERS_MOST), math.ceil(RARER_LEAST / rarely)) - 1
