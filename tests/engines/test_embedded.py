"""What embedded engines share."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.embedded import EmbeddedServer, refuse_unknown, require_database
from dbdyno.errors import ServerFailed, UserError


def test_an_engine_without_a_log_says_nothing() -> None:
    server = EmbeddedServer("sqlite:///x", "3", {}, ())
    assert (server.log(), server.log_problems(), server.process_ids) == ("", [], ())
    assert server.alive()
    server.stop()
    assert not server.alive()


def test_the_problems_are_those_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("wrong\n")
    server = EmbeddedServer("x", "5", {}, (), log_path=tmp_path / "log", problems=str.splitlines)
    assert server.log_problems() == ["wrong"]


def test_a_database_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no one\.db"):
        require_database(tmp_path / "one.db")
    (tmp_path / "one.db").touch()
    require_database(tmp_path / "one.db")


def test_a_setting_that_would_be_passed_over_is_refused_with_the_nearest() -> None:
    known = frozenset({"page_size"})
    refuse_unknown(["page_size"], known, "X has no setting", "see X")
    with pytest.raises(ServerFailed, match="X has no setting `pagesize`") as refused:
        refuse_unknown(["pagesize"], known, "X has no setting", "see X")
    assert refused.value.hint == "did you mean `page_size`?"
    with pytest.raises(ServerFailed) as refused:
        refuse_unknown(["zzz"], known, "X has no setting", "see X")
    assert refused.value.hint == "see X"
