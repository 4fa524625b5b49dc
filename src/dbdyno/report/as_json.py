"""The report for machines: the analysis as JSON, with a line of facts per trial.

Keys and units are those of `analyse/model.py`; `format` rises with every change that a reader could not
follow. Histograms, per-second series and server logs stay in the store.
"""

from __future__ import annotations

import json
from typing import Any

from dbdyno.analyse.model import Analysis, TrialResult
from dbdyno.records import metrics
from dbdyno.records.record import Outcome
from dbdyno.report.words import answer, safe


def render(analysis: Analysis) -> str:
    """One JSON object, indented, ending in a newline."""
    document = analysis.model_dump(
        mode="json", exclude={"trials": True, "study": {"text"}, "run": {"study_text"}}
    )
    document["headline"] = answer.headline(analysis)
    document["trials"] = [_trial(trial) for trial in analysis.trials]
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return safe.without_passwords(text) + "\n"


def _trial(trial: TrialResult) -> dict[str, Any]:
    record = trial.record
    facts = record.model_dump(
        mode="json", exclude={"phases", "trial_doubts", "whole", "server_log", "run", "format"}
    )
    facts["checks"] = [check.model_dump(mode="json") for check in record.checks]
    facts["response"] = trial.response
    facts["metrics"] = _metrics(trial)
    facts["steady"] = trial.steady.model_dump(mode="json", exclude={"segments"}) if trial.steady else None
    facts["warnings"] = {warning.value: detail for warning, detail in trial.warnings.items()}
    return facts


def _metrics(trial: TrialResult) -> dict[str, float]:
    """Every metric that the record holds; only a measured trial has any."""
    if trial.record.outcome is not Outcome.MEASURED:
        return {}
    read = {name: metric.read(trial.record) for name, metric in metrics.METRICS.items()}
    return {name: value for name, value in read.items() if value is not None}
