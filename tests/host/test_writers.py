"""Root runs no program that another user could have written. Only root can try it, with files of others."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from dbdyno.engines.registry import ENGINES
from dbdyno.errors import UserError
from dbdyno.host.writers import ACL, require_own
from dbdyno.obtain.source.toolchain import toolchain
from dbdyno.study.nouns import Reference
from tests.cli.calls import dyno
from tests.needs import IS_ROOT

OTHER = 65534
pytestmark = pytest.mark.skipif(not IS_ROOT, reason="only root runs the programs of others")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program in a folder, below a sticky one that everybody may write. It leaves a mark beside itself."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    folder = Path(mkdtemp(prefix="dyno-writers-", dir="/tmp"))
    (folder / "bin").mkdir(mode=0o755)
    made = folder / "bin" / "mariadbd"
    made.write_text(f"#!/bin/sh\necho ran >{folder}/mark\n")
    made.chmod(0o755)
    yield made
    shutil.rmtree(folder)


def shared(program: Path) -> None:
    """A group may write it."""
    os.chown(program, 0, OTHER)
    program.chmod(0o775)


def linked(program: Path) -> None:
    """Another's link leads to it."""
    program.rename(program.with_name("real"))
    program.symlink_to("real")
    os.chown(program, OTHER, OTHER, follow_symlinks=False)


def linked_over_others(program: Path) -> None:
    """Root's link leads through another's folder."""
    theirs = program.parent.parent / "theirs"
    theirs.mkdir()
    program.rename(theirs / "real")
    os.chown(theirs, OTHER, OTHER)
    program.symlink_to("../theirs/real")


def listed(program: Path) -> None:
    """An access list lets another write it, while its group is root's."""
    entries = ((1, 7, -1), (2, 7, OTHER), (4, 5, -1), (16, 7, -1), (32, 5, -1))
    packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(program, ACL, struct.pack("<I", 2) + packed)
    except OSError as refused:
        pytest.skip(f"this file system has no access lists: {refused}")


OPEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "another's file": (lambda program: os.chown(program, OTHER, 0), "mariadbd belongs to nobody"),
    "another's folder": (lambda program: os.chown(program.parent, OTHER, 0), "bin belongs to nobody"),
    "a file for all": (lambda program: program.chmod(0o757), "everybody may write .*mariadbd"),
    "a folder for all": (lambda program: program.parent.chmod(0o777), "everybody may write .*bin"),
    "a file for a group": (
        shared,
        "the group nogroup may write .*mariadbd",
    ),
    "another's link": (linked, "mariadbd belongs to nobody"),
    "another's folder behind a link": (linked_over_others, "theirs belongs to nobody"),
    "an access list": (listed, "an access list lets others write"),
}


@pytest.mark.parametrize("how", OPEN)
def test_root_runs_no_program_that_others_could_have_written(how: str, program: Path) -> None:
    require_own(program)
    opened, why = OPEN[how]
    opened(program)
    with pytest.raises(UserError, match=why) as refused:
        require_own(program)
    assert refused.value.exit_code == 2
    assert refused.value.hint


@pytest.mark.parametrize("how", ["another's file", "a folder for all", "another's link"])
def test_the_remedy_in_the_hint_is_one(how: str, program: Path) -> None:
    OPEN[how][0](program)
    with pytest.raises(UserError) as refused:
        require_own(program)
    subprocess.run(refused.value.hint.split("`")[1], shell=True, check=True)
    require_own(program)


def test_who_called_sudo_may_have_written_it(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(program, OTHER, OTHER)
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    require_own(program)
    os.chown(program.parent, OTHER - 1, OTHER)
    with pytest.raises(UserError, match="bin belongs to user 65533"):
        require_own(program)


def test_in_a_user_namespace_who_has_no_number_is_no_other(program: Path) -> None:
    """The host's own root has none in a container of a user, and /usr belongs to it."""
    inside = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip("the kernel allows no user namespaces here")
    os.chown(program, OTHER - 1, 0)
    code = "import sys, pathlib; from dbdyno.host.writers import *; require_own(pathlib.Path(sys.argv[1]))"
    subprocess.run([*inside, sys.executable, "-c", code, program], check=True)
    with pytest.raises(UserError):
        require_own(program)


def test_a_plan_of_root_runs_no_program_of_others(program: Path, homes: Path) -> None:
    study = homes / "study.toml"
    study.write_text(
        f'title = "Whose?"\nengine = "mariadb:{program}"\n[workload]\nname = "tpcb"\n'
        '[factors]\n"config.max_connections" = [100, 200]\n'
    )
    os.chown(program, OTHER, 0)
    done = dyno("plan", str(study))
    assert done.returncode == 2
    assert "belongs to nobody" in done.stderr
    assert not (program.parent.parent / "mark").exists()


def test_nor_does_it_load_a_library_or_run_a_compiler_of_others(program: Path) -> None:
    library = program.rename(program.with_name("libsqlite3.so.0"))
    os.chown(library, OTHER, 0)
    with pytest.raises(UserError, match="belongs to nobody"):
        ENGINES["sqlite"].obtaining.locate(Reference("sqlite", path=str(library)))
    compiler = library.rename(library.with_name("gcc-of-others"))
    with pytest.raises(UserError, match="belongs to nobody"):
        toolchain(str(compiler))
    assert not (program.parent.parent / "mark").exists()
