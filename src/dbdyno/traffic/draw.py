"""The values that stood in one place of a statement, and how a script draws such values.

Whole numbers are drawn between the least and the greatest that were seen, numbers with decimals and moments
alike; texts are drawn among those seen. A place that never changed keeps its value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from dbdyno.traffic.tokens import Dialect, Kind, Token

DISTINCT_MOST = 10_000
"""Of more texts than this only the first are kept."""
CHOICES_MOST = 50
"""Of a place's texts so many are drawn among: the most frequent ones."""
LONG = 200
"""Longer texts are drawn as letters of such lengths, so that a reader can still read the script."""
INTEGERS = range(-(2**63), 2**63)
DATE, MOMENT = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?")
MOMENTS: tuple[tuple[re.Pattern[str], Callable[[str], object], str, str], ...] = (
    (DATE, date.fromisoformat, "date", "dates"),
    (MOMENT, datetime.fromisoformat, "timestamp", "moments"),
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
FILL_IN = "fill_in()"
"""No function of scripts, so a script with it is refused until somebody has filled it in."""


@dataclass
class Values:
    """What was seen in one place: texts without their quotes, numbers as they were written. Of binary values,
    which no script can draw, two are kept, because these tell that the place changed."""

    texts: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    binaries: set[str] = field(default_factory=set)
    unknown: bool = False

    def add(self, token: Token, dialect: Dialect) -> None:
        if token.kind is Kind.PARAMETER:
            self.unknown = True
            return
        if token.kind is Kind.BINARY:
            if len(self.binaries) < 2:
                self.binaries.add(token.text)
            return
        text = token.kind is Kind.TEXT
        counts, value = (self.texts, unquoted(token.text, dialect)) if text else (self.numbers, token.text)
        if value in counts or len(counts) < DISTINCT_MOST:
            counts[value] += 1

    @property
    def constant(self) -> bool:
        """Whether one value alone was seen."""
        return not self.unknown and len(self.texts) + len(self.numbers) + len(self.binaries) == 1


@dataclass(frozen=True)
class Draw:
    """An expression of the script's language, and what it draws in words."""

    expression: str
    words: str


def draw(values: Values) -> Draw:
    """How values such as these are drawn."""
    if values.unknown:
        return Draw(FILL_IN, "to be filled in")
    if values.numbers and not values.texts:
        return _numbers(values.numbers)
    if values.texts and not values.numbers:
        return _moments(values.texts) or _long(values.texts) or _choice(values)
    return _choice(values)


def _numbers(seen: Counter[str]) -> Draw:
    numbers = [Decimal(text) for text in seen]
    low, high = min(numbers), max(numbers)
    places = max(0, *(-int(number.as_tuple().exponent) for number in numbers))
    scale = 10**places
    if places > 6 or int(low * scale) not in INTEGERS or int(high * scale) not in INTEGERS:
        return _choice(Values(numbers=seen))
    ends = f"uniform({int(low * scale)}, {int(high * scale)})"
    if places:
        return Draw(f"{ends} / {scale}.0", f"{low} to {high}")
    return Draw(ends, f"whole numbers {int(low):,} to {int(high):,}")


def _moments(seen: Counter[str]) -> Draw | None:
    """Dates, or dates with a time of day; None where one of the texts is neither."""
    for pattern, parse, function, words in MOMENTS:
        if all(pattern.fullmatch(text) and _parses(text, parse) for text in seen):
            low, high = (end[:19] for end in (min(seen), max(seen)))
            return Draw(f"{function}({_text(low)}, {_text(high)})", f"{words} {low} to {high}")
    return None


def _parses(text: str, parse: Callable[[str], object]) -> bool:
    try:
        parse(text[:19])
    except ValueError:
        return False
    return True


def _long(seen: Counter[str]) -> Draw | None:
    lengths = [len(text) for text in seen]
    if max(lengths) <= LONG:
        return None
    return Draw(
        f"text({min(lengths)}, {max(lengths)})", f"letters, {min(lengths):,} to {max(lengths):,} of them"
    )


def _choice(values: Values) -> Draw:
    seen = Counter({_text(text): count for text, count in values.texts.items()})
    for text, count in values.numbers.items():
        seen[_number(text)] += count
    chosen = [text for text, _ in seen.most_common(CHOICES_MOST)]
    words = f"{len(chosen)} values" if len(chosen) == len(seen) else f"{len(chosen)} of {len(seen):,} values"
    return Draw(f"choice({', '.join(chosen)})", words)


def _number(text: str) -> str:
    """A number as the script's expressions write it; as a text where it is too large for them."""
    plain = f"{Decimal(text):f}"
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
    literal = literal.lstrip("eE") if dialect is Dialect.POSTGRESQL else literal
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
