"""The section [application] of a study: what stands in front of the server and takes the load."""

from __future__ import annotations

from functools import partial

from dbdyno.frozen import Level
from dbdyno.study import values
from dbdyno.study.document import Place
from dbdyno.study.nouns import Application, Restarts, Workload
from dbdyno.study.section import APPLICATION_KEYS, SectionReader
from dbdyno.study.soak import Soak

WORKERS_MAX = 1_024
OF_REQUESTS = "script"
"""The workload whose file can hold requests."""
FORMS = 'write "keystone@30.0.0", or "keystone:/PATH" with the folder that it is installed in'
PATH: Place = ("application",)


def read_application(
    reader: SectionReader, workload: Workload | None, restarts: Restarts | None, soak: Soak | None
) -> Application | None:
    """The application that a study puts in front of its server; None where it has none."""
    if reader.at(PATH) is None:
        return None
    reader.table(PATH, APPLICATION_KEYS)
    known = reader.catalogue.applications
    reference = partial(values.reference, names=known, what="application", forms=FORMS)
    found = reader.need((*PATH, "name"), reference, f"name one: {', '.join(sorted(known))}")
    workers = partial(values.integer, low=1, high=WORKERS_MAX)
    if workload is not None and workload.name != OF_REQUESTS:
        hint = f'write name = "{OF_REQUESTS}", and give a file with requests'
        reader.note(("workload", "name"), "an application takes requests, and no SQL", hint)
    for section, given in (("restarts", restarts), ("soak", soak)):
        if given is not None:
            reader.note(PATH, f"[{section}] and [application] exclude each other", "keep one of the two")
    application = Application(
        name=found.engine if found else "",
        version=found.version if found else "",
        path=found.path if found else "",
        workers=reader.take((*PATH, "workers"), workers, 4),
        settings=_settings(reader),
    )
    if found is None or reader.engine is None:
        return None
    for mistake in known[found.engine](application, reader.engine):
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
