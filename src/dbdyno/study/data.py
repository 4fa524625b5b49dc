"""The section [data] of a study: a dump or a data folder in the place of the rows that a workload makes."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from dbdyno.study.document import Place
from dbdyno.study.nouns import Application, Factor, GivenData, Workload
from dbdyno.study.section import SectionReader
from dbdyno.study.tables import DATA

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
    if reader.at(PATH) is None:
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
        wrong = (given(data, folder, engine, factors) for engine in reader.engines)
        for mistake in dict.fromkeys(chain.from_iterable(wrong)):
            reader.note(place, mistake.message, mistake.hint)
    return data


def _require_source(reader: SectionReader) -> None:
    given = [key for key in ("dump", "folder") if reader.at((*PATH, key)) is not None]
    if len(given) == 2:
        told = "`dump` and `folder` exclude each other"
        reader.note((*PATH, "folder"), told, "keep one of the two")
    elif not given and isinstance(reader.at(PATH), dict):
        hint = 'write dump = "dump.sql.gz", or folder = "/path/of/a/stopped/server"'
        reader.note(PATH, "[data] names no data", hint)
