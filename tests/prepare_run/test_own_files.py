"""A study of two configuration files varies all that differs, and its counts add up to the lines of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.analyse.found import DefaultChanged
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.prepare_run.own_files import (
    NEW_ALONE,
    OLD_ALONE,
    OldDefaults,
    _add,
    left_out_lines,
    old_defaults,
)
from dbdyno.prepare_run.study_here import located
from dbdyno.records.record import Record
from dbdyno.study import Factor, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import Reference
from tests.analyse.factory import records_of
from tests.prepare_run.own_files_cases import POOLS, asked_of, counted, drawn
from tests.trials import study_of


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("engine", POOLS)
def test_all_that_differs_is_varied_or_named(
    homes_with_engines: Path, tmp_path: Path, engine: str, seed: int
) -> None:
    pair = drawn(engine, seed)
    # An earlier test had other folders.
    located.cache_clear()
    try:
        asked = asked_of(engine, pair, tmp_path)
    except UserError:
        raise
    except DynoError as missing:
        pytest.skip(f"{engine} is not here: {missing.message}")
    names = [name.removeprefix("config.") for name in (one.name for one in asked.question.factors)]
    assert pair.differing <= {f"config.{name}" for name in names}
    lengths = {name: len(text.splitlines()) for name, text in zip("ab", pair.texts, strict=True)}
    assert counted(asked.told) == {f"{name}.cnf": (length, length) for name, length in lengths.items()}
    told = "\n".join(asked.told)
    for one in asked.question.factors:
        assert f"varied: {one.name.removeprefix('config.')}: " in told and one.levels[0] != one.levels[1]


OLD = {"cache_size": "-2000", "synchronous": "FULL", "secure": "yes", "gone": "1", "fixed": "1"}
NEW = {
    "cache_size": "-4000",
    "synchronous": "NORMAL",
    "secure": "no",
    "fresh": "1",
    "fixed": "2",
}


@pytest.fixture
def study(homes: Path) -> Study:
    """Of two files of one library, which are two engines."""
    other = homes / "libsqlite3.so.0"
    library = registry.engine("sqlite").obtaining.locate(Reference("sqlite")).library
    assert library is not None
    other.write_bytes(library.read_bytes() + b"\0")
    levels = ("sqlite", f"sqlite:{other}")
    return study_of("sqlite", {}).but(
        factors=(Factor(name=ENGINE_FACTOR, levels=levels),), settings={"config.fixed": 1}
    )


def _records(study: Study) -> list[Record]:
    first = study.baseline[ENGINE_FACTOR]
    return [one.but(defaults=OLD if one.levels[ENGINE_FACTOR] == first else NEW) for one in records_of(study)]


def test_what_both_versions_take_is_set_and_the_rest_is_named_with_its_reason(study: Study) -> None:
    slow, fast = variants_of(study)
    told: list[str] = []
    found = old_defaults(study, _records(study), slow, fast, told.append)
    assert found.old == {"config.cache_size": "-2000", "config.synchronous": "FULL"}
    assert found.new == {"config.cache_size": "-4000", "config.synchronous": "NORMAL"}
    assert found.left_out["fresh"] == NEW_ALONE and found.left_out["gone"] == OLD_ALONE
    assert "has no setting 'secure'" in found.left_out["secure"]
    assert "fixed" not in found.left_out, "the study sets it"
    assert f"left out, because {OLD_ALONE}: gone" in left_out_lines(found)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("", "STRICT_TRANS_TABLES", "", "STRICT_TRANS_TABLES"),
        ("UTF8_IS_UTF8MB3", "", "UTF8_IS_UTF8MB3", ""),
        ("a=on,b=on", "a=off,c=on", "a=on", "a=off"),
        ("a=on,b=on", "a=on,c=on", None, None),
    ],
)
def test_a_default_may_be_empty_and_of_two_lists_what_both_have_counts(
    before: str, after: str, old: str | None, new: str | None
) -> None:
    found = OldDefaults({}, {}, {})
    changed = DefaultChanged(name="sql_mode", before=before, after=after)
    _add(found, changed, registry.engine("mariadb"))
    assert (found.old.get("config.sql_mode"), found.new.get("config.sql_mode")) == (old, new)
    assert ("sql_mode" in found.left_out) is (old is None)


def test_a_run_without_the_defaults_of_both_is_refused(study: Study) -> None:
    slow, fast = variants_of(study)
    with pytest.raises(UserError, match="does not hold the defaults of both versions"):
        old_defaults(study, records_of(study), slow, fast, print)


def test_variants_that_differ_in_more_than_the_version_are_refused(study: Study) -> None:
    clients = Factor(name="workload.clients", levels=(1, 2))
    both = study.but(factors=(*study.factors, clients))
    slow, *_, last = variants_of(both)
    with pytest.raises(UserError, match="do not differ in the version alone"):
        old_defaults(both, records_of(both), slow, last, print)
