"""A guest's packages are found by their architecture, and their absence is told with the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.sqlite import shell
from dbdyno.errors import DynoError, EngineMissing, Unreachable, UserError
from dbdyno.host.cache import silently
from dbdyno.machine import packages
from dbdyno.machine.kinds import KINDS, machine_kind
from dbdyno.machine.packages import KEXEC, SHELL, Parts
from dbdyno.obtain.debian import Fetched

KIND = KINDS["ppc64el"]


def parts(prefix: Path) -> Parts:
    copy = Fetched("machine-of-sqlite", "3.40.1", "bookworm", prefix, "digest", 0.0, "ppc64el")
    return Parts(KIND, copy, shell.PROGRAM)


def test_a_guest_that_is_not_here_is_told_with_the_command(homes: Path) -> None:
    with pytest.raises(EngineMissing) as caught:
        packages.locate(KIND, shell.RECIPE)
    assert caught.value.message == "the guest of ppc64el with sqlite is not on this machine"
    assert caught.value.hint == "`dyno engines fetch sqlite --platform ppc64el --machine` obtains it"
    assert list(packages.offers(shell.RECIPE)) == []


def test_a_mirror_that_does_not_answer_is_told_with_the_way_around(homes: Path) -> None:
    with pytest.raises(Unreachable) as caught:
        packages.fetch(KIND, shell.RECIPE, "", "http://127.0.0.1:9/debian", silently)
    assert caught.value.message.startswith("the guest of ppc64el cannot be fetched: ")
    assert "`dyno engines fetch sqlite --platform ppc64el --machine`" in caught.value.hint
    assert "/engines/ppc64el-of-machine-of-sqlite-*" in caught.value.hint


def test_a_version_that_no_suite_holds_is_told_by_the_engines_name(homes: Path) -> None:
    with pytest.raises(UserError, match=r"^sqlite@9 is in no Debian suite"):
        packages.fetch(KIND, shell.RECIPE, "9", "", silently)


def test_an_architecture_without_a_machine_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="a machine of s390x is not emulated whole here"):
        machine_kind("s390x")


def test_the_newest_kernel_of_a_copy_is_taken(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    with pytest.raises(DynoError, match="no kernel below"):
        parts(tmp_path).kernel  # noqa: B018
    for release in ("6.1.0-49-powerpc64le", "6.1.0-50-powerpc64le"):
        (tmp_path / f"boot/vmlinux-{release}").touch()
    assert parts(tmp_path).kernel_release == "6.1.0-50-powerpc64le"


def test_a_part_that_is_missing_is_told(tmp_path: Path) -> None:
    for name in (SHELL, KEXEC):
        assert not (tmp_path / name).exists()
    with pytest.raises(DynoError, match=r"no ld64\.so\.2 below"):
        parts(tmp_path).files()
