"""Sources on this machine: a folder as it is, or a revision of a git repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dbdyno.errors import DynoError, UserError
from dbdyno.host.process import die_with_parent
from dbdyno.obtain.archive import unpack

NOT_SOURCE = frozenset((".git",))


@dataclass(frozen=True)
class Source:
    """Where a source comes from, in words; the digest of its files; and what lays them into a folder that is
    not there yet."""

    title: str
    digest: str
    lay: Callable[[Path], None]


def local_tree(folder: Path) -> Source:
    """A folder as it is now. Raises UserError where there is none."""
    if not folder.is_dir():
        raise UserError(f"there is no source at {folder}", "name the folder that holds it, or `debian`")
    return Source(str(folder), tree_digest(folder), partial(copy, folder))


def git_revision(repository: Path, revision: str) -> Source:
    """A revision of a git repository. Raises UserError where it has none of that name."""
    commit = _git(repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise UserError(
            f"{repository} has no revision {revision}", "name a branch, a tag or a commit of that repository"
        )
    if _git(repository, "ls-tree", "--name-only", commit, ".gitmodules"):
        raise UserError(
            f"{revision} of {repository} has submodules, which are not in the repository itself",
            "check it out with its submodules, and name the folder as source.origin without a revision",
        )
    tree = _git(repository, "rev-parse", f"{commit}^{{tree}}")
    return Source(
        f"{repository} at {revision} ({commit[:12]})", f"git-{tree}", partial(_archive, repository, commit)
    )


def tree_digest(folder: Path) -> str:
    """A hash of all that a source holds: paths, contents, links, and which files can be executed."""
    digest = hashlib.sha256()
    for path in sorted(_files(folder), key=lambda path: os.fsencode(path.relative_to(folder))):
        digest.update(os.fsencode(path.relative_to(folder)) + b"\0")
        if path.is_symlink():
            digest.update(b"link\0" + os.fsencode(path.readlink()) + b"\0")
        else:
            with path.open("rb") as file:
                digest.update(b"run\0" if os.access(path, os.X_OK) else b"file\0")
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found += [Path(place) / name for name in (*names, *links)]
    return [path for path in found if path.is_symlink() or path.is_file()]


def copy(folder: Path, target: Path) -> None:
    """Copies a source with its times: what a release generated must not look older than what it was made
    from."""
    shutil.copytree(folder, target, symlinks=True, ignore=shutil.ignore_patterns(*NOT_SOURCE))


def _archive(repository: Path, commit: str, target: Path) -> None:
    target.mkdir()
    with subprocess.Popen(
        _git_command(repository, "archive", "--format=tar", commit),
        stdout=subprocess.PIPE,
        preexec_fn=die_with_parent(),
    ) as packing:
        try:
            with tarfile.open(fileobj=packing.stdout, mode="r|") as archive:
                unpack(archive, target)
        except tarfile.TarError as error:
            raise DynoError(f"cannot unpack {commit[:12]} of {repository}: {error}") from None


def _git(repository: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            _git_command(repository, *arguments), capture_output=True, text=True, check=False
        )
    except OSError:
        raise UserError("there is no `git` on this machine", "apt-get install git") from None
    return done.stdout.strip() if done.returncode == 0 else ""


def _git_command(repository: Path, *arguments: str) -> list[str]:
    # Who owns a repository matters to hooks and filters, and none is run here.
    return ["git", "-c", "safe.directory=*", "-C", str(repository), *arguments]
