"""What is known of SQLite: statements of each connection deploy it; its plans, and what it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask
from dbdyno.engines.facts import ComparedBy, PlanStep, Production, RowWords, SchemaQuery
from dbdyno.engines.sqlite.settings import CREATION, pragma
from dbdyno.frozen import Level
from dbdyno.records.load_words import SchemaNote


def written(settings: Mapping[str, Level]) -> str:
    """Statements for the beginning of a connection."""
    return "".join(f"PRAGMA {name} = {pragma(name, level)};\n" for name, level in settings.items())


def _by_vacuum(name: str, level: Level) -> str:
    """A pragma that is fixed when a file is made, or made anew."""
    return f"sqlite3 DATABASE 'PRAGMA journal_mode = delete; PRAGMA {name} = {pragma(name, level)}; VACUUM'"


PRODUCTION = Production(
    file="connection.sql",
    written=written,
    version_sql="SELECT sqlite_version()",
    data_sql="SELECT file FROM pragma_database_list WHERE name = 'main'",
    protocols=("sqlite",),
    comment="--",
    in_data={name: partial(_by_vacuum, name) for name in sorted(CREATION)},
)


COMPARED_BY = ComparedBy(
    columns="SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid",
    defaults="SELECT CASE instr(compile_options, '=') WHEN 0 THEN compile_options"
    " ELSE substr(compile_options, 1, instr(compile_options, '=') - 1) END,"
    " CASE instr(compile_options, '=') WHEN 0 THEN 'yes'"
    " ELSE substr(compile_options, instr(compile_options, '=') + 1) END"
    " FROM pragma_compile_options",
    schema=(
        SchemaQuery(("encoding",), "SELECT 'database', encoding FROM pragma_encoding"),
        SchemaQuery(
            ("type", "not null", "default", "place in the key", "hidden or generated"),
            "SELECT m.name || '.' || c.name, c.type, c.\"notnull\", COALESCE(c.dflt_value, 'none'), c.pk,"
            " c.hidden FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c"
            " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid",
        ),
        SchemaQuery(
            ("definition",),
            "SELECT 'index ' || name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            " ORDER BY name",
        ),
    ),
    notes=(
        SchemaNote(
            what="name",
            value="reserved",
            says="statements that name it without quotes fail",
            source="https://www.sqlite.org/lang_keywords.html",
        ),
    ),
)


_ESTIMATE = re.compile(r" \(~\d+ rows?\)")
_TERMS = re.compile(r"^(?P<title>.*?) \((?P<terms>[^()]*)\)$")


def read(text: str) -> tuple[PlanStep, ...]:
    """The steps of a plan: `[number, number of the row above, what is done]` each. Raises ValueError."""
    rows = json.loads(text)
    if not all(isinstance(row, list) and len(row) == 3 for row in rows):
        raise ValueError("the plan has another form")
    known = {number for number, _, _ in rows}
    return tuple(_step(row, rows) for row in rows if row[1] not in known)


def _step(row: list[int | str], rows: list[list[int | str]]) -> PlanStep:
    number, _, what = row
    text = _ESTIMATE.sub("", str(what))
    terms = _TERMS.match(text)
    return PlanStep(
        title=_lower(terms["title"] if terms else text),
        details=(terms["terms"],) if terms else (),
        inputs=tuple(_step(inner, rows) for inner in rows if inner[1] == number and inner is not row),
    )


def _lower(title: str) -> str:
    """SQLite's own words in small letters, and names as they are."""
    return re.sub(r"\b[A-Z]{2,}(?:-[A-Z]+)?\b", lambda word: word[0].lower(), title)


ROWS = RowWords(
    # What is still in the write-ahead log counts with the pages that it will be.
    size="SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    length="LENGTH(CAST({column} AS BLOB))",
)
CACHE_MISSES = ""
exercised = embedded.exercised
held = embedded.held
unmoved = embedded.unmoved


def status(ask: Ask) -> dict[str, float]:
    return {name: float(ask(f"PRAGMA {name}")[0][0] or 0) for name in ("page_count", "freelist_count")}


def sampled(_ask: Ask) -> dict[str, float]:
    return {}


def waits(_ask: Ask) -> dict[str, float]:
    return {}


def view(_gained: Mapping[str, float]) -> dict[str, float]:
    """Nothing: a size is no time."""
    return {}
