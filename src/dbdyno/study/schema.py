"""Parts of the JSON Schema of a study that several keys share, or that are no plain table of keys.

What the reader accepts the schema accepts. The reader knows more: what goes with what, and the layers' rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.study import values
from dbdyno.study.catalogue import Catalogue
from dbdyno.study.values import SWEEP

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": values.TEXT_MAX}
TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
LEVEL: Schema = {"type": ["string", "number", "boolean"]}
LEVELS: Schema = {"type": "array", "items": LEVEL, "minItems": 2, "uniqueItems": True}
ONE_OR_MORE: Schema = {"anyOf": [LEVEL, {"type": "array", "items": LEVEL, "minItems": 1}]}

BY_ANY_NAME: Schema = {"type": "object", "additionalProperties": {"anyOf": [LEVEL, {"type": "object"}]}}


def pattern(text: str) -> Schema:
    return {"type": "string", "pattern": text}


def or_list(schema: Schema) -> Schema:
    """A value, or a list of such values: a factor."""
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 2, "uniqueItems": True}]}


def or_sweep(schema: Schema) -> Schema:
    """The same, or a text that stands for a list."""
    return {"anyOf": [*schema["anyOf"], pattern(SWEEP)]}


def by_factor(value: Schema, catalogue: Catalogue) -> Schema:
    """A table by factor: full names in quotes, or tables by layer, however deep the dots of a bare key go."""
    layers = "|".join(sorted(catalogue.layers))
    inside: Schema = {"anyOf": [value, {"type": "object"}]}
    return {
        "type": "object",
        "properties": {name: {"description": words} for name, words in catalogue.knobs.items()},
        "patternProperties": {rf"^({layers})(\.|$)": inside},
        "additionalProperties": False,
    }


def by_name(offers: Mapping[str, tuple[str, Schema]], shared: Schema) -> Schema:
    """A table whose `name` decides which keys it has beside those that all share: `offers` are a sentence and
    the keys of each."""
    return {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"enum": list(offers)}, **shared},
        "allOf": [
            {
                "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
                "then": {
                    "properties": {**shared, **own, "name": {"const": name, "description": sentence}},
                    "additionalProperties": False,
                },
            }
            for name, (sentence, own) in offers.items()
        ],
    }
