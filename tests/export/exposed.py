"""OpenMetrics as the format's own parser reads it."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """All values, by the name of their family and the labels' values in the order of the labels' names."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }
