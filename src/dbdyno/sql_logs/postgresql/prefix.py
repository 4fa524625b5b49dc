"""PostgreSQL's `log_line_prefix`: as a pattern for lines, and as a log's own lines tell it.

What a log tells is a proof or nothing. A number is the process only where it cannot be a line number, a code
or a transaction; a word is the database only where `connection authorized` says so, where it is marked as
one, or where it stands behind `user@`. Where two readings fit, both are shown, and `--prefix` chooses.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, product

from dbdyno.errors import UserError

SEVERITY = "LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG[1-5]?"
ABOUT = "DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION|BACKTRACE"
"""Lines that say more of the entry before them."""
LINE = re.compile(
    rf"(?P<prefix>.{{0,400}}?)(?<![\w.])(?P<label>{SEVERITY}|{ABOUT}):  (?:[0-9A-Z]{{5}}: )?(?P<message>.*)",
    re.DOTALL,
)
"""A line that begins an entry, or says more of one, whatever the prefix."""
ZONE = r"(?:[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)"
_DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
_ANY = r"[^\n]*?"
ESCAPES = {
    "a": _ANY, "u": _ANY, "r": _ANY, "h": _ANY, "b": _ANY, "i": _ANY, "L": _ANY,
    "d": rf"(?P<database>{_ANY})",
    "p": r"(?P<process>\d*)", "P": r"\d*", "l": r"(?P<number>\d+)", "e": r"[0-9A-Z]{5}",
    "c": r"(?P<session>[0-9a-f]+\.[0-9a-f]+)",
    "t": rf"(?P<moment>{_DATE}) (?P<zone>{ZONE})", "m": rf"(?P<moment>{_DATE}\.\d{{3}}) (?P<zone>{ZONE})",
    "n": r"(?P<epoch>\d+\.\d{3})", "s": rf"{_DATE} {ZONE}",
    "v": r"(?:\d+/\d+)?", "x": r"\d+", "Q": r"-?\d+", "%": "%",
}  # fmt: skip
OPTION = re.compile(r"%(-?\d*)([a-zA-Z%])")
LINES_MOST = 50_000
"""So many entries are looked at to find a prefix."""
ASKED = (
    "statement: ",
    "duration: ",
    "execute ",
    "parse ",
    "bind ",
    "connection authorized: ",
    "disconnection: ",
)
AUTHORIZED = re.compile(
    r"connection authorized: user=(\S+)(?: database=(\S+))?(?: application_name=(.*?))?(?: SSL .*)?\n?\Z"
)
HOW = "say which it is with --prefix; the server tells it: SHOW log_line_prefix"


def prefix_pattern(prefix: str) -> re.Pattern[str]:
    """Lines with this prefix, up to the message. Raises UserError for what is no `log_line_prefix`."""
    made, at, closing, named = "", 0, "", set[str]()
    for found in OPTION.finditer(prefix):
        made += re.escape(prefix[at : found.start()])
        at = found.end()
        width, letter = found.groups()
        if letter == "q":
            made, closing = f"{made}(?:", ")?"
            continue
        if letter not in ESCAPES:
            raise UserError(
                f"--prefix: %{letter} is no escape of log_line_prefix", "SHOW log_line_prefix tells it"
            )
        piece = ESCAPES[letter]
        for name in re.findall(r"\?P<(\w+)>", piece):
            if name in named:
                piece = piece.replace(f"?P<{name}>", "?:")
            named.add(name)
        made += f" *{piece} *" if width else piece
    made += re.escape(prefix[at:])
    return re.compile(rf"{made}{closing}(?P<label>{SEVERITY}|{ABOUT}):  (?:[0-9A-Z]{{5}}: )?", re.DOTALL)


ATOM = re.compile(
    rf"(?P<m>{_DATE}\.\d{{3}} {ZONE})|(?P<t>{_DATE} {ZONE})|(?P<n>\d{{10}}\.\d{{3}}(?!\d))"
    r"|(?P<c>[0-9a-f]{8}\.[0-9a-f]{1,8}(?![\w.]))|(?P<v>\d+/\d+)|(?P<r>[\w.:-]+\(\d+\))"
    r"|(?P<label>[A-Za-z_]+=)|(?P<word>\[unknown\]|\[local\])"
    r"|(?P<number>\d+(?![\w.$]))|(?P<name>[\w$][\w.$]*(?:-[A-Za-z_][\w.$]*)*)|(?P<mark>.)",
    re.DOTALL,
)
LABELS = {
    "db": "d", "database": "d", "dbname": "d", "user": "u", "usr": "u", "username": "u", "app": "a",
    "application": "a", "appname": "a", "client": "h", "host": "h", "remote": "r", "pid": "p", "process": "p",
    "line": "l", "session": "c", "sid": "c", "xid": "x", "vxid": "v", "state": "e", "sqlstate": "e",
    "tag": "i",
}  # fmt: skip
TAGS = re.compile(r"[A-Z]{2,}|idle|authentication|startup|streaming")


@dataclass(frozen=True)
class PrefixedLine:
    """A line's prefix in parts: what each is, and its text."""

    kinds: tuple[str, ...]
    texts: tuple[str, ...]
    message: str


def line_parts(prefix: str, message: str) -> PrefixedLine:
    """What stands behind a moment is the same in many lines, and is taken apart once."""
    first = ATOM.match(prefix)
    if first is None or first.lastgroup not in ("m", "t", "n"):
        return PrefixedLine(*prefix_parts(prefix), message)
    kinds, texts = prefix_parts(prefix[first.end() :])
    return PrefixedLine((first.lastgroup, *kinds), (first[0], *texts), message)


@lru_cache(maxsize=4096)
def prefix_parts(prefix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of a prefix's parts, and their texts. A label's value may be empty, so it has one anyway."""
    kinds, texts = list[str](), list[str]()
    for found in ATOM.finditer(prefix):
        kind = found.lastgroup or "mark"
        if kinds and kinds[-1] == "label" and kind == "mark":
            kinds.append("name")
            texts.append("")
        kinds.append("name" if kind == "word" else kind)
        texts.append(found[0])
    if kinds and kinds[-1] == "label":
        kinds.append("name")
        texts.append("")
    fixed = [text if kind in ("mark", "label") else "" for kind, text in zip(kinds, texts, strict=True)]
    return tuple(f"{kind}{text}" for kind, text in zip(kinds, fixed, strict=True)), tuple(texts)


def inferred(lines: Iterable[tuple[int, str]]) -> list[str]:
    """The prefixes with which a log can be read: one where its lines tell it, several where they do not,
    none where no entry is in it."""
    found = (LINE.match(line) for _, line in lines if line[:1] not in ("\t", "\n"))
    every = [
        line_parts(one["prefix"], one["message"])
        for one in islice((one for one in found if one and one["label"] == "LOG"), LINES_MOST)
    ]
    asked = [line for line in every if line.message.startswith(ASKED)] or every
    if not asked:
        return []
    counts = Counter(line.kinds for line in asked)
    kinds = counts.most_common(1)[0][0]
    of_kind = [line for line in asked if line.kinds == kinds]
    # Processes of the server's own write nothing behind %q.
    others = {line.kinds for line in every if len(line.kinds) < len(kinds)}
    quits = [len(other) for other in others if other and other == kinds[: len(other)]]
    return [_text(kinds, roles, max(quits, default=0)) for roles in _readings(kinds, of_kind)]


def _text(kinds: Sequence[str], roles: Sequence[str], quits: int) -> str:
    text = ""
    for place, role in enumerate(roles):
        text += "%q" * (place == quits > 0) + role
    return text


def _readings(kinds: tuple[str, ...], lines: Sequence[PrefixedLine]) -> Iterator[tuple[str, ...]]:
    """What each part can be; several where that matters and is not told."""
    columns = [[line.texts[place] for line in lines] for place in range(len(kinds))]
    roles = _plain(kinds, columns)
    numbers = _Numbers(kinds, columns, lines, roles).readings()
    words = _words(kinds, columns, lines, roles)
    for of_numbers, of_words in product(numbers, words):
        chosen = {**of_numbers, **of_words}
        yield tuple(chosen.get(place, role) for place, role in enumerate(roles))


def _plain(kinds: tuple[str, ...], columns: Sequence[list[str]]) -> list[str]:
    """The parts whose form or label tells what they are; empty for the others."""
    roles, moments = list[str](), 0
    for place, kind in enumerate(kinds):
        before = kinds[place - 1] if place else ""
        label = LABELS.get(before[5:-1].lower(), "") if before.startswith("label") else ""
        if kind.startswith(("mark", "label")):
            roles.append(columns[place][0].replace("%", "%%"))
        elif kind in ("m", "t"):
            roles.append("%s" if moments else f"%{kind}")
            moments += 1
        elif kind in ("n", "c", "v", "r"):
            roles.append(f"%{kind}")
        elif label:
            roles.append(f"%{label}")
        elif kind == "number" and {*columns[place]} == {"00000"}:
            roles.append("%e")
        elif kind == "number" and {*columns[place]} == {"0"}:
            roles.append("%x")
        else:
            roles.append("")
    return roles


@dataclass
class _Numbers:
    """The bare numbers of a prefix, one of which may be the process."""

    kinds: tuple[str, ...]
    columns: Sequence[list[str]]
    lines: Sequence[PrefixedLine]
    roles: Sequence[str]

    def readings(self) -> list[dict[int, str]]:
        """Each choice of a process that tells sessions apart in another way."""
        places = [
            place for place, kind in enumerate(self.kinds) if kind == "number" and not self.roles[place]
        ]
        if "%p" in self.roles or "%c" in self.roles:
            return [dict.fromkeys(places, "%l" if len(places) == 1 else "%x")]
        fit = [place for place in places if self._can_be_process(place)]
        fit = [
            one
            for one in fit
            if not any(self._counts(one, other) and not self._counts(other, one) for other in fit)
        ]
        found: dict[tuple[int, ...], dict[int, str]] = {}
        for place in fit:
            numbered = {
                other: "%l" if self._counts(other, place) else "%x" for other in places if other != place
            }
            first = dict[str, int]()
            sessions = tuple(first.setdefault(value, len(first)) for value in self.columns[place])
            found.setdefault(sessions, {place: "%p", **numbered})
        return list(found.values()) or [dict.fromkeys(places, "%l")]

    def _can_be_process(self, place: int) -> bool:
        values = [int(text) for text in self.columns[place]]
        if any(len(text) > 1 and text[0] == "0" for text in self.columns[place]) or min(values) <= 1:
            # Numbers of processes have no nought before them, and 1 is the first one of a machine.
            return False
        if len(values) > 2 and all(later == earlier + 1 for earlier, later in pairwise(values)):
            return False
        opened = set[str]()
        for text, line in zip(self.columns[place], self.lines, strict=True):
            if line.message.startswith("connection authorized: "):
                if text in opened:
                    return False
                opened.add(text)
            elif line.message.startswith("disconnection: "):
                opened.discard(text)
        return True

    def _counts(self, place: int, process: int) -> bool:
        """Whether one number is the line's within the sessions that another tells apart."""
        groups: dict[str, list[int]] = defaultdict(list)
        for number, name in zip(self.columns[place], self.columns[process], strict=True):
            groups[name].append(int(number))
        grows = all(one < other for group in groups.values() for one, other in pairwise(group))
        return grows and any(len(group) > 1 for group in groups.values())


def _words(
    kinds: tuple[str, ...], columns: Sequence[list[str]], lines: Sequence[PrefixedLine], roles: Sequence[str]
) -> list[dict[int, str]]:
    """What the words can be; one reading where it does not matter which is the database."""
    chosen = dict[int, str]()
    open_ = [place for place, kind in enumerate(kinds) if kind == "name" and not roles[place]]
    for place in list(open_):
        pair = kinds[place + 1 : place + 3] == ("mark@", "name") and place + 2 in open_
        if pair:
            chosen |= {place: "%u", place + 2: "%d"}
    chosen |= _authorized(columns, lines, [place for place in open_ if place not in chosen])
    known = {*roles, *chosen.values()}
    rest = [place for place in open_ if place not in chosen]
    for place in list(rest):
        values = {*columns[place]}
        if all(re.fullmatch(r"\[local\]|[\d.]+", value) for value in values):
            chosen[place] = "%h"
        elif all(TAGS.fullmatch(value) for value in values) and len(values) > 1:
            chosen[place] = "%i"
        elif len(values) == 1:
            # One value tells no databases apart.
            chosen[place] = "%a"
        else:
            continue
        rest.remove(place)
    if "%d" in known or not rest:
        return [{**chosen, **dict.fromkeys(rest, "%a")}]
    letters = [letter for letter in ("%u", "%d") if letter not in known]
    readings = []
    for place in rest:
        others = [other for other in rest if other != place]
        names = [letter for letter in ("%u", "%a", "%h") if letter not in known]
        readings.append({**chosen, place: "%d", **dict(zip(others, names, strict=False))})
    if len(rest) == 1 and letters:
        readings.append({**chosen, rest[0]: "%u" if "%u" in letters else "%a"})
    return readings


def _authorized(
    columns: Sequence[list[str]], lines: Sequence[PrefixedLine], places: Sequence[int]
) -> dict[int, str]:
    """The words that `connection authorized` names. A letter that fits two places is of neither."""
    told = [(at, found) for at, line in enumerate(lines) if (found := AUTHORIZED.match(line.message))]
    fit: dict[str, list[int]] = {"%u": [], "%d": []}
    for place in places if told else ():
        for group, letter in ((1, "%u"), (2, "%d")):
            if all(columns[place][at] == (found[group] or found[1]) for at, found in told):
                fit[letter].append(place)
    same = [place for place in fit["%u"] if place in fit["%d"]]
    if len(same) >= 2 and fit["%u"] == fit["%d"] == same:
        return {same[0]: "%u", same[1]: "%d"} if _equal(columns, same[:2]) else {}
    return {places_[0]: letter for letter, places_ in fit.items() if len(places_) == 1}


def _equal(columns: Sequence[list[str]], places: Sequence[int]) -> bool:
    return all(columns[place] == columns[places[0]] for place in places)


def only_reading(readings: Sequence[str]) -> str:
    """The only reading. Raises UserError where there are several."""
    if len(readings) > 1:
        shown = " or ".join(f"--prefix '{each}'" for each in readings)
        raise UserError(f"the log's lines can be read in {len(readings)} ways: {shown}", HOW)
    return readings[0] if readings else ""
