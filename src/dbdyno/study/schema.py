"""The JSON Schema of a study, for editors: completion, help and a first check while typing.

What the reader accepts the schema accepts. The reader knows more: what goes with what, and the layers' rules.
"""

from __future__ import annotations

from typing import Any

from dbdyno.driver.job import RATE_PER_S_MAX
from dbdyno.study import pacing, values
from dbdyno.study.act import OF_SOAKS, Act
from dbdyno.study.application import WORKERS_MAX
from dbdyno.study.catalogue import Catalogue, Option, WorkloadOffer
from dbdyno.study.data import DUMPS_MAX
from dbdyno.study.nouns import BASELINE, DURABLE, SLICE_S, Arrangement, Design, Goal, Interval
from dbdyno.study.ranges import Scale
from dbdyno.study.reader import BASELINES_MAX, BLOCKS_MAX, CUTS_OF_GUARD, IMAGES_MAX, RESTARTS_MAX
from dbdyno.study.rungs import RUNGS_MAX
from dbdyno.study.section import ARRIVALS, CLIENTS_MAX, GATHER, ISOLATIONS, THREADS_MAX
from dbdyno.study.soak import Disturbance, Soak
from dbdyno.study.space import Promise
from dbdyno.study.sweep import SWEEP
from dbdyno.study.variants import NAME_LENGTH_MAX

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": values.TEXT_MAX}
_LEVEL: Schema = {"type": ["string", "number", "boolean"]}


_LEVELS: Schema = {"type": "array", "items": _LEVEL, "minItems": 2, "uniqueItems": True}
_SEARCH: Schema = {
    "type": "object",
    "additionalProperties": False,
    "description": "For the design `search`.",
    "properties": {
        "time": {
            "type": "string",
            "pattern": values.DURATION,
            "default": "30m",
            "description": "How long it takes, confirmation and elimination included; at least 60s.",
        },
        "allow": {
            "type": "array",
            "items": {"enum": [promise.value for promise in Promise]},
            "description": "What levels may give up for their speed. Without it, nothing.",
        },
        "constraints": {
            "type": "array",
            "items": {"type": "string", "pattern": "<="},
            "description": 'Sums of levels that hold in every candidate: "config.A + 2 * config.B <= 6G".',
        },
    },
}


_DATA: Schema = {
    "type": "object",
    "additionalProperties": False,
    "oneOf": [{"required": ["dump"]}, {"required": ["folder"]}],
    "description": "Data in the place of those that the workload makes. Paths count from the study's folder.",
    "properties": {
        "dump": {
            "anyOf": [
                _TEXT,
                {
                    "type": "array",
                    "items": _TEXT,
                    "minItems": 1,
                    "maxItems": DUMPS_MAX,
                    "uniqueItems": True,
                },
            ],
            "description": "A dump as the engine's own tool writes it, or several in their order.",
        },
        "folder": {
            **_TEXT,
            "description": "The data folder of a server that was stopped cleanly; of an embedded engine, "
            "its file.",
        },
        "database": {
            **_TEXT,
            "description": "The database that the load connects to. Default: the only one of the data.",
        },
        "setup": {
            "type": "boolean",
            "default": False,
            "description": "Runs the setup, the tables and the finish of a script once the data are there.",
        },
    },
}


def _range(catalogue: Catalogue) -> Schema:
    """A factor of a search as a table: a range, or a list, with conditions."""
    one_or_more = {"anyOf": [_LEVEL, {"type": "array", "items": _LEVEL, "minItems": 1}]}
    return {
        "type": "object",
        "additionalProperties": False,
        "anyOf": [{"required": ["from", "to"]}, {"required": ["levels"]}],
        "properties": {
            "from": {**_LEVEL, "description": 'The smallest level, in the unit that all have: 200, "64M".'},
            "to": {**_LEVEL, "description": "The largest level."},
            "scale": {"enum": [scale.value for scale in Scale], "default": Scale.LINEAR.value},
            "step": {**_LEVEL, "description": "The difference between two levels on the linear scale."},
            "baseline": {**_LEVEL, "description": "The baseline's level. Default: `from`."},
            "levels": _LEVELS,
            "only_if": {
                **_by_factor(one_or_more, catalogue),
                "description": "Levels of earlier factors with which this one varies.",
            },
        },
    }


def study_schema(catalogue: Catalogue) -> Schema:
    """The schema (draft 2020-12) of a study that may use the names of `catalogue`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study for Dyno",
        "type": "object",
        "required": ["engine", "workload"],
        "additionalProperties": False,
        "properties": {
            "title": {**_TEXT, "description": "The question in one line. Default: the file's name."},
            "engine": _engine(catalogue),
            "design": {
                "enum": [str(design) for design in Design],
                "default": str(Design.ONE_AT_A_TIME),
                "description": "Which combinations of levels are compared.",
            },
            "blocks": _integer(
                1, BLOCKS_MAX, 6, "How often every variant is measured: the unit of inference."
            ),
            "seed": {
                "type": "integer",
                "minimum": 0,
                "maximum": values.INT_MAX,
                "description": "Draws the order of the trials. Default: each run draws a seed.",
            },
            "aa": _AA,
            "baselines": _integer(
                1,
                BASELINES_MAX,
                1,
                "How often each block measures the baseline; variants are compared with the mean.",
            ),
            **_ARRANGEMENT,
            "images": {
                "type": "integer",
                "minimum": 1,
                "maximum": IMAGES_MAX,
                "description": "How many images of the pristine data pairs of blocks take in turn. "
                "Default: two where a second one costs little beside the run.",
            },
            "application": _application(catalogue),
            "data": _DATA,
            "workload": _workload(catalogue),
            "settings": {
                **_by_factor(_LEVEL, catalogue),
                "description": "Levels that hold for every variant.",
            },
            "factors": {
                **_by_factor({"anyOf": [_LEVELS, _range(catalogue)]}, catalogue),
                "description": "What is varied: layer.knob = [BASELINE, OTHER, ...], or a range.",
            },
            "variants": _variants(catalogue),
            "search": _SEARCH,
            "restarts": _restarts(),
            "goal": _goal(catalogue),
            "soak": _soak(catalogue),
        },
    }


def _restarts() -> Schema:
    counts = {
        "power_cuts": "Power cuts of each variant, in the midst of a load, on volumes that Dyno makes.",
        "torn_pages": "Power cuts after which half of each page that was on its way is on the device.",
        "kills": "Kills of the engine in the midst of a load.",
        "stops": "Clean stops, which are timed.",
        "flipped_bits": "Clean stops after which one bit of a row is wrong: does the engine say so?",
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **{key: _integer(0, RESTARTS_MAX, 0, text) for key, text in counts.items()},
            "load": _duration("2s", "How long the load goes on before each, on average."),
        },
        "description": "How often each variant's engine is restarted beside the blocks, to see what "
        f"survives. With the guard `durable`, {CUTS_OF_GUARD} power cuts unless it says otherwise.",
    }


def _engine(catalogue: Catalogue) -> Schema:
    names = "|".join(sorted(catalogue.engines))
    reference = {
        "type": "string",
        "pattern": rf"^({names})(@[0-9A-Za-z].*|:[/~].*)?$",
        "examples": sorted(catalogue.engines),
        "description": "NAME, NAME@VERSION or NAME:/PATH/TO/SERVER.",
    }
    table = {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": reference,
            "configuration": {
                **_TEXT,
                "description": "The engine's own configuration file, from the study's folder: the base of "
                "every variant.",
            },
        },
    }
    return {"anyOf": [reference, table]}


def _application(catalogue: Catalogue) -> Schema:
    names = "|".join(sorted(catalogue.applications))
    settings: Schema = {"type": "object", "additionalProperties": {"anyOf": [_LEVEL, {"type": "object"}]}}
    return {
        "type": "object",
        "description": "What stands in front of the server and takes the load.",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": {
                "type": "string",
                "pattern": rf"^({names})(@[0-9A-Za-z].*|:[/~].*)?$",
                "description": "NAME, NAME@VERSION or NAME:/PATH/OF/ITS/ENVIRONMENT.",
            },
            "workers": _integer(1, WORKERS_MAX, 4, "Processes that serve requests."),
            "settings": {**settings, "description": "Its own settings, by their full names."},
        },
    }


def _integer(low: int, high: int, default: int, description: str) -> Schema:
    return {
        "type": "integer",
        "minimum": low,
        "maximum": high,
        "default": default,
        "description": description,
    }


def _workload(catalogue: Catalogue) -> Schema:
    knobs = _workload_keys()
    options = {
        offer.name: {option.name: _or_list(_option(option)) for option in offer.options}
        for offer in catalogue.workloads
    }
    return {
        "type": "object",
        "description": "The load of every trial. A list makes a key a factor.",
        "required": ["name"],
        "properties": {"name": {"enum": [offer.name for offer in catalogue.workloads]}, **knobs},
        "allOf": [
            _only_with(offer, {"name": True, **knobs, **options[offer.name]}) for offer in catalogue.workloads
        ],
    }


def _workload_keys() -> dict[str, Schema]:
    """The keys of [workload] that every workload has."""
    return {
        "clients": _or_sweep(
            _or_list(_integer(1, CLIENTS_MAX, 1, "Connections, each with one transaction at a time."))
        ),
        "threads": _or_list(_integer(0, THREADS_MAX, 0, "The driver's threads; 0: the driver chooses.")),
        "rate_per_s": _or_list(
            {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": RATE_PER_S_MAX,
                "description": "Open loop: starts per second in all.",
            }
        ),
        "arrivals": _or_list({"enum": sorted(ARRIVALS), "description": "Open loop: how starts are spread."}),
        "schedule": _or_list(
            _pattern(pacing.SCHEDULE, f"Open loop: how the rate changes: {pacing.SCHEDULE_FORMS}.")
        ),
        "think_time": _or_list(_pattern(pacing.THINK_TIME, f"Closed loop: {pacing.THINK_TIME_FORMS}.")),
        "ramp": _duration("0s", "Over how long connections are opened."),
        "gather": {
            "enum": sorted(GATHER),
            "default": "off",
            "description": "Closed loop without pauses: the driver lets the server go first.",
        },
        "by_statement": {
            "type": "boolean",
            "default": False,
            "description": "Times each kind of statement, for a table of the report.",
        },
        "plans": {
            "type": "boolean",
            "default": True,
            "description": "Asks after each load how the engine would execute its statements.",
        },
        "isolation": {
            "enum": sorted(ISOLATIONS),
            "description": "Of all transactions, on MariaDB, MySQL and PostgreSQL. Default: the server's.",
        },
        "storage_engine": _pattern(
            values.WORD, "Of the tables that are made, on MariaDB, MySQL and PostgreSQL."
        ),
        "connect_sql": {
            "anyOf": [_TEXT, {"type": "array", "items": _TEXT}],
            "description": "What each connection begins with: a statement, or a list of them.",
        },
        "warmup": _duration("5s", "Load before the measured part."),
        "duration": _duration("20s", "The measured part of each trial."),
    }


def _only_with(offer: WorkloadOffer, properties: Schema) -> Schema:
    """The keys that [workload] may have when its name is the offer's."""
    return {
        "if": {"properties": {"name": {"const": offer.name}}, "required": ["name"]},
        "then": {
            "properties": {**properties, "name": {"const": offer.name, "description": offer.description}},
            "additionalProperties": False,
        },
    }


def _or_list(schema: Schema) -> Schema:
    """A value, or a list of such values: a factor."""
    plain = {key: value for key, value in schema.items() if key not in ("description", "default")}
    about = {key: value for key, value in schema.items() if key in ("description", "default")}
    return {"anyOf": [plain, {"type": "array", "items": plain, "minItems": 2, "uniqueItems": True}], **about}


def _or_sweep(schema: Schema) -> Schema:
    """The same, or a text that stands for a list."""
    return {**schema, "anyOf": [*schema["anyOf"], {"type": "string", "pattern": SWEEP}]}


def _option(option: Option) -> Schema:
    types: dict[str, str | list[str]] = {
        "int": "integer",
        "float": "number",
        "bool": "boolean",
        "text": "string",
        "choice": "string",
        "number_or": ["number", "string"],
    }
    schema: Schema = {"type": types[option.type], "description": option.help}
    if option.default is not None:
        schema["default"] = option.default
    if option.limits:
        schema |= {"minimum": option.limits.min, "maximum": option.limits.max}
    if option.limits and option.limits.word:
        schema["pattern"] = f"^{option.limits.word}$"
    if option.choices:
        schema["enum"] = list(option.choices)
    return schema


def _duration(default: str, description: str) -> Schema:
    return {"type": "string", "pattern": values.DURATION, "default": default, "description": description}


_AA: Schema = {
    "type": "boolean",
    "default": False,
    "description": "Measure the baseline twice: the two must not be called different.",
}


_ARRANGEMENT: Schema = {
    "arrangement": {
        "enum": [one.value for one in Arrangement],
        "description": "Whether all servers of a block run at once and the load goes round them in slices, "
        "or each trial runs by itself. Default: side by side where that can be.",
    },
    "slice": {
        "type": "string",
        "pattern": values.DURATION,
        "description": "About how long a slice is measured. Without it, as long as the host's calibration "
        f"found best, else {SLICE_S:g}s.",
    },
}


def _pattern(pattern: str, description: str) -> Schema:
    return {"type": "string", "pattern": pattern, "description": description}


def _by_factor(value: Schema, catalogue: Catalogue) -> Schema:
    """A table by factor: full names in quotes, or tables by layer, however deep the dots of a bare key go."""
    layers = "|".join(sorted(catalogue.layers))
    inside: Schema = {"anyOf": [value, {"type": "object"}]}
    return {
        "type": "object",
        "properties": {name: {"description": words} for name, words in catalogue.knobs.items()},
        "patternProperties": {rf"^({layers})(\.|$)": inside},
        "additionalProperties": False,
    }


def _variants(catalogue: Catalogue) -> Schema:
    return {
        "type": "array",
        "description": f"For the design `list`: two or more, of which the first is named `{BASELINE}`, or "
        "not at all. For a search: what its best candidates are held against.",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["levels"],
            "properties": {
                "name": {"type": "string", "pattern": values.VARIANT_NAME, "maxLength": NAME_LENGTH_MAX},
                "levels": _by_factor(_LEVEL, catalogue),
            },
        },
    }


def _goal(catalogue: Catalogue) -> Schema:
    default = Goal()
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "response": {"enum": sorted(catalogue.metrics), "default": default.response},
            "margin": {
                "type": "string",
                "pattern": values.PERCENTAGE,
                "default": "2%",
                "description": "Closer to the baseline than this counts as no effect.",
            },
            "confidence": {
                "type": "string",
                "pattern": values.PERCENTAGE,
                "default": "95%",
                "description": "Of all intervals together.",
            },
            "interval": {
                "enum": [Interval.STUDENT.value, Interval.SIGNED_RANK.value],
                "description": "How intervals are made: signed-rank is for hosts whose trials stall. Without "
                "it, what the host's calibration suggests, else student.",
            },
            "counted": {
                "type": "boolean",
                "description": "Count each variant's instructions too: one more trial under Valgrind, after "
                "the timed blocks. Without it builds are counted, where they can be, and nothing else.",
            },
            "guards": {
                "type": "array",
                "items": {"type": "string", "pattern": rf"^invariants$|^{DURABLE}$|{values.GUARD}"},
                "default": [guard.text for guard in default.guards],
                "description": 'What a variant must keep to count: invariants, durable, "p99_ms <= 1.2x" ...',
            },
        },
    }


def _soak(catalogue: Catalogue) -> Schema:
    default = Soak()
    workloads = [offer.name for offer in catalogue.workloads]
    return {
        "type": "object",
        "description": "How `dyno soak` carries the study out.",
        "additionalProperties": False,
        "properties": {
            "clients": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": CLIENTS_MAX},
                "minItems": 1,
                "maxItems": RUNGS_MAX,
                "uniqueItems": True,
                "default": list(default.clients),
                "description": "The ladder: so many clients on each rung, a trial each.",
            },
            "duration": _duration("30m", "The sustained load of each rung, which is judged for drift."),
            "opening": _duration("10s", "Over how long connections are opened gradually."),
            "disturb": _names(
                [str(one) for one in Disturbance], "Clients beside the load, one after the other."
            ),
            "beside": _names(workloads, "Other workloads at once, with tables of their own."),
            "disturbed": _duration(
                "1m", "How long each disturbance and each workload beside the load lasts."
            ),
            "control": _duration("3m", "How long the server rests, as a control; 0s: not at all."),
            "ends": _names(
                [str(one) for one in Act if one in OF_SOAKS],
                "What is done to the server at the end of each rung.",
            ),
            "horizon": _duration("24h", "For so long it must stand: growth is carried on as far as that."),
            "rise": {
                "type": "string",
                "pattern": values.PERCENTAGE,
                "default": "10%",
                "description": "By how much of its level what is watched may grow within the horizon.",
            },
        },
    }


def _names(allowed: list[str], description: str) -> Schema:
    return {
        "type": "array",
        "items": {"enum": allowed},
        "uniqueItems": True,
        "description": description,
    }
