"""A run and its trials as they were recorded: what was asked, read back, checked and logged."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.analyse import Analysis
from dbdyno.analyse.counted import CountedVariant
from dbdyno.analyse.model import TrialResult
from dbdyno.analyse.restarts import Survivor
from dbdyno.frozen import Configuration, level_text
from dbdyno.records import metrics
from dbdyno.records.record import ACT_WORDS, Evidence, Reading, Record, Recovery, Run
from dbdyno.report.parts import configuration, plans
from dbdyno.report.parts.table import show
from dbdyno.report.words import brought, numbers, safe, verdicts
from dbdyno.report.words.moments import second_text
from dbdyno.study.act import Act

LOG_LINES_MOST = 30


def render_run(analysis: Analysis, console: Console) -> None:
    """Prints what the run was, its trials, and its study's text."""
    run = analysis.run
    console.print(Text(safe.clean(analysis.study.title), style="bold"))
    console.print(
        _pairs(
            {
                "run": run.run,
                "began": second_text(run.created_unix_s),
                "engine": f"{run.installation.get('engine', '')} {run.installation.get('version', '')}",
                "from": run.installation.get("origin", ""),
                "host": f"{run.host.get('name', '')}, {(run.host.get('cpu') or {}).get('model', '')}",
                "kernel": str(run.host.get("kernel", "")),
                **({} if run.brought else {"blocks": str(run.blocks), "seed": str(run.seed)}),
                "reference": run.reference or "",
                "gives up": _losses_text(analysis),
                "dyno": run.dyno_version,
            }
        )
    )
    _render_trials(analysis, console)
    if run.configuration is not None:
        _render_configuration(run.configuration, console)
    _render_files(run, console)
    console.print(Text(f"study, {safe.clean(run.study_path)}", style="bold"))
    console.print(Text(safe.clean_lines(run.study_text).strip()))


def _render_files(run: Run, console: Console) -> None:
    """Prints a line for each file that the study refers to. Their texts are for `--json`."""
    if run.files is None and not run.brought:
        console.print("files of the study: not known, because the Dyno that made the run kept none")
    if not run.files:
        return
    heads = ["file", "kind", "bytes", "sha256", "text"]
    rows = [
        [
            *(safe.clean(file.path), file.kind.value, f"{file.size_bytes:,}", file.digest[:12]),
            "not kept" if file.text is None else "kept",
        ]
        for file in run.files
    ]
    show(console, heads, rows, words=[0, 1, 3, 4], edge=True)
    console.print(f"the texts: dyno show {run.run} --json", highlight=False)


def _losses_text(analysis: Analysis) -> str:
    """Which variants give up what; empty where none does."""
    return "; ".join(
        f"{safe.clean(one.name)}: {verdicts.lost(one.gives_up)}" for one in analysis.variants if one.gives_up
    )


def _render_trials(analysis: Analysis, console: Console) -> None:
    metric, group = metrics.find(analysis.method.response), brought.group_text(analysis.run)
    response = f"{metric.title}, {metric.unit}".strip(", ")
    heads = ["trial", *filter(None, [group]), "variant", "outcome", response]
    rows = [
        *([*_row(trial, analysis)] for trial in analysis.trials),
        *([*_counted_row(one)] for one in analysis.counted),
        *([*_restarts_row(number, one)] for number, one in _restarted(analysis)),
    ]
    show(console, heads, rows, words=[heads.index("variant"), heads.index("outcome")], edge=True)


def render(record: Record, run: Run, console: Console) -> None:
    """Prints one trial: how it ended, its settings as they were read back, its checks and its log's end."""
    console.print(Text(f"trial {record.trial}: {safe.clean(record.variant)}", style="bold"))
    stages = ", ".join(f"{name} {numbers.stage_seconds_text(s)}" for name, s in record.stages_s.items())
    console.print(
        _pairs(
            {
                "run": record.run,
                **_place(record, run),
                "outcome": record.outcome.value,
                "cause": record.cause,
                "what would help": record.remedy,
                "began": second_text(record.started_unix_s),
                "engine": record.engine_version,
                "host": record.host,
                "caches filled": _filled_text(record),
                "seconds by stage": stages,
                **{f"doubt: {doubt.value}": text for doubt, text in record.doubts.items()},
            }
        )
    )
    if record.evidence:
        heads = ("level", "asked", "read back", "where", "in effect")
        show(console, heads, [*map(_evidence, record.evidence)], words=range(len(heads)), edge=True)
    elif record.levels:
        levels = {name: level_text(level) for name, level in record.levels.items()}
        console.print("No level was read back.", _pairs(levels))
    for check in record.checks:
        held = "holds" if check.holds else "violated"
        console.print(Text(f"check {safe.clean(check.name)} {held}: {safe.clean(check.detail)}".rstrip(": ")))
    if record.recoveries:
        rows = [*map(_restart, record.recoveries)]
        show(console, RESTART_HEADS, rows, words=(0, len(RESTART_HEADS) - 1), edge=True)
    if record.plans is not None:
        plans.render_trial(record.plans, console)
    if record.server_log.strip():
        console.print(Text("the end of the server's log", style="bold"))
        console.print(Text("\n".join(log_end(record))))


def _place(record: Record, run: Run) -> dict[str, str]:
    """Which trials it belongs to, and where among them it ran; empty where it belongs to none."""
    group = brought.group_text(run)
    if not group:
        return {}
    if record.of_no_block:
        return {group: "none: its engine is restarted" if record.of_restarts else "none: its work is counted"}
    block = record.block + 1
    return {group: str(block) if run.brought else f"{block}, place {record.position + 1}"}


def _counted_row(one: CountedVariant) -> Iterator[str]:
    yield str(one.trial)
    yield numbers.DASH
    yield safe.clean(one.variant)
    if one.instructions_per_op is None:
        yield f"not counted: {safe.clean(one.cause)}"
        yield numbers.DASH
    else:
        yield "counted"
        yield f"{metrics.number_text(one.instructions_per_op)} instructions"


def _restarted(analysis: Analysis) -> list[tuple[int, Survivor]]:
    """The trials of restarts in their order, and what became of their variants."""
    found = analysis.survival
    tried = found.tried if found is not None else ()
    return sorted(((trial, one) for one in tried for trial in one.trials), key=lambda pair: pair[0])


def _restarts_row(trial: int, one: Survivor) -> Iterator[str]:
    yield str(trial)
    yield numbers.DASH
    yield safe.clean(one.variant)
    yield "restarted"
    yield numbers.DASH


RESTART_HEADS = ("after a", "acknowledged", "lost", "oldest lost, ms", "ready, s", "damage")
OF_FLIP = {
    True: "the engine told of it",
    False: "the engine handed out another row and said nothing",
    None: "the engine did not read it",
}
"""What the engine made of a flipped bit."""


def _restart(recovery: Recovery) -> tuple[str, ...]:
    """What was counted is told of an act that has a ledger alone."""
    if recovery.blocked:
        return (ACT_WORDS[recovery.act], *[numbers.DASH] * 4, f"not done: {safe.clean(recovery.blocked)}")
    counts = (f"{recovery.acknowledged:,}", f"{recovery.lost:,}")
    told = OF_FLIP[recovery.told] if recovery.act is Act.FLIP else ""
    return (
        ACT_WORDS[recovery.act],
        *(counts if recovery.acknowledged else (numbers.DASH, numbers.DASH)),
        metrics.number_text(recovery.lost_ms) if recovery.lost else numbers.DASH,
        numbers.DASH if recovery.ready_s is None else metrics.number_text(recovery.ready_s),
        "; ".join(filter(None, (safe.clean(recovery.damage), told))) or numbers.DASH,
    )


def _filled_text(record: Record) -> str:
    """The passes over all queries before the load; empty where there were none."""
    if record.filled is None:
        return ""
    each = ", ".join(metrics.number_text(gained) for gained in record.filled.per_query)
    asked = f"{record.filled.queries:,} queries, pass after pass"
    return f"{asked}; {record.filled.counter} per query: {each or numbers.DASH}"


def log_end(record: Record) -> list[str]:
    """The last lines of the server's log, made harmless for a terminal."""
    return safe.clean_lines(record.server_log).strip().splitlines()[-LOG_LINES_MOST:]


def _row(trial: TrialResult, analysis: Analysis) -> Iterator[str]:
    record = trial.record
    yield str(record.trial)
    if brought.group_text(analysis.run):
        yield str(record.block + 1)
    yield safe.clean(record.variant)
    yield record.outcome.value
    value = trial.response
    yield metrics.find(analysis.method.response).format(value) if value is not None else numbers.DASH


def _evidence(evidence: Evidence) -> tuple[str, ...]:
    seen: Reading | None = evidence.effective or evidence.accepted
    exercised = f"; exercised: {evidence.exercised.value}" if evidence.exercised else ""
    state = "yes" if evidence.in_effect else f"no: {evidence.reason}; {evidence.remedy}".rstrip("; ")
    cells = (
        evidence.factor,
        evidence.requested,
        seen.value if seen else numbers.DASH,
        seen.source if seen else "",
        f"{state}{exercised}",
    )
    return tuple(safe.clean(cell) for cell in cells)


def _render_configuration(found: Configuration, console: Console) -> None:
    """Prints what of the run's configuration file was not taken."""
    console.print(Text(configuration.title(found), style="bold"))
    if found.not_taken:
        heads = configuration.HEADS
        show(console, heads, configuration.rows(found), words=range(len(heads)), edge=True)


def _pairs(facts: dict[str, str]) -> Table:
    """Names and values below each other, without those that are empty."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value.strip(", "):
            table.add_row(name, Text(safe.clean(value)))
    return table
