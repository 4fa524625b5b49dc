"""A key of a study, and a section of keys: declared once, for reader, editors, writer and documentation."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import PydanticUndefined

from dbdyno.frozen import Frozen
from dbdyno.study.catalogue import Catalogue
from dbdyno.study.document import Row, toml
from dbdyno.study.grammars import Grammar, Schema, or_list, or_sweep


@dataclass(frozen=True)
class Key:
    """A key of a section. What is read goes into the noun's `field`, whose default is the key's; a key
    without one is read by a rule of its own. Where the default is no value, `otherwise` says what it is.
    `about` tells editors and the documentation what the key is, and `more` the documentation alone. A
    required key has in `missing` the hint for a study without it. A key that `varies` makes a factor of a
    list, and one that `sweeps` of a sweep too. Editors are not told a `tacit` default."""

    name: str
    grammar: Grammar[Any]
    about: str = ""
    more: str = ""
    field: str = ""
    default: Any = None
    otherwise: str = ""
    missing: Callable[[Catalogue], str] | None = None
    varies: bool = False
    sweeps: bool = False
    tacit: bool = False


@dataclass(frozen=True)
class StudySection:
    """A table of a study: its keys, and the noun that they make up. `rules` are of the JSON Schema."""

    name: str
    keys: tuple[Key, ...]
    about: str = ""
    noun: type[Frozen] | None = None
    rules: Schema = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(key.name for key in self.keys)

    def key(self, name: str) -> Key:
        return next(key for key in self.keys if key.name == name)

    def default(self, key: Key) -> Any:
        """What a study without the key has, None where that is nothing."""
        default = self._of_noun(key)
        return None if default in (PydanticUndefined, "", ()) else default

    def _of_noun(self, key: Key) -> Any:
        of_noun = self.noun.model_fields.get(key.field) if self.noun is not None else None
        return key.default if of_noun is None else of_noun.default

    def schema(self, catalogue: Catalogue) -> Schema:
        return {
            "type": "object",
            **({"description": self.about} if self.about else {}),
            "additionalProperties": False,
            **self.rules,
            "properties": self.properties(catalogue),
        }

    def properties(self, catalogue: Catalogue) -> Schema:
        return {key.name: self._property(key, catalogue) for key in self.keys}

    def _property(self, key: Key, catalogue: Catalogue) -> Schema:
        schema, default = key.grammar.schema(catalogue), self.default(key)
        if key.varies:
            schema = or_list(schema)
        if key.sweeps:
            schema = or_sweep(schema)
        words = f"{key.about} Default: {key.otherwise}." if key.otherwise else key.about
        if default is not None and not key.tacit:
            schema = {**schema, "default": key.grammar.written(default)}
        return {**schema, "description": words} if words else schema

    def page(self) -> list[str]:
        """The table of the keys in the documentation."""
        rows = (self._row_of_page(key) for key in self.keys if key.about or key.more)
        return ["| key | default | is |", "|---|---|---|", *rows]

    def _row_of_page(self, key: Key) -> str:
        default = self.default(key)
        told = key.otherwise if default is None else f"`{toml(key.grammar.written(default))}`"
        allowed = f"{key.grammar.allowed}." if key.grammar.allowed else ""
        words = " ".join(filter(None, (key.about, allowed, key.more)))
        return f"| `{key.name}` | {'required' if key.missing else told} | {words} |"

    def row(self, name: str, value: Any = None, comment: str = "") -> Row:
        """A key as a study writes it, with its default where there is no value."""
        key = self.key(name)
        return name, toml(key.grammar.written(self.default(key) if value is None else value)), comment

    def rows(self, found: Frozen, names: Collection[str]) -> list[Row]:
        """Some keys as a study writes them, in the order declared, with what a noun has in their fields. What
        is nothing by default is left out where it is nothing."""
        given = ((key, getattr(found, key.field)) for key in self.keys if key.field and key.name in names)
        return [self.row(key.name, value) for key, value in given if value or value != self._of_noun(key)]
