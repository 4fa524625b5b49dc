"""What is printed, held against the schema that Dyno gives of it."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from dbdyno.cli.schema import schema_of


def require_valid(output: str, text: str) -> None:
    """That the output keeps its schema, and that the schema names each of its fields."""
    schema, document = schema_of(output), json.loads(text)
    Draft202012Validator(schema).validate(document)
    unnamed = [fields for part in (document if isinstance(document, list) else [document])
               for fields in [part.keys() - _fields(schema)] if fields]  # fmt: skip
    assert unnamed == []


def _fields(schema: dict[str, Any]) -> set[str]:
    named = schema if "properties" in schema else schema["items"]
    if "$ref" in named:
        named = schema["$defs"][named["$ref"].rpartition("/")[2]]
    return set(named["properties"])
