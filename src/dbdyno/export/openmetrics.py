"""What a run has measured so far, as OpenMetrics: the text that Prometheus and its kin collect.

Each variant has the metrics of its last measured trial, its outcomes by count, and its ratio to the baseline
over all blocks. A series of them is for looking at; what a difference is worth stands in the report.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from dbdyno.analyse.model import Analysis
from dbdyno.records.metrics import METRICS
from dbdyno.records.record import Outcome, Record

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
