"""What a report says of a run that Dyno did not carry out."""

from __future__ import annotations

from dbdyno.analyse.model import Analysis, Unit, VariantResult
from dbdyno.records import metrics
from dbdyno.records.run import Brought, Run
from dbdyno.report.words.numbers import plural, value_text
from dbdyno.report.words.safe import clean

LATENCIES = ("mean_ms", "p50_ms", "p95_ms", "p99_ms")
UNITS = {
    Unit.PAIR: (
        "The user states which logs belong together; nobody drew their order, so a drift of the host can"
        " favour a variant."
    ),
    Unit.REPETITION: (
        "Repetitions are compared as independent ones; nobody drew their order, so a drift of the host can"
        " favour a variant."
    ),
}
RATIOS = {
    Unit.PAIR: "Ratio: variant / baseline, geometric mean over pairs of logs.",
    Unit.REPETITION: "Ratio: geometric mean of the variant’s repetitions / that of the baseline’s.",
}
INTERVALS = {
    Unit.PAIR: "Student’s t on the log ratios of the pairs",
    Unit.REPETITION: "Welch’s t on the logs of the repetitions (Biometrika 34, 1947)",
}


def warning(brought: Brought, unit: Unit) -> str:
    """What nobody should take such a run for."""
    return (
        f"from logs of {brought.tool}, not measured by Dyno: nothing proves what ran, on which host, or that"
        f" its answers were right. {UNITS[unit]}"
    )


def size_text(analysis: Analysis) -> str:
    """How many logs there are of each variant."""
    counts = {sum(variant.outcomes.values()) for variant in analysis.variants}
    if len(counts) == 1 and len(analysis.variants) > 1:
        return f"{plural(counts.pop(), 'repetition')} of each variant"
    return plural(len(analysis.trials), "repetition")


def group_text(run: Run) -> str:
    """What trials that belong together are called; empty where none do."""
    if run.of_logs is None:
        return "block"
    return "pair" if run.of_logs.paired else ""


def alone(analysis: Analysis) -> str:
    """The answer where nothing stands beside the baseline."""
    response = analysis.baseline.response
    assert response is not None  # some trial has one, and all are the baseline's
    metric = metrics.find(response.metric)
    value = f"{metric.format(response.mean)} {metric.unit}".strip()
    return f"{metric.title.capitalize()}: {value} ({plural(response.trials, 'repetition')})."


def latencies_text(variant: VariantResult) -> str:
    """The latencies of a variant, as far as its logs tell them."""
    logs = sum(variant.outcomes.values())
    known = [
        f"{metrics.find(summary.metric).title} {value_text(summary.metric, summary.mean)} ms"
        f"{f' (in {summary.trials} of {logs})' if summary.trials < logs else ''}"
        for name in LATENCIES
        if (summary := variant.summary(name)) is not None
    ]
    return f"{clean(variant.name)}: {', '.join(known)}" if known else ""


def workload_text(brought: Brought) -> str:
    """What the logs tell of the load."""
    clients = plural(brought.clients, "client") if brought.clients else ""
    seconds = f"{brought.duration_s:g} s each" if brought.duration_s else ""
    return clean(", ".join(filter(None, [clients, seconds])) or "an unknown number of clients")
