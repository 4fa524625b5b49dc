"""What the page of a run that is under way says beside its report: how far it is, block by block, and what
the host does meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dbdyno.analyse.model import Analysis
from dbdyno.begin.estimate import beside_blocks_s
from dbdyno.host.host_lock import Holder
from dbdyno.records.record import Observation, Record
from dbdyno.records.run import Run
from dbdyno.report.document import Document, Element, Kind, Lines, Notes, Section, Table, table
from dbdyno.report.words.numbers import (
    DASH,
    about_text,
    clock_text,
    coarse_text,
    moment_text,
    plural,
    seconds_text,
)
from dbdyno.report.words.remarks import WARNINGS
from dbdyno.study import Study
from dbdyno.study.trials import NO_BLOCK

TITLE = "Under way"
BLOCKS_SHOWN = 12
HEADS = ("block", "trials", "took", "other processes", "steal", "what to know")
KINDS = {"block": Kind.NAME, "what to know": Kind.TEXT}
HOW = "This page is drawn anew when a block is over, and never while one is measured."
HOLDS = "The intervals hold at every look, so you may stop the run when you have seen enough."
SHARES = "Shares of all CPU time of this host during the loads of the block, the highest of its trials."


def nothing_yet(study: Study, run: Run, live: Holder) -> Document:
    """The page of a run before its first record."""
    told = f"No trial has ended yet. The run began at {clock_text(live.since_unix_s)}."
    end = f"It will take until about {clock_text(live.ends_unix_s)}, by an estimate."
    return Document(
        title=study.title,
        answer=(),
        sections=(Section(TITLE, (Lines((told, end)), Notes((HOW,)))),),
        eyebrow=f"run {run.run} · {moment_text(run.created_unix_s)}",
    )


def with_progress(report: Document, analysis: Analysis, live: Holder, now_unix_s: float) -> Document:
    """A run's report, and before it how far the run is."""
    records = [trial.record for trial in analysis.trials]
    body: tuple[Element, ...] = (
        Lines(tuple(_told(analysis, records, live, now_unix_s))),
        _blocks(analysis, records),
        Notes((SHARES, HOW, *([HOLDS] if analysis.method.unfinished else []))),
    )
    return replace(report, sections=(Section(TITLE, body), *report.sections))


def _told(analysis: Analysis, records: Sequence[Record], live: Holder, now_unix_s: float) -> Iterator[str]:
    run = analysis.run
    blocks = {record.block for record in records if record.block != NO_BLOCK}
    left_s = max(0.0, _ends_unix_s(analysis, records, live) - now_unix_s)
    if run.searches:
        yield f"{plural(len(records), 'trial')} of the search have ended."
    else:
        most = ", at most" if run.sequential else ""
        trials = f"{len(records)} of {plural(analysis.trials_planned, 'trial')}"
        yield f"{trials} have ended, in {len(blocks)} of {plural(run.blocks, 'block')}{most}."
    if left_s:
        yield f"About {about_text(left_s)} are left, until {clock_text(now_unix_s + left_s)} (an estimate)."
    else:
        yield "It is about to end."


def _ends_unix_s(analysis: Analysis, records: Sequence[Record], live: Holder) -> float:
    """By the trials of blocks that this Dyno has carried out, and what those beside them are expected to
    take; else by what it expected before the first."""
    own = [record for record in records if record.started_unix_s >= live.since_unix_s]
    if analysis.run.searches or not own:
        return live.ends_unix_s
    latest = max(record.finished_unix_s for record in own)
    began = min(record.started_unix_s for record in own)
    left = max(0, analysis.trials_planned - len(records))
    return latest + (latest - began) / len(own) * left + beside_blocks_s(analysis.study)


def _blocks(analysis: Analysis, records: Sequence[Record]) -> Table:
    """The latest blocks, the last one first."""
    by_block: dict[int, list[Record]] = {}
    for record in records:
        by_block.setdefault(record.block, []).append(record)
    shown = sorted(by_block.items(), reverse=True)[:BLOCKS_SHOWN]
    cores = analysis.run.host.cpu.usable_cores if analysis.run.host.cpu else None
    return table(HEADS, [_row(block, of_it, cores or 0) for block, of_it in shown], KINDS)


def _row(block: int, records: Sequence[Record], cores: int) -> tuple[str, ...]:
    outcomes = Counter(record.outcome.value for record in records)
    took_s = max(one.finished_unix_s for one in records) - min(one.started_unix_s for one in records)
    doubts = dict.fromkeys(doubt for record in records for doubt in record.doubts)
    failed = [f"{one.variant}: {one.cause}" for one in records if one.cause]
    return (
        "beside the blocks" if block == NO_BLOCK else f"block {block + 1}",
        ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()),
        seconds_text(took_s),
        _share(records, "other_cpu_s", cores),
        _share(records, "steal_s", cores),
        "; ".join((*(WARNINGS[doubt].text for doubt in doubts), *failed)),
    )


def _share(records: Sequence[Record], name: str, cores: int) -> str:
    """The highest share of the host's CPU time; a dash where nobody could read it."""
    shares = [share for one in records if (share := _share_of(one.observation, name, cores)) is not None]
    return coarse_text(max(shares)) if shares else DASH


def _share_of(seen: Observation | None, name: str, cores: int) -> float | None:
    if seen is None or name not in seen.totals or not cores or not seen.duration_s:
        return None
    return seen.totals[name] / (seen.duration_s * cores)
