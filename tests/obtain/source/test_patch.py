"""Patches: what they name, what is refused, and what is said of one that does not apply."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import BuildFailed, UserError
from dbdyno.obtain.source.tree import Patch, apply, files_of_patch, read_patch, require_harmless
from tests.needs import needs_patch

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
