"""Pristine data from what a study brings: known by contents, shared by workloads, looked at once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dbdyno.errors import DriverFailed, UserError
from dbdyno.host import cache
from dbdyno.prepare_run.study_here import data_of
from dbdyno.study.nouns import GivenData
from dbdyno.trial import given
from dbdyno.user_data.dump import Dump, dump_at
from tests.given_data import SCRIPT, study_with, tried_with

pytestmark = pytest.mark.usefixtures("homes")
DUMP = """\
CREATE TABLE articles (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO articles VALUES (1, 'a'), (2, 'b');
"""


def _names(folder: Path, data: GivenData, script: str = SCRIPT) -> list[object]:
    """What the articles are called in a trial of a study."""
    with tried_with(study_with("sqlite", data, folder, script)) as tried:
        return [row[0] for row in tried.ask("SELECT name FROM articles ORDER BY id")]


def _kept() -> list[str]:
    return cache.shelf("pristine").names()


def test_a_dump_that_changed_is_loaded_again_and_one_that_moved_is_not(tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(DUMP)
    data = GivenData(dump=("dump.sql",))
    assert _names(tmp_path, data) == ["a", "b"]
    (tmp_path / "other").mkdir()
    (tmp_path / "dump.sql").rename(tmp_path / "other/moved")
    assert _names(tmp_path / "other", GivenData(dump=("moved",))) == ["a", "b"]
    assert len(_kept()) == 1
    (tmp_path / "dump.sql").write_text(DUMP.replace("'a'", "'c'"))
    assert _names(tmp_path, data) == ["c", "b"]
    assert len(_kept()) == 2


def test_another_workload_shares_the_data_and_is_asked_of_its_own_invariants(tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(DUMP)
    data = GivenData(dump=("dump.sql",))
    _names(tmp_path, data)
    [pristine] = _kept()
    (tmp_path / "second").mkdir()
    (tmp_path / "second/dump.sql").write_text(DUMP)
    _names(tmp_path / "second", data, SCRIPT.replace("two_articles", "a_pair"))
    assert _kept() == [pristine]
    assert len(list((cache.shelf("pristine").folder / pristine).glob("checks-*.json"))) == 2
    [kept] = cache.shelf("pristine").kept()
    assert kept.what.startswith("dump dump.sql, sha256 ")


def test_dumps_are_loaded_in_their_order_and_the_setup_follows_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text(DUMP)
    (tmp_path / "rows.sql").write_text("UPDATE articles SET name = 'z' WHERE id = 2;\n")
    script = f"""{SCRIPT}
[setup]
statements = ["INSERT INTO articles VALUES (3, 'by setup')"]
"""
    both = ("schema.sql", "rows.sql")
    assert _names(tmp_path, GivenData(dump=both), script) == ["a", "z"]
    assert _names(tmp_path, GivenData(dump=both, setup=True), script) == ["a", "z", "by setup"]


def test_data_without_the_tables_of_the_workload_end_before_the_first_load(tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(DUMP.replace("articles", "others"))
    with pytest.raises(UserError, match=r"do not hold what the workload script needs: .*articles"):
        _names(tmp_path, GivenData(dump=("dump.sql",)))
    (tmp_path / "dump.sql").write_text("SELECT 1;\n")
    with pytest.raises(UserError, match=r"the dump dump\.sql, sha256 \w+ holds no tables"):
        _names(tmp_path, GivenData(dump=("dump.sql",)))


def test_a_server_that_is_not_reached_is_not_the_datas_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_given: object, **_options: object) -> None:
        raise DriverFailed("nobody listens there", kind="connect")

    monkeypatch.setattr(given, "clone_tree", lambda *_given: None)
    monkeypatch.setattr(given, "_running", lost)
    bench = SimpleNamespace(setup=SimpleNamespace(scratch=tmp_path))
    with pytest.raises(DriverFailed, match="nobody listens there"):
        given._checked(cast(given.BroughtData, bench), tmp_path)


def test_a_run_goes_on_with_the_data_that_it_began_with(tmp_path: Path) -> None:
    place = tmp_path / "dump.sql"
    place.write_text(DUMP)
    study = study_with("sqlite", GivenData(dump=("dump.sql",)), tmp_path)
    began = data_of(study, lambda _: None)
    [kept] = began
    assert (kept.kind, kept.path, kept.size_bytes) == ("dump", str(place), len(DUMP))
    with tried_with(study, began):
        pass
    place.unlink()
    with tried_with(study, began) as tried:
        assert tried.ask("SELECT COUNT(*) FROM articles") == [[2]]
    place.write_text(DUMP.replace("'a'", "'c'"))
    with (
        pytest.raises(UserError, match=r"dump\.sql has changed since the run began"),
        tried_with(study, began),
    ):
        pass


def test_a_dump_that_is_written_while_it_is_loaded_is_not_kept_under_its_old_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "dump.sql"
    dump.write_text(DUMP)

    def exchanged(path: Path) -> Dump:
        dump.write_text(DUMP.replace("'a'", "'c'"))
        return dump_at(path)

    monkeypatch.setattr(given, "dump_at", exchanged)
    with pytest.raises(UserError, match=r"dump\.sql changed while it was read"):
        _names(tmp_path, GivenData(dump=("dump.sql",)))
    assert _kept() == []
