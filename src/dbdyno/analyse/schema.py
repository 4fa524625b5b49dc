"""How the schema that a variant's own server tells differs from what the baseline's tells of the same one.

The two servers are the judges: what they tell alike is alike. What is known of a value stands beside it, and
decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.frozen import Frozen, absent
from dbdyno.records.load_words import SchemaNote, ServerSchema, is_column

NAME, RESERVED, FREE = "name", "reserved", "free"
"""The property of a thing whose name one of the servers takes in quotes alone."""
EXISTS = "exists"
SAYS_MOST = 400


class SchemaDifference(Frozen):
    """What two servers tell otherwise of one thing of a schema: a column as `table.column`, others with their
    kind. Where something is `known` of a value, it was so `since` a version, by a `source`."""

    thing: str
    what: str
    before: str
    after: str
    known: str = absent("")
    since: str = absent("")
    source: str = absent("")


class VariantSchema(Frozen):
    """How the schema of a variant differs from the baseline's, over `compared` things. Where they were not
    compared, or not to their end, `why_not` says why."""

    variant: str
    compared: int
    differences: tuple[SchemaDifference, ...] = ()
    why_not: str = absent("")


def compared_schemas(
    variant: str, before: ServerSchema, after: ServerSchema, own_indexes: bool = False
) -> VariantSchema:
    """What the servers of the baseline and of a variant tell otherwise. Where variants have indexes of their
    own, because the study says so, one that is missing tells nothing."""
    why_not = before.why_not or after.why_not
    if not why_not and before.engine != after.engine:
        why_not = f"{before.engine} and {after.engine} have no words in common for one"
    if why_not:
        return VariantSchema(variant=variant, compared=0, why_not=why_not)
    left_out = max(before.left_out, after.left_out)
    cut = f"{left_out:,} things of it are more than a record keeps" if left_out else ""
    found = (*_values(before, after), *_names(before, after))
    notes = (*after.notes, *before.notes)
    differences = tuple(
        _with_note(one, notes)
        for one in found
        if not (own_indexes and one.what == EXISTS and one.thing.startswith("index "))
    )
    compared = len(before.told.keys() & after.told.keys())
    return VariantSchema(variant=variant, compared=compared, differences=differences, why_not=cut)


def _values(before: ServerSchema, after: ServerSchema) -> Iterator[SchemaDifference]:
    whole = not (before.left_out or after.left_out)
    for thing in dict.fromkeys((*before.told, *after.told)):
        ours, theirs = after.told.get(thing), before.told.get(thing)
        if ours is None or theirs is None:
            if whole:
                had, has = ("no" if side is None else "yes" for side in (theirs, ours))
                yield SchemaDifference(thing=thing, what=EXISTS, before=had, after=has)
            continue
        for what, value in theirs.items():
            # A version that says no word on a property is not held against one that does.
            if what in ours and ours[what] != value:
                yield SchemaDifference(
                    thing=thing, what=what, before=value[:SAYS_MOST], after=ours[what][:SAYS_MOST]
                )


def _names(before: ServerSchema, after: ServerSchema) -> Iterator[SchemaDifference]:
    for name in sorted({*before.reserved} ^ {*after.reserved}):
        for thing in dict.fromkeys(_named(name, (*before.told, *after.told))):
            had, has = (RESERVED if name in side.reserved else FREE for side in (before, after))
            yield SchemaDifference(thing=thing, what=NAME, before=had, after=has)


def _named(name: str, things: tuple[str, ...]) -> Iterator[str]:
    """The columns of this name, and the table."""
    for *table, column in (thing.split(".") for thing in things if is_column(thing)):
        if column == name:
            yield ".".join((*table, column))
        elif name in table:
            yield ".".join(table)


def _with_note(one: SchemaDifference, notes: tuple[SchemaNote, ...]) -> SchemaDifference:
    note = next((note for note in notes if note.holds(one.what, one.before, one.after)), None)
    return one if note is None else one.but(known=note.says, since=note.since, source=note.source)
