"""The section [application] of a study: what stands in front of the server and takes the load."""

from __future__ import annotations

from functools import partial
from itertools import chain

from dbdyno.frozen import Level
from dbdyno.study import values
from dbdyno.study.document import Place
from dbdyno.study.nouns import Application, Restarts, Workload
from dbdyno.study.section import SectionReader
from dbdyno.study.soak import Soak
from dbdyno.study.tables import APPLICATION

OF_REQUESTS = "script"
"""The workload whose file can hold requests."""
PATH: Place = ("application",)


def read_application(
    reader: SectionReader, workload: Workload | None, restarts: Restarts | None, soak: Soak | None
) -> Application | None:
    """The application that a study puts in front of its server; None where it has none."""
    if reader.at(PATH) is None:
        return None
    given = reader.section(APPLICATION)
    found = reader.value(APPLICATION.key("name"), (*PATH, "name"))
    if workload is not None and workload.name != OF_REQUESTS:
        hint = f'write name = "{OF_REQUESTS}", and give a file with requests'
        reader.note(("workload", "name"), "an application takes requests, and no SQL", hint)
    for section, other in (("restarts", restarts), ("soak", soak)):
        if other is not None:
            reader.note(PATH, f"[{section}] and [application] exclude each other", "keep one of the two")
    application = Application(
        name=found.engine if found else "",
        version=found.version if found else "",
        path=found.path if found else "",
        settings=_settings(reader),
        **given,
    )
    if found is None or reader.engine is None:
        return None
    wrong = map(partial(reader.catalogue.applications[found.engine], application), reader.engines)
    for mistake in dict.fromkeys(chain.from_iterable(wrong)):
        reader.note(PATH, mistake.message, mistake.hint)
    return application


def _settings(reader: SectionReader) -> dict[str, Level]:
    """The application's own settings, by their full names."""
    settings: dict[str, Level] = {}
    for name, value, path in reader.flat((*PATH, "settings")):
        try:
            settings[name] = values.level(value)
        except values.Fault as fault:
            reader.note(path, f"`{name}`: {fault.message}", fault.hint)
    return settings
