"""The values that stood in one place of a statement, and how a script draws such values.

Whole numbers are drawn between the least and the greatest that were seen, numbers with decimals and moments
alike; texts are drawn among those seen. A place that never changed keeps its value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from dbdyno.sql_logs.keys import Beyond, SqlColumn

CHOICES_MOST = 50
"""Of a place's texts so many are drawn among: the most frequent ones, which are all that the driver tells."""
EXPONENT_MOST = 40
"""Numbers with more digits before the point, or more noughts behind it, are drawn as they were written: a
few letters (`1e999999999`) can stand for a number that fills the memory."""
LONG = 200
"""Longer texts are drawn as letters of such lengths, so that a reader can still read the script."""
INTEGERS = range(-(2**63), 2**63)
FILL_IN = "fill_in()"
"""No function of scripts, so a script with it is refused until somebody has filled it in."""


Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Numbers:
    """Numbers as they were written: the `most` frequent ones with how often each was seen, how many were told
    apart, the least and the greatest, and the most decimals. `plain` tells that all of them can be written
    without an exponent."""

    most: Counts
    distinct: int
    ends: tuple[Decimal, Decimal] | None
    places: int
    plain: bool

    @classmethod
    def of(cls, told: Any) -> Numbers:
        """Numbers as the driver tells them."""
        most, distinct, ends, places, plain = told
        found = (Decimal(ends[0]), Decimal(ends[1])) if ends else None
        return cls(tuple(most), distinct, found, places, plain)


@dataclass(frozen=True)
class Texts:
    """Texts without their quotes: the `most` frequent ones with how often each was seen, how many were told
    apart, the first and the last in order, the least and the greatest length, and whether all of them are
    days, or moments."""

    most: Counts
    distinct: int
    ends: tuple[str, str]
    lengths: tuple[int, int]
    days: bool
    moments: bool

    @classmethod
    def of(cls, told: Any) -> Texts:
        """Texts as the driver tells them."""
        most, *rest = told
        return cls(tuple(most), *rest)


def _decimal(text: str) -> Decimal | None:
    """A number; None for one that is too large or too small to be written without an exponent."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if abs(number.adjusted()) <= EXPONENT_MOST else None


@dataclass(frozen=True)
class SeenValues:
    """What was seen in one place. Of binary values, which no script can draw, it is known how many were told
    apart, two at most."""

    texts: Texts
    numbers: Numbers
    binaries: int
    unknown: bool

    @classmethod
    def of(cls, told: Any) -> SeenValues:
        """Values as the driver tells them."""
        texts, numbers, binaries, unknown = told
        return cls(Texts.of(texts), Numbers.of(numbers), binaries, unknown)

    @property
    def constant(self) -> bool:
        """Whether one value alone was seen."""
        return not self.unknown and self.texts.distinct + self.numbers.distinct + self.binaries == 1


Cell = tuple[bool, str]
"""Whether a value is a number, and what it is."""


@dataclass(frozen=True)
class PlacesTogether:
    """Places of a statement whose values belong together. Of the ends of a range, where `distance` is true
    and both are numbers, it is known how far they lay apart. Of others `rows` are what stood side by side
    most often, with how often, and `distinct` says how many were told apart. `others` tells that something
    else stood there too."""

    distance: bool
    places: tuple[int, ...]
    distances: Numbers
    rows: tuple[tuple[tuple[Cell, ...], int], ...]
    distinct: int
    others: bool

    @classmethod
    def of(cls, told: Any) -> PlacesTogether:
        """What the driver tells of them."""
        distance, places, distances, rows, distinct, others = told
        made = tuple((tuple(cells), count) for cells, count in rows)
        return cls(distance, tuple(places), Numbers.of(distances), made, distinct, others)

    def draws(self, values: Sequence[SeenValues], names: Mapping[int, str]) -> dict[str, Draw]:
        """How those places that have a name are drawn; empty where nothing is known of them together."""
        drawn = [place for place in self.places if place in names]
        if self.others or len(drawn) < 2 or bool(self.rows) == bool(self.distances.distinct):
            return {}
        if self.rows:
            return self._rows(names, drawn)
        low, high = (names[place] for place in self.places)
        lower, apart = _between(values[self.places[0]].numbers), _between(self.distances)
        if lower is None or apart is None:
            return {}
        words = f"{apart.words.removeprefix('whole numbers ')} above :{low}"
        return {low: lower, high: Draw(f":{low} + {apart.expression}", words)}

    def _rows(self, names: Mapping[int, str], drawn: Sequence[int]) -> dict[str, Draw]:
        first = names[drawn[0]]
        what = "pairs" if len(drawn) == 2 else "rows"
        every = f"{len(self.rows)} of {self.distinct:,} {what}" if len(self.rows) < self.distinct else what
        number = f"{first}n"
        draws = {number: Draw(f"uniform(1, {len(self.rows)})", f"one of {len(self.rows)} {what}")}
        for at, place in enumerate(self.places):
            if place in names:
                chosen = [_cell(cells[at]) for cells, _ in self.rows]
                told = f"of {every} that were seen" if place == drawn[0] else f"that of the same as :{first}"
                draws[names[place]] = Draw(_case(number, chosen), told)
        return draws


def _cell(cell: Cell) -> str:
    is_number, text = cell
    return _number(text) if is_number else _text(text)


def _case(name: str, texts: Sequence[str]) -> str:
    """An expression that gives the n-th of other ones for the number of a variable."""
    whens = (f"when :{name} = {number} then {text}" for number, text in enumerate(texts, 1))
    return f"case {' '.join(whens)} end"


@dataclass(frozen=True)
class Draw:
    """An expression of the script's language, and what it draws in words. `invented` marks what no log
    tells, and `asked` is what a script asks of the data for it."""

    expression: str
    words: str
    invented: bool = False
    asked: SqlColumn | Beyond | None = None


def draw(values: SeenValues) -> Draw:
    """How values such as these are drawn."""
    if values.unknown:
        return Draw(FILL_IN, "to be filled in")
    texts, numbers = values.texts, values.numbers
    if not texts.distinct:
        return _between(numbers) or _choice(values)
    if not numbers.distinct:
        return _moments(texts) or _long(texts) or _choice(values)
    return _choice(values)


def _between(numbers: Numbers) -> Draw | None:
    """Numbers between the least and the greatest; None where the script's integers cannot hold them."""
    places = numbers.places
    if numbers.ends is None or places > 6 or not numbers.plain:
        return None
    (low, high), scale = numbers.ends, 10**places
    if int(low * scale) not in INTEGERS or int(high * scale) not in INTEGERS:
        return None
    ends = f"uniform({int(low * scale)}, {int(high * scale)})"
    if places:
        return Draw(f"{ends} / {scale}.0", f"{low} to {high}")
    return Draw(ends, f"whole numbers {int(low):,} to {int(high):,}")


def _moments(texts: Texts) -> Draw | None:
    """Dates, or dates with a time of day; None where one of the texts is neither."""
    if not (texts.days or texts.moments):
        return None
    function, words = ("date", "dates") if texts.days else ("timestamp", "moments")
    low, high = (end[:19] for end in texts.ends)
    return Draw(f"{function}({_text(low)}, {_text(high)})", f"{words} {low} to {high}")


def _long(texts: Texts) -> Draw | None:
    short, long = texts.lengths
    if long <= LONG:
        return None
    return Draw(f"text({short}, {long})", f"letters, {short:,} to {long:,} of them")


def _choice(values: SeenValues) -> Draw:
    seen = Counter({_text(text): count for text, count in values.texts.most})
    for text, count in values.numbers.most:
        seen[_number(text)] += count
    chosen = [text for text, _ in seen.most_common(CHOICES_MOST)]
    every = max(len(seen), values.texts.distinct + values.numbers.distinct)
    words = f"{len(chosen)} values" if len(chosen) == every else f"{len(chosen)} of {every:,} values"
    return Draw(f"choice({', '.join(chosen)})", words)


def _number(text: str) -> str:
    """A number as the script's expressions write it; as a text where it is too large for them."""
    number = _decimal(text)
    if number is None:
        return _text(text)
    plain = f"{number:f}"
    return plain if "." in plain or int(plain) in INTEGERS else _text(plain)


def _text(text: str) -> str:
    """A text as the script's expressions write it."""
    return "'" + text.replace("'", "''") + "'"
