"""The report for machines: the analysis as JSON, with a line of facts per trial.

Keys and units are those of `analyse/model.py`; `format` rises with every change that a reader could not
follow. Histograms, per-second series and server logs stay in the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from dbdyno.analyse.gate import HeldAnalysis
from dbdyno.analyse.model import Analysis, TrialResult
from dbdyno.findings import gate
from dbdyno.frozen import WHOLE_FILES
from dbdyno.records import metrics
from dbdyno.records.record import Outcome
from dbdyno.records.run import KINDS_OF_RUN
from dbdyno.report.words import safe

OF_A_RUN: Any = {"study_text": True, "configuration": WHOLE_FILES, "files": {"__all__": {"text"}}}
"""What of a run stays in the store: whole files."""
NOT_TOLD: Any = {
    "trials": True,
    "study": {"text": True, "configuration": WHOLE_FILES},
    "run": OF_A_RUN,
    "gate": {"run": OF_A_RUN, "reference": OF_A_RUN},
}
"""What of an analysis stays there."""
FILES_BY_TYPE = {
    **{kind.__name__: ("study_text",) for kind in KINDS_OF_RUN},
    "Configuration": ("text",),
    "IncludedFile": ("text",),
    "StudyFile": ("text",),
}
"""The same by the names of the types that hold them."""


def render(analysis: Analysis) -> str:
    """One JSON object, indented, ending in a newline."""
    document = analysis.model_dump(mode="json", exclude=NOT_TOLD)
    document["headline"] = gate.headline(analysis)
    document["trials"] = [_trial(trial) for trial in analysis.trials]
    first = ("format", "gate", "headline") if "gate" in document else ()
    return safe.json_text({**{name: document[name] for name in first}, **document}) + "\n"


def of_model(model: BaseModel, left_out: Mapping[str, Any] | None = None) -> str:
    """What a command found, as indented JSON; of its fields without those that are `left_out`."""
    return safe.json_text(json.loads(model.model_dump_json(exclude=dict(left_out or {}))))


def schema() -> dict[str, Any]:
    """The JSON Schema of what `render` gives."""
    made = without(
        HeldAnalysis.model_json_schema(mode="serialization"),
        {**FILES_BY_TYPE, "": ("trials",), "Study": ("text",), "Steady": ("segments",)},
    )
    record = without(
        made["$defs"]["Record"],
        {"": ("phases", "trial_doubts", "whole", "server_log", "run", "format")},
    )
    steady = {"anyOf": [{"$ref": "#/$defs/Steady"}, {"type": "null"}]}
    facts = {
        "checks": {"type": "array", "items": {"$ref": "#/$defs/Check"}},
        "response": {"type": ["number", "null"]},
        "metrics": {"type": "object", "additionalProperties": {"type": "number"}},
        "steady": steady,
        "warnings": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    record["properties"] |= facts
    record["required"] = [*record["required"], *facts]
    made["$defs"]["Trial"] = record
    made["properties"] |= {
        "headline": {"type": "string"},
        "trials": {"type": "array", "items": {"$ref": "#/$defs/Trial"}},
    }
    made["required"] = [*made["required"], "headline", "trials"]
    return made


def without(schema: dict[str, Any], left_out: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A schema without some fields, by the name of the type that has them; that of the whole is empty. A
    field that is left out where it says nothing is not required."""
    definitions = {name: _less(one, left_out.get(name, ())) for name, one in schema.get("$defs", {}).items()}
    return _less({**schema, "$defs": definitions}, left_out.get("", ()))


def _less(schema: dict[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    if "properties" not in schema:
        return schema
    properties = {name: one for name, one in schema["properties"].items() if name not in fields}
    required = [name for name in schema.get("required", []) if name in properties]
    return {**schema, "properties": properties, "required": required}


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
