"""What became of the load while something was done beside it: a row a variant, who waited for whom, and the
throughput over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import OUTCOME
from dbdyno.analyse.estimate import Trials
from dbdyno.analyse.meanwhile import (
    ActTold,
    MeanwhileFound,
    MeanwhileTold,
    OverSeconds,
    beside_loads,
    seconds_of,
)
from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import Spread
from dbdyno.records.meanwhile import CONFIDENCE, LockWait
from dbdyno.records.metrics import bytes_text, number_text
from dbdyno.records.record import Outcome, Record
from dbdyno.report.document import ColumnKind, Element, Figure, Notes, Row, Section, TableCell, table
from dbdyno.report.words import naming, numbers, safe

TITLE = "Meanwhile"
HEADS = ("variant", "before, per s", "dip", "length, s", "lost, s of load", "silent, s", "back after, s",
         "p99, ms")  # fmt: skip
ACT_HEADS = ("variant", "act", "took, s", "CPU, s", "read", "written")
BLOCKED_HEADS = ("variant", "waits", "for", "lock", "seen", "sessions")
BLOCKED_KINDS = {"waits": ColumnKind.CODE, "for": ColumnKind.CODE, "lock": ColumnKind.TEXT}
BLOCKED_MOST = 4


def find(basis: Basis) -> MeanwhileFound | None:
    """What each variant shows; None where nothing was done beside any load."""
    each = [(one.variant.name, _records(one, basis)) for one in basis.compared]
    told = [beside_loads(variant, records) for variant, records in each]
    seconds = [seconds_of(variant, records) for variant, records in each]
    found = tuple(one for one in told if one is not None)
    return MeanwhileFound(variants=found, seconds=tuple(filter(None, seconds))) if found else None


def _records(each: Trials, basis: Basis) -> list[Record]:
    columns, places = each.rows.columns, each.rows.places
    return list(columns.records(columns.having(OUTCOME, places, Outcome.MEASURED.value).tolist()))


def sections(analysis: Analysis) -> Iterator[Section]:
    """The tables, the figure and the notes."""
    found = analysis.meanwhile
    assert found is not None, "it is told where it was found"
    called = naming.called(analysis)
    yield Section(TITLE, tuple(_body(found, called)), aside=_aside(found, called))


def _body(found: MeanwhileFound, called: Mapping[str, str]) -> Iterator[Element]:
    yield table(HEADS, [_row(one, called) for one in found.variants])
    acts = [_act_row(one, act, called) for one in found.variants for act in one.acts]
    yield table(ACT_HEADS, acts, {"act": ColumnKind.NAME})
    yield Figure(
        "dbdyno.report.figures.over_time:beside_load",
        ([called[one.variant] for one in found.seconds], _curves(found, called), _spans(found, called)),
        words="Throughput over the seconds of the load, medians of the blocks. Shaded: a variant's acts.",
    )
    pairs = [(one, pair) for one in found.variants for pair in one.blocked[:BLOCKED_MOST]]
    blocked = [_blocked_row(one, pair, called) for one, pair in pairs]
    if blocked:
        yield table(BLOCKED_HEADS, blocked, BLOCKED_KINDS, dense=True)
    yield Notes(tuple(_notes(found)))


def _aside(found: MeanwhileFound, called: Mapping[str, str]) -> str:
    """Each variant in a clause."""
    return f"{'; '.join(clauses(found, called))}."


def clauses(found: MeanwhileFound, called: Mapping[str, str]) -> Iterator[str]:
    """Of each variant how long its acts took, how deep the load fell, and its name, which may be long."""
    for one in found.variants:
        acts = ", ".join(f"{act.name} took {_took(act)} s" for act in one.acts)
        dip = f"{_dip(one)} in the worst second" if _deep(one) else _dip(one)
        yield f"{acts}; {dip}: {called[one.variant]}"


def _took(act: ActTold) -> str:
    least = "at least " if act.cut_short else ""
    return f"{least}{number_text(act.took_s.median)}"


def _deep(one: MeanwhileTold) -> bool:
    return one.depth.median > one.depth_seen


def _dip(one: MeanwhileTold) -> str:
    """The depth, or that no dip was seen and what would have been."""
    if _deep(one):
        return f"-{numbers.rough_share_text(one.depth.median)}"
    seen = f"could see {numbers.rough_share_text(one.depth_seen)} in a second"
    return f"no dip seen ({seen})" if not _lost(one) else f"no deep second ({seen})"


def _lost(one: MeanwhileTold) -> bool:
    return one.lost_s.median > one.lost_seen_s


def _between(found: Spread, blocks: int) -> tuple[str, ...]:
    if blocks < 2:
        return ()
    return (f"{number_text(found.least)} to {number_text(found.most)}",)


def _row(one: MeanwhileTold, called: Mapping[str, str]) -> Row:
    return (
        called[one.variant],
        TableCell(number_text(one.base_per_s.median), (f"± {numbers.rough_share_text(one.base_spread)}",)),
        _depth(one),
        TableCell(number_text(one.length_s.median), _between(one.length_s, one.blocks))
        if _deep(one)
        else "none",
        TableCell(number_text(one.lost_s.median), _between(one.lost_s, one.blocks))
        if _lost(one)
        else f"none seen (could see {number_text(one.lost_seen_s)})",
        number_text(one.silent_s.median),
        _back(one),
        _p99(one),
    )


def _depth(one: MeanwhileTold) -> TableCell:
    between = f"{numbers.rough_share_text(one.depth.least)} to {numbers.rough_share_text(one.depth.most)}"
    return TableCell(_dip(one), (between,) if one.blocks > 1 and _deep(one) else ())


def _back(one: MeanwhileTold) -> str:
    """How long after the acts' end the load was at full speed again."""
    if not _deep(one):
        return numbers.DASH
    if one.full_speed_s is None:
        return "not within the load"
    some = f"; not in {one.not_back} of {one.blocks}" if one.not_back else ""
    return f"{number_text(one.full_speed_s.median)}{some}"


def _p99(one: MeanwhileTold) -> TableCell:
    before = numbers.DASH if one.p99_ms_before is None else number_text(one.p99_ms_before)
    within = numbers.DASH if one.p99_ms_within is None else number_text(one.p99_ms_within.median)
    return TableCell(f"{before} to {within}")


def _act_row(one: MeanwhileTold, act: ActTold, called: Mapping[str, str]) -> Row:
    cut = f"not done within the load in {act.cut_short} of {act.blocks}" if act.cut_short else ""
    took = (*_between(act.took_s, act.blocks), *filter(None, [cut]))
    return (
        called[one.variant],
        TableCell(act.name, (safe.clean(act.text),)),
        TableCell(_took(act), took),
        numbers.DASH if act.cpu_s is None else number_text(act.cpu_s),
        numbers.DASH if act.read_bytes is None else bytes_text(act.read_bytes),
        numbers.DASH if act.written_bytes is None else bytes_text(act.written_bytes),
    )


def _blocked_row(one: MeanwhileTold, pair: LockWait, called: Mapping[str, str]) -> Row:
    return (
        called[one.variant],
        safe.clean(pair.waiter),
        safe.clean(pair.blocker),
        f"{pair.lock} (inferred)" if pair.inferred else pair.lock,
        f"{pair.looks} of {one.looks}",
        f"{pair.sessions}",
    )


def _notes(found: MeanwhileFound) -> Iterator[str]:
    """How the figures were made."""
    least, sure = min(one.base_seconds for one in found.variants), numbers.rough_share_text(CONFIDENCE)
    yield (
        f"Medians over blocks, with the least and the most. Before: the {least} whole seconds of the measured"
        " part before the first act, and how they scatter. A dip counts where a second, or all of them"
        f" together, did less than these let expect ({sure} confidence). It lasts from the"
        " first act until the load is back at nine tenths. Lost: the area of the dip, in seconds of the load"
        " before. p99: the highest of any second, before and within."
    )
    yield "CPU time and bytes are those of a command; what a statement takes is the server's."
    looked = next((one for one in found.variants if one.looks), None)
    if looked is not None and any(one.blocked for one in found.variants):
        yield (
            f"Who waits for whom: asked of the engine every {looked.every_s:g} s, so what is shorter may be"
            " missing; sessions: most in one look. Inferred: the engine does not say who holds the lock, so"
            " whoever had a transaction open or changed the table then is named."
        )
    elif looked is not None:
        yield f"The engine was asked every {looked.every_s:g} s who waits for whom, and nobody was seen to."


def _curves(found: MeanwhileFound, called: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row a variant with its seconds, for the figure."""
    return [_curve(one, called) for one in found.seconds]


def _curve(one: OverSeconds, called: Mapping[str, str]) -> dict[str, Any]:
    return {"variant": called[one.variant], "second": [*range(len(one.per_s))], "value": [*one.per_s]}


def _spans(found: MeanwhileFound, called: Mapping[str, str]) -> list[dict[str, Any]]:
    """From when to when each act went on, for the figure."""
    return [
        {
            "variant": called[one.variant],
            "act": act.name,
            "from": act.began_s,
            "to": act.began_s + act.took_s.median,
            "took": f"{_took(act)} s",
        }
        for one in found.variants
        for act in one.acts
    ]
