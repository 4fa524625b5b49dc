"""Sources on this machine: folders, and revisions of a repository; and patches to them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import BuildFailed, DynoError, UserError
from dbdyno.obtain.source.tree import (
    Patch,
    apply,
    copy_source,
    files_of_patch,
    git_revision,
    local_tree,
    read_patch,
    require_harmless,
    tree_digest,
)
from tests.needs import needs_patch, on_machine


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.c").write_text("int a;\n")
    (folder / "configure").write_text("#!/bin/sh\n")
    (folder / "configure").chmod(0o755)
    (folder / "link").symlink_to("src/a.c")
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "src" / "a.c").write_text("int b;\n"),
        lambda folder: (folder / "src" / "a.c").rename(folder / "src" / "b.c"),
        lambda folder: (folder / "configure").chmod(0o644),
        lambda folder: (folder / "new").touch(),
        lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("configure")),
    ],
    ids=["content", "name", "mode", "file", "link"],
)
def test_each_change_of_a_folder_changes_its_digest(source: Path, change: Callable[[Path], object]) -> None:
    before = tree_digest(source)
    change(source)
    assert tree_digest(source) != before


def test_what_does_not_belong_to_the_source_does_not(source: Path, tmp_path: Path) -> None:
    before = tree_digest(source)
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").touch()
    # As in a submodule.
    (source / "src" / ".git").write_text("gitdir: elsewhere\n")
    os.utime(source / "src" / "a.c", (0, 0))
    assert tree_digest(source) == before
    local_tree(source).lay(tmp_path / "laid")
    assert not (tmp_path / "laid" / "src" / ".git").exists()


def test_a_folder_is_laid_with_times_and_modes(source: Path, tmp_path: Path) -> None:
    os.utime(source / "src" / "a.c", (1000, 1000))
    (source / ".git").mkdir()
    found = local_tree(source)
    found.lay(tmp_path / "laid")
    assert tree_digest(tmp_path / "laid") == found.digest == tree_digest(source)
    assert (tmp_path / "laid" / "src" / "a.c").stat().st_mtime == 1000
    assert (tmp_path / "laid" / "link").is_symlink() and not (tmp_path / "laid" / ".git").exists()


def test_a_folder_that_changed_since_is_not_laid_as_what_it_was(source: Path, tmp_path: Path) -> None:
    found = local_tree(source)
    (source / "src" / "a.c").write_text("int b;\n")
    with pytest.raises(UserError, match="changed before it was copied"):
        found.lay(tmp_path / "laid")


def test_a_copy_is_completed_and_what_is_there_stays(source: Path, tmp_path: Path) -> None:
    copy_source(source, tmp_path / "copy")
    (tmp_path / "copy" / "configure").unlink()
    (tmp_path / "copy" / "link").unlink()
    (tmp_path / "copy" / "src" / "a.c").write_text("mine")
    copy_source(source, tmp_path / "copy")
    assert (tmp_path / "copy" / "src" / "a.c").read_text() == "mine"
    (tmp_path / "copy" / "src" / "a.c").write_bytes((source / "src" / "a.c").read_bytes())
    assert tree_digest(tmp_path / "copy") == tree_digest(source)


def test_what_cannot_be_copied_is_a_message(source: Path, tmp_path: Path) -> None:
    found = local_tree(source)
    os.mkfifo(source / "pipe")
    with pytest.raises(DynoError, match=r"cannot copy .*pipe"):
        found.lay(tmp_path / "laid")


def test_what_cannot_be_read_is_a_message(source: Path) -> None:
    (source / "configure").chmod(0)
    if os.access(source / "configure", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(UserError, match="cannot read the source"):
        local_tree(source)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no source at"):
        local_tree(tmp_path / "nothing")


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(source: Path) -> Path:
    if on_machine("git") is None:
        pytest.skip("needs git")
    git(source, "init", "--quiet", "--initial-branch=main")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "first")
    git(source, "tag", "v1")
    (source / "src" / "a.c").write_text("int changed;\n")
    git(source, "commit", "--quiet", "-a", "-m", "second")
    return source


def test_a_revision_is_laid_as_it_was(repository: Path, tmp_path: Path) -> None:
    found = git_revision(repository, "v1")
    (repository / "src" / "a.c").write_text("not committed\n")
    found.lay(tmp_path / "laid")
    assert (tmp_path / "laid" / "src" / "a.c").read_text() == "int a;\n"
    assert os.access(tmp_path / "laid" / "configure", os.X_OK)
    assert "at v1 (" in found.title


def test_revisions_with_the_same_files_are_the_same_source(repository: Path) -> None:
    git(repository, "tag", "v1-again", "v1")
    assert git_revision(repository, "v1-again").digest == git_revision(repository, "v1").digest
    assert git_revision(repository, "main").digest != git_revision(repository, "v1").digest


def test_a_revision_that_is_not_there_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no revision v9"):
        git_revision(repository, "v9")


def test_what_git_refuses_is_told_in_its_own_words(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="not a git repository"):
        git_revision(tmp_path, "v1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    # As git's own tests say that the repository belongs to somebody else.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(UserError, match="dubious ownership") as refused:
        git_revision(repository, "v1")
    assert "safe.directory" in refused.value.hint


def test_attributes_and_filters_change_nothing_of_a_revision(repository: Path, tmp_path: Path) -> None:
    attributes = "*.c filter=evil\nid export-subst\nleft-out export-ignore\nlines text eol=crlf\n"
    written = {".gitattributes": attributes, "id": "$Format:%H$\n", "left-out": "x", "lines": "a\nb\n"}
    for name, text in written.items():
        (repository / name).write_text(text)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "third")
    git(repository, "config", "filter.evil.smudge", f"touch {tmp_path / 'was-run'}; cat")
    git_revision(repository, "main").lay(tmp_path / "laid")
    assert not (tmp_path / "was-run").exists()
    assert {name: (tmp_path / "laid" / name).read_bytes().decode() for name in written} == written
    assert (tmp_path / "laid" / "src" / "a.c").read_text() == "int changed;\n"
    assert tree_digest(tmp_path / "laid") == tree_digest(repository)


def lacking(repository: Path, revision: str) -> None:
    """Makes a repository the partial clone of some origin, without one object of a revision."""
    name = git(repository, "rev-parse", f"{revision}:src/a.c")
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    git(repository, "config", "core.repositoryFormatVersion", "1")
    git(repository, "config", "extensions.partialClone", "origin")
    git(repository, "config", "remote.origin.promisor", "true")


@pytest.mark.parametrize(
    "origin",
    [
        {"remote.origin.url": "ssh://nowhere/x", "core.sshCommand": "PROGRAM"},
        {"remote.origin.url": "ext::PROGRAM", "protocol.ext.allow": "always"},
        {"remote.origin.url": "/", "remote.origin.uploadpack": "PROGRAM", "protocol.file.allow": "always"},
        {"remote.origin.url": "git://nowhere/x", "core.gitProxy": "PROGRAM"},
        {"remote.origin.url": "x", "remote.origin.vcs": "hostile", "protocol.hostile.allow": "always"},
    ],
    ids=["ssh", "ext", "uploadpack", "proxy", "helper"],
)
def test_a_partial_clone_runs_no_program_to_fetch_what_it_lacks(
    repository: Path, tmp_path: Path, origin: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "was-run"
    program = tmp_path / "git-remote-hostile"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    lacking(repository, "v1")
    for key, value in origin.items():
        git(repository, "config", key, value.replace("PROGRAM", str(program)))
    with pytest.raises(DynoError, match="cannot read the object") as failed:
        git_revision(repository, "v1").lay(tmp_path / "laid")
    assert not ran.exists()
    assert "partial clone" in failed.value.hint
    # The same repository does run it for git itself.
    subprocess.run(["git", "-C", repository, "cat-file", "-p", "v1:src/a.c"], capture_output=True)
    assert ran.exists()


def test_hooks_and_programs_of_a_repository_are_not_run(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "was-run"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "attributes")
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        shutil.copy(program, hooks / hook)
    named = ("core.fsmonitor", "core.pager", "core.editor", "core.alternateRefsCommand", "gpg.program")
    for key in (*named, "diff.external", "diff.x.textconv", "diff.x.command", "filter.x.smudge"):
        git(repository, "config", key, str(program))
    for key in ("filter.x.clean", "filter.x.process", "merge.x.driver", "uploadpack.packObjectsHook"):
        git(repository, "config", key, str(program))
    git(repository, "config", "alias.cat-file", f"!{program}")
    git(repository, "config", "log.showSignature", "true")
    ran.unlink(missing_ok=True)
    git_revision(repository, "main").lay(tmp_path / "laid")
    assert (tmp_path / "laid" / "src" / "a.c").read_text() == "int changed;\n"
    assert not ran.exists()
    subprocess.run(["git", "-C", repository, "status"], capture_output=True)
    assert ran.exists(), "git itself runs them"


def test_a_partial_clone_is_read_when_it_is_completed_as_the_hint_says(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "a clone"
    options = ("--quiet", "--no-checkout", "--filter=blob:none")
    git(tmp_path, "clone", *options, f"file://{repository}", str(clone))
    with pytest.raises(DynoError, match="cannot read the object") as failed:
        git_revision(clone, "v1").lay(tmp_path / "lacking")
    command = failed.value.hint.split("`")[1]
    subprocess.run(command, shell=True, check=True, capture_output=True)
    git_revision(clone, "v1").lay(tmp_path / "laid")
    assert (tmp_path / "laid" / "src" / "a.c").read_text() == "int a;\n"


def test_a_hook_that_starts_dyno_does_not_say_which_repository_is_read(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert "at v1 (" in git_revision(repository, "v1").title


def test_all_files_of_a_revision_have_its_time(repository: Path, tmp_path: Path) -> None:
    git_revision(repository, "v1").lay(tmp_path / "laid")
    files = [tmp_path / "laid" / name for name in ("configure", "src/a.c")]
    assert len({file.stat().st_mtime for file in files}) == 1


def test_an_object_that_is_lost_fails(repository: Path, tmp_path: Path) -> None:
    found = git_revision(repository, "v1")
    name = git(repository, "rev-parse", "v1:src/a.c")
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(DynoError, match=f"git cannot read the object {name}"):
        found.lay(tmp_path / "laid")


def test_a_tree_that_leads_outside_is_not_written(repository: Path, tmp_path: Path) -> None:
    """Git makes no such tree, but keeps one."""
    content = bytes.fromhex(git(repository, "rev-parse", "v1:src/a.c"))
    inner = kept(repository, b"100644 escaped\0" + content)
    outer = kept(repository, b"40000 ..\0" + inner)
    commit = git(repository, "commit-tree", "-m", "evil", outer.hex())
    with pytest.raises(DynoError, match="outside of"):
        git_revision(repository, commit).lay(tmp_path / "laid")
    assert not (tmp_path / "escaped").exists()


def kept(repository: Path, tree: bytes) -> bytes:
    """Stores a tree in a repository; returns its name."""
    command = ["git", "-C", str(repository), "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    done = subprocess.run(command, input=tree, check=True, capture_output=True)
    return bytes.fromhex(done.stdout.decode().strip())


def test_a_repository_with_submodules_is_refused_because_they_would_be_missing(repository: Path) -> None:
    (repository / ".gitmodules").write_text('[submodule "x"]\n')
    git(repository, "add", ".gitmodules")
    git(repository, "commit", "--quiet", "-m", "third")
    with pytest.raises(UserError, match="has submodules"):
        git_revision(repository, "main")


GOOD = b"""--- a/src/one.c\t2026-01-01
+++ b/src/one.c\t2026-01-02
@@ -1,3 +1,3 @@
 first
-second
+2nd
 third
"""


def patch_to(name: str) -> Patch:
    return Patch(name="p.patch", content=f"--- a/x\n+++ {name}\n@@ -0,0 +1 @@\n+x\n".encode())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / "src" / "one.c").write_text("first\nsecond\nthird\n")
    return tmp_path / "tree"


@needs_patch
def test_a_patch_changes_what_it_names_and_leaves_nothing_beside(tree: Path) -> None:
    apply(Patch(name="p", content=GOOD), tree)
    assert (tree / "src" / "one.c").read_text() == "first\n2nd\nthird\n"
    assert [path.name for path in tree.parent.rglob("*") if path.is_file()] == ["one.c"]


@needs_patch
def test_a_patch_that_does_not_apply_names_its_hunk(tree: Path) -> None:
    (tree / "src" / "one.c").write_text("first\nother\nthird\n")
    with pytest.raises(BuildFailed) as failed:
        apply(Patch(name="old.patch", content=GOOD), tree)
    assert failed.value.message == "old.patch does not apply: src/one.c, Hunk #1 FAILED at 1."
    assert "+2nd" in failed.value.log
    assert not (tree.parent / "rejected").exists()


@needs_patch
def test_a_hunk_is_not_placed_by_resemblance(tree: Path) -> None:
    (tree / "src" / "one.c").write_text("1st\nsecond\nthird\n")
    with pytest.raises(BuildFailed):
        apply(Patch(name="p", content=GOOD), tree)


@needs_patch
def test_a_patch_that_was_applied_before_is_refused(tree: Path) -> None:
    apply(Patch(name="p", content=GOOD), tree)
    with pytest.raises(BuildFailed):
        apply(Patch(name="p", content=GOOD), tree)
    assert (tree / "src" / "one.c").read_text() == "first\n2nd\nthird\n"


@pytest.mark.parametrize("name", ["/etc/passwd", "b/../../escaped", "../escaped", "b/a/../../../x"])
def test_a_patch_that_leads_out_of_the_source_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="outside of the source") as refused:
        require_harmless(patch_to(name))
    assert name in refused.value.message


def test_what_a_patch_renames_is_looked_at_too() -> None:
    content = b"diff --git a/x b/x\nrename from x\nrename to ../x\n"
    with pytest.raises(UserError, match=r"\.\./x"):
        require_harmless(Patch(name="p", content=content))


@pytest.mark.parametrize("content", [b"", b"not a patch\n", b"@@ -1 +1 @@\n-a\n+b\n"])
def test_what_names_no_file_is_no_patch(content: bytes) -> None:
    with pytest.raises(UserError, match="names no file"):
        require_harmless(Patch(name="p", content=content))


def test_a_patch_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.patch cannot be read: No such file"):
        read_patch(tmp_path / "nothing.patch")


def test_a_file_that_is_made_or_removed_names_nothing_else() -> None:
    content = b"--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+x\n"
    assert list(files_of_patch(content)) == ["b/new.c"]


LINES = st.lists(st.binary(max_size=12).filter(lambda text: b"\n" not in text), max_size=6)


@given(removed=LINES, added=LINES)
def test_lines_of_a_hunk_are_never_taken_for_headers(removed: list[bytes], added: list[bytes]) -> None:
    """A removed line that begins with two dashes looks like a header."""
    looks = [b"-- /etc/passwd", *removed]
    head = f"--- a/x\n+++ b/x\n@@ -1,{len(looks)} +1,{len(added)} @@\n".encode()
    body = [b"-" + line for line in looks] + [b"+" + line for line in added]
    assert list(files_of_patch(head + b"\n".join(body) + b"\n")) == ["a/x", "b/x"]
