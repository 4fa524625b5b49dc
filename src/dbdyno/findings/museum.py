"""The museum across runs: each piece, how often it ended so, why, and what shows it.

What did not help in a run, and what makes its trials doubtful.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from dbdyno import frozen
from dbdyno.analyse import Ending
from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.model import Analysis, Exhibit
from dbdyno.analyse.museum import Museum, Occurrence, Piece, museum
from dbdyno.frozen import level_shown, listed
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Evidence
from dbdyno.report.document import (
    Detail,
    Document,
    Fold,
    From,
    Item,
    Items,
    Lines,
    Mark,
    Notes,
    Section,
    Text,
    Tone,
    Words,
)
from dbdyno.report.words import numbers, remarks, safe, verdicts
from dbdyno.report.words.numbers import moment_text

NAMED_MOST, DETAILS_MOST = 3, 4


def find(basis: Basis) -> tuple[Exhibit, ...]:
    """What did not help in a run."""
    return museum(basis.results, basis.trials)


def sections(analysis: Analysis) -> Iterator[Section]:
    """The museum, then the warnings."""
    if analysis.museum:
        items = tuple(_exhibit(room, analysis) for room in remarks.rooms(analysis))
        yield Section(
            "The museum: what did not help, and why",
            (Items(items, ("variant", "outcome", "cause", "what would help")),),
        )
    seen = [
        warning for warning in remarks.WARNINGS if any(warning in one.warnings for one in analysis.trials)
    ]
    if seen:
        items = tuple(_warning(warning, analysis) for warning in seen)
        yield Section(
            "Warnings", (Items(items, ("what makes trials doubtful", "seen in", "", "what to do")),)
        )


def _exhibit(room: list[Exhibit], analysis: Analysis) -> Item:
    """What ended alike, told once."""
    first = room[0]
    return Item(
        Mark(verdicts.marked(first.verdict), first.verdict),
        listed([one.variant for one in room]),
        (remarks.exhibit_text(first, analysis),),
        first.remedy,
        small=tuple(_asked_and_read(one) for one in first.evidence if not one.in_effect),
    )


def _warning(warning: Doubt, analysis: Analysis) -> Item:
    advice = remarks.WARNINGS[warning]
    trials = [trial for trial in analysis.trials if warning in trial.warnings]
    names = [variant.name for variant in analysis.variants if warning in variant.warnings]
    details = list(dict.fromkeys(trial.warnings[warning] for trial in trials))
    rest = f"; and {len(details) - DETAILS_MOST} more" if len(details) > DETAILS_MOST else ""
    where = f" ({listed(names, NAMED_MOST)})" if names else ""
    return Item(
        Mark(f"! {numbers.plural(len(trials), 'trial')}", Tone.DOUBT),
        f"{advice.text}{where}",
        (),
        advice.next_step,
        small=(f"{'; '.join(details[:DETAILS_MOST])}{rest}",),
    )


TITLE = "The museum: what did not help, and why"
EMPTY = "Nothing stands in the museum."
HEADS = ("seen", "outcome", "cause, evidence", "what would help")
RATIOS_MOST = 6
SHOWN_MOST = 3
"""The latest runs of a piece that a terminal tells of one by one; every other format tells of all."""
LOG_LINES_MOST = 5
"""The end of a server's log that a terminal shows; a page and JSON hold all of it."""
CSV_HEADS = (
    "engine", "level", "against", "outcome", "runs", "run", "began", "study", "host", "workload", "variant",
    "ended", "trials", "metric", "ratio", "low", "high", "cause", "remedy", "evidence", "show",
)  # fmt: skip


def document(museum: Museum) -> Document:
    """Every piece with its occurrences, the latest first."""
    pieces = tuple(map(_section, museum.pieces))
    nothing = () if pieces else (Lines((EMPTY,)),)
    return Document(
        title=TITLE,
        answer=(),
        sections=(Section("", (Notes((_about(museum),)), *nothing)), *pieces),
        eyebrow="the museum",
    )


def _section(piece: Piece) -> Section:
    others = (Notes((_elsewhere(piece),)),) if piece.elsewhere else ()
    return Section(_name(piece), (Lines(tuple(_counts(piece))), *others, _occurrences(piece)))


def _occurrences(piece: Piece) -> From:
    """All of them; on a terminal the latest, each with the end of its server's log."""
    whole = Items(tuple(_item(one, log=_log(one)) for one in piece.occurrences), HEADS)
    latest = Items(tuple(_item(one, _log_end(one)) for one in piece.occurrences[:SHOWN_MOST]), HEADS)
    rest = numbers.plural(len(piece.occurrences) - SHOWN_MOST, "earlier run")
    more = (Lines((f"{rest}: --format html shows all",)),) if piece.occurrences[SHOWN_MOST:] else ()
    return From(Detail.TEXT, (whole,), (latest, *more))


def _item(one: Occurrence, log_end: Sequence[str] = (), log: Fold | None = None) -> Item:
    shown = (Mark(line, Tone.QUIET) for line in (*_evidence(one), *log_end))
    mark = Mark(_outcome(one.ending), one.exhibit.verdict)
    return Item(mark, _place(one), (_cause(one), *shown), one.exhibit.remedy, fold=log)


def _log(one: Occurrence) -> Fold | None:
    return Fold("server log", (Text(one.log),)) if one.log else None


def _about(museum: Museum) -> str:
    """What was looked at."""
    seen = f"{numbers.plural(len(museum.pieces), 'piece')} from {numbers.plural(museum.runs, 'run')}"
    if not museum.unread:
        return f"{seen}."
    return (
        f"{seen}. This Dyno cannot read {numbers.plural(len(museum.unread), 'further run')}: "
        f"{', '.join(museum.unread)}."
    )


def _name(piece: Piece) -> str:
    """The engine and its levels."""
    baseline = f"the baseline of {piece.occurrences[0].study_path}"
    return f"{piece.engine}: {_levels_text(piece.levels) or baseline}"


def _against(one: Occurrence) -> str:
    """The baseline's levels of what a piece changes."""
    return ", ".join(level_shown(level) for level in one.against.values())


def _levels_text(levels: dict[str, frozen.Level]) -> str:
    return ", ".join(f"{factor} = {level_shown(level)}" for factor, level in levels.items())


def _counts(piece: Piece) -> Iterator[Words]:
    """In how many of its runs a piece ended so, with the ratios: `slower in 2 of 3 runs: 0.284, 0.310`."""
    for ending in Ending:
        if ended := piece.ended(ending):
            ratios = [one.effect.ratio for one in ended if _has_speed(one) and one.effect]
            told = f" {_outcome(ending)} in {len(ended)} of {numbers.plural(piece.runs, 'run')}"
            verdict = ended[0].exhibit.verdict
            yield (
                Mark(verdicts.LOOKS[verdict].glyph, verdict),
                f"{told}: {_ratios(ratios)}" if ratios else told,
            )


def _ratios(ratios: Sequence[float]) -> str:
    """The latest ratios one by one, and between which ends the others lie."""
    latest, others = ratios[:RATIOS_MOST], ratios[RATIOS_MOST:]
    told = ", ".join(map(numbers.ratio_text, latest))
    if not others:
        return told
    low, high = (numbers.ratio_text(end) for end in (min(others), max(others)))
    return f"{told}, and {len(others)} before from {low} to {high}"


def _outcome(ending: Ending) -> str:
    """The ending as a sentence has it."""
    return ending.value.replace("-", " ")


def _elsewhere(piece: Piece) -> str:
    """The verdicts of the other runs that tried it."""
    told = ", ".join(f"{verdict.value} in {count}" for verdict, count in piece.elsewhere.items())
    return f"in its other runs: {told}"


def _place(one: Occurrence) -> str:
    """When and in which study it was seen."""
    return f"{moment_text(one.began_unix_s)}, {one.study_path}, {one.workload} on {one.host}"


def _cause(one: Occurrence) -> str:
    """Why it ended so, as far as the evidence shows."""
    if one.guards:
        return "; ".join(remarks.guard_text(guard) for guard in one.guards)
    if not _has_speed(one):
        share = f"in {one.ended} of {numbers.plural(one.trials, 'trial')}: " if one.ended < one.trials else ""
        return share + (one.exhibit.cause or verdicts.LOOKS[one.exhibit.verdict].meaning)
    told = [f"it gives up {verdicts.lost(one.exhibit.gives_up)}"] if one.exhibit.gives_up else []
    if one.effect is not None:
        title = metrics.find(one.effect.metric).title
        beside = f" against {_against(one)}" if one.against else ""
        told.append(f"{title} {_ratio(one.effect.ratio)} ({numbers.interval_text(one.effect)}){beside}")
    if one.counters:
        moved = [f"{metrics.find(cost.metric).title} {_ratio(cost.ratio)}" for cost in one.counters]
        told.append(f"beside it {', '.join(moved)}")
    if one.idle:
        told.append(f"the load did not use it, because {one.idle}")
    return "; ".join(told)


def _evidence(one: Occurrence) -> list[str]:
    """The readings and the checks that show it, and the command that shows the rest."""
    lines = [_reading(reading) for reading in one.exhibit.evidence]
    checks = dict.fromkeys((check.name, check.detail) for check in one.exhibit.checks)
    lines += [f"{check} is violated: {detail}" for check, detail in checks]
    return [*lines, f"evidence: {_show(one)}"]


def _show(one: Occurrence) -> str:
    """The command that shows the trial, or the run where no single trial stands for it."""
    trial = f" {one.exhibit.trials[0]}" if one.exhibit.trials else ""
    return f"dyno report {safe.argument(one.run)}{trial}"


def _log_end(one: Occurrence) -> list[str]:
    """The last lines of the server's log."""
    return [f"log: {line}" for line in one.log.splitlines()[-LOG_LINES_MOST:] if line.strip()]


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
        *(piece.engine, _levels_text(piece.levels), _against(one), one.ending.value, piece.runs),
        *(one.run, moment_text(one.began_unix_s), one.study_path, one.host),
        *(one.workload, one.exhibit.variant, one.ended, one.trials),
        *((effect.metric, effect.ratio) if effect else ("", "")),
        *(effect.low if effect and effect.low is not None else "",),
        *(effect.high if effect and effect.high is not None else "",),
        *(_cause(one), one.exhibit.remedy, "; ".join(_evidence(one)[:-1]), _show(one)),
    ]


def _has_speed(one: Occurrence) -> bool:
    return one.ending in (Ending.SLOWER, Ending.NO_EFFECT, Ending.NOT_EXERCISED)


def _ratio(value: float) -> str:
    return f"×{numbers.ratio_text(value)}"


def _reading(found: Evidence) -> str:
    """What was asked for and read, and whether it is in effect."""
    return f"{_asked_and_read(found)}{'' if found.in_effect else ', not in effect'}"


def _asked_and_read(found: Evidence) -> str:
    asked, read = f"{found.factor}: requested {level_shown(found.requested)}", found.effective
    return f"{asked}, read back {level_shown(read.value)} ({read.source})" if read is not None else asked
