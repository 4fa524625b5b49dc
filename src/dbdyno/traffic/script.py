"""A workload file of what was seen: a transaction for each digest, as often as it was seen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbdyno.traffic.draw import FILL_IN, Draw, draw
from dbdyno.traffic.groups import Group, Shape, Traffic

WEIGHT_MOST = 1_000_000_000
"""More than this no transaction of a workload file can weigh."""


@dataclass(frozen=True)
class Statement:
    """A statement of the script: its text with `:p1` in the place of values, and how these are drawn."""

    sql: str
    draws: dict[str, Draw]

    @property
    def to_fill_in(self) -> bool:
        return any(each.expression == FILL_IN for each in self.draws.values())


def statement_of(shape: Shape) -> Statement:
    """The statement that draws values as they were seen."""
    text, draws = shape.pieces[0], dict[str, Draw]()
    for place, values in enumerate(shape.values):
        if shape.kept(place):
            text += shape.first[place].text
        else:
            name = f"p{len(draws) + 1}"
            draws[name] = draw(values)
            text += f":{name}"
        text += shape.pieces[place + 1]
    return Statement(text.strip(), draws)


def names_of(taken: Sequence[Group]) -> list[str]:
    """What the tally calls them: by verb, and a number."""
    width = len(str(len(taken)))
    return [f"{group.verb.lower()}_{number:0{width}}" for number, group in enumerate(taken, 1)]


def script(source: str, traffic: Traffic, taken: Sequence[Group]) -> str:
    """The file. Its statements are checked when it is run; one that is to be filled in is refused until
    then."""
    count = sum(group.count for group in taken)
    lines = [
        f"# {count:,} of the {traffic.count:,} statements in {_one_line(source)} ({traffic.kind}):"
        f" {len(taken)} of {len(traffic.groups)} digests.",
        "# Each is a transaction of its own, because a log does not tell what belonged together.",
        "# Run it on a copy of the database: the tables must be there, and writes do write.",
        "# `use DATABASE` is left out, so all statements run in the database of the URL.",
        "# The file holds real values of production: texts, the ends of numbers and moments, and all values",
        "# of a statement that was seen once. Look through it before you give it to others.",
        f"title = {_quoted(f'What {source} saw')}",
    ]
    weights = weights_of(taken)
    for group, name, weight in zip(taken, names_of(taken), weights, strict=True):
        lines += ["", *_transaction(group, traffic, name, weight)]
    return "\n".join(lines) + "\n"


def weights_of(taken: Sequence[Group]) -> list[int]:
    """How often each is drawn: as it was seen, or in proportion where that is more than a file can hold."""
    most = max((group.count for group in taken), default=1)
    scale = min(1.0, WEIGHT_MOST / most)
    return [max(1, round(group.count * scale)) for group in taken]


def _transaction(group: Group, traffic: Traffic, name: str, weight: int) -> Iterator[str]:
    statement = statement_of(group.shape)
    yield "# " + _seen(group, traffic)
    if statement.to_fill_in:
        yield "# TO BE FILLED IN: what is drawn in the place of fill_in(), for example uniform(1, 1000)."
    for drawn in statement.draws.items():
        yield f"#   {drawn[0]}: {_one_line(drawn[1].words)}"
    yield "[[transactions]]"
    yield f"name = {_quoted(name)}"
    yield f"weight = {weight}"
    if statement.draws:
        values = ", ".join(f"{key} = {_quoted(drawn.expression)}" for key, drawn in statement.draws.items())
        yield f"values = {{ {values} }}"
    yield f"statements = [{_quoted(statement.sql)}]"


def _seen(group: Group, traffic: Traffic) -> str:
    """How often a digest was seen, and its share of the time."""
    times = "once" if group.count == 1 else f"{group.count:,} times"
    parts = [f"{times}, {share_text(group.count, traffic.count)} of the statements"]
    if group.took_s is not None and traffic.took_s:
        parts.append(f"{share_text(group.took_s, traffic.took_s)} of the time")
    if group.writes:
        parts.append("WRITES")
    if len(group.shapes) > 1:
        parts.append(f"the most frequent of {len(group.shapes)} lengths of its lists")
    return ", ".join(parts) + "."


def share_text(part: float, whole: float) -> str:
    """A part of a whole as a percentage of three digits."""
    return f"{100.0 * part / whole:.3g} %" if whole else "0 %"


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(text: str) -> str:
    return " ".join(text.split())
