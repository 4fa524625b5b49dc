"""Two spellings of one value are the same; two values are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.engines import registry
from dbdyno.engines.values import (
    COUNTERPARTS,
    as_text,
    cache_mib,
    counterpart,
    quantity,
    respelled,
    same_value,
)
from dbdyno.errors import DynoError
from dbdyno.frozen import Level
from dbdyno.study.nouns import Reference


@pytest.mark.parametrize(
    ("requested", "effective"),
    [
        ("1G", "1073741824"),
        ("128MB", "131072kB"),
        (True, "ON"),
        (True, "1"),
        (False, "off"),
        ("on", "true"),
        (2, "2.000000"),
        (0.5, "0.500000"),
        ("O_DIRECT", "o_direct"),
        ("STRICT_TRANS_TABLES,NO_ZERO_DATE", "no_zero_date,strict_trans_tables"),
        ("index_merge=off", "index_merge=off,mrr=off"),
        ("/var/lib/x/", "/var/lib/x"),
        ("5min", "300s"),
        ("200ms", "0.2s"),
        (-1, "-1"),
        ("", ""),
    ],
)
def test_the_same_value_in_two_spellings(requested: Level, effective: str) -> None:
    assert same_value(requested, effective)


@pytest.mark.parametrize(
    ("requested", "effective"),
    [
        ("1G", "1000000000"),
        (True, "OFF"),
        (False, "1"),
        (2, "20"),
        ("10s", "10MB"),
        ("index_merge=on", "index_merge=off,mrr=on"),
        ("a,b", "a,b,c"),
        ("/var/lib/x", "/var/lib/y"),
        ("", "0"),
        (0, ""),
        ("fsync", "O_DIRECT"),
    ],
)
def test_two_values(requested: Level, effective: str) -> None:
    assert not same_value(requested, effective)


@given(st.integers(1, 2**20), st.sampled_from([("K", 10), ("M", 20), ("G", 30), ("kB", 10), ("MB", 20)]))
def test_a_size_equals_its_bytes_and_no_others(count: int, unit: tuple[str, int]) -> None:
    name, shift = unit
    assert same_value(f"{count}{name}", str(count << shift))
    assert not same_value(f"{count}{name}", str((count << shift) + 1))


@given(st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(max_size=30)))
def test_every_level_equals_itself_as_a_server_would_read_it(level: Level) -> None:
    assert same_value(level, as_text(level))


@given(st.text(max_size=40))
def test_no_text_is_too_odd_to_be_looked_at(text: str) -> None:
    found = quantity(text)
    assert found is None or found[1] in ("", "bytes", "ms")


@pytest.mark.parametrize(
    ("text", "units", "spellings"),
    [
        ("128 MB", ("K", "M", "G"), ["128M"]),
        ("128M", ("kB", "MB", "GB"), ["128MB"]),
        ("1.5G", ("K", "M", "G"), ["1536M"]),
        ("5m", ("ms", "s", "min"), ["5ms", "5min"]),
        ("many", ("K", "M"), []),
        ("128", ("K", "M"), []),
        ("1.5h", ("ms", "s"), []),
    ],
)
def test_other_spellings_of_a_number_with_a_unit(
    text: str, units: tuple[str, ...], spellings: list[str]
) -> None:
    assert respelled(text, units) == spellings


@given(st.integers(1, 10**6), st.sampled_from(["k", "KB", "Mb", "GiB", "t"]))
def test_a_respelled_size_means_the_same(number: int, unit: str) -> None:
    spellings = respelled(f"{number} {unit}", ("K", "M", "G", "T"))
    assert spellings
    for spelling in spellings:
        assert quantity(spelling) == quantity(f"{number}{unit}")


@pytest.mark.parametrize(("memory_gib", "mib"), [(0.1, 256), (2, 512), (15.6, 2048), (1000, 8192)])
def test_a_cache_worth_a_try_is_about_a_quarter_of_the_memory(memory_gib: float, mib: int) -> None:
    assert cache_mib(int(memory_gib * 2**30)) == mib


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
