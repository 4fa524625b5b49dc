"""Where a study writes: every folder, device and value of the kernel that its run may change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from dbdyno.frozen import Frozen
from dbdyno.host import paths
from dbdyno.host.read_only import SHARED_MEMORY, SHORT_LIVED, servers_text
from dbdyno.host.writers import Allowed
from dbdyno.layers.registry import HostChange
from dbdyno.layers.setup import LOOP_DEVICES, STAYS
from dbdyno.records.place import place_of
from dbdyno.study import Study
from dbdyno.study.act import OF_POWER

CLEARED = "removed after each trial"
KEPT = "kept"
ENDS = "removed when the run ends"


class Write(Frozen):
    """A place with all below it: a path, in which `*` stands for anything, or a database. `what` says what is
    written there, `after` what becomes of it."""

    place: str
    what: str
    after: str


def writes_of(
    study: Study, changes: tuple[HostChange, ...], store: str, allowed: Allowed
) -> tuple[Write, ...]:
    """All places that a run of the study writes to, with the store at a URL. Makes no folder."""
    return tuple(dict.fromkeys(_writes(study, changes, store, allowed)))


def _writes(study: Study, changes: tuple[HostChange, ...], store: str, allowed: Allowed) -> Iterator[Write]:
    yield Write(place=place_of(store), what="the store: each trial's record", after=KEPT)
    yield Write(place=str(paths.data_place()), what="reports", after=KEPT)
    cache = paths.cache_place()
    yield Write(
        place=str(cache / "trials"), what="each trial's data, and the mount of its volume", after=CLEARED
    )
    yield Write(place=str(cache), what="pristine data, builds, fetched engines", after="kept: dyno cache")
    for link in _links(cache):
        yield Write(place=str(link.resolve()), what=f"what {link} leads to", after="kept: dyno cache")
    yield Write(place=str(paths.runtime_place()), what="sockets and logs of running servers", after=CLEARED)
    yield Write(
        place=str(paths.state_place()), what="records that wait for the store", after="kept until then"
    )
    yield Write(place=str(paths.host_place()), what="the journal that restores this host", after=ENDS)
    for folder in SHORT_LIVED:
        yield Write(place=str(folder), what="what programs keep for a moment", after=ENDS)
    yield Write(place=str(SHARED_MEMORY), what="memory that a server's processes share", after=CLEARED)
    for change in changes:
        for place in change.places:
            yield Write(place=place, what=change.factor, after=change.after)
    if _cuts_power(study) and not any(LOOP_DEVICES in change.places for change in changes):
        what = "volumes whose power is cut, where Dyno has the right to make them"
        yield Write(place=LOOP_DEVICES, what=what, after=CLEARED)
    if study.server is not None:
        what = "settings that levels move, schemas whose names begin with dyno_"
        yield Write(place=study.engine.url, what=what, after="put back, or dropped")
    for path in sorted(allowed.paths):
        yield Write(place=str(path), what="what levels of config write there (--allow-path)", after=STAYS)


def _links(cache: Path) -> list[Path]:
    """The folders of the cache that a user moved to another place."""
    try:
        return sorted(path for path in cache.iterdir() if path.is_symlink())
    except OSError:
        return []


def _cuts_power(study: Study) -> bool:
    restarts, soak = study.restarts, study.soak
    by_restarts = restarts is not None and bool(restarts.power_cuts or restarts.torn_pages)
    return by_restarts or (soak is not None and bool(OF_POWER & set(soak.ends)))


def writes_lines(writes: tuple[Write, ...]) -> Iterator[Text]:
    """The places as the terminal shows them, one a line."""
    yield Text("written by its trials", style="bold")
    home = str(Path.home())
    for one in writes:
        place = one.place.replace(home, "~", 1) if one.place.startswith(f"{home}/") else one.place
        yield Text(f"  {place}: {one.what}; {one.after}")
    yield Text(servers_text())
