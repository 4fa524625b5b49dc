"""What engines, workloads, factors and effects are called, and how long names are cut.

What a report says of a run that Dyno did not carry out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dbdyno.analyse.model import Analysis, FactorEffect, Interaction, Unit, VariantResult
from dbdyno.frozen import Level, level_shown, level_text, listed
from dbdyno.records import metrics
from dbdyno.records.record import Outcome
from dbdyno.records.run import Brought, Run
from dbdyno.report.words.numbers import plural, value_text
from dbdyno.report.words.safe import clean
from dbdyno.report.words.verdicts import losses_of_variant, lost
from dbdyno.study.front import FRONT_KIND, NO_FRONT
from dbdyno.study.nouns import Promise

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


def logs_size_text(analysis: Analysis) -> str:
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


def baseline_alone(analysis: Analysis) -> str:
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


def logs_workload_text(brought: Brought) -> str:
    """What the logs tell of the load."""
    clients = plural(brought.clients, "client") if brought.clients else ""
    seconds = f"{brought.duration_s:g} s each" if brought.duration_s else ""
    return clean(", ".join(filter(None, [clients, seconds])) or "an unknown number of clients")


SHARED_LEAST = 14
_LAYER_AND_KNOB = re.compile(r"(?:(?<=^)|(?<=, )|(?<= and ))([a-z]+)\.([A-Za-z0-9_.-]+)(?= ?=)")


def metric_title(analysis: Analysis) -> str:
    """The title of the response. Where more failed than one transaction in 10,000, a latency is said to be of
    those that succeeded."""
    metric = metrics.find(analysis.method.response)
    shares = [
        found.mean for one in analysis.variants if (found := one.summary(metrics.FAILED_SHARE)) is not None
    ]
    of_some = metric.unit == "ms" and max(shares, default=0.0) > metrics.FAILED_SHARE_MAX
    return f"{metric.title} of those that succeeded" if of_some else metric.title


def engine_text(analysis: Analysis) -> str:
    """The engine, in the version that answered."""
    if analysis.run.of_logs:
        return f"logs of {analysis.run.of_logs.tool}"
    answered = [trial.record for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED]
    records = answered or [trial.record for trial in analysis.trials]
    study, versions = analysis.study, dict[str, set[str]]()
    for record in records:
        product = study.engine_of(record.levels).engine
        versions.setdefault(product, set()).update(filter(None, (record.engine_version,)))
    named = {
        **dict.fromkeys((one.engine for one in study.engines), study.engine.version),
        **{product: ", ".join(sorted(found)) for product, found in versions.items() if found},
    }
    return clean(", ".join(f"{product} {version}".strip() for product, version in named.items()))


def workload_text(analysis: Analysis) -> str:
    """The workload and how it is driven."""
    if analysis.run.of_logs:
        return logs_workload_text(analysis.run.of_logs)
    workload = analysis.study.workload
    loop = "" if workload.rate_per_s is None else f", {workload.rate_per_s:,.6g} per s offered"
    schedule = f", schedule {workload.schedule}" if workload.schedule else ""
    think_time = f", think time {workload.think_time}" if workload.think_time else ""
    fixed = level_text(analysis.study.settings.get(FRONT_KIND, NO_FRONT))
    through = f", through {fixed}" if fixed != NO_FRONT else ""
    if (front := analysis.study.fronts.get(fixed)) is not None and front.workers:
        through += f" with {plural(front.workers, 'worker')}"
    clients = plural(workload.clients, "client")
    called = ", by procedures" if workload.options.get("procedures") else ""
    return clean(f"{workload.name}{called}, {clients}{loop}{schedule}{think_time}{through}")


def size_text(analysis: Analysis) -> str:
    """How many times each variant ran."""
    if analysis.run.of_logs:
        return logs_size_text(analysis)
    blocks = plural(analysis.study.blocks, "block")
    if analysis.search is not None:
        tried = plural(len(analysis.search.tried), "candidate")
        return f"{tried}, the best of them in {blocks}" if analysis.search.finalists else tried
    return blocks


def variant_text(one: VariantResult) -> str:
    """A variant in a figure: its name, then in brackets what it gives up. Whoever names a variant in a figure
    does it here, so that no form leaves out the mark."""
    return marked_text(one.name, losses_of_variant(one))


def marked_text(name: str, gives_up: Sequence[Promise]) -> str:
    """The same for what stands for a variant: the changes of a candidate, a level of a factor."""
    return clean(f"{name}{marks_text(gives_up)}")


def marks_text(gives_up: Sequence[Promise], told: str = "") -> str:
    """What stands in brackets behind a name; empty where nothing does."""
    beside = ", ".join(filter(None, (told, f"gives up {lost(gives_up)}" if gives_up else "")))
    return f" ({beside})" if beside else ""


def called(analysis: Analysis) -> dict[str, str]:
    """What figures call each variant. Those of a search are called by what they change, because the number
    of a candidate tells a reader nothing."""
    found = analysis.search

    def name(one: VariantResult) -> str:
        if found is None or not one.changed:
            return variant_text(one)
        return marked_text(levels_text(one.changed), found.given_up.get(one.name, ()))

    return {one.name: name(one) for one in analysis.variants}


def told_apart(analysis: Analysis) -> dict[str, str]:
    """What tables call each variant: by its name, or in a search by what it changes. What it gives up stands
    with its verdict."""
    by_changes = analysis.search is not None
    return {
        one.name: levels_text(one.changed) if by_changes and one.changed else one.name
        for one in analysis.variants
    }


def levels_text(changed: Mapping[str, Level]) -> str:
    """What a candidate changes."""
    return clean(listed([f"{factor_text(name)} = {level_shown(level)}" for name, level in changed.items()]))


def factor_text(name: str) -> str:
    """A factor as tables and figures call it: the load's own knobs are known by their names alone."""
    return clean(name.removeprefix("workload."))


def main_text(row: FactorEffect) -> str:
    """A main effect: what is divided by what, and what that gives up."""
    divided = clean(f"{factor_text(row.factor)}: {level_shown(row.level)} / {level_shown(row.against)}")
    return marked_text(divided, row.gives_up)


def pair_text(row: Interaction) -> str:
    """An interaction's two levels."""
    parts = zip(row.factors, row.levels, strict=True)
    return clean(" × ".join(f"{factor_text(factor)}={level_shown(level)}" for factor, level in parts))


def shared_beginning(names: Sequence[str]) -> str:
    """What all names begin with, up to a `.` or `=`, where it is long enough to be worth saying once."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    pairs = enumerate(zip(first, last, strict=False))
    common = next((at for at, (one, other) in pairs if one != other), len(first))
    beginning = re.sub(r"[^.=]*$", "", first[:common])
    return beginning if len(beginning) >= SHARED_LEAST else ""


def fitting(names: Sequence[str], width: int) -> list[str]:
    """The names, without their layers where they are too long with them and each knob has one layer alone."""
    knobs = {match for name in names for match in _LAYER_AND_KNOB.findall(name)}
    clear = len({knob for _, knob in knobs}) == len(knobs)
    if not clear or max(map(len, names), default=0) <= width:
        return list(names)
    return [_LAYER_AND_KNOB.sub(r"\2", name) for name in names]


def wrapped(name: str, width: int, indent: str = "  ") -> str:
    """A long name on several lines, cut after its punctuation, where a reader would."""
    lines: list[str] = []
    line = ""
    room = max(width - len(indent), 1)
    words = re.findall(r"[^ .=_/,]*[ .=_/,]*", name)
    for part in (word[at : at + room] for word in words for at in range(0, len(word), room)):
        if line and len(line) + len(part.rstrip()) > width:
            lines.append(line.rstrip())
            line = indent
        line += part
    return "\n".join([*lines, line])
