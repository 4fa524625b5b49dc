"""A run of what was brought, and a record for each repetition."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno import __version__
from dbdyno.errors import UserError
from dbdyno.host.fingerprint import Host
from dbdyno.imported.files import Repetition
from dbdyno.imported.tallies import CountedRepetition
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.records.run import Brought, ImportedRun, Run


@dataclass(frozen=True)
class RepetitionLog:
    """One repetition: its files, and what they hold."""

    repetition: Repetition
    counted: CountedRepetition


@dataclass(frozen=True)
class ImportQuestion:
    """What the user asks of the logs. `margin` is a share; `paired` states that log i of each variant belongs
    to log i of the others."""

    title: str
    response: str
    margin: float
    paired: bool


def run_of_logs(
    name: str,
    tool: str,
    logs: Mapping[str, Sequence[RepetitionLog]],
    asked: ImportQuestion,
    created_unix_s: float,
) -> ImportedRun:
    """The run of these logs by variant, the baseline first. Raises UserError where pairs are asked for and
    variants do not have as many."""
    sizes = {variant: len(each) for variant, each in logs.items()}
    if asked.paired and len(set(sizes.values())) > 1:
        told = ", ".join(f"{variant} has {count}" for variant, count in sizes.items())
        raise UserError(f"--paired needs as many repetitions of each variant: {told}", "leave --paired out")
    every = [log for each in logs.values() for log in each]
    clients = {log.counted.clients for log in every}
    durations = {round(log.counted.duration_s) for log in every}
    brought = Brought(
        tool=tool,
        title=asked.title,
        variants=tuple(logs),
        paired=asked.paired,
        response=asked.response,
        margin=asked.margin,
        clients=clients.pop() if len(clients) == 1 else 0,
        duration_s=float(durations.pop()) if len(durations) == 1 else 0.0,
        remarks=tuple(dict.fromkeys(remark for log in every for remark in log.counted.remarks)),
    )
    return ImportedRun(
        run=name,
        study_path=f"logs of {tool}",
        study_text=_listed(logs),
        study_digest=_digest(brought),
        seed=0,
        blocks=max(sizes.values()),
        created_unix_s=created_unix_s,
        dyno_version=__version__,
        host=Host(),
        brought=brought,
    )


def _listed(logs: Mapping[str, Sequence[RepetitionLog]]) -> str:
    """Which files each repetition was made of."""
    return "".join(
        f"{variant}, repetition {number}: {', '.join(map(str, log.repetition.files))}\n"
        for variant, each in logs.items()
        for number, log in enumerate(each, 1)
    )


def _digest(brought: Brought) -> str:
    """What makes two runs comparable: the same tool and response."""
    return hashlib.sha256(json.dumps([brought.tool, brought.response]).encode()).hexdigest()


def records_of(run: Run, logs: Mapping[str, Sequence[RepetitionLog]], paired: bool) -> list[Record]:
    """A record for each repetition. Without pairs each is a block of its own, which nothing else is in."""
    placed = [(variant, number, log) for variant, each in logs.items() for number, log in enumerate(each)]
    return [
        _record(run, trial, number if paired else trial, variant, log.counted)
        for trial, (variant, number, log) in enumerate(placed)
    ]


def _record(run: Run, trial: int, block: int, variant: str, counted: CountedRepetition) -> Record:
    return Record(
        run=run.run,
        trial=trial,
        block=block,
        position=0,
        variant=variant,
        levels={},
        host="",
        started_unix_s=counted.started_unix_s,
        finished_unix_s=counted.started_unix_s + counted.duration_s,
        outcome=Outcome.MEASURED,
        phases=(PhaseRecord(name="load", tally=counted.tally),),
    )
