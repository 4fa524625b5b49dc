"""Settings by their names in other engines."""

from __future__ import annotations

import pytest

from dbdyno.engines import registry
from dbdyno.engines.counterparts import COUNTERPARTS, counterpart
from dbdyno.errors import DynoError
from dbdyno.study.reference import Reference


@pytest.mark.parametrize(
    ("name", "engine", "found"),
    [
        ("shared_buffers", "mariadb", ("postgresql", "innodb_buffer_pool_size")),
        ("INNODB_BUFFER_POOL_SIZE", "postgresql", ("mariadb", "shared_buffers")),
        ("defaultdbcachepages", "sqlite", ("firebird", "cache_size")),
        ("work_mem", "sqlite", ("", "")),
        ("no_such_thing", "mariadb", ("", "")),
    ],
)
def test_a_setting_is_found_by_its_name_in_another_engine(
    name: str, engine: str, found: tuple[str, str]
) -> None:
    assert counterpart(name, engine) == found


@pytest.mark.parametrize("engine", sorted(registry.ENGINES))
def test_every_counterpart_is_a_setting_of_its_engine(engine: str) -> None:
    told = registry.engine(engine)
    try:
        known = told.settings.names(told.obtaining.locate(Reference(engine=engine)))
    except DynoError as missing:
        pytest.skip(f"{engine} is not here: {missing}")
    own = {settings[engine] for settings in COUNTERPARTS if engine in settings}
    assert own and own <= known
