"""What a study needs that is not here and can be fetched: engines in their versions, and packages of other
architectures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.begin.catalogue import located
from dbdyno.engines import registry
from dbdyno.errors import DynoError
from dbdyno.frozen import level_text
from dbdyno.host.cache import Tell
from dbdyno.obtain.installation import Installation
from dbdyno.study import Study
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.reference import Reference


@dataclass(frozen=True)
class Needed:
    """An engine that is not here; with an `architecture`, its packages of that one."""

    reference: Reference
    architecture: str = ""

    @property
    def words(self) -> str:
        """As `dyno engines fetch` takes it."""
        platform = f" --platform {self.architecture}" if self.architecture else ""
        return f"{self.reference.written}{platform}"


def needed_by(study: Study) -> Iterator[Needed]:
    """What is missing, in the order of the study. A path and a URL are where they are, or are not."""
    fixed = study.settings.get(PLATFORM_FACTOR)
    varied = next((factor.levels for factor in study.factors if factor.name == PLATFORM_FACTOR), ())
    levels = varied or ((fixed,) if fixed is not None else ())
    for reference in study.engines:
        if reference.path:
            continue
        if not levels and not isinstance(located(reference), Installation):
            yield Needed(reference)
        for architecture in map(level_text, levels):
            if not _there(reference, architecture):
                yield Needed(reference, architecture)


def _there(reference: Reference, architecture: str) -> bool:
    try:
        registry.platforms(registry.engine(reference.engine)).locate(reference.version, architecture)
    except DynoError:
        return False
    return True


def fetched_for(study: Study, mirror: str, tell: Tell) -> list[Installation]:
    """Fetches all that is missing, and returns it. Raises UserError where something cannot be had."""
    missing = list(needed_by(study))
    for one in missing:
        tell(f"needed and not here: {one.words}")
    found = []
    for one in missing:
        engine, version = registry.engine(one.reference.engine), one.reference.version
        if one.architecture:
            found.append(registry.platforms(engine).fetch(version, one.architecture, mirror, tell))
        else:
            found.append(engine.obtaining.fetch(version, mirror, tell))
    located.cache_clear()
    return found
