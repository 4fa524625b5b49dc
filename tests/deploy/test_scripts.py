"""`apply`, `undo` and `check`, run on a tree of files that stands for a host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dbdyno.deploy.files import PROGRAMS, SCRIPTS

SHELLS = [["dash"], ["bash", "--posix"], ["busybox", "sh"]]
ROWS = """\
service	mariadb
client	false
data	SELECT @@datadir
version	345	SELECT VERSION()
file	90-dyno.cnf	own	/etc/mysql/90-dyno.cnf
file	environment	last	/etc/server/environment
file	firebird.conf	first	/opt/server/firebird.conf
file	udev.rules	disk	/etc/udev/rules.d/90-dyno.rules
setting	innodb_io_capacity	345	SHOW GLOBAL VARIABLES LIKE 'innodb_io_capacity'
environment	LD_PRELOAD	libjemalloc.so.2
kernel	/proc/sys/vm/nr_hugepages	75
kernel	/sys/kernel/mm/transparent_hugepage/enabled	never
kernel	/sys/cpufreq/policy*/scaling_governor	performance
kernel	/sys/cpufreq/boost	1
queue	scheduler	bfq
hand	file system	mkfs.xfs DEVICE
"""
FILES = {
    "90-dyno.cnf": "[mysqld]\ninnodb_io_capacity = 345\n",
    "environment": "LD_PRELOAD = 'libjemalloc.so.2'\n",
    "firebird.conf": "DefaultDbCachePages = 3000\n",
    "udev.rules": 'KERNEL=="@DISK@"\n',
}
HOST = {
    "opt/server/firebird.conf": "DefaultDbCachePages = 2048\nTempCacheLimit = 64M\n",
    "proc/sys/vm/nr_hugepages": "0\n",
    "proc/77/environ": "A=1\0LD_PRELOAD=libjemalloc.so.2\0",
    "proc/77/maps": "7f00-7f01 r-xp 0 00:00 1 /usr/lib/libjemalloc.so.2\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "madvise\n",
    "sys/cpufreq/policy0/scaling_governor": "powersave\n",
    "sys/cpufreq/policy1/scaling_governor": "powersave\n",
    "sys/block/sda/queue/scheduler": "none\n",
}


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def shell(request: pytest.FixtureRequest) -> list[str]:
    chosen: list[str] = request.param
    if shutil.which(chosen[0]) is None:
        pytest.skip(f"no {chosen[0]} on this machine")
    return chosen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recipe's folder, and a host beside it."""
    made = tmp_path / "a recipe"
    made.mkdir()
    for name, text in {**FILES, "recipe.tsv": ROWS}.items():
        (made / name).write_text(text)
    for name in PROGRAMS:
        shutil.copy(SCRIPTS / name, made / name)
    for name, text in HOST.items():
        path = tmp_path / "the host" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return made


def run(shell: list[str], folder: Path, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    given = {"DESTDIR": str(folder.parent / "the host"), "DEVICE": "/dev/sda", "PID": "77", **more}
    given.setdefault("CLIENT", "printf 345")
    environment = {"PATH": os.environ["PATH"], **given}
    return subprocess.run(
        [*shell, str(folder / script)], env=environment, capture_output=True, text=True, cwd="/", check=False
    )


def host(folder: Path) -> dict[str, str]:
    root = folder.parent / "the host"
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_what_is_applied_twice_is_there_once_and_what_is_undone_is_gone(
    shell: list[str], folder: Path
) -> None:
    before = host(folder)
    said = run(shell, folder, "apply")
    assert (said.returncode, said.stderr) == (0, "")
    assert "by hand, file system: mkfs.xfs DEVICE" in said.stdout
    assert "systemctl restart mariadb" in said.stdout
    assert "this host has no /sys/cpufreq/boost" in said.stdout
    applied = host(folder)
    assert applied["etc/mysql/90-dyno.cnf"] == FILES["90-dyno.cnf"]
    assert applied["etc/udev/rules.d/90-dyno.rules"] == 'KERNEL=="sda"\n'
    assert applied["opt/server/firebird.conf"].startswith("# begin dyno\nDefaultDbCachePages = 3000\n")
    assert applied["opt/server/firebird.conf"].endswith(before["opt/server/firebird.conf"])
    assert applied["proc/sys/vm/nr_hugepages"] == "75\n"
    assert applied["sys/cpufreq/policy1/scaling_governor"] == "performance\n"
    assert applied["sys/block/sda/queue/scheduler"] == "bfq\n"
    assert run(shell, folder, "apply").returncode == 0
    assert host(folder) == applied
    said = run(shell, folder, "undo")
    assert (said.returncode, said.stderr) == (0, "")
    assert host(folder) == before
    assert not (folder / "saved").exists()


def test_a_server_of_another_release_is_refused_unless_asked_for(shell: list[str], folder: Path) -> None:
    before = host(folder)
    said = run(shell, folder, "apply", CLIENT="printf 3450")
    assert said.returncode == 1
    assert "is for release 345, and the server says 3450" in said.stderr
    assert host(folder) == before
    assert run(shell, folder, "apply", CLIENT="printf 3450", ANY_RELEASE="1").returncode == 0
    assert run(shell, folder, "apply", CLIENT="printf 345.6-more").returncode == 0


def test_undo_without_apply_changes_nothing(shell: list[str], folder: Path) -> None:
    before = host(folder)
    said = run(shell, folder, "undo")
    assert said.returncode == 0 and "nothing to undo" in said.stdout
    assert host(folder) == before


def test_undo_keeps_what_others_wrote_into_a_shared_file(shell: list[str], folder: Path) -> None:
    run(shell, folder, "apply")
    shared = folder.parent / "the host/opt/server/firebird.conf"
    shared.write_text(shared.read_text() + "Other = 1\n")
    run(shell, folder, "undo")
    assert shared.read_text() == HOST["opt/server/firebird.conf"] + "Other = 1\n"


def test_a_file_that_was_there_comes_back(shell: list[str], folder: Path) -> None:
    earlier = folder.parent / "the host/etc/mysql/90-dyno.cnf"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("# of another recipe\n")
    run(shell, folder, "apply")
    run(shell, folder, "apply")
    run(shell, folder, "undo")
    assert earlier.read_text() == "# of another recipe\n"


def test_where_all_is_in_effect_a_check_says_so(shell: list[str], folder: Path) -> None:
    run(shell, folder, "apply")
    (folder.parent / "the host/sys/cpufreq/boost").write_text("1\n")
    said = run(shell, folder, "check")
    assert (said.returncode, said.stderr) == (0, ""), said.stdout
    assert all(line.startswith("ok ") for line in said.stdout.splitlines())
    assert len(said.stdout.splitlines()) >= 10


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("proc/sys/vm/nr_hugepages", "74\n", "/proc/sys/vm/nr_hugepages"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n", "transparent_hugepage"),
        ("sys/cpufreq/policy1/scaling_governor", "powersave\n", "policy1"),
        ("sys/block/sda/queue/scheduler", "[none] bfq\n", "scheduler of sda"),
        ("etc/mysql/90-dyno.cnf", "[mysqld]\n", "/etc/mysql/90-dyno.cnf"),
        ("opt/server/firebird.conf", "DefaultDbCachePages = 2048\n", "/opt/server/firebird.conf"),
        ("proc/77/environ", "A=1\0", "LD_PRELOAD"),
        ("proc/77/maps", "7f00-7f01 r-xp 0 00:00 1 /usr/lib/libc.so.6\n", "LD_PRELOAD"),
    ],
)
def test_what_differs_is_named(shell: list[str], folder: Path, path: str, text: str, named: str) -> None:
    run(shell, folder, "apply")
    (folder.parent / "the host" / path).write_text(text)
    said = run(shell, folder, "check")
    [line] = [line for line in said.stdout.splitlines() if line.startswith("DIFFERS")]
    assert said.returncode == 1
    assert named in line


def test_a_setting_that_differs_is_named_with_both_values(shell: list[str], folder: Path) -> None:
    run(shell, folder, "apply")
    said = run(shell, folder, "check", CLIENT="printf innodb_io_capacity\\t200")
    assert said.returncode == 1
    assert "DIFFERS  innodb_io_capacity: the recipe has 345, here is 200" in said.stdout


def test_what_cannot_be_read_is_neither_in_effect_nor_different(shell: list[str], folder: Path) -> None:
    run(shell, folder, "apply")
    (folder.parent / "the host/sys/cpufreq/boost").write_text("1\n")
    said = run(shell, folder, "check", CLIENT="false", PID="78")
    assert said.returncode == 2
    unknown = [line for line in said.stdout.splitlines() if line.startswith("unknown")]
    assert [line.split()[1] for line in unknown] == ["version:", "innodb_io_capacity:", "LD_PRELOAD:"]


@pytest.mark.skipif(shutil.which("findmnt") is None, reason="needs findmnt: apt install mount")
def test_the_options_of_the_mount_of_the_data_are_compared(shell: list[str], folder: Path) -> None:
    find = ["findmnt", "--noheadings", "--output", "OPTIONS", "--target", str(folder)]
    found = subprocess.run(find, capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        pytest.skip("findmnt knows no mount of the folder of tests")
    one = found.split(",")[0]
    (folder / "recipe.tsv").write_text(f"mount\text4\t{one},nosuchoption\n")
    said = run(shell, folder, "check", DATA=str(folder))
    lines = [line for line in said.stdout.splitlines() if "mount option" in line]
    assert lines[0] == f"ok       mount option = {one}"
    assert lines[1].startswith("DIFFERS  mount option: the recipe has nosuchoption")
    assert said.returncode == 1


def test_a_value_that_the_kernel_refuses_is_told(shell: list[str], folder: Path) -> None:
    path = folder.parent / "the host/proc/sys/vm/nr_hugepages"
    path.unlink()
    path.symlink_to("/proc/sys/kernel/ostype")
    said = run(shell, folder, "apply")
    assert said.returncode == 1
    assert "did not take 75 for /proc/sys/vm/nr_hugepages" in said.stderr


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck: apt install shellcheck")
@pytest.mark.parametrize("script", PROGRAMS)
def test_a_script_is_clean(script: str) -> None:
    said = subprocess.run(
        ["shellcheck", "--shell=sh", str(SCRIPTS / script)], capture_output=True, text=True, check=False
    )
    assert said.stdout == ""
