"""The commit that the source of a run is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.begin.begun import commit_of_source
from dbdyno.obtain.source.tree import commit_of
from dbdyno.study import Factor, Study
from tests.obtain.source.repositories import commit, git
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
