"""What Firebird writes into its log."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dbdyno.engines.firebird import server
from dbdyno.engines.firebird.server import ICU, LIBRARIES, TOMMATH, libraries_of, missing, problems
from dbdyno.errors import EngineMissing
from dbdyno.host import fingerprint
from dbdyno.study.nouns import Reference
from tests.needs import on_machine, skip_blocked

LOG = """\

host	Sat Jan  1 12:00:00 2026
	Database: /data/dyno.fdb
	internal Firebird consistency check (wrong record length (183), file: vio.cpp line: 1885)


host	Sat Jan  1 12:00:05 2026
	Sweep is started by SYSDBA
"""


def test_the_entries_of_the_log_that_matter_are_found() -> None:
    found = problems(LOG)
    assert len(found) == 1
    assert found[0].startswith("Database: /data/dyno.fdb internal Firebird consistency check")
    assert problems("") == []


REFERENCE = Reference("firebird")


@pytest.fixture
def bare(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without any library that Firebird could use, and an empty cache."""
    monkeypatch.setattr(fingerprint, "FOLDERS", ())
    return homes


def test_a_host_that_lacks_them_is_told_which_and_how_to_get_them(bare: Path) -> None:
    assert missing("5.0.4") == LIBRARIES
    with pytest.raises(EngineMissing, match="needs libtommath and libicu, which this machine lacks") as told:
        server.locate(REFERENCE)
    assert "dyno engines fetch firebird" in told.value.hint
    assert told.value.hint.endswith("`apt-get install libtommath1 libicu72`")


def test_what_the_host_has_is_not_linked(homes: Path) -> None:
    for each in LIBRARIES:
        if fingerprint.found(each.on_host):
            assert each.here and each.linked == {}


def test_copies_that_were_fetched_are_found_by_the_engine(bare: Path, tmp_path: Path) -> None:
    told: list[str] = []
    installation = server.fetch("", "", told.append)
    assert [each.copy is not None for each in (TOMMATH, ICU)] == [True, True] and missing("5.0.4") == ()
    assert sum(line.startswith("fetching") for line in told) == 2
    environment = server.lay_out(installation, tmp_path / "root", {})
    folder = tmp_path / "root/lib"
    names = [name for each in LIBRARIES for name in each.files]
    assert all((folder / name).is_file() for name in names)
    # The library tells its version, and Firebird holds the name that it found against that.
    assert (folder / "libicuuc.so.72.1").samefile(folder / "libicuuc.so.72")
    assert environment["LD_LIBRARY_PATH"].split(os.pathsep)[0] == str(folder)
    again: list[str] = []
    server.fetch("", "", again.append)
    assert again == []


def test_firebird_4_finds_tommath_by_the_older_name(homes: Path) -> None:
    [tommath, icu] = libraries_of("4.0.7")
    assert icu is ICU and libraries_of("5.0.4") == LIBRARIES
    if tommath.copy is not None and not fingerprint.found(tommath.on_host):
        assert [*tommath.linked] == ["libtommath.so.0"]
    assert tommath.recipe == TOMMATH.recipe


def test_the_engine_knows_its_own_names_in_a_turkish_locale(
    homes_with_engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the small letter of I has no dot."""
    locale = tmp_path / "tr_TR.UTF-8"
    made = ["localedef", "-i", "tr_TR", "-f", "UTF-8", str(locale)]
    if on_machine(made[0]) is None or subprocess.run(made, capture_output=True).returncode:
        skip_blocked("no locale tr_TR can be made", "apt install locales")
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    monkeypatch.setenv("LANG", locale.name)
    server.initialise(server.locate(REFERENCE), tmp_path / "data", {})
    assert (tmp_path / "data" / server.DATABASE).exists()
