"""The museum across runs: each piece, how often it ended so, why, and what shows it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dbdyno.analyse.collection import Ending, Museum, Occurrence, Piece
from dbdyno.frozen import Level, level_text
from dbdyno.records import metrics
from dbdyno.records.record import Evidence
from dbdyno.report.words import numbers, remarks, safe, verdicts

TITLE = "The museum: what did not help, and why"
EMPTY = "Nothing stands in the museum."
RATIOS_MOST = 6
SHOWN_MOST = 3
"""The latest runs of a piece that a terminal tells of one by one; every other format tells of all."""
LOG_LINES_MOST = 5
"""The end of a server's log that a terminal shows; a page and JSON hold all of it."""
CSV_HEADS = (
    *(
        "engine",
        "level",
        "against",
        "outcome",
        "runs",
        "run",
        "began",
        "study",
        "host",
        "workload",
        "variant",
    ),
    *("ended", "trials", "metric", "ratio", "low", "high", "cause", "remedy", "evidence", "show"),
)


def render(museum: Museum, console: Console) -> None:
    """Prints every piece with its occurrences, the latest first."""
    console.print(Text(TITLE, style="bold"))
    console.print(Text(about(museum), style="dim"))
    if not museum.pieces:
        console.print(EMPTY)
    for piece in museum.pieces:
        console.print()
        console.print(Text(name(piece), style="bold"))
        for ending, told in counts(piece):
            look = verdicts.LOOKS[piece.ended(ending)[0].exhibit.verdict]
            console.print(Padding(Text.assemble((look.glyph, look.style), f" {told}"), (0, 0, 0, 2)))
        if elsewhere(piece):
            console.print(Padding(Text(elsewhere(piece), style="dim"), (0, 0, 0, 4)))
        for one in piece.occurrences[:SHOWN_MOST]:
            _occurrence(one, console)
        rest = len(piece.occurrences) - SHOWN_MOST
        if rest > 0:
            more = f"{numbers.plural(rest, 'earlier run')}: --format html shows all"
            console.print(Padding(Text(more), (0, 0, 0, 4)))


def _occurrence(one: Occurrence, console: Console) -> None:
    console.print(Padding(Text(f"{place(one)}: {cause(one)}"), (0, 0, 0, 4)))
    lines = [*evidence(one), *log_end(one)]
    for line in lines:
        console.print(Padding(Text(line, style="dim"), (0, 0, 0, 6)))
    if one.exhibit.remedy:
        console.print(Padding(Text(f"→ {safe.clean(one.exhibit.remedy)}"), (0, 0, 0, 6)))


def about(museum: Museum) -> str:
    """What was looked at."""
    seen = f"{numbers.plural(len(museum.pieces), 'piece')} from {numbers.plural(museum.runs, 'run')}"
    if not museum.unread:
        return f"{seen}."
    return (
        f"{seen}. This Dyno cannot read {numbers.plural(len(museum.unread), 'further run')}: "
        f"{safe.clean(', '.join(museum.unread))}."
    )


def name(piece: Piece) -> str:
    """The engine and its levels."""
    baseline = f"the baseline of {safe.clean(piece.occurrences[0].study_path)}"
    return f"{safe.clean(piece.engine)}: {levels_text(piece.levels) or baseline}"


def against(one: Occurrence) -> str:
    """The baseline's levels of what a piece changes."""
    return ", ".join(safe.clean(level_text(level)) for level in one.against.values())


def levels_text(levels: dict[str, Level]) -> str:
    return ", ".join(safe.clean(f"{factor} = {level_text(level)}") for factor, level in levels.items())


def counts(piece: Piece) -> list[tuple[Ending, str]]:
    """In how many of its runs a piece ended so, with the ratios: `slower in 2 of 3 runs: 0.284, 0.310`."""
    told = []
    for ending in Ending:
        ended = piece.ended(ending)
        if ended:
            ratios = [one.effect.ratio for one in ended if _has_speed(one) and one.effect]
            text = f"{outcome(ending)} in {len(ended)} of {numbers.plural(piece.runs, 'run')}"
            told.append((ending, f"{text}: {_ratios(ratios)}" if ratios else text))
    return told


def _ratios(ratios: Sequence[float]) -> str:
    """The latest ratios one by one, and between which ends the others lie."""
    latest, others = ratios[:RATIOS_MOST], ratios[RATIOS_MOST:]
    told = ", ".join(map(numbers.ratio_text, latest))
    if not others:
        return told
    low, high = (numbers.ratio_text(end) for end in (min(others), max(others)))
    return f"{told}, and {len(others)} before from {low} to {high}"


def outcome(ending: Ending) -> str:
    """The ending as a sentence has it."""
    return ending.value.replace("-", " ")


def elsewhere(piece: Piece) -> str:
    """The verdicts of the other runs that tried it; empty where there were none."""
    told = ", ".join(f"{verdict.value} in {count}" for verdict, count in piece.elsewhere.items())
    return f"in its other runs: {told}" if told else ""


def when(one: Occurrence) -> str:
    return datetime.fromtimestamp(one.began_unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def place(one: Occurrence) -> str:
    """When and in which study it was seen."""
    return f"{when(one)}, {safe.clean(one.study_path)}, {safe.clean(one.workload)} on {safe.clean(one.host)}"


def cause(one: Occurrence) -> str:
    """Why it ended so, as far as the evidence shows."""
    if one.guards:
        return "; ".join(remarks.guard_text(guard) for guard in one.guards)
    if not _has_speed(one):
        share = f"in {one.ended} of {numbers.plural(one.trials, 'trial')}: " if one.ended < one.trials else ""
        return share + (safe.clean(one.exhibit.cause) or verdicts.LOOKS[one.exhibit.verdict].meaning)
    told = [f"it gives up {verdicts.lost(one.exhibit.gives_up)}"] if one.exhibit.gives_up else []
    if one.effect is not None:
        title = metrics.find(one.effect.metric).title
        beside = f" against {against(one)}" if one.against else ""
        told.append(f"{title} {_ratio(one.effect.ratio)} ({numbers.interval_text(one.effect)}){beside}")
    if one.counters:
        moved = [f"{metrics.find(cost.metric).title} {_ratio(cost.ratio)}" for cost in one.counters]
        told.append(f"beside it {', '.join(moved)}")
    if one.idle:
        told.append(f"not exercised, because {safe.clean(one.idle)}")
    return "; ".join(told)


def evidence(one: Occurrence) -> list[str]:
    """The readings and the checks that show it, and the command that shows the rest."""
    lines = [_reading(reading) for reading in one.exhibit.evidence]
    checks = dict.fromkeys((check.name, check.detail) for check in one.exhibit.checks)
    lines += [safe.clean(f"{check} is violated: {detail}") for check, detail in checks]
    return [*lines, f"evidence: {show(one)}"]


def show(one: Occurrence) -> str:
    """The command that shows the trial, or the run where no single trial stands for it."""
    trial = f" {one.exhibit.trials[0]}" if one.exhibit.trials else ""
    return f"dyno show {safe.argument(one.run)}{trial}"


def log_end(one: Occurrence) -> list[str]:
    """The last lines of the server's log."""
    return [f"log: {safe.clean(line)}" for line in one.log.splitlines()[-LOG_LINES_MOST:] if line.strip()]


def as_csv(museum: Museum) -> str:
    """A row for each occurrence, with a line of heads."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_HEADS)
    for piece in museum.pieces:
        for one in piece.occurrences:
            writer.writerow(
                safe.csv_cell(cell) if isinstance(cell, str) else cell for cell in _cells(piece, one)
            )
    return file.getvalue()


def _cells(piece: Piece, one: Occurrence) -> list[str | int | float]:
    effect = one.effect
    return [
        *(safe.clean(piece.engine), levels_text(piece.levels), against(one), one.ending.value, piece.runs),
        *(safe.clean(one.run), when(one), safe.clean(one.study_path), safe.clean(one.host)),
        *(safe.clean(one.workload), safe.clean(one.exhibit.variant), one.ended, one.trials),
        *((effect.metric, effect.ratio) if effect else ("", "")),
        *(effect.low if effect and effect.low is not None else "",),
        *(effect.high if effect and effect.high is not None else "",),
        *(cause(one), safe.clean(one.exhibit.remedy), "; ".join(evidence(one)[:-1]), show(one)),
    ]


def _has_speed(one: Occurrence) -> bool:
    return one.ending in (Ending.SLOWER, Ending.NO_EFFECT, Ending.NOT_EXERCISED)


def _ratio(value: float) -> str:
    return f"×{numbers.ratio_text(value)}"


def _reading(found: Evidence) -> str:
    """What was asked for, and what was read."""
    asked = f"{found.factor}: requested {found.requested}"
    read = f", read back {found.effective.value} ({found.effective.source})" if found.effective else ""
    return safe.clean(f"{asked}{read}{'' if found.in_effect else ', not in effect'}")
