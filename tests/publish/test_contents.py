"""What the README of a folder tells a stranger to do without Dyno is done here, word by word."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from dbdyno.publish.folder import write_folder
from dbdyno.publish.making import contents_of
from tests.publish.cases import KINDS, a_given, a_key

COMMANDS = re.compile(r"(?:^  .*\n|^\n(?=  ))+", re.MULTILINE)


def commands(folder: Path, kind: str) -> str:
    """The commands of the README, with those of a key of this kind alone."""
    told = (folder / "README.txt").read_text().partition("WITHOUT DYNO\n")[2]
    block = textwrap.dedent(max(COMMANDS.findall(told), key=len))
    other = {"ed25519": "(ECDSA)", "ec": "(Ed25519)"}.get(kind, "")
    kept = [line for line in block.splitlines() if not (other and line.endswith(other))]
    return "set -e\n" + "\n".join(re.sub(r"\s+\((ECDSA|Ed25519)\)$", "", line) for line in kept)


@pytest.mark.parametrize("kind", [*KINDS, "unsigned"])
def test_the_commands_of_the_readme_find_a_changed_byte(tmp_path: Path, kind: str) -> None:
    key = a_key(tmp_path, kind) if kind != "unsigned" else None
    folder = tmp_path / "out"
    write_folder(folder, contents_of(a_given(key), key))
    script = commands(folder, kind)
    if key is not None:
        (tmp_path / "KEY.pem").write_bytes(key.public.pem)
        script = script.replace("KEY.pem", "../KEY.pem")
    assert "openssl" in script or key is None
    said = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "report.json: OK" in said.stdout
    with (folder / "report.json").open("ab") as report:
        report.write(b" ")
    said = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
    assert said.returncode != 0 and "report.json: FAILED" in said.stdout


def test_what_is_not_in_the_folder_is_named(tmp_path: Path) -> None:
    given = a_given(None)
    [file] = given.run.files or ()
    bare = given.run.but(files=(file.but(text=None),))
    told = contents_of(type(given)(given.account, bare, given.records, given.chain), None)["README.txt"]
    assert f"../load.lua, sha256 {file.digest}: too large, or no text" in told.decode()
