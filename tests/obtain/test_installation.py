"""Which installation a study means."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import EngineMissing
from dbdyno.obtain.installation import Installation, covers, first_covering
from dbdyno.study.nouns import Reference


def installation(version: str) -> Installation:
    return Installation("x", version, "tests", Path("/"), ("x",), "0")


@pytest.mark.parametrize(
    ("wanted", "version", "covered"),
    [("", "1.2", True), ("11.8", "11.8.6", True), ("11", "11.8.6", True), ("11.8", "11.80", False)],
)
def test_a_version_covers_those_below_it(wanted: str, version: str, covered: bool) -> None:
    assert covers(wanted, version) is covered


def test_the_first_that_covers_is_taken() -> None:
    here = [installation("2.1"), installation("1.9"), installation("1.8")]
    assert first_covering(here, Reference("x", "1"), ()).version == "1.9"
    assert first_covering(here, Reference("x"), ()).version == "2.1"


@pytest.mark.parametrize(("version", "wanted"), [("3", "x@3"), ("", "x")])
def test_what_is_not_here_is_missing_with_the_command_that_obtains_it(version: str, wanted: str) -> None:
    with pytest.raises(EngineMissing, match=f"{wanted} is not on this machine") as missing:
        first_covering([], Reference("x", version), ("3",))
    assert missing.value.hint == f"`dyno engines fetch {wanted}` obtains it"


def test_an_installation_is_offered_as_present() -> None:
    offer = installation("1.9").offer
    assert (offer.engine, offer.version, offer.source, offer.present) == ("x", "1.9", "tests", True)
