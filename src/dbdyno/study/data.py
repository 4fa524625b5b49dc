"""The section [data] of a study: a dump or a data folder in the place of the rows that a workload makes."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.study.document import Place
from dbdyno.study.nouns import Application, Factor, GivenData, Workload
from dbdyno.study.section import SectionReader
from dbdyno.study.tables import DATA, UPGRADED
from dbdyno.study.values import shown

PATH: Place = ("data",)
WITH_SETUP = "script"
"""The workload whose own statements can follow a dump, because they can be written for it."""


def read_data(
    reader: SectionReader,
    folder: Path,
    workload: Workload | None,
    factors: tuple[Factor, ...],
    application: Application | None,
) -> GivenData | None:
    """The data that a study brings; None where its workload makes them. Relative paths count from
    `folder`."""
    if not isinstance(reader.at(PATH), dict):
        return None
    data = GivenData(**reader.section(DATA))
    _require_source(reader)
    if data.setup and workload is not None and workload.name != WITH_SETUP:
        told = f"`setup` runs the statements of a file, and `{workload.name}` has none"
        reader.note((*PATH, "setup"), told, f"leave it out; the data must hold the tables of {workload.name}")
    if application is not None:
        hint = "keep one of the two: an application makes its own tables"
        reader.note(PATH, "[data] and [application] exclude each other", hint)
    if reader.at(("images",)) is not None:
        hint = "leave it out: the data have one layout, which all blocks share"
        reader.note(("images",), "`images` and [data] exclude each other", hint)
    place: Place = (*PATH, "dump") if data.dump else (*PATH, "folder")
    if reader.engine is not None and reader.at(place) is not None and reader.catalogue.given is not None:
        given = reader.catalogue.given
        # What is taken over needs to suit the first alone.
        takers = reader.engines[:1] if reader.at((*PATH, "upgraded")) is True else reader.engines
        wrong = (given(data, folder, engine, factors) for engine in takers)
        for mistake in dict.fromkeys(chain.from_iterable(wrong)):
            reader.note(place, mistake.message, mistake.hint)
    return data


def _require_source(reader: SectionReader) -> None:
    given = [key for key in ("dump", "folder") if reader.at((*PATH, key)) is not None]
    if len(given) == 2:
        told = "`dump` and `folder` exclude each other"
        reader.note((*PATH, "folder"), told, "keep one of the two")
    elif not given:
        hint = (
            'write dump = "dump.sql.gz", or folder = "/path/of/a/stopped/server"; for rows that the workload'
            f' makes and later versions take over, write data = "{UPGRADED}" at the top'
        )
        reader.note(PATH, "[data] names no data", hint)


def read_upgraded(
    reader: SectionReader, factors: tuple[Factor, ...], application: Application | None
) -> bool:
    """Whether every engine but the baseline's takes over the data that the baseline's has."""
    found = reader.at(PATH)
    if found is not None and not isinstance(found, dict) and found != UPGRADED:
        hint = f'write data = "{UPGRADED}", or [data] with a `dump` or a `folder` below it'
        reader.note(PATH, f"`data` must be a table or `{UPGRADED}`, not {shown(found)}", hint)
        return False
    place: Place = (*PATH, "upgraded") if isinstance(found, dict) else PATH
    if isinstance(found, dict) and not reader.value(DATA.key("upgraded"), place):
        return False
    if found is None:
        return False
    if all(factor.name != ENGINE_FACTOR for factor in factors):
        hint = f'write {ENGINE_FACTOR} = ["mariadb@10.11", "mariadb@11.8"] under [factors], or leave it out'
        reader.note(place, f"`{UPGRADED}` needs `{ENGINE_FACTOR}` as a factor", hint)
    if application is not None and found == UPGRADED:
        hint = "keep one of the two: an application makes its own tables"
        reader.note(place, f"`{UPGRADED}` and [application] exclude each other", hint)
    return True
