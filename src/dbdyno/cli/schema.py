"""`dyno schema`: the JSON Schema of a study, for editors, and of what verbs print with `--json`.

That of a verb is made from the types that it prints. Fields may be added at any time, so no schema forbids
others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import click
from pydantic import TypeAdapter

from dbdyno.begin.catalogue import catalogue
from dbdyno.calibrate.kept import Calibration
from dbdyno.cli.baseline import BaselineRow
from dbdyno.cli.builds import BuildRow
from dbdyno.cli.cache import CacheDocument
from dbdyno.cli.config import ConfigRow
from dbdyno.cli.data import VectorSetRow
from dbdyno.cli.hosts import HostRow
from dbdyno.cli.plan import PlanDocument
from dbdyno.cli.probe import ProbeDocument
from dbdyno.cli.production import StudyMade
from dbdyno.cli.recording import Made
from dbdyno.cli.runs import RunRow
from dbdyno.cli.stored_builds import StoredRow
from dbdyno.cli.traffic import Drawn
from dbdyno.deploy.check import Checked
from dbdyno.deploy.deployment import Deployment
from dbdyno.driver.load import Invariant, Prepared
from dbdyno.driver.tally import Tally
from dbdyno.engines.built import Foreseen
from dbdyno.obtain.installation import Offer
from dbdyno.publish.verified import Verification
from dbdyno.records.chain import Entry
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.report import as_json
from dbdyno.report.results import RESULTS
from dbdyno.study.format import study_schema

Schema = dict[str, Any]
STUDY = "study"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _of(kind: Any) -> Callable[[], Schema]:
    return lambda: TypeAdapter(kind).json_schema(mode="serialization")


def _plan() -> Schema:
    return as_json.without(_of(PlanDocument)(), {**as_json.FILES_BY_TYPE, "Trial": ("phases",)})


def _trial() -> Schema:
    schema = as_json.without(_of(Record)(), {"": ("phases", "trial_doubts")})
    schema["properties"] |= {
        "checks": {"type": "array", "items": {"$ref": "#/$defs/Check"}},
        "doubts": {"type": "object", "additionalProperties": {"type": "string"}},
        "recoveries": {"type": "array", "items": {"$ref": "#/$defs/Recovery"}},
    }
    schema["required"] += ["checks", "doubts"]
    return schema


def _show() -> Schema:
    trial, run = _trial(), _of(Run)()
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
    **{kind: result.schema for kind, result in RESULTS.items()},
    "plan": _plan,
    "show": _show,
    "show-trial": _trial,
    "register": _of(Entry),
    "register-list": _of(list[Entry]),
    "verify": _of(Verification),
    "runs": _of(list[RunRow]),
    "baseline-list": _of(list[BaselineRow]),
    "recipe": _of(Deployment),
    "recipe-check": _of(Checked),
    "builds": _of(list[BuildRow]),
    "builds-make": _of(list[Foreseen]),
    "builds-stored": _of(list[StoredRow]),
    "hosts": _of(list[HostRow]),
    "engines": _of(list[Offer]),
    "calibrate": _of(Calibration),
    "cache-list": _of(CacheDocument),
    "data-list": _of(list[VectorSetRow]),
    "data-inspect": _of(VectorSetRow),
    "probe": _of(ProbeDocument),
    "config": _of(list[ConfigRow]),
    "init-replay": _of(Made),
    "init-study": _of(StudyMade),
    "init-workload": _of(Drawn),
    "load-prepare": _of(Prepared),
    "load-run": _of(Tally),
    "load-check": _of(list[Invariant]),
}
"""By the verb that prints it."""


@click.command()
@click.argument("output", type=click.Choice([STUDY, *OUTPUTS]), default=STUDY)
def command(output: str) -> None:
    """Print the JSON Schema of a study: editors complete and check with it. With the name of an OUTPUT, print
    the schema of what that verb prints with --json.
    """
    found = study_schema(catalogue(ask_engines=False)) if output == STUDY else schema_of(output)
    click.echo(json.dumps(found, indent=2))


def schema_of(output: str) -> Schema:
    """The schema of one of `OUTPUTS`."""
    return {"$schema": DIALECT, "title": f"dyno {output} --json", **_open(OUTPUTS[output]())}


def _open(schema: Any) -> Any:
    """A schema that allows fields that it does not know, because later versions add some."""
    if isinstance(schema, dict):
        closed = ("additionalProperties", False)
        return {key: _open(value) for key, value in schema.items() if (key, value) != closed}
    return [_open(value) for value in schema] if isinstance(schema, list) else schema
