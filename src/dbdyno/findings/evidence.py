"""What proves a run: what was asked for and read back, every trial, and the host and study they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dbdyno.analyse.model import Analysis, TrialResult
from dbdyno.findings import configuration
from dbdyno.frozen import level_shown
from dbdyno.records import metrics
from dbdyno.records.record import Evidence, Outcome, Reading, Record
from dbdyno.records.run import Run
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Detail,
    Element,
    Facts,
    Figure,
    Fold,
    Lines,
    Mark,
    Notes,
    Row,
    Section,
    Table,
    TableCell,
    Text,
    Tone,
    table,
)
from dbdyno.report.words import naming, numbers

TRIALS = "Point at one for its evidence. Triangles carry a warning."
LATENCY = "All measured trials of a variant together. Point at a line to highlight it."
SECONDS = (
    "Operations per second, a line per trial; scales differ. Shaded: warm-up. Seconds count from the start of"
    " the measured part."
)
PROVED = (
    "What was asked for, and what each later reading showed. Trials with the same readings share a row. A"
    " level that is not in effect is never measured."
)
CODE_HEADS = ("requested", "accepted", "effective", "used by the load")


@dataclass(frozen=True)
class Proof:
    """A level's readings before the load, and the trials and variants in which they were the same.

    Counters differ from trial to trial: the evidence carries those of the first, `exercised` says how many
    there were.
    """

    evidence: Evidence
    trials: tuple[int, ...]
    variants: tuple[str, ...]
    exercised: int


def sections(analysis: Analysis) -> Iterator[Section]:
    """The evidence of levels, the records, and the host."""
    if not analysis.run.of_logs:
        readings = _evidence(analysis)
        folded = Fold(f"{len(readings.rows)} levels with their readings", (readings,))
        yield Section("Evidence", (folded, Notes((PROVED,))), detail=Detail.PAGE)
    yield Section("Records", (*_records(analysis),), detail=Detail.PAGE)
    yield Section("Host and study", (*_host(analysis.run),), detail=Detail.PAGE)


def figures(analysis: Analysis) -> Iterator[Section]:
    """Every trial as a point, and what each measured."""
    below = ", blocks one under the other" if not analysis.run.of_logs else ""
    for title, drawing, aside in (
        ("Trials", "dbdyno.report.figures.charts:trials", f"Every measured trial{below}. {TRIALS}"),
        ("Latency", "dbdyno.report.figures.charts:latency", LATENCY),
        ("Seconds", "dbdyno.report.figures.charts:series", SECONDS),
    ):
        yield Section(title, (Figure(drawing, (analysis,)),), aside=aside, detail=Detail.PAGE)


def _evidence(analysis: Analysis) -> Table:
    kinds = {**dict.fromkeys(CODE_HEADS, ColumnKind.CODE), "in effect": ColumnKind.TEXT}
    return table(("factor", *CODE_HEADS, "in effect", "trials"), [*map(_proof, _proofs(analysis))], kinds)


def _proofs(analysis: Analysis) -> list[Proof]:
    """The evidence of all trials, what reads the same put together; by factor in the study's order, then by
    level.
    """
    grouped: dict[str, list[tuple[Record, Evidence]]] = {}
    for trial in analysis.trials:
        for evidence in trial.record.evidence:
            grouped.setdefault(evidence.model_dump_json(exclude={"exercised", "idle"}), []).append(
                (trial.record, evidence)
            )
    order = {factor.name: index for index, factor in enumerate(analysis.study.factors)}
    proofs = [
        Proof(
            evidence=seen[0][1],
            trials=tuple(record.trial for record, _ in seen),
            variants=tuple(dict.fromkeys(record.variant for record, _ in seen)),
            exercised=len({evidence.exercised.value for _, evidence in seen if evidence.exercised}),
        )
        for seen in grouped.values()
    ]
    return sorted(
        proofs, key=lambda proof: (order.get(proof.evidence.factor, len(order)), proof.evidence.requested)
    )


def _proof(proof: Proof) -> Row:
    found = proof.evidence
    differs = f"; trial {proof.trials[0]}, others differ" if proof.exercised > 1 else ""
    return (
        found.factor,
        level_shown(found.requested),
        _reading(found.accepted),
        _reading(found.effective),
        _reading(found.exercised, differs),
        Mark("yes", Tone.GOOD) if found.in_effect else TableCell(Mark("no", Tone.BAD), (found.reason,)),
        TableCell(str(len(proof.trials)), (numbers.plural(len(proof.variants), "variant"),)),
    )


def _reading(reading: Reading | None, remark: str = "") -> TableCell:
    if reading is None:
        return TableCell("")
    return TableCell(level_shown(reading.value), (f"{reading.source}{remark}",))


def _records(analysis: Analysis) -> Iterator[Element]:
    order = "Every trial in the order in which it ran."
    yield Notes((order if not analysis.run.of_logs else "Every repetition, by variant.",))
    columns = (*_columns(analysis),)
    rows = tuple(tuple(_record(trial, analysis)) for trial in analysis.trials)
    yield Fold(numbers.plural(len(rows), "trial"), (Table(columns, rows, dense=True),))


def _has_stages(analysis: Analysis) -> bool:
    return any(trial.record.stages_s for trial in analysis.trials)


def _columns(analysis: Analysis) -> Iterator[Column]:
    yield Column("trial")
    if group := naming.group_text(analysis.run):
        yield Column(group)
    if not analysis.run.of_logs:
        yield Column("order")
    yield Column("variant", ColumnKind.NAME)
    yield Column("outcome", ColumnKind.TEXT)
    yield Column(metrics.find(analysis.method.response).title)
    yield Column("steady from")
    if _has_stages(analysis):
        yield Column("stages, s", ColumnKind.TEXT)
    yield Column("checks and warnings", ColumnKind.TEXT)


def _record(trial: TrialResult, analysis: Analysis) -> Iterator[str | Mark | TableCell]:
    record = trial.record
    yield str(record.trial)
    if naming.group_text(analysis.run):
        yield str(record.block + 1)
    if not analysis.run.of_logs:
        yield str(record.position + 1)
    yield record.variant
    yield TableCell(record.outcome.value, (record.cause,) if record.cause else ())
    yield _response(record, analysis)
    yield f"{trial.steady.settled_at} s" if trial.steady else ""
    if _has_stages(analysis):
        yield Mark(", ".join(f"{name} {took_s:.1f}" for name, took_s in record.stages_s.items()), Tone.QUIET)
    yield _checks(trial)


def _response(record: Record, analysis: Analysis) -> str:
    metric = metrics.find(analysis.method.response)
    value = metric.read(record) if record.outcome is Outcome.MEASURED else None
    return numbers.DASH if value is None else metric.format(value)


def _checks(trial: TrialResult) -> TableCell:
    record = trial.record
    checks = [
        f"{check.name}: {'holds' if check.holds else 'violated'}"
        + (f" ({check.detail})" if check.detail else "")
        for check in record.checks
    ]
    warnings = [f"! {warning.value}: {detail}" for warning, detail in trial.warnings.items()]
    log = record.server_log if record.outcome is not Outcome.MEASURED else ""
    read = "; ".join(
        f"{one.factor} = {level_shown(one.effective.value)}" for one in record.evidence if one.effective
    )
    back = (f"read back: {read}",) if read else ()
    return TableCell("", (*back, *checks, *warnings), Fold("server log", (Text(log),)) if log else None)


def _host(run: Run) -> Iterator[Element]:
    facts = (
        *((f"installation.{key}", str(value)) for key, value in run.installation.model_dump().items()),
        *_flattened(run.host.model_dump()),
        ("study", f"{run.study_path} sha256 {run.study_digest}"),
        *(() if run.of_logs else (("seed", str(run.seed)),)),
    )
    yield Fold(f"{len(facts)} facts of the installation and the host", (Facts(facts),))
    if run.configuration is not None:
        yield Lines((f"{configuration.title(run.configuration)}.",))
        if untaken := configuration.rows(run.configuration):
            made = table(configuration.HEADS, untaken, dict.fromkeys(configuration.HEADS, ColumnKind.CODE))
            yield Fold("The lines that were not taken", (made,))
    if run.study_text:
        yield Fold("The study’s text", (Text(run.study_text),))


def _flattened(values: object, path: str = "") -> Iterable[tuple[str, str]]:
    """Nested facts as rows: `cpu.model`, `storage.0.device`."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _flattened(value, f"{path}.{key}" if path else str(key))
    elif isinstance(values, list | tuple) and any(isinstance(value, dict | list) for value in values):
        for index, value in enumerate(values):
            yield from _flattened(value, f"{path}.{index}")
    elif isinstance(values, list | tuple):
        yield path, ", ".join(str(value) for value in values)
    else:
        yield path, str(values)
