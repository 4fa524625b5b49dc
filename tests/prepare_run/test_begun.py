"""The commit that the source of a run is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.host.cache import silently
from dbdyno.obtain.source.tree import commit_of
from dbdyno.prepare_run.begun import (
    code_digest,
    commit_of_source,
    keep_run,
    question_of,
    registered_as,
    registration_of,
    reruns_of,
)
from dbdyno.prepare_run.stored_study import asked_by
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.chain import Publication, Registration
from dbdyno.records.run import ComparisonRun, SoakRun, of_kind
from dbdyno.records.store import Store
from dbdyno.study import Factor, Study
from dbdyno.study.soak import Soak
from tests.analyse.factory import a_run
from tests.obtain.source.repositories import commit, git
from tests.study_texts import STUDY
from tests.trials import study_of


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """one, and two, which main is at."""
    place = tmp_path / "source"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    commit(place, "1\n", "one")
    commit(place, "2\n", "two")
    return place


def built_of(place: Path, *revisions: str) -> Study:
    """A study of the source at a place, and of these revisions of it."""
    study = study_of("sqlite", {"source.origin": str(place)})
    revised = (Factor(name="source.revision", levels=revisions),) if revisions else ()
    return study.but(factors=(*study.factors, *revised))


def test_a_folder_has_the_commit_that_is_checked_out(repository: Path) -> None:
    found = commit_of_source(built_of(repository))
    assert found is not None
    assert (found.repository, found.hash) == (str(repository), commit_of(repository, "main"))
    assert found.changed == 0 and found.committed_unix_s > 0
    (repository / "a.c").write_text("3\n")
    changed = commit_of_source(built_of(repository))
    assert changed is not None and changed.changed == 1


def test_of_several_revisions_the_last_one_counts(repository: Path) -> None:
    (repository / "a.c").write_text("3\n")
    found = commit_of_source(built_of(repository, "main", "one"))
    assert found is not None
    assert (found.hash, found.changed) == (commit_of(repository, "one"), 0)


def test_what_no_repository_holds_has_no_commit(tmp_path: Path) -> None:
    assert commit_of_source(built_of(tmp_path)) is None
    assert commit_of_source(study_of("sqlite", {})) is None


SPELLED_OTHERWISE = "# the same question\n" + STUDY.replace('duration = "0.5s"', 'duration = "500ms"')


@pytest.fixture
def store(homes: Path) -> Store:
    return Store(f"sqlite:///{homes / 'store.sqlite'}")


def run_of(text: str = STUDY, name: str = "one", began_unix_s: float = 1.0) -> ComparisonRun:
    study = asked_by(text, "study.toml", Path(), None)
    return a_run(study).but(run=name, created_unix_s=began_unix_s)


def registration(homes: Path, text: str = STUDY) -> Registration:
    path = homes / "study.toml"
    path.write_text(text)
    return registration_of(study_at(path), False, silently)


def test_a_question_does_not_depend_on_its_spelling() -> None:
    assert question_of(run_of()) == question_of(run_of(SPELLED_OTHERWISE))
    assert question_of(run_of()) != question_of(run_of(STUDY.replace("tpcb", "point_select")))
    assert question_of(run_of()) != question_of(run_of(STUDY.replace("blocks = 2", "blocks = 3")))


def test_a_registration_asks_what_a_run_of_its_study_asks(homes: Path) -> None:
    found = registration(homes)
    assert found.question == question_of(run_of())
    assert found.study_text == STUDY and found.plan.blocks == 2 and found.dyno_code == code_digest()
    assert found.host.kernel, "the host is written down"


def test_a_run_carries_out_the_latest_registration_of_its_question(store: Store, homes: Path) -> None:
    assert registered_as(store, run_of()) is None
    store.append(registration(homes, STUDY.replace("tpcb", "point_select")))
    assert registered_as(store, run_of()) is None, "another question"
    for text in (STUDY, SPELLED_OTHERWISE):
        entry = store.append(registration(homes, text))
        found = registered_as(store, run_of())
        assert found is not None and (found.number, found.digest) == (entry.number, entry.digest)


def test_all_runs_of_a_question_are_known_with_what_became_of_them(store: Store, homes: Path) -> None:
    old, second, last = (run_of(name=name, began_unix_s=float(at)) for at, name in enumerate("abc"))
    store.add_run(old)
    keep_run(store, second, None, "")
    store.append(registration(homes))
    last = last.but(registered=registered_as(store, last))
    keep_run(store, last, None, "")
    keep_run(store, run_of(STUDY.replace("tpcb", "point_select"), "other"), None, "")
    store.append(Publication(question=question_of(last), run="c", published_unix_s=1.0, statement_sha256="0"))
    store.remove_run("b")
    found = {one.run: (one.registration, one.kept, one.published) for one in reruns_of(store, last)}
    assert found == {"a": (None, True, False), "b": (None, False, False), "c": (2, True, True)}


def test_a_soak_is_no_rerun_of_a_comparison(store: Store) -> None:
    run = run_of()
    keep_run(store, run, None, "")
    keep_run(store, of_kind(SoakRun, run, run="soak", soak=Soak(clients=(1,))), None, "")
    assert [one.run for one in reruns_of(store, run)] == ["one"]
