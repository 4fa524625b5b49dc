"""The values that stood in one place of a statement, and how a script draws such values.

Whole numbers are drawn between the least and the greatest that were seen, numbers with decimals and moments
alike; texts are drawn among those seen. A place that never changed keeps its value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from dbdyno.sql_logs.digest import Dialect, Kind, Token
from dbdyno.sql_logs.keys import Beyond, Column
from dbdyno.sql_logs.seen import is_text

DISTINCT_MOST = 10_000
"""Of more values than this only the first are counted; the ends are those of all."""
CHOICES_MOST = 50
"""Of a place's texts so many are drawn among: the most frequent ones."""
EXPONENT_MOST = 40
"""Numbers with more digits before the point, or more noughts behind it, are drawn as they were written: a
few letters (`1e999999999`) can stand for a number that fills the memory."""
LONG = 200
"""Longer texts are drawn as letters of such lengths, so that a reader can still read the script."""
INTEGERS = range(-(2**63), 2**63)
DATE, MOMENT = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?")
Moment = tuple[re.Pattern[str], Callable[[str], object], str, str]
MOMENTS: tuple[Moment, ...] = (
    (DATE, date.fromisoformat, "date", "dates"),
    (MOMENT, datetime.fromisoformat, "timestamp", "moments"),
)
NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,6})?")
"""A bound value that is a number: one with a nought before it is the text of a code."""
INTRODUCER = re.compile(r"\A(?:[eEnN]|_\w+\s*)(?=['\"])")
"""What says of which kind a text in quotes is."""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
FILL_IN = "fill_in()"
"""No function of scripts, so a script with it is refused until somebody has filled it in."""


@dataclass
class Numbers:
    """How often each number was seen, as it was written; the least, the greatest, and the most decimals.
    `plain` tells that all of them can be written without an exponent."""

    counts: Counter[str] = field(default_factory=Counter)
    ends: tuple[Decimal, Decimal] | None = None
    places: int = 0
    plain: bool = True

    def add(self, text: str) -> None:
        if text not in self.counts:
            self._reach(_decimal(text))
        _count(self.counts, text)

    def _reach(self, number: Decimal | None) -> None:
        if number is None:
            self.plain = False
            return
        low, high = self.ends or (number, number)
        self.ends = min(low, number), max(high, number)
        self.places = max(self.places, -int(number.as_tuple().exponent))


@dataclass
class Texts:
    """Texts without their quotes: how often each was seen; the first and the last in order, the least and the
    greatest length, and what kinds of `moments` all of them are."""

    counts: Counter[str] = field(default_factory=Counter)
    ends: tuple[str, str] = ("", "")
    lengths: tuple[int, int] = (0, 0)
    moments: tuple[Moment, ...] = MOMENTS

    def add(self, text: str) -> None:
        if text not in self.counts:
            low, high = self.ends if self.counts else (text, text)
            self.ends = min(low, text), max(high, text)
            short, long = self.lengths if self.counts else (len(text), len(text))
            self.lengths = min(short, len(text)), max(long, len(text))
            self.moments = tuple(moment for moment in self.moments if _is(moment, text))
        _count(self.counts, text)


def _decimal(text: str) -> Decimal | None:
    """A number; None for one that is too large or too small to be written without an exponent."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if abs(number.adjusted()) <= EXPONENT_MOST else None


def _count(counts: Counter[str], value: str) -> None:
    if value in counts or len(counts) < DISTINCT_MOST:
        counts[value] += 1


def _is(moment: Moment, text: str) -> bool:
    """Whether a text is a date, or a date with a time of day, that exists."""
    pattern, parse, _, _ = moment
    try:
        return pattern.fullmatch(text) is not None and bool(parse(text[:19]))
    except ValueError:
        return False


@dataclass
class Values:
    """What was seen in one place. Of binary values, which no script can draw, two are kept, because these
    tell that the place changed."""

    texts: Texts = field(default_factory=Texts)
    numbers: Numbers = field(default_factory=Numbers)
    binaries: set[str] = field(default_factory=set)
    unknown: bool = False

    def add(self, token: Token, dialect: Dialect, bound: bool = False) -> None:
        """Takes a value. One that was `bound` is in quotes whatever its type, so there a number counts as
        one."""
        if token.kind is Kind.PARAMETER:
            self.unknown = True
            return
        if token.kind is Kind.BINARY or not is_text(token.text):
            if len(self.binaries) < 2:
                self.binaries.add(token.text)
            return
        if token.kind is Kind.TEXT:
            text = unquoted(token.text, dialect)
            if bound and NUMBER.fullmatch(text):
                self.numbers.add(text)
            else:
                self.texts.add(text)
        else:
            self.numbers.add(token.text)

    @property
    def constant(self) -> bool:
        """Whether one value alone was seen."""
        distinct = len(self.texts.counts) + len(self.numbers.counts) + len(self.binaries)
        return not self.unknown and distinct == 1


@dataclass
class Range:
    """The two ends of a range, `low` and `high` places of a statement: how far they lay apart where both are
    numbers, and which ends stood together where they are texts."""

    low: int
    high: int
    distances: Numbers = field(default_factory=Numbers)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: bool = False

    def add(self, tokens: Sequence[Token], dialect: Dialect, bound: bool) -> None:
        """Takes the ends of one statement."""
        low, high = (_value(tokens[place], dialect, bound) for place in (self.low, self.high))
        if isinstance(low, Decimal) and isinstance(high, Decimal):
            self.distances.add(f"{high - low:f}")
        elif isinstance(low, str) and isinstance(high, str):
            if (low, high) in self.ends or len(self.ends) < DISTINCT_MOST:
                self.ends[low, high] += 1
        else:
            self.others = True

    def draws(self, values: Sequence[Values], names: tuple[str, str]) -> dict[str, Draw]:
        """How both ends are drawn; empty where nothing is known of them together."""
        low, high = names
        if self.others or bool(self.ends) == bool(self.distances.counts):
            return {}
        if self.ends:
            pairs = [ends for ends, _ in self.ends.most_common(CHOICES_MOST)]
            every = f"{len(pairs)} of {len(self.ends):,} pairs" if len(pairs) < len(self.ends) else "pairs"
            told = f"the lower end: {every} that were seen"
            return {
                f"{low}n": Draw(f"uniform(1, {len(pairs)})", f"one of {len(pairs)} ranges"),
                low: Draw(_case(f"{low}n", [one for one, _ in pairs]), told),
                high: Draw(_case(f"{low}n", [other for _, other in pairs]), "the upper end of the same"),
            }
        lower, apart = _between(values[self.low].numbers), _between(self.distances)
        if lower is None or apart is None:
            return {}
        words = f"{apart.words.removeprefix('whole numbers ')} above :{low}"
        return {low: lower, high: Draw(f":{low} + {apart.expression}", words)}


def _case(name: str, texts: Sequence[str]) -> str:
    """An expression that gives the n-th text for the number of a variable."""
    whens = (f"when :{name} = {number} then {_text(text)}" for number, text in enumerate(texts, 1))
    return f"case {' '.join(whens)} end"


def _value(token: Token, dialect: Dialect, bound: bool) -> Decimal | str | None:
    if token.kind is Kind.NUMBER:
        return _decimal(token.text)
    if token.kind is not Kind.TEXT or not is_text(token.text):
        return None
    text = unquoted(token.text, dialect)
    return _decimal(text) if bound and NUMBER.fullmatch(text) else text


@dataclass(frozen=True)
class Draw:
    """An expression of the script's language, and what it draws in words. `invented` marks what no log
    tells, and `asked` is what a script asks of the data for it."""

    expression: str
    words: str
    invented: bool = False
    asked: Column | Beyond | None = None


def draw(values: Values) -> Draw:
    """How values such as these are drawn."""
    if values.unknown:
        return Draw(FILL_IN, "to be filled in")
    texts, numbers = values.texts, values.numbers
    if not texts.counts:
        return _between(numbers) or _choice(values)
    if not numbers.counts:
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
    if not texts.moments:
        return None
    _, _, function, words = texts.moments[0]
    low, high = (end[:19] for end in texts.ends)
    return Draw(f"{function}({_text(low)}, {_text(high)})", f"{words} {low} to {high}")


def _long(texts: Texts) -> Draw | None:
    short, long = texts.lengths
    if long <= LONG:
        return None
    return Draw(f"text({short}, {long})", f"letters, {short:,} to {long:,} of them")


def _choice(values: Values) -> Draw:
    seen = Counter({_text(text): count for text, count in values.texts.counts.items()})
    for text, count in values.numbers.counts.items():
        seen[_number(text)] += count
    chosen = [text for text, _ in seen.most_common(CHOICES_MOST)]
    words = f"{len(chosen)} values" if len(chosen) == len(seen) else f"{len(chosen)} of {len(seen):,} values"
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


def unquoted(literal: str, dialect: Dialect) -> str:
    """What a text in quotes stands for."""
    if literal.startswith("$"):
        tag = literal[: literal.index("$", 1) + 1]
        return literal.removeprefix(tag).removesuffix(tag)
    escapes = dialect is Dialect.MYSQL or literal[0] in "eE"
    literal = INTRODUCER.sub("", literal)
    quote = literal[0]
    inner = literal[1:].removesuffix(quote) if len(literal) > 1 else ""
    pattern = rf"{quote}{quote}|\\(.)" if escapes else f"{quote}{quote}()"
    return re.sub(pattern, lambda found: _letter(found[1], quote), inner, flags=re.DOTALL)


def _letter(escaped: str | None, quote: str) -> str:
    """A letter behind a backslash; without one, the quote that was doubled. `\\%` and `\\_` stay as they are,
    because LIKE reads them."""
    if not escaped:
        return quote
    return f"\\{escaped}" if escaped in "%_" else ESCAPES.get(escaped, escaped)
