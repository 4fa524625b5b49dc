"""Builds in the store: whole or not there, made by one host at a time."""

from __future__ import annotations

import pytest

from dbdyno.fleet import kept_builds, parts
from dbdyno.fleet.hosts import take
from dbdyno.fleet.kept_builds import Failure, KeptBuild, Maker, made_by
from dbdyno.fleet.session import Session
from dbdyno.records.database import Unavailable
from dbdyno.records.store import Store
from tests.fleet.cases import run_on, speaks

BUILD = KeptBuild(
    name="sqlite-1", host="a", words="gcc -O2", content="0" * 64, sha256="1" * 64, packed_bytes=6
)


def maker(host: str, fence: int = 1, run: str = "first") -> Maker:
    return Maker(run=run, host=host, fence=fence, words=f"building on {host}")


def test_a_build_is_kept_in_pieces_and_read_in_their_order(session: Session) -> None:
    assert kept_builds.kept(session, "sqlite-1") is None
    kept_builds.keep(session, BUILD, [b"one", b"two", bytes(3)])
    assert kept_builds.kept(session, "sqlite-1") == BUILD
    assert list(kept_builds.pieces_of(session, "sqlite-1")) == [b"one", b"two", bytes(3)]
    assert list(kept_builds.pieces_of(session, "sqlite-2")) == []


def test_a_keep_that_fails_leaves_what_was_there(session: Session) -> None:
    def torn() -> None:
        def pieces() -> list[bytes]:
            raise OSError

        kept_builds.keep(session, BUILD.but(host="b"), (piece for _ in "12" for piece in pieces()))

    kept_builds.keep(session, BUILD, [b"one"])
    with pytest.raises(OSError):
        torn()
    assert kept_builds.kept(session, "sqlite-1") == BUILD
    assert list(kept_builds.pieces_of(session, "sqlite-1")) == [b"one"]


def test_what_the_gate_found_goes_with_its_build(session: Session) -> None:
    name, content = BUILD.name, BUILD.content
    kept_builds.note_gate(session, name, content, "ab", "passed")
    assert kept_builds.gates_of(session, name, content) == {}
    kept_builds.keep(session, BUILD, [b"one"])
    for found in ("could not run", "passed"):
        kept_builds.note_gate(session, name, content, "ab", found)
    assert kept_builds.gates_of(session, name, content) == {"ab": "passed"}
    kept_builds.remove(session, name)
    kept_builds.keep(session, BUILD, [b"another"])
    assert kept_builds.gates_of(session, name, content) == {}


def test_what_the_gate_found_counts_for_the_same_files_alone(session: Session) -> None:
    other = BUILD.but(content="f" * 64)
    kept_builds.keep(session, other, [b"another"])
    kept_builds.note_gate(session, BUILD.name, BUILD.content, "ab", "passed")
    assert kept_builds.gates_of(session, BUILD.name, other.content) == {}
    kept_builds.note_gate(session, other.name, other.content, "ab", "passed")
    assert kept_builds.gates_of(session, BUILD.name, BUILD.content) == {}


def test_one_host_makes_a_build_at_a_time_and_its_death_frees_it(url: str, session: Session) -> None:
    with Session(url) as dies:
        held = made_by(dies, "sqlite-1", maker("a"))
        assert held.__enter__()
        with made_by(session, "sqlite-1", maker("b")) as is_mine:
            assert not is_mine
        with made_by(session, "sqlite-1", maker("b"), wait_s=0.05) as is_mine:
            assert not is_mine
        assert kept_builds.maker_of(session, "sqlite-1") == maker("a")
        assert kept_builds.makers_for(session, "first") == [maker("a")]
        with made_by(session, "sqlite-2", maker("b", run="second")) as is_mine:
            assert is_mine
            assert kept_builds.makers_for(session, "second") == [maker("b", run="second")]
    looks = maker("b").but(words="")
    with made_by(session, "sqlite-1", looks, wait_s=60.0) as is_mine:
        assert is_mine and kept_builds.maker_of(session, "sqlite-1") == looks
        assert kept_builds.makers_for(session, "first") == []
        kept_builds.begin(session, "sqlite-1", "building on b")
        assert kept_builds.makers_for(session, "first") == [maker("b")]
    assert kept_builds.maker_of(session, "sqlite-1") is None
    with pytest.raises(Unavailable):
        held.__exit__(None, None, None)


def test_a_host_whose_lease_is_in_force_keeps_what_it_makes(url: str, session: Session) -> None:
    with Session(url) as other:
        fence = take(other, speaks(other, "a"), "first", 600.0)
        with made_by(other, "sqlite-1", maker("a", fence)) as is_its:
            assert is_its and not kept_builds.end_stopped(session, "sqlite-1")
            other.execute("SELECT 1")


def test_what_failed_is_tried_again_when_a_run_is_given_again(url: str, session: Session) -> None:
    failure = Failure(host="a", message="no header", hint="install it", log="")
    kept_builds.note_failure(session, "first", "sqlite-1", failure)
    kept_builds.note_failure(session, "first", "sqlite-1", failure.but(host="b"))
    assert kept_builds.failure_of(session, "first", "sqlite-1") == failure
    assert kept_builds.failure_of(session, "second", "sqlite-1") is None
    run = run_on("a")
    with Store(url) as store:
        store.add_run(run)
    parts.give(session, run)
    assert kept_builds.failure_of(session, "first", "sqlite-1") is None


def test_the_first_host_says_which_file_a_run_measures(session: Session) -> None:
    assert kept_builds.content_for(session, "first", BUILD) == BUILD.content
    assert kept_builds.content_for(session, "first", BUILD.but(content="2" * 64)) == BUILD.content
    assert kept_builds.content_for(session, "second", BUILD.but(content="2" * 64)) == "2" * 64
