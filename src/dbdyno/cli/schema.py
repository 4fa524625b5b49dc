"""`dyno schema`: the JSON Schema of a study, for editors, and of what verbs print with `--json`.

That of a verb is made from the types that it prints. Fields may be added at any time, so no schema forbids
others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any

import click

from dbdyno.findings.results import RESULTS

Schema = dict[str, Any]
STUDY = "study"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _of(place: str, many: bool = False) -> Callable[[], Schema]:
    """The schema of the type at `module:attribute`, or of a list of it."""

    def made() -> Schema:
        from pydantic import TypeAdapter

        kind: Any = resolve_name(place)
        asked: Any = list.__class_getitem__(kind) if many else kind
        return TypeAdapter(asked).json_schema(mode="serialization")

    return made


def _result(kind: str) -> Schema:
    return RESULTS[kind].schema()


def _plan() -> Schema:
    # Here and below, because help needs the names of outputs alone.
    from dbdyno.findings import as_json

    left_out = {**as_json.FILES_BY_TYPE, "Trial": ("phases",)}
    return as_json.without(_of("dbdyno.cli.plan:PlanDocument")(), left_out)


def _trial() -> Schema:
    from dbdyno.findings import as_json

    schema = as_json.without(_of("dbdyno.records.record:Record")(), {"": ("phases", "trial_doubts")})
    schema["properties"] |= {
        "checks": {"type": "array", "items": {"$ref": "#/$defs/Check"}},
        "doubts": {"type": "object", "additionalProperties": {"type": "string"}},
        "recoveries": {"type": "array", "items": {"$ref": "#/$defs/Recovery"}},
    }
    schema["required"] += ["checks", "doubts"]
    return schema


def _show() -> Schema:
    trial, run = _trial(), _of("dbdyno.records.run:Run")()
    definitions = trial.pop("$defs") | run.pop("$defs") | {"Trial": trial, "Run": run}
    return {
        "type": "object",
        "properties": {
            "run": {"$ref": "#/$defs/Run"},
            "trials": {"type": "array", "items": {"$ref": "#/$defs/Trial"}},
        },
        "required": ["run", "trials"],
        "$defs": definitions,
    }


OUTPUTS: Mapping[str, Callable[[], Schema]] = {
    **{kind: partial(_result, kind) for kind in RESULTS},
    "plan": _plan,
    "show": _show,
    "show-trial": _trial,
    "evaluate": _of("dbdyno.kinds.evaluation_lines:Line"),
    "register": _of("dbdyno.records.chain:Entry"),
    "register-list": _of("dbdyno.records.chain:Entry", many=True),
    "verify": _of("dbdyno.publish.verified:Verification"),
    "runs": _of("dbdyno.cli.runs:RunRow", many=True),
    "baseline-list": _of("dbdyno.cli.baseline:BaselineRow", many=True),
    "recipe": _of("dbdyno.deploy.deployment:Deployment"),
    "recipe-check": _of("dbdyno.deploy.check:Checked"),
    "builds": _of("dbdyno.cli.builds:BuildRow", many=True),
    "builds-make": _of("dbdyno.obtain.source.build:Foreseen", many=True),
    "builds-stored": _of("dbdyno.cli.stored_builds:StoredRow", many=True),
    "hosts": _of("dbdyno.cli.hosts:HostRow", many=True),
    "engines": _of("dbdyno.obtain.installation:Offer", many=True),
    "calibrate": _of("dbdyno.calibrate.kept:Calibration"),
    "cache-list": _of("dbdyno.cli.cache:CacheDocument"),
    "data-list": _of("dbdyno.cli.data:VectorSetRow", many=True),
    "data-inspect": _of("dbdyno.cli.data:VectorSetRow"),
    "probe": _of("dbdyno.cli.probe:ProbeDocument"),
    "config": _of("dbdyno.cli.config:ConfigRow", many=True),
    "init-replay": _of("dbdyno.cli.recording:Made"),
    "init-study": _of("dbdyno.cli.production:StudyMade"),
    "init-workload": _of("dbdyno.cli.traffic:Drawn"),
    "load-prepare": _of("dbdyno.driver.load:Prepared"),
    "load-run": _of("dbdyno.driver.tally:Tally"),
    "load-check": _of("dbdyno.driver.load:Invariant", many=True),
}
"""By the verb that prints it."""
DEFINITIONS = "#/$defs/"
KNOWN_AS = {
    "BindingFinding": "Finding",
    "BisectionAnswer": "Answer",
    "CalibratedHost": "Place",
    "CpuTime": "Cpu",
    "ElfKind": "Kind",
    "FolderCheck": "Check",
    "FunctionDifference": "Change",
    "LevelFinding": "Finding",
    "PartPlace": "Place",
    "ProbeFinding": "Finding",
    "ProductionChange": "Change",
    "RatioPosition": "Told",
    "RegisteredPlan": "Plan",
    "SettingWay": "Way",
    "TimeToTell": "Told",
    "TransactionType": "Kind",
    "VerificationAnswer": "Answer",
    "WorkloadPhase": "Phase",
}
"""Types that schemas name as they always did, because programs are generated from them."""
SCHEMAS = (STUDY, *OUTPUTS)


def main(output: str) -> None:
    from dbdyno.prepare_run.study_here import catalogue
    from dbdyno.study.tables import study_schema

    found = study_schema(catalogue(ask_engines=False)) if output == STUDY else schema_of(output)
    click.echo(json.dumps(found, indent=2))


def schema_of(output: str) -> Schema:
    """The schema of one of `OUTPUTS`."""
    return {"$schema": DIALECT, "title": f"dyno {output} --json", **_open(OUTPUTS[output]())}


def _open(schema: Any) -> Any:
    """A schema that allows fields that it does not know, because later versions add some. Its types have the
    names by which users know them."""
    if isinstance(schema, dict):
        closed = ("additionalProperties", False)
        return {
            KNOWN_AS.get(key, key): _open(value) for key, value in schema.items() if (key, value) != closed
        }
    if isinstance(schema, str):
        name = schema.removeprefix(DEFINITIONS)
        return schema.removesuffix(name) + KNOWN_AS.get(name, name)
    return [_open(value) for value in schema] if isinstance(schema, list) else schema
