"""Sources on this machine: a folder as it is, or a revision of a git repository."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from dbdyno.errors import Blocked, BuildFailed, DynoError, UserError, remedy
from dbdyno.frozen import Frozen
from dbdyno.host.process import die_with_parent

NOT_SOURCE = frozenset((".git",))
LINK, PROGRAM = "120000", "100755"
"""Modes of what git keeps."""
NOT_FOUND = 1
"""How git ends where it looked, and found nothing."""
READ_ONLY = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""A partial clone fetches an object that it lacks by a program that its own configuration may name
(`core.sshCommand`, `protocol.ext.allow`). So no transport is allowed, in versions of git that know no
GIT_NO_LAZY_FETCH too."""
OF_ANOTHER_REPOSITORY = (
    "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_NAMESPACE", "GIT_SHALLOW_FILE",
    "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
)  # fmt: skip
"""What git sets for its hooks: Dyno in one of them would read the hook's repository, whichever it names."""


@dataclass(frozen=True)
class SourceTree:
    """Where a source comes from, in words; the digest of its files; and what lays them into a folder that is
    not there yet."""

    title: str
    digest: str
    lay: Callable[[Path], None]


def local_tree(folder: Path) -> SourceTree:
    """A folder as it is now. Raises UserError where there is none."""
    if not folder.is_dir():
        raise UserError(f"there is no source at {folder}", "name the folder that holds it, or `debian`")
    try:
        digest = tree_digest(folder)
    except OSError as error:
        raise UserError(f"cannot read the source {folder}: {error}", remedy(error)) from None
    return SourceTree(str(folder), digest, partial(_copy_unchanged, folder, digest))


def repository_of(path: Path) -> Path:
    """The top of the git repository that holds a file. Raises UserError where none does."""
    folder = path.resolve().parent
    top = git(folder, "rev-parse", "--show-toplevel") if folder.is_dir() else ""
    if not top:
        raise UserError(f"{path} lies in no git repository", "name a file of a clone")
    return Path(top)


def commit_of(repository: Path, revision: str) -> str:
    """The whole hash of a revision. Raises UserError where there is none of that name."""
    commit = git(repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise UserError(
            f"{repository} has no revision {revision}", "name a branch, a tag or a commit of that repository"
        )
    return commit


def committed_unix_s(repository: Path, commit: str) -> int:
    """When a commit was made."""
    return int(git(repository, "rev-list", "--max-count=1", "--no-commit-header", "--format=%ct", commit))


def git_revision(repository: Path, revision: str) -> SourceTree:
    """A revision of a git repository. Raises UserError where it has none of that name."""
    commit = commit_of(repository, revision)
    if git(repository, "ls-tree", "--full-tree", "--name-only", commit, ".gitmodules"):
        raise UserError(
            f"{revision} of {repository} has submodules, which are not in the repository itself",
            "check it out with its submodules, and name the folder as source.origin without a revision",
        )
    tree = git(repository, "rev-parse", f"{commit}^{{tree}}")
    return SourceTree(
        f"{repository} at {revision} ({commit[:12]})", f"git-{tree}", partial(_lay_commit, repository, commit)
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
                digest.update(b"run\0" if path.stat().st_mode & 0o111 else b"file\0")
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        # In a worktree `.git` is a file.
        found += [Path(place) / name for name in (*names, *links) if name not in NOT_SOURCE]
    return [path for path in found if path.is_symlink() or path.is_file()]


def copy_source(folder: Path, target: Path) -> None:
    """Copies a source with its times: what a release generated must not look older than what it was made
    from. A file that the target holds already stays. Raises DynoError where that fails."""
    not_source = shutil.ignore_patterns(*NOT_SOURCE)

    def left_out(place: str, names: list[str]) -> set[str]:
        there = target / Path(place).relative_to(folder)
        held = {name for name in names if (there / name).is_symlink() or (there / name).is_file()}
        return held | not_source(place, names)

    try:
        shutil.copytree(folder, target, symlinks=True, ignore=left_out, dirs_exist_ok=True)
    except shutil.Error as error:
        first = error.args[0][0][-1]
        raise DynoError(f"cannot copy {folder}: {first}", "make all of it readable") from None
    except OSError as error:
        raise DynoError(f"cannot copy {folder}: {error}", remedy(error)) from None


def _copy_unchanged(folder: Path, digest: str, target: Path) -> None:
    """Copies a folder that was looked at. Raises UserError where it is not as it was then."""
    copy_source(folder, target)
    if tree_digest(target) != digest:
        raise UserError(
            f"the source {folder} changed before it was copied",
            "run again, and leave it as it is until its build begins",
        )


def _lay_commit(repository: Path, commit: str, target: Path) -> None:
    """Writes the files of a commit as they are hashed, with the time of the commit. No filter of the
    repository is run, and no attribute leaves a file out or changes it."""
    committed_s = committed_unix_s(repository, commit)
    listing = git(repository, "ls-tree", "-r", "-z", "--full-tree", commit)
    files = [line.partition("\t") for line in listing.split("\0") if line]
    # Links last, so that no file is written through one.
    files.sort(key=lambda file: file[0].startswith(LINK))
    try:
        _write_files(repository, files, target, committed_s)
    except OSError as error:
        raise DynoError(f"cannot lay {commit[:12]} of {repository}: {error}", remedy(error)) from None


def _write_files(repository: Path, files: list[tuple[str, str, str]], target: Path, time_s: int) -> None:
    """Writes the files of `git ls-tree`, each with its mode, kind and object before it."""
    target.mkdir()
    with subprocess.Popen(
        _git_command(repository, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
        preexec_fn=die_with_parent(),
    ) as reading:
        for facts, _, path in files:
            mode, kind, name = facts.split()
            if kind == "blob":
                _write(target, path, mode, _blob(reading, name, repository), time_s)


def _blob(reading: subprocess.Popen[bytes], name: str, repository: Path) -> bytes:
    """The content of an object, as a `git cat-file --batch` gives it. Raises DynoError where it does not."""
    assert reading.stdin is not None and reading.stdout is not None
    reading.stdin.write(f"{name}\n".encode())
    reading.stdin.flush()
    head = reading.stdout.readline().split()
    size = int(head[2]) if len(head) == 3 else -1
    content = reading.stdout.read(size + 1)[:-1] if size >= 0 else b""
    if len(content) != size:
        fetch = f"`git -C {shlex.quote(str(repository))} fetch --refetch --no-filter`"
        hint = f"{fetch} completes a partial clone, for which Dyno fetches nothing; `git fsck` checks others"
        raise DynoError(f"git cannot read the object {name} of {repository}", hint)
    return content


def _write(target: Path, path: str, mode: str, content: bytes, time_s: int) -> None:
    """Writes a file or a link of a commit. Raises DynoError for one that leads out of the target."""
    place = target / path
    if not place.parent.resolve().is_relative_to(target.resolve()):
        raise DynoError(f"{path} would be written outside of {target}", "the repository means harm")
    place.parent.mkdir(parents=True, exist_ok=True)
    if mode == LINK:
        place.symlink_to(os.fsdecode(content))
    else:
        place.write_bytes(content)
        place.chmod(0o755 if mode == PROGRAM else 0o644)
        os.utime(place, (time_s, time_s))


def git(repository: Path, *arguments: str) -> str:
    """What git prints of a repository that it only reads; empty where it finds nothing. Raises UserError with
    its own words where it refuses the repository."""
    try:
        done = subprocess.run(
            _git_command(repository, *arguments),
            capture_output=True,
            text=True,
            errors="surrogateescape",
            env=_environment(),
        )
    except OSError as error:
        told = f"`git` cannot be started: {error.strerror}"
        raise UserError(told, remedy(error, "apt-get install git")) from None
    if done.returncode not in (0, NOT_FOUND):
        complaint, _, advice = done.stderr.strip().removeprefix("fatal: ").partition("\n")
        hint = " ".join(advice.split()) or "name a git repository as source.origin"
        raise UserError(f"git cannot read {repository}: {complaint}", hint)
    return done.stdout.strip()


def _git_command(repository: Path, *arguments: str) -> list[str]:
    # A replaced object has other contents than its hash says.
    return ["git", "--no-replace-objects", "-C", str(repository), *arguments]


def _environment() -> dict[str, str]:
    """That of a git which reads the repository that it is told to, and starts none of its programs."""
    own = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_REPOSITORY}
    return {**own, **READ_ONLY}


HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
NAMING = re.compile(rb"(?:---|\+\+\+|rename from|rename to|copy from|copy to) ([^\t\r\n]+)")
NOTHING = "/dev/null"
HUNK_LINES_SHOWN = 12


class Patch(Frozen):
    """A unified diff whose paths begin with one folder more than the source (`a/src/btree.c`)."""

    name: str
    content: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def read_patch(path: Path) -> Patch:
    """The patch in a file. Raises UserError where there is none, or where it leads out of the source."""
    try:
        patch = Patch(name=path.name, content=path.read_bytes())
    except OSError as error:
        raise UserError(
            f"the patch {path} cannot be read: {error.strerror}",
            remedy(error, "a path counts from the study's folder"),
        ) from None
    require_harmless(patch)
    return patch


def require_harmless(patch: Patch) -> None:
    """Raises UserError for a patch that changes no file, or one outside of the source."""
    named = list(files_of_patch(patch.content))
    if not named:
        raise UserError(f"{patch.name} names no file", "write it with `diff -u` or `git diff`")
    for name in named:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise UserError(
                f"{patch.name} would change {name}, outside of the source",
                "paths in a patch count from the source's root, as `git diff` writes them",
            )


def files_of_patch(content: bytes) -> Iterator[str]:
    """Every path that a patch's headers name. Lines of hunks are counted, because they may look like one."""
    old = new = 0
    for line in content.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in (b" ", b"-", b"")
            new -= line[:1] in (b" ", b"+", b"")
        elif hunk := HUNK.match(line):
            old, new = (int(count or b"1") for count in hunk.groups())
        elif (found := NAMING.match(line)) and (name := _unquoted(found[1])) != NOTHING:
            yield name


def _unquoted(name: bytes) -> str:
    text = name.decode(errors="surrogateescape").strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def apply(patch: Patch, tree: Path) -> None:
    """Changes the source in a folder. Raises BuildFailed with the hunk that does not apply."""
    program = shutil.which("patch")
    if program is None:
        raise Blocked("source.patches", "there is no `patch` on this machine", "apt-get install patch")
    rejected = tree.with_name("rejected")
    # Without fuzz: a hunk that finds its place by resemblance may have found the wrong one.
    options = ["--strip=1", "--batch", "--forward", "--fuzz=0", "--no-backup-if-mismatch"]
    done = subprocess.run(
        [program, *options, f"--reject-file={rejected}"],
        input=patch.content,
        capture_output=True,
        cwd=tree,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        preexec_fn=die_with_parent(),
    )
    said = (done.stdout + done.stderr).decode(errors="replace")
    hunk = rejected.read_text(errors="replace") if rejected.is_file() else ""
    rejected.unlink(missing_ok=True)
    if done.returncode != 0:
        raise BuildFailed(
            f"{patch.name} does not apply: {_first_failure(said)}",
            "make it anew against this source, or name the revision that it is for",
            "\n".join([said, *hunk.splitlines()[:HUNK_LINES_SHOWN]]).strip(),
        )


def _first_failure(said: str) -> str:
    """The file and the hunk, of what `patch` says."""
    lines = said.splitlines()
    failed = next((line for line in lines if "FAILED" in line or "can't find file" in line), "")
    before = lines[: lines.index(failed)] if failed else lines
    file = next((line for line in reversed(before) if line.startswith("patching file")), "")
    where = file.removeprefix("patching file ")
    return ", ".join(filter(None, [where, failed.strip()])) or (lines[-1] if lines else "patch failed")
