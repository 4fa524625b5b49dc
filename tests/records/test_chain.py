"""The chain of a store: nothing in the midst of it changes unseen, and every run leaves its trace."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import DynoError
from dbdyno.records.chain import Entry, Publication, RunBegan, broken_at, canonical
from dbdyno.records.store import Store
from tests.fakes import make_run, make_study

ENTRIES = st.lists(st.text(max_size=8), min_size=2, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def began(run: str, question: str = "q") -> RunBegan:
    return RunBegan(question=question, run=run, run_kind="comparison", began_unix_s=1.5, seed=1)


def chain_of(names: list[str]) -> list[Entry]:
    found: list[Entry] = []
    for name in names:
        found.append(Entry.after((found[-1].number, found[-1].digest) if found else None, began(name)))
    return found


@given(JSON)
def test_the_canonical_spelling_is_one_and_keeps_the_document(document: Any) -> None:
    spelled = canonical(document)
    assert canonical(json.loads(spelled)) == spelled and spelled.isascii()


def test_what_json_does_not_have_has_no_spelling() -> None:
    with pytest.raises(ValueError):
        canonical(float("nan"))


@given(ENTRIES, st.data())
def test_every_change_of_a_chain_is_found(names: list[str], data: st.DataObject) -> None:
    chain = chain_of(names)
    assert broken_at(chain) == ""
    at = data.draw(st.integers(0, len(chain) - 1))
    entry = chain[at]
    assert entry.content is not None
    for changed in (
        entry.but(content={**entry.content, "seed": 2}),
        entry.but(content_sha256="0" * 64, content=None),
        entry.but(digest="f" * 64),
        entry.but(previous="f" * 64),
        entry.but(number=entry.number + 1),
    ):
        assert f"entry {changed.number}" in broken_at([*chain[:at], changed, *chain[at + 1 :]])
    if at < len(chain) - 1:
        assert broken_at([*chain[:at], *chain[at + 1 :]]), "one was taken out"
        assert broken_at([*chain[:at], chain[at + 1], entry, *chain[at + 2 :]]), "two changed places"


@given(ENTRIES)
def test_a_chain_is_followed_without_its_contents(names: list[str]) -> None:
    assert broken_at([entry.closed() for entry in chain_of(names)]) == ""


def test_an_entry_of_another_version_tells_nothing_and_still_counts() -> None:
    entry = Entry.of(1, "0" * 64, '{"kind":"of later","question":"q"}')
    assert entry.told is None and broken_at([entry]) == ""


def test_the_store_keeps_the_chain_in_its_order(url: str) -> None:
    with Store(url) as store:
        added = [store.append(began("one")), store.append(began("two", question="another"))]
    with Store(url) as store:
        assert store.chain() == added and broken_at(store.chain()) == ""
        assert store.chain("another") == added[1:]


def test_a_run_enters_the_chain_once_and_stays_there(url: str) -> None:
    run = make_run(make_study())
    with Store(url) as store:
        store.add_run(run, began(run.run))
        store.add_run(run, began(run.run))
        store.remove_run(run.run)
        told = [entry.told for entry in store.chain()]
        assert [one.run for one in told if isinstance(one, RunBegan)] == [run.run]
        assert not store.has_run(run.run)


def test_a_password_is_not_entered(url: str) -> None:
    told = Publication(question="q", run="http://u:secret@h/", published_unix_s=1.0, statement_sha256="0")
    with Store(url) as store:
        store.append(told)
        [entry] = store.chain()
        assert "secret" not in json.dumps(entry.content) and broken_at([entry]) == ""


def test_who_enters_at_once_shares_one_chain(url: str) -> None:
    def enter(name: str) -> None:
        with Store(url) as store:
            for number in range(10):
                store.append(began(f"{name}{number}"))

    with Store(url):
        pass
    writers = [threading.Thread(target=enter, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with Store(url) as store:
        entries = store.chain()
    assert len(entries) == 30 and broken_at(entries) == ""


def test_a_row_that_somebody_changed_is_found(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"
    with Store(f"sqlite:///{place}") as store:
        for name in ("one", "two", "three"):
            store.append(began(name))
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE dyno_chain SET content = replace(content, 'two', 'six')")
    with Store(f"sqlite:///{place}") as store:
        assert broken_at(store.chain()) == "the digest of entry 2 is another one"


def test_a_row_that_is_no_json_is_told(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"
    with Store(f"sqlite:///{place}") as store:
        store.append(began("one"))
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE dyno_chain SET content = '{'")
    with Store(f"sqlite:///{place}") as store, pytest.raises(DynoError, match="an entry of its chain"):
        store.chain()


def test_a_store_without_a_chain_gets_one(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"
    with Store(f"sqlite:///{place}") as store:
        store.add_run(make_run(make_study()))
    with sqlite3.connect(place) as connection:
        connection.execute("DROP TABLE dyno_chain")
    with Store(f"sqlite:///{place}") as store:
        assert store.chain() == [] and store.has_run("first")
        assert store.append(began("one")).number == 1


def test_the_digest_of_an_entry_can_be_made_without_dyno() -> None:
    told = '{"kind":"run","question":"q"}'
    alone = (
        "import hashlib, json, sys; c = hashlib.sha256(sys.argv[1].encode()).hexdigest();"
        "d = json.dumps({'content': c, 'number': 1, 'previous': '0' * 64}, sort_keys=True,"
        " separators=(',', ':')); print(hashlib.sha256(d.encode()).hexdigest())"
    )
    said = subprocess.run([sys.executable, "-c", alone, told], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == Entry.of(1, "0" * 64, told).digest
