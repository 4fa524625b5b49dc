"""Packages of other architectures: which suite holds them, and how they lie beside an engine's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import EngineMissing, UserError
from dbdyno.obtain import debian
from dbdyno.obtain.architecture import ARCHITECTURES, of_this_machine
from dbdyno.obtain.platforms import Platforms
from tests.needs import on_machine
from tests.obtain import signed_repository

RECIPE = debian.Recipe(
    engine="toy",
    packages=("toy-server",),
    server="toy-server",
    binary="usr/sbin/toyd",
    suites={"3.1": signed_repository.SUITE},
)
TOYS = Platforms(
    engine="toy",
    title="Toy",
    version=r"toyd (\S+)",
    recipes=(RECIPE,),
    unpacked=lambda recipe, copy: copy.installation(str(copy.prefix / recipe.binary)),
)
FOREIGN = next(one.name for one in ARCHITECTURES.values() if one != of_this_machine())


@pytest.mark.skipif(
    not all(on_machine(program) for program in ("apt-get", "dpkg", "gpg")),
    reason="needs apt, dpkg and gpg, which this machine lacks",
)
def test_packages_of_another_architecture_are_no_engine_of_this_machine(tmp_path: Path, homes: Path) -> None:
    repository = signed_repository.make(
        tmp_path / "repository",
        package="toy-server",
        version="1:3.1.4-2",
        files={"usr/sbin/toyd": b"toyd", "usr/lib/ld64.so.1": b"no program"},
        architecture=FOREIGN,
    )
    recipe = RECIPE.of(FOREIGN)
    copy = debian.fetch(recipe, "3.1", mirror=repository.mirror, keyring=repository.keyring)
    assert copy.packages == {"toy-server": "1:3.1.4-2"}
    assert (copy.architecture, copy.prefix.name.partition("-3.1.4")[0]) == (FOREIGN, f"{FOREIGN}-of-toy")
    assert debian.fetched("toy") == []
    found = TOYS.locate("3.1.9", FOREIGN)
    assert (found.engine, found.version, found.architecture) == ("toy", "3.1.4", FOREIGN)
    assert found.facts == {"packages": "toy-server 1:3.1.4-2"}
    assert [offer.engine for offer in TOYS.offers()] == [f"toy of {FOREIGN}"]


def test_what_is_not_here_is_told_with_the_command_that_obtains_it(homes: Path) -> None:
    with pytest.raises(EngineMissing, match=f"toy@3.1 of {FOREIGN} is not on this machine") as missing:
        TOYS.locate("3.1.4", FOREIGN)
    assert missing.value.hint == f"`dyno engines fetch toy@3.1 --platform {FOREIGN}` obtains it"


def test_a_version_that_no_suite_holds_is_the_users_mistake(homes: Path) -> None:
    with pytest.raises(UserError, match="toy@2 is in no Debian suite of other architectures") as refused:
        TOYS.locate("2", FOREIGN)
    assert refused.value.hint == "there are: toy@3.1"
