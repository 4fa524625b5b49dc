"""Which version takes over data of which."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.upgrade import is_older, not_taken_over, step_before
from dbdyno.obtain.installation import Installation


def _installation(engine: str, version: str) -> Installation:
    return Installation(engine, version, "a test", Path("/nowhere"), ("/nowhere/server",), version)


@pytest.mark.parametrize(
    ("engine", "version", "other", "older"),
    [
        ("mariadb", "10.11.19", "11.8.9+ds", True),
        ("mariadb", "11.8.6", "11.8.9+ds", False),
        ("mysql", "8.4.1", "9.7.4", True),
        ("postgresql", "15.18", "17.12", True),
        ("postgresql", "17.2", "17.12", False),
        ("sqlite", "3.40.1", "3.50.0", False),
        ("firebird", "3.0.14", "5.0.4", True),
        ("firebird", "5.0.3", "5.0.4", False),
    ],
)
def test_a_version_of_an_earlier_series_is_older(engine: str, version: str, other: str, older: bool) -> None:
    assert is_older(registry.engine(engine), version, other) is older
    assert not is_older(registry.engine(engine), other, version)


@pytest.mark.parametrize(
    ("engine", "versions", "before"),
    [
        ("mysql", ("8.0.40", "8.4.3", "9.7.4"), (None, "8.0.40", "8.4.3")),
        ("postgresql", ("13.23", "18.4", "15.18", "15.2"), (None, "15.18", "13.23", "13.23")),
        ("postgresql", ("15.2", "15.18"), (None, "15.2")),
        ("sqlite", ("3.40.1", "3.46.1", "3.53.4"), (None, "3.40.1", "3.40.1")),
    ],
)
def test_data_go_through_each_series_that_a_study_names(
    engine: str, versions: tuple[str, ...], before: tuple[str | None, ...]
) -> None:
    first, *later = each = [_installation(engine, version) for version in versions]
    found = [step_before(registry.engine(engine), one, first, each).version for one in later]
    assert found == [*before[1:]]


def test_another_product_takes_nothing_over() -> None:
    mariadb, postgresql = registry.engine("mariadb"), registry.engine("postgresql")
    old, new = _installation("mariadb", "11.8.9"), _installation("postgresql", "17.12")
    refused = not_taken_over(mariadb, old, postgresql, new)
    assert refused is not None and refused.factor == "engine"
    assert refused.message == "PostgreSQL cannot take over data of MariaDB"


def test_the_version_that_made_the_data_needs_no_tool() -> None:
    postgresql, own = registry.engine("postgresql"), _installation("postgresql", "17.12")
    assert not_taken_over(postgresql, own, postgresql, own) is None


def test_a_server_without_the_tools_beside_it_is_told_with_their_names() -> None:
    postgresql = registry.engine("postgresql")
    # No machine has clients of versions between these, so a dump cannot take their place.
    old, new = _installation("postgresql", "1.18"), _installation("postgresql", "2.12")
    refused = not_taken_over(postgresql, old, postgresql, new)
    assert refused is not None
    assert "needs pg_ctl, pg_controldata, pg_resetwal of 1.18" in refused.message
    assert "needs pg_dumpall, pg_dump, psql of one version from 1 to 2" in refused.message
    assert refused.hint
