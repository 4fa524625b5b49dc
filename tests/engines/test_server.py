"""What servers share: their data directories, and the URL that leads to them."""

from __future__ import annotations

import base64
import hmac
import re
import socket
from pathlib import Path

import pytest

from dbdyno.engines.mariadb import server as mariadb
from dbdyno.engines.postgresql import server as postgresql
from dbdyno.engines.server import (
    Certificate,
    Listening,
    doubtful_lines,
    free_port,
    hint_in,
    listening_at,
    make_data,
    reason_in,
    require_data,
    tail,
    unknown_setting,
    untold,
    url_of,
)
from dbdyno.errors import ServerFailed, UserError
from tests.fakes import INSTALLATION


def test_a_data_directory_that_cannot_be_made_is_not_left_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    command = ["sh", "-c", "cat >&2; exit 3"]
    words = b"a note\n[ERROR] no room\n"
    with pytest.raises(ServerFailed) as failed:
        make_data("Toy", INSTALLATION, command, data, lambda log: log.splitlines()[1:], str.upper, words)
    assert failed.value.message == "Toy could not make its data directory: [ERROR] no room"
    assert (failed.value.hint, failed.value.log) == ("A NOTE\n[ERROR] NO ROOM\n", words.decode())
    assert not data.exists()


def test_one_that_is_made_stays(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(UserError, match="is not a data directory"):
        require_data(data)
    make_data("Toy", INSTALLATION, ["mkdir", str(data / "database")], data, lambda log: [], str)
    require_data(data)


def test_a_socket_may_stand_in_any_folder() -> None:
    assert url_of("mysql", Path("/run/a b/s.sock")) == "mysql://dyno@localhost/dyno?socket=/run/a%20b/s.sock"


def test_the_end_of_a_log_begins_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail(log) == ""
    log.write_text("first line\nsecond line\nthird\n")
    assert tail(log) == "first line\nsecond line\nthird\n"
    assert tail(log, 12) == "third\n"


def test_a_line_that_is_known_to_be_harmless_does_not_alarm() -> None:
    log = "ready\n  ERROR: disk\nERROR: known\n"
    assert doubtful_lines(log, re.compile("ERROR"), re.compile("known")) == ["ERROR: disk"]


def test_the_first_pattern_that_is_found_gives_the_hint() -> None:
    hints = (("full", "make room"), ("disk", "look at the disk"))
    assert hint_in("the disk is full", hints) == "make room"
    assert hint_in("nothing known", hints) == "look at the end of its log"


def test_the_first_error_says_why_a_server_ended() -> None:
    warning, error = "[Warning] No argument for --log-bin", "[ERROR] InnoDB: corrupted page 67"
    assert reason_in([warning, error, "[ERROR] Aborting"]) == error
    assert reason_in([warning]) == warning
    assert reason_in(["WARNING:  out of memory", "FATAL:  no start"]) == "FATAL:  no start"
    assert reason_in([]) == ""


def test_the_nearest_setting_is_named() -> None:
    assert unknown_setting("X", "bufer", ["buffer", "port"]) == (
        "this X has no setting `bufer`; did you mean `buffer`?"
    )
    assert unknown_setting("X", "zzz", ["buffer"]) == "this X has no setting `zzz`"


def test_a_line_of_the_log_is_told_once_and_each_time_that_it_comes_again() -> None:
    assert untold(["a", "b"], []) == ["a", "b"]
    assert untold(["a", "b", "a"], ["a", "b"]) == ["a"]
    assert untold(["a", "c", "b", "d"], ["a", "b"]) == ["c", "d"]
    # Of a long log only the end is read.
    assert untold(["b", "c"], ["a", "b"]) == ["c"]
    assert untold(["a", "b"], ["a", "b"]) == []


LOCAL = "postgresql://dyno@localhost/a%20b?socket=/run/x/.s.PGSQL.5432"
FREE = "198.51.100.7"
"""Of a network that only documentation has (RFC 5737)."""


def test_what_postgresql_keeps_of_a_password_proves_it() -> None:
    # The example of RFC 7677, section 3.
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    kept = postgresql.verifier("pencil", salt)
    assert kept.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    messages = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO",
        f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        f"c=biws,r={nonce}",
    )
    server_key = base64.b64decode(kept.rpartition(":")[2])
    signature = hmac.digest(server_key, ",".join(messages).encode(), "sha256")
    assert base64.b64encode(signature).decode() == "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_what_mariadb_keeps_of_a_password_is_its_own() -> None:
    # As its documentation of PASSWORD() has it.
    assert mariadb.verifier("mariadb") == "*54958E764CE10E50764C2EECBB71D01F08549980"


def test_no_statement_holds_the_password_and_the_load_may_enter_one_database() -> None:
    listening = Listening("10.0.0.1", 4000, "secret-word", None)
    for engine, version in ((postgresql, "15.3"), (mariadb, "11.8.6")):
        statements = engine.account(listening, version, "dy`no")
        assert statements and not any("secret-word" in one for one in statements)
    assert mariadb.account(listening, "11.8.6", "dy`no")[-1].startswith("GRANT ALL PRIVILEGES ON `dy``no`.* ")


def test_an_old_postgresql_has_no_account_for_a_load() -> None:
    with pytest.raises(UserError, match=r"PostgreSQL 13\.2 has no account") as old:
        postgresql.account(Listening("10.0.0.1", 4000, "x", None), "13.2", "dyno")
    assert "PostgreSQL 14" in old.value.hint


def test_with_a_certificate_nobody_comes_in_without_encryption(tmp_path: Path) -> None:
    made = Certificate(tmp_path / "crt", tmp_path / "key")
    listening = Listening("10.0.0.1", 4000, "x", made)
    given = postgresql.settings(listening, tmp_path)
    access = Path(str(given["hba_file"])).read_text().splitlines()
    assert [line.split()[0] for line in access] == ["local", "hostssl", "hostssl"]
    assert mariadb.account(listening, "11.8.6", "dyno")[0].endswith(" REQUIRE SSL")
    postgresql.settings(Listening("10.0.0.1", 4000, "x", None), tmp_path)
    assert "hostssl" not in Path(str(given["hba_file"])).read_text()


def test_the_load_finds_the_same_database_at_the_address() -> None:
    listening = Listening("10.0.0.1", 4000, "p@s/s", None)
    assert listening.url(LOCAL) == "postgresql://dyno_load:p%40s%2Fs@10.0.0.1:4000/a%20b"
    six = Listening("fd00::1", 4000, "x", None)
    assert six.url(LOCAL) == "postgresql://dyno_load:x@[fd00::1]:4000/a%20b"


def test_each_trial_has_a_password_and_a_certificate_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (listening_at("127.0.0.1", True, tmp_path / name) for name in ("one", "two"))
    assert one.password != two.password and len(one.password) >= 32
    assert one.certificate is not None and two.certificate is not None
    assert one.certificate.key.stat().st_mode & 0o077 == 0
    assert one.certificate.certificate.read_text() != two.certificate.certificate.read_text()


def test_an_address_of_another_host_is_refused() -> None:
    with pytest.raises(UserError, match=f"this host cannot listen on {FREE}: Cannot assign") as refused:
        free_port(FREE)
    assert "ip address" in refused.value.hint


def test_a_port_is_free() -> None:
    with socket.create_server(("127.0.0.1", free_port("127.0.0.1"))):
        pass
