"""Patches: changes to a source, each known by the hash of its text."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from dbdyno.errors import Blocked, BuildFailed, UserError, remedy
from dbdyno.frozen import Frozen
from dbdyno.host.process import die_with_parent

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
    named = list(files_named(patch.content))
    if not named:
        raise UserError(f"{patch.name} names no file", "write it with `diff -u` or `git diff`")
    for name in named:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise UserError(
                f"{patch.name} would change {name}, outside of the source",
                "paths in a patch count from the source's root, as `git diff` writes them",
            )


def files_named(content: bytes) -> Iterator[str]:
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
