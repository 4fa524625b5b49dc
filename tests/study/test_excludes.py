"""What does not go together is refused by reader, schema and verbs, all from one table."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import StudyError, UserError
from dbdyno.study import excludes, parse_study, study_schema
from dbdyno.study.excludes import EXCLUDES, OF_STUDIES
from tests.study.catalogue import CATALOGUE
from tests.study.reading import toml

EXAMPLES: dict[str, tuple[tuple[str | int, ...], Any]] = {
    excludes.RUNNING: (("engine", "name"), "mariadb://me@there/base"),
    excludes.HOST_LEVELS: (("factors", "storage.a"), [1, 2]),
    excludes.BUILDS: (("settings", "source", "origin"), "debian"),
    "baselines > 1": (("baselines",), 2),
    "factors.engine": (("factors", "engine"), ["mariadb@10.11", "mariadb@11.8"]),
    excludes.DURABLE: (("goal", "guards"), ["durable"]),
    "aa": (("aa",), True),
}
"""Where a study has what a name means, where the name itself does not say it."""
NAMES = sorted({name for pair in OF_STUDIES for name in pair} - {"counted work"})


def put(document: dict[str, Any], name: str) -> None:
    """Writes what a name means into a document."""
    place, value = EXAMPLES.get(name, ((), None))
    if not place:
        key, _, equal = name.partition(" = ")
        first, _, rest = key.strip("[]").partition(".")
        if rest and first not in excludes.SECTIONS:
            place, value = ("factors", first, rest), [equal or "a", "b"]
        else:
            place = (first, rest) if rest else (first,)
            value = {} if key.startswith("[") else equal or 3
    inside: Any = document
    for part in place[:-1]:
        if not isinstance(inside.get(part), dict):
            inside[part] = {}
        inside = inside[part]
    if value != {} or not isinstance(inside.get(place[-1]), dict):
        inside[place[-1]] = value


def with_all(*names: str) -> dict[str, Any]:
    document: dict[str, Any] = {"engine": "mariadb", "workload": {"name": "tpcb"}}
    for name in names:
        put(document, name)
    return document


@pytest.mark.parametrize("pair", OF_STUDIES, ids=" and ".join)
def test_a_study_that_has_both_is_refused_by_reader_and_schema(pair: tuple[str, str]) -> None:
    document = with_all(*pair)
    told = excludes.clash(*pair)
    with pytest.raises(StudyError) as wrong:
        parse_study(toml(document), CATALOGUE)
    end = told.message if pair[1] not in excludes.GROUPS else told.message.partition(" and ")[2]
    found = [one for one in wrong.value.mistakes if one.message.endswith(end)]
    assert [(bool(one.line), one.hint) for one in found] == [(True, EXCLUDES[pair].remedy)]
    refused = jsonschema.Draft202012Validator(study_schema(CATALOGUE)).iter_errors(document)
    assert told.message in {one.schema.get("description") for one in refused if one.validator == "not"}


RULES = jsonschema.Draft202012Validator(excludes.rules())


@given(st.lists(st.sampled_from(NAMES), max_size=8, unique=True))
def test_reader_and_schema_refuse_the_same_pairs(names: list[str]) -> None:
    document = with_all(*names)
    by_reader = sorted(both.message.partition(" and ")[2] for _, both in excludes.clashes(document))
    by_schema = (one.schema["description"].partition(" and ")[2] for one in RULES.iter_errors(document))
    assert by_reader == sorted(by_schema)


@pytest.mark.parametrize(
    "document",
    [
        {"aa": False, "design": "search"},
        {"baselines": 1, "goal": {"interval": "signed-rank"}},
        {"driver": {}, "goal": {"guards": ["invariants"]}},
        {"factors": {"platform.architecture": ["a", "b"], "config.a": [1, 2], "build": {"debug": [1, 2]}}},
        {"restarts": {"kills": 0}, "settings": {"machine": {"reset": "full"}}},
    ],
    ids=str,
)
def test_what_asks_for_nothing_excludes_nothing(document: dict[str, Any]) -> None:
    assert list(excludes.clashes(document)) == []
    RULES.validate(document)


def test_levels_of_a_listed_variant_count() -> None:
    document = {
        "driver": {},
        "variants": [{"levels": {"config.a": 1}}, {"levels": {"cluster": {"nodes": 3}}}],
    }
    ((place, both),) = excludes.clashes(document)
    assert place == ("driver",)
    assert both.message.startswith("[driver] and `cluster.nodes` exclude each other: ")
    assert not RULES.is_valid(document)


@pytest.mark.parametrize("pair", [pair for pair in EXCLUDES if pair not in OF_STUDIES], ids=" and ".join)
def test_options_that_exclude_each_other_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(UserError) as refused:
        excludes.require(dict.fromkeys(pair, True))
    assert (refused.value.message, refused.value.hint) == (
        excludes.clash(*pair).message,
        EXCLUDES[pair].remedy,
    )


def test_an_option_that_was_not_given_excludes_nothing() -> None:
    excludes.require({"--url": None, "--from": "my.cnf"}, suggest=False, budget=1.0, add_blocks=3)
    with pytest.raises(UserError, match="--add-blocks and `design = search` exclude each other"):
        excludes.require({excludes.SEARCH: True}, add_blocks=3)
