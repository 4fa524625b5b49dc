"""The commits between two revisions of a git repository on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.obtain.source.tree import commit_of, git
from dbdyno.study.line import TouchedFile

NO_PROGRAMS = ("-c", "core.fsmonitor=false")
"""A repository's own configuration may name a program that is started when files are looked at."""
HASH = re.compile(r"[0-9a-f]{40,64}\x02")
COMMIT, FIELD = "\x01", "\x02"


@dataclass(frozen=True)
class Commit:
    """A commit: its whole hash, the first line of what it says, and the files that it changes."""

    hash: str
    title: str
    touched: tuple[TouchedFile, ...]


def commits_between(repository: Path, good: str, bad: str) -> tuple[Commit, ...]:
    """The commits from `good` to `bad`, both included, along first parents: what a merge brought is one
    commit. Raises UserError where the two are the same, exchanged, or not of one line."""
    if not repository.is_dir():
        raise UserError(f"there is no repository at {repository}", "name a git repository as source.origin")
    first, last = commit_of(repository, good), commit_of(repository, bad)
    if first == last:
        raise UserError(
            f"{good} and {bad} are the same commit {first[:12]}",
            "name two commits with a change between them",
        )
    base = git(repository, "merge-base", first, last)
    if base == last:
        raise UserError(
            f"{bad} is an ancestor of {good}, so good and bad are exchanged",
            f"exchange them: --good {bad} --bad {good}",
        )
    if base != first:
        fork = f"their last common commit is {base[:12]}" if base else "they have no commit in common"
        hint = f"--good {base[:12]} is a commit from which {bad} descends" if base else "name two of one line"
        raise UserError(f"{good} is no ancestor of {bad}: {fork}", hint)
    good_end = _log(repository, "--max-count=1", first)
    return (*good_end, *_log(repository, "--reverse", f"{first}..{last}"))


def uncommitted(repository: Path) -> int:
    """How many files of a work tree seem to differ from what is committed. Contents are not looked at,
    because that would start filters of the repository."""
    if git(repository, "rev-parse", "--is-bare-repository") == "true":
        return 0
    top = Path(git(repository, "rev-parse", "--show-toplevel"))
    staged = git(top, *NO_PROGRAMS, "diff-index", "--cached", "--name-only", "HEAD")
    changed = git(top, *NO_PROGRAMS, "diff-files", "--name-only")
    return len({*staged.splitlines(), *changed.splitlines()})


def _log(repository: Path, *revisions: str) -> tuple[Commit, ...]:
    """Commits along first parents. No program of the repository shows what they change."""
    shown = ("--first-parent", "-m", "--no-ext-diff", "--no-textconv", "--no-renames", "--numstat", "-z")
    told = git(repository, "log", *shown, f"--format={COMMIT}%H{FIELD}%s{FIELD}", *revisions, "--")
    return tuple(_commit(text) for text in told.split(COMMIT) if HASH.match(text))


def _commit(text: str) -> Commit:
    name, _, rest = text.partition(FIELD)
    title, _, files = rest.partition(FIELD)
    rows = [row.strip("\n") for row in files.split("\0")]
    touched = [_touched(*row.split("\t", 2)) for row in rows if row.count("\t") >= 2]
    return Commit(name, title, tuple(touched))


def _touched(added: str, removed: str, path: str) -> TouchedFile:
    lines = [int(count) if count.isdigit() else None for count in (added, removed)]
    return TouchedFile(path=path, added=lines[0], removed=lines[1])
