"""What a run measured, as other tools for series of benchmarks read it.

Each form holds the mean of each variant's response and costs with its interval, and no verdict: those tools
judge series by rules of their own. OpenMetrics, which has no intervals, holds the last trial's metrics.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dbdyno.records import metrics
from dbdyno.records.metrics import Direction
from dbdyno.report.words.safe import csv_cell, json_text

if TYPE_CHECKING:
    from dbdyno.analyse.model import Analysis, Summary, VariantResult


@dataclass(frozen=True)
class Origin:
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
    OPENMETRICS = "openmetrics"


def exchanged(form: Form, analysis: Analysis, origin: Origin) -> str:
    """The run in the form of a tool."""
    return _MAKERS[form](analysis, origin)


def _measured(analysis: Analysis) -> Iterator[tuple[VariantResult, Summary]]:
    """The variants that have a speed, each with its response first and then its costs."""
    response = analysis.method.response
    for variant in analysis.variants:
        if variant.response is not None:
            yield variant, variant.response
            yield from ((variant, one) for one in variant.summaries if one.metric != response)


def _bencher(analysis: Analysis, origin: Origin) -> str:
    """Bencher's metric format: benchmarks are variants, and measures are metrics."""
    made: dict[str, dict[str, Any]] = {}
    for variant, found in _measured(analysis):
        values = {"value": found.mean, "lower_value": found.low, "upper_value": found.high}
        made.setdefault(variant.name, {})[found.metric] = values
    return json_text(made)


def _of_action(direction: Direction) -> Callable[[Analysis, Origin], str]:
    def made(analysis: Analysis, origin: Origin) -> str:
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


def _nyrkio(analysis: Analysis, origin: Origin) -> str:
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


def _otava(analysis: Analysis, origin: Origin) -> str:
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


def _openmetrics(analysis: Analysis, origin: Origin) -> str:
    # Here, because its library is needed for this form alone.
    from dbdyno.export.openmetrics import exposed

    return exposed(analysis).removesuffix("\n")


_MAKERS: Mapping[Form, Callable[[Analysis, Origin], str]] = {
    Form.BENCHER: _bencher,
    Form.SMALLER: _of_action(Direction.LOWER),
    Form.BIGGER: _of_action(Direction.HIGHER),
    Form.NYRKIO: _nyrkio,
    Form.OTAVA: _otava,
    Form.OPENMETRICS: _openmetrics,
}
