"""A server that ran before the run: which of its settings were moved, how, and whether they were put back."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.model import Analysis
from dbdyno.frozen import level_shown
from dbdyno.records.in_use import InUse, Means, Moved
from dbdyno.report.document import ColumnKind, Detail, Element, From, Lines, Notes, Section, table
from dbdyno.report.words.numbers import plural

TITLE = "The server, which ran already"
HEADS = ("setting", "moved by", "before", "afterwards")
KINDS = {"moved by": ColumnKind.TEXT, "before": ColumnKind.PHRASE, "afterwards": ColumnKind.TEXT}
UNKNOWN = (
    "Dyno did not start this server. So its build, its allocator, its pages of memory, its disk and its CPUs"
    " are not known, and no level of them can be proved."
)
SHARED = "All variants ran on this one server, and its own load was in each of them."
BY_SESSION = "SET in each of Dyno's own sessions, so nothing is to be put back"
OTHERS_MOVED = (
    "While the run went on, others changed {settings}. Dyno left that as it is. What was measured before the"
    " change and what was measured after it may differ by it."
)
UNKNOWN_HOST = (
    "The server's processes were not seen from the host of the load, so nothing is told of its CPU time, its"
    " memory and its disk."
)


def sections(analysis: Analysis) -> Iterator[Section]:
    """What the run keeps of its server; nothing where it started its own."""
    if analysis.run.in_use is not None:
        yield Section(TITLE, (*_body(analysis.run.in_use),))


def _body(found: InUse) -> Iterator[Element]:
    yield Lines((*_who(found),))
    rows = [(one.name, one.does, level_shown(one.before), _afterwards(one)) for one in found.moved]
    rows += [
        (way.name, BY_SESSION, level_shown(way.now), "–")
        for way in found.ways
        if _by_session(found, way.name)
    ]
    if rows:
        yield table(HEADS, rows, KINDS, dense=True)
    yield Lines((*_guarded(found),))
    if found.others_moved:
        yield Notes((OTHERS_MOVED.format(settings=", ".join(found.others_moved)),))
    unseen = () if found.here else (UNKNOWN_HOST,)
    yield From(Detail.DETAILS, (Notes((SHARED, UNKNOWN, *unseen)),), (Notes((SHARED,)),))


def _by_session(found: InUse, name: str) -> bool:
    way = next(way for way in found.ways if way.name == name)
    return way.means is Means.SESSION and not way.refused


def _who(found: InUse) -> Iterator[str]:
    who = found.identity
    yield f"{found.url}, version {who.version}, as {who.account}."
    if who.replica:
        yield f"It is {who.replica}. It was only read."
    others = plural(who.others, "session") if who.others else "no session"
    yield f"When the run began, it had {others} of others."
    own = "Each trial had a schema of Dyno's own, which was dropped with it."
    mine = "The load read the tables that were there, in sessions that the server held read-only."
    yield own if found.data == "own" else mine
    if found.moved:
        yield f"Old values stood {found.ledger}."


def _afterwards(one: Moved) -> str:
    """What was read once a setting was put back."""
    if one.after is None:
        return "not read: the journal puts it back"
    after = level_shown(one.after)
    return f"{after}: {one.left}" if one.left else f"{after}, put back and read"


def _guarded(found: InUse) -> Iterator[str]:
    if not found.guard:
        yield "Nobody watched the server's own load."
        return
    yield f"The server's own load was to keep: {found.guard}."
    if found.seen is not None:
        seen = found.seen
        most = f"{seen.p99_s:.3f} s as 99th percentile and {seen.errors_per_s:g} errors per second"
        yield f"The most that {plural(seen.looks, 'look')}, a second apart, saw were {most}."
        if seen.stopped:
            yield f"The run was stopped, because {seen.stopped}."
