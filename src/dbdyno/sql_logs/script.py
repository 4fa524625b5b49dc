"""A workload file of what was seen: a transaction for each digest, as often as it was seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.sql_logs import keys
from dbdyno.sql_logs.draw import FILL_IN, Draw, draw
from dbdyno.sql_logs.groups import Group, Shape, Traffic

WEIGHT_MOST = 1_000_000_000
"""More than this no transaction of a workload file can weigh."""

REAL = (
    "# The file holds real values of production: texts, the ends of numbers and moments, and all values",
    "# of a statement that was seen once. Look through it before you give it to others.",
)
ANONYMOUS = (
    "# Values, comments and databases are replaced by a keyed hash: they find no rows of the log's own data.",
    "# Names of tables and columns are those of the log. Look through it before you give it to others.",
)

PARTS = {"LIMIT": "10", "OFFSET": "0"}
"""What stands for the number of rows that no log tells."""


@dataclass(frozen=True)
class ScriptStatement:
    """A statement of the script: its text with `:p1` in the place of values, and how these are drawn. The
    draws of `new` ones are of keys that no row has."""

    sql: str
    draws: dict[str, Draw]
    new: frozenset[str] = frozenset()

    @property
    def to_fill_in(self) -> bool:
        return any(each.expression == FILL_IN for each in self.draws.values())

    @property
    def invented(self) -> tuple[str, ...]:
        """What is drawn though no log tells it, in words."""
        return tuple(f"{name}: {draw.words}" for name, draw in self.draws.items() if draw.invented)

    @property
    def anew(self) -> tuple[str, ...]:
        """What is drawn in another way than the log tells, so that rows can be inserted, in words."""
        return tuple(f"{name}: {self.draws[name].words}" for name in sorted(self.new))


def statement_of(shape: Shape) -> ScriptStatement:
    """The statement that draws values as they were seen. A value that nobody saw is drawn from the column
    that it is compared with."""
    text, draws, new = _escaped(shape.pieces[0]), dict[str, Draw](), set[str]()
    drawn = [place for place in range(len(shape.values)) if not shape.kept(place)]
    names = {place: f"p{number}" for number, place in enumerate(drawn, 1)}
    together = _together(shape, names)
    for place, values in enumerate(shape.values):
        name = names.get(place)
        if name is None:
            text += shape.first[place].text
        else:
            if place in shape.new:
                draws[name] = shape.new[place]
                new.add(name)
            elif place not in together:
                unseen = _unseen(shape.pieces, place, int(name[1:])) if values.unknown else {}
                draws |= unseen or {name: draw(values)}
            draws |= together.get(place, {})
            word, cast = shape.cast(place)
            if cast:
                text = text.rstrip()[: -len(word)] + f"CAST(:{name} AS {cast})"
            else:
                text += f" :{name}" if text.endswith(":") and not text.endswith("::") else f":{name}"
        text += _escaped(shape.pieces[place + 1])
    return ScriptStatement(text.strip(), draws, frozenset(new))


def _together(shape: Shape, names: Mapping[int, str]) -> dict[int, dict[str, Draw]]:
    """The draws of values that belong together, at the first place of each; the others have none."""
    found = dict[int, dict[str, Draw]]()
    open_ = {place: name for place, name in names.items() if place not in shape.new}
    for each in shape.together:
        if each.distance and not {*each.places} <= open_.keys():
            continue
        if draws := each.draws(shape.values, open_):
            drawn = sorted(place for place in each.places if place in open_)
            found |= dict[int, dict[str, Draw]].fromkeys(drawn, {}) | {drawn[0]: draws}
    return found


COLON = re.compile(r"(\"[^\"]*\"|`[^`]*`)|(?<!:):(?=[A-Za-z_])")


def _escaped(piece: str) -> str:
    """A piece of a statement in which no colon is taken for a value's place: a blank behind it changes
    nothing."""
    return COLON.sub(lambda found: found[1] or ": ", piece)


def _unseen(pieces: Sequence[str], place: int, number: int) -> dict[str, Draw]:
    """How a value is drawn that no log tells; nothing where that is unclear."""
    own = f"p{number}"
    if part := keys.part_of(pieces, place):
        value = PARTS[part]
        return {own: Draw(value, f"{part} {value}, which no log tells", invented=True)}
    column = keys.column_of(pieces, place)
    if column is None:
        return {}
    pick = f"pick(:{column.name})"
    words = f"values of {column.words}, each as likely as the others; no log tells which were asked for"
    if keys.range_of(pieces, place):
        one, other = f"p{number}a", f"p{number}b"
        lower = f"case when :{one} <= :{other} then :{one} else :{other} end"
        ends = f"the lower of two values of {column.words}; no log tells how far they lie apart"
        return {
            one: Draw(pick, words, invented=True, asked=column),
            other: Draw(pick, words, invented=True, asked=column),
            own: Draw(lower, ends, invented=True),
        }
    if keys.is_upper_end(pieces, place):
        one, other = f"p{number - 1}a", f"p{number - 1}b"
        higher = f"case when :{one} <= :{other} then :{other} else :{one} end"
        return {own: Draw(higher, "the higher of the two", invented=True)}
    return {own: Draw(pick, words, invented=True, asked=column)}


def names_of(taken: Sequence[Group]) -> list[str]:
    """What the tally calls them: by verb, and a number."""
    width = len(str(len(taken)))
    return [f"{group.verb.lower()}_{number:0{width}}" for number, group in enumerate(taken, 1)]


def script(source: str, traffic: Traffic, taken: Sequence[Group], left_out: Sequence[Group] = ()) -> str:
    """The file. Its statements are checked when it is run; one that is to be filled in is refused until
    then. Those that are `left_out` stand at its end, as comments."""
    count = sum(group.count for group in taken)
    lines = [
        f"# {count:,} of the {traffic.count:,} statements in {_one_line(source)} ({traffic.kind}):"
        f" {len(taken)} of {len(traffic.groups)} digests.",
        "# Each is a transaction of its own, because a log does not tell what belonged together.",
        "# Run it on a copy of the database: the tables must be there, and writes do write.",
        f"# {_one_line(_database(taken))}",
        *(ANONYMOUS if traffic.anonymous else REAL),
        f"title = {_quoted(f'What {source} saw')}",
        *_start(taken),
    ]
    weights = weights_of(taken)
    for group, name, weight in zip(taken, names_of(taken), weights, strict=True):
        lines += ["", *_transaction(group, traffic, name, weight)]
    if left_out:
        lines += [
            "",
            "# Left out, because no log tells their values. To take one along, write what is drawn.",
        ]
    for number, (group, weight) in enumerate(
        zip(left_out, weights_of([*taken, *left_out])[len(taken) :], strict=True), 1
    ):
        own = _transaction(group, traffic, f"left_out_{number}", weight)
        lines += ["#", *(f"# {line}" for line in own)]
    return "\n".join(lines) + "\n"


def _database(taken: Sequence[Group]) -> str:
    """A sentence on where the statements ran, and where they will."""
    names = sorted({group.database for group in taken if group.database})
    if len(names) == 1:
        return f"The statements ran in the database {names[0]}. Here they run in the one of the URL."
    if names:
        return (
            f"The statements ran in {len(names)} databases, as said below. Here all run in that of the URL."
        )
    return "`use DATABASE` is left out, so all statements run in the database of the URL."


def _start(taken: Sequence[Group]) -> Iterator[str]:
    """What statements draw from, as far as the data alone tell it."""
    statements = (statement_of(shape) for group in taken for shape, _ in group.lengths)
    draws = (drawn for statement in statements for drawn in statement.draws.values())
    asked = {drawn.asked.name: drawn.asked for drawn in draws if drawn.asked is not None}
    if not asked:
        return
    yield ""
    yield "# What the data tell and no log does: asked once a run, before the first client starts."
    yield "[start]"
    yield "statements = ["
    for name, each in asked.items():
        yield f"  {{ sql = {_quoted(each.sql)}, {each.capture} = {_quoted(name)} }},"
    yield "]"


def weights_of(taken: Sequence[Group]) -> list[int]:
    """How often each is drawn: as it was seen, or in proportion where that is more than a file can hold."""
    most = max((group.count for group in taken), default=1)
    scale = min(1.0, WEIGHT_MOST / most)
    return [max(1, round(group.count * scale)) for group in taken]


def _transaction(group: Group, traffic: Traffic, name: str, weight: int) -> Iterator[str]:
    longest = group.longest
    statement = statement_of(longest)
    yield "# " + _seen(group, traffic)
    if statement.to_fill_in:
        yield "# TO BE FILLED IN: what is drawn in the place of fill_in(), for example uniform(1, 1000)."
    for drawn in statement.draws.items():
        yield f"#   {drawn[0]}: {_one_line(drawn[1].words)}"
    for key in longest.may_meet:
        yield f"# MAY MEET ROWS THAT EXIST, and fail then: {_one_line(key)}."
    yield "[[transactions]]"
    yield f"name = {_quoted(name)}"
    yield f"weight = {weight}"
    if len(group.lengths) > 1:
        yield from _by_length(group)
        return
    if statement.draws:
        yield f"values = {_table(statement.draws)}"
    yield f"statements = [{_quoted(statement.sql)}]"


def _by_length(group: Group) -> Iterator[str]:
    """One of several statements, each with a length of its lists, as often as it was seen."""
    total, cases, before = sum(count for _, count in group.lengths), list[str](), 0
    for number, (_, count) in enumerate(group.lengths, 1):
        before += count
        cases.append(f"when :drawn <= {before} then {number}")
    chosen = f"case {' '.join(cases)} end"
    yield "atomic = false"
    yield f"values = {{ drawn = {_quoted(f'uniform(1, {total})')}, length = {_quoted(chosen)} }}"
    yield "statements = ["
    for number, (shape, _) in enumerate(group.lengths, 1):
        statement = statement_of(shape)
        values = f", values = {_table(statement.draws)}" if statement.draws else ""
        yield f"  {{ if = {_quoted(f':length = {number}')}, sql = {_quoted(statement.sql)}{values} }},"
    yield "]"


def _table(draws: Mapping[str, Draw]) -> str:
    """What is drawn, as a table of TOML."""
    return f"{{ {', '.join(f'{key} = {_quoted(drawn.expression)}' for key, drawn in draws.items())} }}"


def _seen(group: Group, traffic: Traffic) -> str:
    """How often a digest was seen, and its share of the time."""
    times = "once" if group.count == 1 else f"{group.count:,} times"
    parts = [f"{times}, {share_text(group.count, traffic.count)} of the statements"]
    if group.took_s is not None and traffic.took_s:
        parts.append(f"{share_text(group.took_s, traffic.took_s)} of the time")
    for mean, what in ((group.rows.sent, "sent"), (group.rows.changed, "changed"), (group.rows.read, "read")):
        if mean:
            parts.append(f"{mean:.3g} rows {what} by each")
    if group.writes:
        parts.append("WRITES")
    if group.database:
        parts.append(f"database {_one_line(group.database)}")
    if len(group.lengths) > 1:
        parts.append(f"{len(group.lengths)} of {len(group.shapes)} lengths of its lists")
    return ", ".join(parts) + "."


def share_text(part: float, whole: float) -> str:
    """A part of a whole as a percentage of three digits."""
    return f"{100.0 * part / whole:.3g} %" if whole else "0 %"


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(text: str) -> str:
    return " ".join(text.split())
