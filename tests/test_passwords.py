"""No password of a URL leaves by any text."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.passwords import document_without_passwords, json_without_passwords, without_passwords

BLACK = st.characters().filter(lambda character: not re.match(r"\s", character))


def words(without: str, least: int = 0) -> st.SearchStrategy[str]:
    """Texts that hold neither space nor one of these characters."""
    return st.text(BLACK.filter(lambda character: character not in without), min_size=least)


@given(user=words(":/?&"), password=words(""), place=words("@?&"))
def test_no_character_of_a_password_travels(user: str, password: str, place: str) -> None:
    line = 'store = "postgresql://{}@{}/runs?tls=required" # mine'
    assert without_passwords(line.format(f"{user}:{password}", place)) == (line.format(f"{user}:***", place))


@given(words("@&", least=1), st.sampled_from(["password", "Password", "passwd", "sslpassword"]))
def test_a_password_among_the_parameters_does_not_travel(password: str, key: str) -> None:
    line = f"postgresql://me@localhost/runs?{key}={{}}&tls=required"
    assert without_passwords(line.format(password)) == line.format("***")


@given(st.text("ab:/@?=\\\"'", min_size=1), st.sampled_from(["me@", "me@tenant@", ""]))
def test_an_unescaped_password_among_the_parameters_does_not_travel(rest: str, user: str) -> None:
    line = f"postgresql://{user}host:5432/runs?password={rest}SECRET{rest}&tls=required"
    assert "SECRET" not in without_passwords(line)


def test_the_quotes_about_an_address_stay() -> None:
    line = 'stores = ["postgresql://h/db?password={}", "x"]'
    assert without_passwords(line.format("a'b\\c")) == line.format("***")


@given(st.text(), st.integers(1, 65535))
def test_text_without_an_account_stays_as_it_is(text: str, port: int) -> None:
    kept = f"{text.replace('@', '').replace('password', '')} http://localhost:{port}/a?b=c me@localhost"
    assert without_passwords(kept) == kept


@pytest.mark.parametrize("place", ["host:8080", "127.0.0.1:80", "[::1]:8080"])
@pytest.mark.parametrize("rest", ["/a@b", "/a:b@c/d@e", "?mail=a@b", "#a@b"])
def test_the_path_of_a_web_address_holds_no_account(place: str, rest: str) -> None:
    line = f'url = "HTTP://{place}{rest}" and https://{place}{rest}'
    assert without_passwords(line) == line


@pytest.mark.parametrize("account", ["me:8080", "me:p/s", "8080:8081", "me:123456/7", "me:"])
def test_the_password_of_a_web_address_does_not_travel(account: str) -> None:
    user = account.partition(":")[0]
    assert without_passwords(f"https://{account}@host:80/a@b") == f"https://{user}:***@b"


HOSTILE = st.lists(st.sampled_from([*"ab:/@?&=\\\"' \n", "://", "?password="])).map("".join)


@given(st.dictionaries(st.text("abc"), HOSTILE))
def test_each_text_of_a_document_is_without_its_passwords(document: dict[str, str]) -> None:
    left = document_without_passwords({"all": [document]})
    assert left == {"all": [{key: without_passwords(text) for key, text in document.items()}]}


def test_a_password_of_a_document_ends_with_its_line() -> None:
    document = {"log": "postgresql://me:s3cret@h/db\nnext user@host"}
    assert document_without_passwords(document) == {"log": "postgresql://me:***@h/db\nnext user@host"}


@given(st.dictionaries(st.text("abc"), HOSTILE))
def test_json_is_masked_as_its_document_is(document: dict[str, str]) -> None:
    masked = json_without_passwords(json.dumps(document))
    assert json.loads(masked) == document_without_passwords(document)


def test_json_without_a_password_stays_as_it_is() -> None:
    text = '{"a": "https://h/x", "b": "me@h",   "c": 1e-5}'
    assert json_without_passwords(text) is text
