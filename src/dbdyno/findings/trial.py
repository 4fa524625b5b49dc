"""A run and its trials as they were recorded: what was asked, read back, checked and logged."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse import Analysis
from dbdyno.analyse.found import CountedVariant
from dbdyno.analyse.model import TrialResult
from dbdyno.analyse.restarts import Survivor
from dbdyno.findings import configuration, plans
from dbdyno.frozen import level_shown
from dbdyno.records import metrics
from dbdyno.records.record import Evidence, Reading, Record, Recovery
from dbdyno.records.run import Run
from dbdyno.report.document import ColumnKind, Document, Element, Facts, Lines, Section, Table, Text, table
from dbdyno.report.words import naming, numbers, safe, verdicts
from dbdyno.report.words.numbers import second_text
from dbdyno.report.words.tally import times_ms
from dbdyno.study.files import StudyFile
from dbdyno.study.soak import Act

LOG_LINES_MOST = 30


def run_document(analysis: Analysis) -> Document:
    """What the run was, its trials, and its study's text."""
    run = analysis.run
    sections = (
        Section("", (_run_facts(analysis),)),
        Section("", (_trials(analysis),)),
        *_configuration(run),
        *_files(run),
        Section(f"study, {run.study_path}", (Text(run.study_text.strip()),)),
    )
    return Document(analysis.study.title, (), sections)


def _run_facts(analysis: Analysis) -> Facts:
    run = analysis.run
    return Facts(
        (
            ("run", run.run),
            ("began", second_text(run.created_unix_s)),
            ("engine", f"{run.installation.engine} {run.installation.version}"),
            ("from", run.installation.origin),
            ("host", f"{run.host.name or ''}, {run.host.cpu.model or ''}"),
            ("kernel", run.host.kernel or ""),
            *(() if run.of_logs else (("blocks", str(run.blocks)), ("seed", str(run.seed)))),
            ("reference", run.took_turns_with),
            ("gives up", _losses_text(analysis)),
            ("dyno", run.dyno_version),
        )
    )


def _configuration(run: Run) -> Iterator[Section]:
    """What of the run's configuration file was not taken."""
    found = run.configuration
    if found is not None:
        rows = configuration.rows(found)
        kinds = dict.fromkeys(configuration.HEADS, ColumnKind.TEXT)
        made = (table(configuration.HEADS, rows, kinds),) if rows else ()
        yield Section(configuration.title(found), made)


def _files(run: Run) -> Iterator[Section]:
    """A line for each file that the study refers to. Their texts are for `--json`."""
    if run.files is None and not run.of_logs:
        unknown = "files of the study: not known, because the Dyno that made the run kept none"
        yield Section("", (Lines((unknown,)),))
    if not run.files:
        return
    heads = ("file", "kind", "bytes", "sha256", "text")
    kinds = dict.fromkeys(("kind", "sha256", "text"), ColumnKind.TEXT)
    rows = [
        (file.path, file.kind.value, f"{file.size_bytes:,}", file.digest[:12], _kept(file))
        for file in run.files
    ]
    where = f"the texts: dyno report {run.run} --trials --json"
    yield Section("", (table(heads, rows, kinds), Lines((where,))))


def _kept(file: StudyFile) -> str:
    return "not kept" if file.text is None else "kept"


def _losses_text(analysis: Analysis) -> str:
    """Which variants give up what; empty where none does."""
    return "; ".join(
        f"{one.name}: {verdicts.lost(one.gives_up)}" for one in analysis.variants if one.gives_up
    )


def _trials(analysis: Analysis) -> Table:
    unit, group = metrics.find(analysis.method.response).unit, naming.group_text(analysis.run)
    response = f"{naming.metric_title(analysis)}, {unit}".strip(", ")
    heads = ["trial", *filter(None, [group]), "variant", "outcome", response]
    rows = [
        *([*_row(trial, analysis)] for trial in analysis.trials),
        *([*_counted_row(one)] for one in analysis.counted),
        *([*_restarts_row(number, one)] for number, one in _restarted(analysis)),
    ]
    return table(
        heads, rows, {"variant": ColumnKind.TEXT, "outcome": ColumnKind.TEXT}, first=ColumnKind.FIGURE
    )


def document(record: Record, run: Run) -> Document:
    """One trial: how it ended, its settings as they were read back, its checks and its log's end."""
    checks = tuple(
        f"check {check.name} {'holds' if check.holds else 'violated'}: {check.detail}".rstrip(": ")
        for check in record.checks
    )
    log = Section("the end of the server’s log", (Text("\n".join(log_end(record))),))
    return Document(
        f"trial {record.trial}: {record.variant}",
        (),
        (
            Section("", (_facts(record, run),)),
            Section("", (*_levels(record),)),
            Section("", (Lines(checks),)),
            Section("", (*_recoveries(record),)),
            *(plans.of_trial(record.plans) if record.plans is not None else ()),
            *([log] if record.server_log.strip() else []),
        ),
    )


def _facts(record: Record, run: Run) -> Facts:
    stages = ", ".join(f"{name} {numbers.stage_seconds_text(s)}" for name, s in record.stages_s.items())
    return Facts(
        (
            ("run", record.run),
            *_place(record, run).items(),
            ("outcome", record.outcome.value),
            ("cause", record.cause),
            ("what would help", record.remedy),
            ("began", second_text(record.started_unix_s)),
            ("engine", record.engine_version),
            ("host", record.host),
            ("caches filled", _filled_text(record)),
            *_failed(record),
            ("seconds by stage", stages),
            *((f"doubt: {doubt.value}", text) for doubt, text in record.doubts.items()),
        )
    )


def _failed(record: Record) -> Iterator[tuple[str, str]]:
    """How long it took what failed, beside what succeeded."""
    tally = record.tally
    if tally is not None and tally.failed_latency_us is not None and tally.failed:
        told = f"{numbers.plural(tally.failed, 'transaction')}, after"
        yield "failed", f"{told} {times_ms(tally.failed_latency_us, 'p50', 'p99', 'max')} ms"
        yield "succeeded", f"{tally.operations:,}, after {times_ms(tally.latency_us, 'p50', 'p99', 'max')} ms"


def _levels(record: Record) -> Iterator[Element]:
    """What was asked for and read back."""
    if record.evidence:
        heads = ("level", "asked", "read back", "where", "in effect")
        yield table(heads, [*map(_evidence, record.evidence)], dict.fromkeys(heads, ColumnKind.TEXT))
    elif record.levels:
        yield Lines(("No level was read back.",))
        yield Facts(tuple((name, level_shown(level)) for name, level in record.levels.items()))


def _recoveries(record: Record) -> Iterator[Element]:
    if record.recoveries:
        yield table(RESTART_HEADS, [*map(_restart, record.recoveries)], {"damage": ColumnKind.TEXT})


def _place(record: Record, run: Run) -> dict[str, str]:
    """Which trials it belongs to, and where among them it ran; empty where it belongs to none."""
    group = naming.group_text(run)
    if not group:
        return {}
    if record.of_no_block:
        return {group: "none: its engine is restarted" if record.of_restarts else "none: its work is counted"}
    block = record.block + 1
    return {group: str(block) if run.of_logs else f"{block}, place {record.position + 1}"}


def _counted_row(one: CountedVariant) -> Iterator[str]:
    yield str(one.trial)
    yield numbers.DASH
    yield one.variant
    if one.instructions_per_op is None:
        yield f"not counted: {one.cause}"
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
    yield one.variant
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
        return (recovery.act.words, *[numbers.DASH] * 4, f"not done: {recovery.blocked}")
    counts = (f"{recovery.acknowledged:,}", f"{recovery.lost:,}")
    told = OF_FLIP[recovery.told] if recovery.act is Act.FLIP else ""
    of_more = _of_node(recovery) or _of_reset(recovery)
    return (
        recovery.act.words,
        *(counts if recovery.acknowledged else (numbers.DASH, numbers.DASH)),
        metrics.number_text(recovery.lost_ms) if recovery.lost else numbers.DASH,
        numbers.DASH if recovery.ready_s is None else metrics.number_text(recovery.ready_s),
        "; ".join(filter(None, (recovery.damage, told, of_more))) or numbers.DASH,
    )


def _of_node(recovery: Recovery) -> str:
    """Which node of a cluster was struck, and how it came back; empty where none was."""
    found = recovery.cluster
    if found is None:
        return ""
    if found.rejoin_s is None:
        return f"{found.struck} was struck"
    return f"{found.struck} was back after {metrics.number_text(found.rejoin_s)} s by {found.transfer}"


def _of_reset(recovery: Recovery) -> str:
    """How a machine came back, and what its logs do not explain; empty where none was reset."""
    found = recovery.reset
    if found is None:
        return ""
    ran = "the firmware ran" if found.firmware_again else "no firmware ran"
    numbers_told = [str(number) for log in (found.firmware, found.kernel) for number in log.unexplained]
    left = f", not explained: PCR {' and '.join(numbers_told)}" if numbers_told else ", all PCRs explained"
    return f"{ran}, up after {metrics.number_text(found.boot_s)} s{left}"


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
    if naming.group_text(analysis.run):
        yield str(record.block + 1)
    yield record.variant
    yield record.outcome.value
    value = trial.response
    yield metrics.find(analysis.method.response).format(value) if value is not None else numbers.DASH


def _evidence(evidence: Evidence) -> tuple[str, ...]:
    seen: Reading | None = evidence.effective or evidence.accepted
    exercised = f"; used by the load: {evidence.exercised.value}" if evidence.exercised else ""
    state = "yes" if evidence.in_effect else f"no: {evidence.reason}; {evidence.remedy}".rstrip("; ")
    return (
        evidence.factor,
        level_shown(evidence.requested),
        level_shown(seen.value) if seen else numbers.DASH,
        seen.source if seen else "",
        f"{state}{exercised}",
    )
