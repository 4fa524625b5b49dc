"""Text from outside can steer nothing."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.report.words import safe


@given(st.text())
def test_clean_text_is_one_line_without_control_characters(text: str) -> None:
    cleaned = safe.clean(text)
    assert all(unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co") for character in cleaned)


@given(st.text())
def test_clean_lines_keep_their_lines(text: str) -> None:
    assert safe.clean_lines(text).count("\n") == text.replace("\r\n", "\n").count("\n")


def test_a_clause_leaves_the_full_stop_to_its_sentence() -> None:
    assert safe.clause("the disk is full.\n\x1b") == "the disk is full. ⏎ \\u{1b}"
    assert safe.clause("the disk is full.") == "the disk is full"


def test_passwords_do_not_travel_with_a_report() -> None:
    text = 'engine = "mysql://root:s3cret@localhost/test" and http://plain/:x@y'
    assert safe.clean(text) == 'engine = "mysql://root:***@localhost/test" and http://plain/:x@y'
    assert safe.clean_lines("postgresql://:pw@h/db\n") == "postgresql://:***@h/db\n"
    assert safe.clean("postgresql://me@h/db?tls=1&password=pw&x=1") == (
        "postgresql://me@h/db?tls=1&password=***&x=1"
    )


BLACK = st.characters().filter(lambda character: not re.match(r"\s", character))


def words(without: str, least: int = 0) -> st.SearchStrategy[str]:
    """Texts that hold neither space nor one of these characters."""
    return st.text(BLACK.filter(lambda character: character not in without), min_size=least)


@given(user=words(":/?&"), password=words(""), place=words("@?&"))
def test_no_character_of_a_password_travels(user: str, password: str, place: str) -> None:
    line = 'store = "postgresql://{}@{}/runs?tls=required" # mine'
    assert safe.without_passwords(line.format(f"{user}:{password}", place)) == (
        line.format(f"{user}:***", place)
    )


@given(words("@&", least=1), st.sampled_from(["password", "Password", "passwd", "sslpassword"]))
def test_a_password_among_the_parameters_does_not_travel(password: str, key: str) -> None:
    line = f"postgresql://me@localhost/runs?{key}={{}}&tls=required"
    assert safe.without_passwords(line.format(password)) == line.format("***")


@given(st.text("ab:/@?=\\\"'", min_size=1), st.sampled_from(["me@", "me@tenant@", ""]))
def test_an_unescaped_password_among_the_parameters_does_not_travel(rest: str, user: str) -> None:
    line = f"postgresql://{user}host:5432/runs?password={rest}SECRET{rest}&tls=required"
    assert "SECRET" not in safe.without_passwords(line)


def test_the_quotes_about_an_address_stay() -> None:
    line = 'stores = ["postgresql://h/db?password={}", "x"]'
    assert safe.without_passwords(line.format("a'b\\c")) == line.format("***")


@given(st.text(), st.integers(1, 65535))
def test_text_without_an_account_stays_as_it_is(text: str, port: int) -> None:
    kept = f"{text.replace('@', '').replace('password', '')} http://localhost:{port}/a?b=c me@localhost"
    assert safe.without_passwords(kept) == kept


HOSTILE = st.lists(st.sampled_from([*"ab:/@?&=\\\"' \n", "://", "?password="])).map("".join)


@given(st.dictionaries(st.text("abc"), HOSTILE))
def test_each_text_of_a_document_is_without_its_passwords(document: dict[str, str]) -> None:
    left = safe.document_without_passwords({"all": [document]})
    assert left == {"all": [{key: safe.without_passwords(text) for key, text in document.items()}]}


def test_a_password_of_a_document_ends_with_its_line() -> None:
    document = {"log": "postgresql://me:s3cret@h/db\nnext user@host"}
    assert safe.document_without_passwords(document) == {"log": "postgresql://me:***@h/db\nnext user@host"}
