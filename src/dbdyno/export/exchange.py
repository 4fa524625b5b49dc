"""What a run measured, as other tools for series of benchmarks read it; and what it has measured so far as
OpenMetrics, the text that Prometheus and its kin collect.

Each form holds the mean of each variant's response and costs with its interval, and no verdict: those tools
judge series by rules of their own. OpenMetrics, which has no intervals, holds the last trial's metrics.

Each variant has the metrics of its last measured trial, its outcomes by count, and its ratio to the baseline
over all blocks. A series of them is for looking at; what a difference is worth stands in the report.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from dbdyno.analyse.model import Analysis
from dbdyno.records import metrics
from dbdyno.records.metrics import METRICS, Direction
from dbdyno.records.record import Outcome, Record
from dbdyno.report.words.safe import csv_cell, json_text

if TYPE_CHECKING:
    from dbdyno.analyse.model import Summary, VariantResult

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
NOTHING = "# EOF\n"
"""Where there is no run to tell of."""


def exposed(analysis: Analysis) -> str:
    """All metric families of a run, with the end that the format asks for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(analysis))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


class _Collected(Collector):
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def collect(self) -> Iterator[Metric]:
        yield from _of_run(self._analysis)
        yield from _of_variants(self._analysis)
        yield from _of_trials(self._analysis)


def _of_run(analysis: Analysis) -> Iterator[Metric]:
    run = analysis.run
    about = {
        "run": run.run,
        "study": analysis.study.title,
        "engine": analysis.study.engine.engine,
        "response": analysis.method.response,
    }
    planned = "Trials that the run will have at its end."
    yield InfoMetricFamily("dyno_run", "The run that the other families are of.", value=about)
    yield GaugeMetricFamily("dyno_run_started_unix_s", "When the run began.", value=run.created_unix_s)
    yield GaugeMetricFamily("dyno_trials_planned", planned, value=analysis.trials_planned)


def _of_variants(analysis: Analysis) -> Iterator[Metric]:
    outcomes = GaugeMetricFamily(
        "dyno_trials", "Trials so far, by how they ended.", labels=["variant", "outcome"]
    )
    method = analysis.method
    says = (
        f"A variant's {method.response} over the baseline's: the mean over blocks, and the bounds of its"
        f" simultaneous {method.confidence:.0%} interval."
    )
    ratios = GaugeMetricFamily("dyno_ratio", says, labels=["variant", "bound"])
    for variant in analysis.variants:
        for outcome, count in variant.outcomes.items():
            outcomes.add_metric([variant.name, outcome.value], count)
        effect = variant.effect
        for bound in ("low", "ratio", "high") if effect is not None else ():
            value: float | None = getattr(effect, bound)
            if value is not None:
                ratios.add_metric([variant.name, bound], value)
    yield outcomes
    yield ratios


def _of_trials(analysis: Analysis) -> Iterator[Metric]:
    latest = _latest(analysis)
    for name, metric in METRICS.items():
        values = {variant: metric.read(record) for variant, record in latest.items()}
        family = GaugeMetricFamily(
            f"dyno_{name}", f"Of the last measured trial. {metric.definition}", labels=["variant"]
        )
        for variant, value in values.items():
            if value is not None:
                family.add_metric([variant], value)
        if family.samples:
            yield family


def _latest(analysis: Analysis) -> dict[str, Record]:
    """The last measured record of each variant."""
    measured = (trial.record for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED)
    return {record.variant: record for record in measured}


@dataclass(frozen=True)
class RepositoryOrigin:
    """Of what a pipeline measured: the address of a repository, its branch and its commit, where known."""

    repository: str = ""
    branch: str = ""
    commit: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        return {"git_repo": self.repository, "branch": self.branch, "git_commit": self.commit}


class Form(StrEnum):
    """For whom: github-action-benchmark has a tool for figures that should rise and one for those that
    should fall."""

    BENCHER = "bencher"
    SMALLER = "smaller-is-better"
    BIGGER = "bigger-is-better"
    NYRKIO = "nyrkio"
    OTAVA = "otava"
    CONBENCH = "conbench"
    OPENMETRICS = "openmetrics"


def exchanged(form: Form, analysis: Analysis, origin: RepositoryOrigin) -> str:
    """The run in the form of a tool."""
    return _MAKERS[form](analysis, origin)


def _measured(analysis: Analysis) -> Iterator[tuple[VariantResult, Summary]]:
    """The variants that have a speed, each with its response first and then its costs."""
    response = analysis.method.response
    for variant in analysis.variants:
        if variant.response is not None:
            yield variant, variant.response
            yield from ((variant, one) for one in variant.summaries if one.metric != response)


def _bencher(analysis: Analysis, origin: RepositoryOrigin) -> str:
    """Bencher's metric format: benchmarks are variants, and measures are metrics."""
    made: dict[str, dict[str, Any]] = {}
    for variant, found in _measured(analysis):
        values = {"value": found.mean, "lower_value": found.low, "upper_value": found.high}
        made.setdefault(variant.name, {})[found.metric] = values
    return json_text(made)


def _of_action(direction: Direction) -> Callable[[Analysis, RepositoryOrigin], str]:
    def made(analysis: Analysis, origin: RepositoryOrigin) -> str:
        entries = [
            {
                "name": f"{variant.name}: {metrics.find(found.metric).title}",
                "unit": metrics.find(found.metric).unit,
                "value": found.mean,
                "range": f"± {(found.high - found.low) / 2.0:.4g}",
                "extra": f"run {analysis.run.run}, {found.trials} trials",
            }
            for variant, found in _measured(analysis)
            if metrics.find(found.metric).direction is direction
        ]
        return json_text(entries)

    return made


def _nyrkio(analysis: Analysis, origin: RepositoryOrigin) -> str:
    """A list of one point in time: the body of a test result's request."""
    found = [
        {
            "name": f"{variant.name}: {one.metric}",
            "unit": metrics.find(one.metric).unit,
            "value": one.mean,
            "direction": f"{metrics.find(one.metric).direction}_is_better",
        }
        for variant, one in _measured(analysis)
    ]
    point = {
        "timestamp": int(analysis.run.created_unix_s),
        "metrics": found,
        "attributes": origin.attributes,
        "extra_info": {"run": analysis.run.run, "study": analysis.study.title},
    }
    return json_text([point])


def _otava(analysis: Analysis, origin: RepositoryOrigin) -> str:
    """CSV of one row, with a column for each variant's metric: rows of further runs are added below."""
    row: Mapping[str, object] = {
        "time": int(analysis.run.created_unix_s),
        "commit": csv_cell(origin.commit),
        "run": analysis.run.run,
        **{csv_cell(f"{variant.name}.{one.metric}"): one.mean for variant, one in _measured(analysis)},
    }
    written = io.StringIO()
    writer = csv.DictWriter(written, list(row), lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)
    return written.getvalue().removesuffix("\n")


CONBENCH_UNITS = {"per s": ("i/s", 1.0), "ms": ("s", 1e-3), "us": ("s", 1e-6), "s": ("s", 1.0)}
"""Those that Conbench takes: a unit of ours, its own, and by what values are multiplied."""


def _conbench(analysis: Analysis, origin: RepositoryOrigin) -> str:
    """A list of results as Conbench's `BenchmarkResult` has them: of each variant's metrics the values of its
    measured trials in their order. Metrics in other units than it takes are left out."""
    measured = [trial.record for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED]
    run, github = analysis.run, {"repository": origin.repository, "commit": origin.commit}
    host = {"cpu": run.host.cpu.model, "kernel": run.host.kernel}
    about: dict[str, Any] = {
        "run_id": run.run,
        "batch_id": run.run,
        "run_name": f"{analysis.study.title}: {run.run}",
        "run_reason": "benchmark",
        "timestamp": datetime.fromtimestamp(run.created_unix_s, UTC).isoformat(),
        "info": {"dyno_version": run.dyno_version, "engine": str(run.installation.version)},
        "context": {"benchmark_language": "SQL"},
        "cluster_info": {"name": run.host.name or "unknown", "info": host, "optional_info": {}},
        **({"github": github} if all(github.values()) else {}),
    }
    found = []
    for variant, one in _measured(analysis):
        metric = metrics.find(one.metric)
        read = (metric.read(record) for record in measured if record.variant == variant.name)
        values = [value for value in read if value is not None]
        unit, times = CONBENCH_UNITS.get(metric.unit, ("", 1.0))
        # By its unit Conbench knows which way is better.
        rising = metric.direction is Direction.HIGHER
        if unit and values and rising == (unit == "i/s"):
            data = [value * times for value in values]
            stats = {"data": data, "unit": unit, "times": [], "time_unit": "s", "iterations": len(data)}
            name = analysis.study.title
            tags = {"name": name, "variant": variant.name, "metric": one.metric}
            found.append({**about, "tags": tags, "stats": stats})
    return json_text(found)


def _openmetrics(analysis: Analysis, origin: RepositoryOrigin) -> str:

    return exposed(analysis).removesuffix("\n")


_MAKERS: Mapping[Form, Callable[[Analysis, RepositoryOrigin], str]] = {
    Form.BENCHER: _bencher,
    Form.SMALLER: _of_action(Direction.LOWER),
    Form.BIGGER: _of_action(Direction.HIGHER),
    Form.NYRKIO: _nyrkio,
    Form.OTAVA: _otava,
    Form.CONBENCH: _conbench,
    Form.OPENMETRICS: _openmetrics,
}
