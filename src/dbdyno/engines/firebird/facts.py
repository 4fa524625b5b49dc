"""What is known of Firebird: its server as its own packages lay it out, its plans, and what it counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask
from dbdyno.engines.facts import ComparedBy, PlanStep, Production, SchemaQuery
from dbdyno.engines.firebird.settings import as_attributes, as_parameter
from dbdyno.frozen import Level
from dbdyno.records.load_words import SchemaNote


def written(settings: Mapping[str, Level]) -> str:
    """Lines of a `firebird.conf`."""
    return "".join(f"{name} = {as_parameter(level)}\n" for name, level in settings.items())


def _by_gfix(option: str, words: Mapping[int, str], name: str) -> Callable[[Level], str]:
    """The command that sets an attribute of a database, by its number or by the word for it."""

    def command(level: Level) -> str:
        [number] = as_attributes({name: level}).values()
        return f"gfix -{option} {words.get(number, number)} DATABASE"

    return command


def _by_restoring(options: Callable[[Level], str], level: Level) -> str:
    """A backup and its restore: what is fixed when a database is made."""
    return f"gbak -b DATABASE backup.fbk; gbak -c {options(level)} backup.fbk NEW_DATABASE"


PRODUCTION = Production(
    file="firebird.conf",
    written=written,
    version_sql="SELECT RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION') FROM RDB$DATABASE",
    data_sql="SELECT MON$DATABASE_NAME FROM MON$DATABASE",
    protocols=("firebird",),
    folder="/opt/firebird",
    shared=True,
    service="firebird",
    port=3050,
    in_data={
        "page_buffers": _by_gfix("buffers", {}, "page_buffers"),
        "forced_writes": _by_gfix("write", {0: "async", 1: "sync"}, "forced_writes"),
        "sweep_interval": _by_gfix("housekeeping", {}, "sweep_interval"),
        # The attribute is kept as its opposite.
        "reserve_space": _by_gfix("use", {0: "reserve", 1: "full"}, "reserve_space"),
        "page_size": partial(_by_restoring, lambda level: f"-p {level}"),
    },
)


COMPARED_BY = ComparedBy(
    columns="SELECT TRIM(f.RDB$RELATION_NAME), TRIM(f.RDB$FIELD_NAME) FROM RDB$RELATION_FIELDS f"
    " JOIN RDB$RELATIONS r ON r.RDB$RELATION_NAME = f.RDB$RELATION_NAME"
    " WHERE r.RDB$SYSTEM_FLAG = 0 AND r.RDB$VIEW_BLR IS NULL ORDER BY 1, f.RDB$FIELD_POSITION",
    defaults="SELECT TRIM(RDB$CONFIG_NAME), RDB$CONFIG_DEFAULT FROM RDB$CONFIG",
    schema=(
        SchemaQuery(
            ("character set",),
            "SELECT 'database', TRIM(RDB$CHARACTER_SET_NAME) FROM RDB$DATABASE",
        ),
        SchemaQuery(
            ("type", "character set", "collation", "not null", "default", "computed as"),
            "SELECT TRIM(f.RDB$RELATION_NAME) || '.' || TRIM(f.RDB$FIELD_NAME),"
            " TRIM(t.RDB$TYPE_NAME) || '(' || COALESCE(d.RDB$CHARACTER_LENGTH, d.RDB$FIELD_PRECISION,"
            " d.RDB$FIELD_LENGTH) || ', ' || COALESCE(d.RDB$FIELD_SCALE, 0) || ')',"
            " TRIM(s.RDB$CHARACTER_SET_NAME), TRIM(c.RDB$COLLATION_NAME),"
            " IIF(COALESCE(f.RDB$NULL_FLAG, d.RDB$NULL_FLAG, 0) = 1, 'yes', 'no'),"
            " COALESCE(CAST(COALESCE(f.RDB$DEFAULT_SOURCE, d.RDB$DEFAULT_SOURCE) AS VARCHAR(500)), 'none'),"
            " CAST(d.RDB$COMPUTED_SOURCE AS VARCHAR(500))"
            " FROM RDB$RELATION_FIELDS f JOIN RDB$RELATIONS r ON r.RDB$RELATION_NAME = f.RDB$RELATION_NAME"
            " JOIN RDB$FIELDS d ON d.RDB$FIELD_NAME = f.RDB$FIELD_SOURCE"
            " LEFT JOIN RDB$TYPES t ON t.RDB$FIELD_NAME = 'RDB$FIELD_TYPE' AND t.RDB$TYPE = d.RDB$FIELD_TYPE"
            " LEFT JOIN RDB$CHARACTER_SETS s ON s.RDB$CHARACTER_SET_ID = d.RDB$CHARACTER_SET_ID"
            " LEFT JOIN RDB$COLLATIONS c ON c.RDB$CHARACTER_SET_ID = d.RDB$CHARACTER_SET_ID"
            " AND c.RDB$COLLATION_ID = COALESCE(f.RDB$COLLATION_ID, d.RDB$COLLATION_ID)"
            " WHERE r.RDB$SYSTEM_FLAG = 0 AND r.RDB$VIEW_BLR IS NULL ORDER BY 1",
        ),
        SchemaQuery(
            ("columns", "unique", "descending", "expression"),
            "SELECT 'index ' || TRIM(i.RDB$INDEX_NAME), CAST((SELECT LIST(TRIM(s.RDB$FIELD_NAME), ', ')"
            " FROM (SELECT RDB$FIELD_NAME FROM RDB$INDEX_SEGMENTS WHERE RDB$INDEX_NAME = i.RDB$INDEX_NAME"
            " ORDER BY RDB$FIELD_POSITION) s) AS VARCHAR(1000)), COALESCE(i.RDB$UNIQUE_FLAG, 0),"
            " COALESCE(i.RDB$INDEX_TYPE, 0), CAST(i.RDB$EXPRESSION_SOURCE AS VARCHAR(500))"
            " FROM RDB$INDICES i WHERE COALESCE(i.RDB$SYSTEM_FLAG, 0) = 0 ORDER BY 1",
        ),
    ),
    notes=(
        SchemaNote(
            what="name",
            value="reserved",
            says="statements that name it without quotes fail",
            source="https://firebirdsql.org/file/documentation/html/en/refdocs/fblangref50/"
            "firebird-50-language-reference.html#fblangref50-reskeywords",
        ),
    ),
)


_PLACE = re.compile(r" \(line \d+, column \d+\)")
_SIZES = re.compile(r" \((?:record length|keys): [^()]*\)")


def read(text: str) -> tuple[PlanStep, ...]:
    """The steps of a plan."""
    told = [(len(line) - len(line.lstrip()), _clean(line)) for line in text.splitlines() if line.strip()]
    return _below(told)


def _below(told: list[tuple[int, str]]) -> tuple[PlanStep, ...]:
    """The steps that stand leftmost, each with those that are indented below it."""
    steps: list[PlanStep] = []
    while told:
        (depth, title), told = told[0], told[1:]
        inner = next((place for place, (other, _) in enumerate(told) if other <= depth), len(told))
        steps.append(PlanStep(title=title, inputs=_below(told[:inner])))
        told = told[inner:]
    return tuple(steps)


def _clean(line: str) -> str:
    line = _SIZES.sub("", _PLACE.sub("", line.strip().removeprefix("-> ")))
    words = re.split(r'("[^"]*")', line)
    return "".join(word if word.startswith('"') else word.lower() for word in words).replace('"', "")


CACHE_MISSES = ""
exercised = embedded.exercised
held = embedded.held
unmoved = embedded.unmoved


def status(_ask: Ask) -> dict[str, float]:
    """None. The counters of an embedded database begin anew when its last attachment ends, which is
    before anyone could read them after a load."""
    return {}


def sampled(_ask: Ask) -> dict[str, float]:
    return {}


def waits(_ask: Ask) -> dict[str, float]:
    return {}


def view(_gained: Mapping[str, float]) -> dict[str, float]:
    return {}


LIBRARIES = (
    "libfbclient",
    "libEngine",
    "libChaCha",
    "libSrp",
    "libfbtrace",
    "libib_util",
    "libtom",
    "libudr",
)
"""How the files of Firebird's client, engine, plug-ins and arithmetic begin."""


def owns(_file: str, object_file: str) -> bool:
    """Whether a function of the load process is Firebird's, by the library that holds it."""
    return object_file.rsplit("/", 1)[-1].startswith(LIBRARIES)
