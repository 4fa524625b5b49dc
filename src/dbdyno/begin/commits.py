"""The study of a file as a commit of its repository has it: what a pipeline holds a change against."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.host import once
from dbdyno.host.once import Tell
from dbdyno.obtain.source.tree import Source, git_revision, repository_of

PREFIX = "git:"
"""Before a revision, where a run or a file may be named as well: no run's name holds a colon."""
TREE = "tree"


def study_in_commit(path: Path, revision: str, tell: Tell) -> Path:
    """The file at the same place in a revision of the repository that holds it. The files of the commit are
    laid into the cache once, because the run goes on with them after a stop. Raises UserError where there is
    no repository, no such revision, or no such file in it."""
    repository = repository_of(path)
    source = git_revision(repository, revision)
    laid = once.shelf("sources").once(f"commit-{source.digest[:24]}", partial(_lay, source=source), tell)
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
