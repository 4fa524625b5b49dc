"""The application in front of a study's server, as `dyno plan` shows it."""

from __future__ import annotations

from rich.text import Text

from dbdyno.applications.registry import PRODUCTS, installed
from dbdyno.errors import EngineMissing
from dbdyno.frozen import Frozen, Level, level_text
from dbdyno.report.words.numbers import plural
from dbdyno.study import Study


class PlannedApplication(Frozen):
    """What would take the load. `digest` identifies all packages that it runs on. Where it is not on this
    machine, `version` is the one that was asked for, `digest` is empty, and `missing` says what to do."""

    name: str
    version: str
    digest: str = ""
    workers: int
    settings: dict[str, Level]
    missing: str = ""


def planned_application(study: Study) -> PlannedApplication | None:
    """The application that a run of the study would start; None where the study has none."""
    wish = study.application
    if wish is None:
        return None
    planned = PlannedApplication(
        name=PRODUCTS[wish.name].title, version=wish.version, workers=wish.workers, settings=wish.settings
    )
    try:
        found = installed(wish)
    except EngineMissing as error:
        return planned.but(missing=f"{error.message}; {error.hint}")
    if found is None:
        return None
    facts = {"version": found.installation.version, "digest": found.installation.digest}
    return planned.but(**facts)


def application_lines(planned: PlannedApplication | None) -> list[Text]:
    """What stands in front of the server, and why it would not be started; nothing where nothing does."""
    if planned is None:
        return []
    version = f" {planned.version}" if planned.version else ""
    packages = f" (packages {planned.digest})" if planned.digest else ""
    told = f"application: {planned.name}{version}{packages}, {plural(planned.workers, 'worker')}"
    settings = [f"  {name} = {level_text(level)}" for name, level in planned.settings.items()]
    missing = [Text(planned.missing, style="yellow")] if planned.missing else []
    return [Text("\n".join([told, *settings])), *missing]
