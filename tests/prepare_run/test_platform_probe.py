"""Engines of a big-endian machine under an emulator: started, loaded, killed and stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.host.cache import silently
from dbdyno.host.journal import open_journal
from dbdyno.obtain.architecture import architecture
from dbdyno.prepare_run.platform_probe import engine_findings, probe_platform

FOREIGN = "s390x"


def fetched(name: str) -> None:
    """Skips where the emulator or the packages cannot be had."""
    platforms = registry.platforms(registry.engine(name))
    try:
        try:
            platforms.locate("", FOREIGN)
        except DynoError:
            platforms.fetch("", FOREIGN, "", silently)
    except DynoError as missing:
        pytest.skip(f"{name} of another architecture cannot be had here: {missing.message}")


@pytest.mark.engine
@pytest.mark.parametrize("name", ["postgresql", "mariadb", "sqlite"])
def test_an_engine_of_another_machine_keeps_what_it_acknowledged(homes_with_engines: Path, name: str) -> None:
    fetched(name)
    with open_journal() as journal:
        found = {
            one.name: one
            for one in engine_findings(registry.engine(name), architecture(FOREIGN), journal, silently)
        }
    assert found["byte order"].answer == "big"
    assert (found["starts"].answer, found["starts"].detail) == ("yes", f"{FOREIGN}, big-endian")
    for act in ("kill", "clean stop"):
        after = found[f"after a {act}"]
        assert after.answer == "yes" and "the invariants hold" in after.detail
        assert not after.detail.startswith("0 of 0")


def test_an_engine_that_is_not_here_is_told_with_the_command(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_journal() as journal:
        [only] = engine_findings(registry.engine("mariadb"), architecture(FOREIGN), journal, silently)
    assert (only.name, only.answer) == ("here", "no")
    assert only.remedy == f"`dyno engines fetch mariadb@10.11 --platform {FOREIGN}` obtains it"


def test_an_unknown_architecture_and_an_unreadable_program_are_the_users_mistake(
    homes: Path, tmp_path: Path
) -> None:
    with open_journal() as journal:
        with pytest.raises(UserError, match="'vax' is no architecture"):
            list(probe_platform("vax", (), journal, silently))
        with pytest.raises(UserError, match=r"nowhere\.c cannot be read"):
            list(probe_platform("amd64", (tmp_path / "nowhere.c",), journal, silently))
