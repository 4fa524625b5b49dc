"""What is known of an engine beside its parts: how it is deployed, compared, explained, counted and asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dbdyno.engines.values import as_text, same_value
from dbdyno.frozen import Level
from dbdyno.obtain.debian import DebianRecipe
from dbdyno.obtain.installation import Installation
from dbdyno.records.load_words import SchemaNote
from dbdyno.records.record import Check, Reading, Recovery
from dbdyno.study.soak import Act

RELEASE = "{release}"


@dataclass(frozen=True)
class Production:
    """An engine as its packages lay it out. `{release}` in a text stands for the release.

    `written` is the text of `file` that gives the server these settings; the server reads it in `folder`. A
    file that is `shared` holds other lines too, of which the first counts. A line that begins with `comment`
    says nothing to it. `service` is the systemd unit, or empty for an engine that lives in its application. A
    URL of the engine begins with one of `protocols`, and `port` is where its server listens. `environment` is
    the file that a server takes its environment from where it does not take that of its unit. `client` is the
    shell command that a statement follows, empty where none can ask all settings; it prints the value last on
    its line, behind a tab.

    `limits` are the directives of a unit without which settings have no effect, and `in_data` how those
    settings are set that stand in the data themselves. `version_sql` and `data_sql` ask a server for its
    version and for the place of its data. A release is the first `release_parts` of a version: settings may
    differ between two. To sessions that clients share, statements are sent in the way `pooled_statements`.
    """

    file: str
    written: Callable[[Mapping[str, Level]], str]
    version_sql: str
    data_sql: str
    protocols: tuple[str, ...]
    folder: str = ""
    shared: bool = False
    comment: str = "#"
    service: str = ""
    port: int = 0
    environment: str = ""
    client: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    in_data: Mapping[str, Callable[[Level], str]] = field(default_factory=dict)
    release_parts: int = 1
    pooled_statements: str = "text"

    def release(self, version: str) -> str:
        """Of a version: `11.8` of `11.8.6`."""
        return ".".join(version.split(".")[: self.release_parts])

    def of(self, text: str, version: str) -> str:
        """A text of these with the release of a version."""
        return text.replace(RELEASE, self.release(version))


def as_it_is(value: str) -> str:
    """A value that a study writes in the server's own words."""
    return value


@dataclass(frozen=True)
class SchemaQuery:
    """A statement of SQL whose rows say what the server holds of one thing of the schema: a column as
    `table.column`, anything else with its kind before its name. Behind that a row has the values of the
    `properties`. NULL is no word on one, so that a version which cannot tell it is not compared by it."""

    properties: tuple[str, ...]
    sql: str


@dataclass(frozen=True)
class ComparedBy:
    """Statements of SQL. `columns` has a row for each column of the user's tables: the table and the column,
    table by table, in the order of the columns. `defaults` has a row for each setting of the server: its
    name, and the value that it has where nobody sets it, in the server's own words. `level` makes of such a
    value what a study writes. `schema` tells the user's schema, and `notes` what is known of some values in
    it. `program` has the server's own words on its program, its compiler among them where it names one. A
    name stands between two of `quote`, because it may be a word of the server's own."""

    columns: str
    defaults: str
    level: Callable[[str], str] = as_it_is
    schema: tuple[SchemaQuery, ...] = ()
    notes: tuple[SchemaNote, ...] = ()
    quote: str = '"'
    program: str = ""

    def quoted(self, name: str) -> str:
        """A name as the server's catalogue has it, for a statement."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"


@dataclass(frozen=True)
class RowWords:
    """How an engine is asked for its rows, in SQL. `size` gives the bytes of the files that hold the tables
    with their indexes, without logs; NULL where they do not have files of their own. `length` are the bytes
    of the value of `{column}` as text. `changed` has a row for each table: its name, and how many rows were
    inserted, updated and deleted in all so far; an empty name is for all tables, and an empty `changed` for
    an engine that does not count them. `only` stands before a table that others may be parts of."""

    size: str
    length: str = "OCTET_LENGTH({column})"
    changed: str = ""
    only: str = ""


OF_INFORMATION_SCHEMA = (
    "SELECT c.table_name, c.column_name FROM information_schema.columns c"
    " JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name"
    " WHERE t.table_type = 'BASE TABLE' AND c.table_schema = {schema}"
    " ORDER BY c.table_name, c.ordinal_position"
)
SCHEMA_OF_MYSQL = (
    SchemaQuery(
        ("character set", "collation"),
        "SELECT 'database', default_character_set_name, default_collation_name"
        " FROM information_schema.schemata WHERE schema_name = DATABASE()",
    ),
    SchemaQuery(
        ("storage engine", "row format", "collation"),
        "SELECT CONCAT('table ', table_name), engine, row_format, table_collation"
        " FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
        " ORDER BY table_name",
    ),
    SchemaQuery(
        ("type", "character set", "collation", "takes NULL", "default", "extra", "generated as"),
        "SELECT CONCAT(c.table_name, '.', c.column_name), c.column_type, c.character_set_name,"
        " c.collation_name, c.is_nullable, COALESCE(c.column_default, 'none'), COALESCE(c.extra, ''),"
        " c.generation_expression FROM information_schema.columns c"
        " JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name"
        " WHERE t.table_type = 'BASE TABLE' AND c.table_schema = DATABASE()"
        " ORDER BY c.table_name, c.ordinal_position",
    ),
    SchemaQuery(
        ("columns", "not unique", "kind"),
        "SELECT CONCAT('index ', table_name, '.', index_name), GROUP_CONCAT(CONCAT("
        "COALESCE(column_name, 'an expression'), COALESCE(CONCAT('(', sub_part, ')'), ''),"
        " IF(collation = 'D', ' DESC', '')) ORDER BY seq_in_index SEPARATOR ', '), MIN(non_unique),"
        " MIN(index_type) FROM information_schema.statistics WHERE table_schema = DATABASE()"
        " GROUP BY table_name, index_name ORDER BY table_name, index_name",
    ),
    SchemaQuery(
        ("partitioned by", "partitions"),
        "SELECT CONCAT('table ', table_name),"
        " CONCAT(MIN(partition_method), ' ', COALESCE(MIN(partition_expression), '')),"
        " COUNT(*) FROM information_schema.partitions WHERE table_schema = DATABASE()"
        " AND partition_name IS NOT NULL GROUP BY table_name",
    ),
    SchemaQuery(
        ("on update", "on delete"),
        "SELECT CONCAT('foreign key ', table_name, '.', constraint_name), update_rule, delete_rule"
        " FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()",
    ),
)
"""What MariaDB's information_schema and that of MySQL say in the same words."""


@dataclass(frozen=True)
class PlanStep:
    """One step: `title` says what is done to what, `details` how; `inputs` are done before it. Of one that
    was executed `rows` are those that it was expected to give each time, and those that it gave."""

    title: str
    details: tuple[str, ...] = ()
    inputs: tuple[PlanStep, ...] = ()
    rows: tuple[float, float] | None = None


def rows_of_plan_step(node: Mapping[str, object], expected: str, given: str) -> tuple[float, float] | None:
    """The rows of a step that a plan tells under these names; None where it lacks one."""
    found = [node.get(name) for name in (expected, given)]
    told = [float(one) for one in found if isinstance(one, int | float)]
    return (told[0], told[1]) if len(told) == 2 else None


ReadPlan = Callable[[str], tuple[PlanStep, ...]]
"""The steps of a plan as the engine tells it, the last one first; none where a statement needs no plan.
Raises ValueError where it cannot be read."""


def plan_lines(steps: tuple[PlanStep, ...], depth: int = 0) -> Iterator[str]:
    """A line for each step, the inputs of one indented below it."""
    for step in steps:
        yield "  " * depth + ": ".join(filter(None, (step.title, "; ".join(step.details))))
        yield from plan_lines(step.inputs, depth + 1)


def each_step(steps: tuple[PlanStep, ...]) -> Iterator[PlanStep]:
    """The steps in the order of their lines."""
    for step in steps:
        yield step
        yield from each_step(step.inputs)


def titles(steps: tuple[PlanStep, ...]) -> Iterator[str]:
    """What is done, in the order in which it is done."""
    for step in steps:
        yield from titles(step.inputs)
        yield step.title


_TEXT = re.compile(r"(?<![\w'])[xXeEbBnN]?'(?:[^']|'')*'")
_TYPE = r'(?:"[^"]+"|[a-z_]\w*(?: varying| precision)?(?:\(\d+(?:,\d+)?\))?(?: with(?:out)? time zone)?)'
_CAST_VALUE = re.compile(rf"\?::{_TYPE}(?:\[\])?")
_NUMBER = re.compile(r"(?<![\w.$`\"?])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w`\"])", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<!\w)\$\d+\b")
_BRACKETED = re.compile(r"\((-?\?)\)")
_LIST = re.compile(r"\?(?:\s*,\s*\?)+")


def without_values(condition: str) -> str:
    """A condition in which `?` stands for each value: a number, a text, a parameter, a list of them."""
    text = _TEXT.sub("?", condition)
    # The size of a type is no value.
    text = _CAST_VALUE.sub("?", _PARAMETER.sub("?", text))
    text = _CAST_VALUE.sub("?", _NUMBER.sub("?", text))
    text = _BRACKETED.sub("?", text)
    return _LIST.sub("?", text)


class GuestProgram(Protocol):
    """An engine's program in a guest without a disk or a network. `RECIPE` are its packages, `PROGRAM` its
    path in them, and `ASK` a command of the guest's shell that has it answer, a line for each answer."""

    RECIPE: DebianRecipe
    PROGRAM: str
    ASK: str

    def data(self) -> Mapping[str, bytes]:
        """The files that the engine's data are, by their paths in the guest."""
        ...

    def check(self, answers: Sequence[str]) -> Check:
        """Whether the invariants hold by what it answered."""
        ...


@dataclass(frozen=True)
class ShellRound:
    """What was there after the shell had ended, and what was checked of it."""

    recovery: Recovery
    checks: tuple[Check, ...]


class Shell(Protocol):
    """A program of an engine that takes statements, in the place of the load process."""

    def make(self, installation: Installation, folder: Path) -> None:
        """Makes data in an empty folder. Raises ServerFailed."""
        ...

    def opened(self, installation: Installation, folder: Path) -> AbstractContextManager[int]:
        """The process of a shell that has answered, until it is left. Raises ServerFailed."""
        ...

    def instructions(self, installation: Installation, folder: Path) -> int | None:
        """How many instructions one transaction of the load takes; None where nothing here counts them."""
        ...

    def round_of(self, installation: Installation, folder: Path, act: Act, load_s: float) -> ShellRound:
        """A load that an act ends, and what is there afterwards. Raises ServerFailed."""
        ...


@dataclass(frozen=True)
class SettingNeed:
    """`settings` do nothing while `other` has one of the levels `off`. Where nothing sets `other`, the engine
    gives it the level `unset`. `why` says what is missing then."""

    settings: tuple[str, ...]
    other: str
    off: tuple[str, ...]
    unset: str
    why: str


def unmet(needs: Sequence[SettingNeed], settings: Mapping[str, Level]) -> dict[str, str]:
    """Those of the settings that cannot matter beside the others, each with the reason."""
    found: dict[str, str] = {}
    for need in needs:
        level = settings.get(need.other, need.unset)
        if any(same_value(level, off) for off in need.off):
            reason = f"{need.other} is {as_text(level)}, {need.why}"
            found |= {name: reason for name in need.settings if name in settings and name not in found}
    return found


View = Mapping[str, tuple[float, tuple[str, ...]]]
"""Title with its unit -> a factor, and the counters whose sum it multiplies."""

Proofs = Mapping[str, tuple[str, ...]]
"""Setting -> the counters that show that its part of the server was at work."""


def numbers(rows: Iterable[Sequence[str | float | None]]) -> dict[str, float]:
    """The counters of rows that hold a name and a value; what is no number is left out."""
    counted: dict[str, float] = {}
    for name, value, *_ in rows:
        try:
            counted[str(name)] = float(value if value is not None else "")
        except ValueError:
            continue
    return counted


def counters_of(view: View) -> tuple[str, ...]:
    """The counters of which a view is made."""
    return tuple(dict.fromkeys(name for _, names in view.values() for name in names))


def viewed(view: View, gained: Mapping[str, float]) -> dict[str, float]:
    """The lines of a view that have a counter; one that stood still is left out."""
    return {
        title: round(factor * sum(gained.get(name, 0.0) for name in names), 6)
        for title, (factor, names) in view.items()
        if any(name in gained for name in names)
    }


def proved(
    proofs: Proofs, name: str, before: Mapping[str, float], after: Mapping[str, float], source: str
) -> Reading | None:
    """How much each counter of a setting gained, read from `source`; None when it has none."""
    counters = [one for one in proofs.get(name, ()) if one in before and one in after]
    if not counters:
        return None
    gains = [f"{one} {after[one] - before[one]:+.0f}" for one in counters]
    return Reading(value=", ".join(gains), source=f"{source}, after the load less before it")


def unmoved(
    proofs: Proofs,
    partial: frozenset[str],
    name: str,
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> str:
    """That each counter of a setting stood still; empty where one moved, where it has none, or where they see
    but a part of its use (`partial`).
    """
    counters = [one for one in proofs.get(name, ()) if one in before and one in after]
    if not counters or name in partial or any(after[one] != before[one] for one in counters):
        return ""
    return f"{', '.join(counters)} did not move during the load"


OF_DYNO = "Dyno sets this itself, so that the server stays private"
OTHER_FILE = "Dyno does not follow this line: write what matters of the other file into this one"
A_PATH = "it is a path of the server that the file was written for"
A_PROGRAM = "it lets the server run a program or open files of its host, which a run refuses"
NOT_SHOWN = "no variable of the server shows it, so nothing would prove it"
UNREADABLE = "Dyno does not understand this line"


class NoConfiguration(ValueError):
    """A text that no server would take as its configuration file, and what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Include:
    """What a line leads to: a file or, with an `ending`, all files of a folder whose names end so."""

    path: str
    ending: str = ""


@dataclass(frozen=True)
class ConfigurationLine:
    """A line that concerns the server. `untaken` says why it is no setting for a study, and `include` leads
    to other files; the other lines set `name` to `level`. `file` holds the line where that is not the file
    that the study names. A `fatal` line keeps the server from reading on, and says why: a file that is not
    included is then refused.
    """

    number: int
    text: str
    name: str = ""
    level: Level = True
    untaken: str = ""
    include: Include | None = None
    file: str = ""
    fatal: str = ""


def unquoted(value: str) -> str:
    """A value without its quotes, or up to the comment that follows it."""
    quoted = re.match(r"""\s*(['"])(.*?)\1\s*(#.*)?$""", value)
    return quoted[2] if quoted else value.split("#", 1)[0].strip()


def is_path(level: Level) -> bool:
    return isinstance(level, str) and level.startswith(("/", "~", "./", "../"))
