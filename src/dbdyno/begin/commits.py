"""Commits that a run has to do with: the one whose study it is held against, and that of its source."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dbdyno.begin.building import wishes_of
from dbdyno.errors import UserError
from dbdyno.host import cache
from dbdyno.host.cache import Tell
from dbdyno.obtain.source.history import uncommitted
from dbdyno.obtain.source.tree import Source, commit_of, committed_unix_s, git_revision, repository_of
from dbdyno.obtain.source.wish import DEBIAN, NONE, BuildWish
from dbdyno.records.run import SourceCommit
from dbdyno.study import Study

PREFIX = "git:"
"""Before a revision, where a run or a file may be named as well: no run's name holds a colon."""
TREE = "tree"


def study_in_commit(path: Path, revision: str, tell: Tell) -> Path:
    """The file at the same place in a revision of the repository that holds it. The files of the commit are
    laid into the cache once, because the run goes on with them after a stop. Raises UserError where there is
    no repository, no such revision, or no such file in it."""
    repository = repository_of(path)
    source = git_revision(repository, revision)
    laid = cache.shelf("sources").once(f"commit-{source.digest[:24]}", partial(_lay, source=source), tell)
    place = path.resolve().relative_to(repository.resolve())
    found = laid / TREE / place
    if not found.is_file():
        raise UserError(
            f"{source.title} has no {place}, so there is nothing to hold against",
            "name a revision that has the study, or measure it without --against",
        )
    return found


def _lay(folder: Path, source: Source) -> tuple[str, str]:
    source.lay(folder / TREE)
    return f"files of {source.title}", source.title


def commit_of_source(study: Study) -> SourceCommit | None:
    """The commit of the last variant whose source a git repository of this machine holds; None where there is
    none."""
    found = (_commit_of(wish, study.folder) for wish in reversed(wishes_of(study)))
    return next(filter(None, found), None)


def _commit_of(wish: BuildWish, folder: Path) -> SourceCommit | None:
    if wish.origin.startswith(DEBIAN):
        return None
    place = folder / Path(wish.origin).expanduser()
    try:
        repository = repository_of(place / NONE)
        commit = commit_of(repository, "HEAD" if wish.revision == NONE else wish.revision)
        changed = uncommitted(repository) if wish.revision == NONE else 0
        committed_s = committed_unix_s(repository, commit)
    except UserError:
        # A folder that git does not know is built as it is, and has no commit.
        return None
    return SourceCommit(
        repository=str(repository), hash=commit, committed_unix_s=committed_s, changed=changed
    )
