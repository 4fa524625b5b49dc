"""`apply`, `undo` and `check`, run on a tree of files that stands for a host."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from dbdyno.deploy.files import PLACE, PROGRAMS, SCRIPTS, SOURCED
from tests.needs import IS_ROOT, on_machine

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


AS_ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can become somebody else")


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def shell(request: pytest.FixtureRequest) -> list[str]:
    chosen: list[str] = request.param
    if on_machine(chosen[0]) is None:
        pytest.skip(f"no shell {chosen[0]} on this machine")
    return chosen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recipe's folder, and a host beside it."""
    made = tmp_path / "a recipe"
    made.mkdir()
    for name, text in {**FILES, "recipe.tsv": ROWS}.items():
        (made / name).write_text(text)
    for name in (*PROGRAMS, *SOURCED):
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


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("applied")


@pytest.fixture
def applied(shell: list[str], folder: Path, made_once: Path) -> Path:
    """A recipe's folder that this shell has applied to the host beside it. It does so once, and the other
    tests have copies: `apply` starts hundreds of processes."""
    kept = made_once / shell[0]
    if not kept.exists():
        said = run(shell, folder, "apply")
        assert (said.returncode, said.stderr) == (0, "")
        shutil.copytree(folder.parent, kept, symlinks=True)
        return folder
    shutil.rmtree(folder)
    shutil.rmtree(folder.parent / "the host")
    shutil.copytree(kept, folder.parent, symlinks=True, dirs_exist_ok=True)
    (folder / "saved/root").write_text(f"{folder.parent / 'the host'}\n")
    return folder


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
    [kept] = folder.glob("undone-*")
    assert (kept / "before/opt/server/firebird.conf").read_text() == HOST["opt/server/firebird.conf"]
    assert run(shell, folder, "apply").returncode == 0 and host(folder) == applied


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


def test_undo_keeps_what_others_wrote_into_a_shared_file(shell: list[str], applied: Path) -> None:
    shared = applied.parent / "the host/opt/server/firebird.conf"
    shared.write_text(shared.read_text() + "Other = 1\n")
    run(shell, applied, "undo")
    assert shared.read_text() == HOST["opt/server/firebird.conf"] + "Other = 1\n"


def test_a_file_that_was_there_comes_back(shell: list[str], folder: Path) -> None:
    earlier = folder.parent / "the host/etc/mysql/90-dyno.cnf"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("# of another recipe\n")
    run(shell, folder, "apply")
    run(shell, folder, "apply")
    run(shell, folder, "undo")
    assert earlier.read_text() == "# of another recipe\n"


FIREBIRD = "opt/server/firebird.conf"
ENVIRONMENT = "etc/server/environment"
OWN = "etc/mysql/90-dyno.cnf"
PAGES = "proc/sys/vm/nr_hugepages"


def at(folder: Path, name: str) -> Path:
    """A file of the host, whose folder is made."""
    path = folder.parent / "the host" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize(
    "marked",
    [
        "# begin dyno\nDefaultDbCachePages = 3000\nOther = 1\nLast = 1\n",
        "DefaultDbCachePages = 3000\n# end dyno\nLast = 1\n",
        "# end dyno\nOther = 1\n# begin dyno\nLast = 1\n",
        "# begin dyno\n# begin dyno\nA = 1\n# end dyno\n# end dyno\nLast = 1\n",
    ],
)
def test_a_file_without_one_pair_of_marks_is_left_alone(shell: list[str], applied: Path, marked: str) -> None:
    at(applied, FIREBIRD).write_text(marked)
    for script in ("apply", "undo"):
        said = run(shell, applied, script)
        assert said.returncode == 1
        assert "left /opt/server/firebird.conf alone: it needs one '# begin dyno'" in said.stderr
        assert at(applied, FIREBIRD).read_text() == marked
    assert at(applied, PAGES).read_text() == "0\n", "what follows is undone all the same"
    assert (applied / "saved" / "before" / FIREBIRD).read_text() == HOST[FIREBIRD]


def test_marks_that_an_editor_gave_other_line_ends_are_still_marks(shell: list[str], applied: Path) -> None:
    edited = at(applied, FIREBIRD).read_text().replace("\n", "\r\n")
    at(applied, FIREBIRD).write_bytes(edited.encode())
    said = run(shell, applied, "apply")
    assert said.returncode == 1 and "others have changed the block of dyno" in said.stderr
    assert at(applied, FIREBIRD).read_bytes() == edited.encode()


def test_a_shared_file_that_is_gone_stops_nothing_else(shell: list[str], applied: Path) -> None:
    at(applied, FIREBIRD).unlink()
    said = run(shell, applied, "undo")
    assert said.returncode == 1
    assert "left /opt/server/firebird.conf alone: it is gone" in said.stderr
    assert host(applied) == {name: text for name, text in HOST.items() if name != FIREBIRD}
    assert (applied / "saved" / "before" / FIREBIRD).read_text() == HOST[FIREBIRD]
    assert run(shell, applied, "undo", KEEP="1").returncode == 0
    [kept] = applied.glob("undone-*")
    assert (kept / "before" / FIREBIRD).read_text() == HOST[FIREBIRD]


def test_a_file_that_apply_made_keeps_what_others_added(shell: list[str], applied: Path) -> None:
    for name in (ENVIRONMENT, OWN):
        with at(applied, name).open("a") as file:
            file.write("theirs = 1\n")
    said = run(shell, applied, "undo")
    assert said.returncode == 1
    assert "left /etc/mysql/90-dyno.cnf alone: others have changed it since" in said.stderr
    assert at(applied, ENVIRONMENT).read_text() == "theirs = 1\n"
    assert at(applied, OWN).read_text() == FILES["90-dyno.cnf"] + "theirs = 1\n"
    assert at(applied, PAGES).read_text() == "0\n"
    at(applied, OWN).unlink()
    assert run(shell, applied, "undo").returncode == 0
    assert at(applied, ENVIRONMENT).read_text() == "theirs = 1\n"


@pytest.mark.parametrize("script", ["apply", "undo"])
@pytest.mark.parametrize(
    ("name", "text"), [(OWN, "[mysqld]\nmine = 1\n"), (FIREBIRD, "# begin dyno\nMine = 1\n# end dyno\n")]
)
def test_what_others_changed_since_is_left_alone(
    shell: list[str], folder: Path, script: str, name: str, text: str
) -> None:
    at(folder, OWN).write_text("# as it was\n")
    run(shell, folder, "apply")
    at(folder, name).write_text(text)
    said = run(shell, folder, script)
    assert said.returncode == 1
    assert f"left /{name} alone: others have changed" in said.stderr
    assert at(folder, name).read_text() == text
    kept = folder / "saved" / "before" / name
    assert kept.read_text() == ("# as it was\n" if name == OWN else HOST[FIREBIRD])


def test_a_value_of_the_kernel_that_others_changed_since_is_left_alone(
    shell: list[str], applied: Path
) -> None:
    at(applied, PAGES).write_text("100\n")
    said = run(shell, applied, "undo")
    assert said.returncode == 1
    assert "left /proc/sys/vm/nr_hugepages alone: it is 100, which apply did not set" in said.stderr
    assert at(applied, PAGES).read_text() == "100\n"
    assert at(applied, "sys/block/sda/queue/scheduler").read_text() == "none\n"
    said = run(shell, applied, "apply")
    assert "set /proc/sys/vm/nr_hugepages to 75, it was 100" in said.stdout
    assert run(shell, applied, "undo").returncode == 0
    assert at(applied, PAGES).read_text() == "0\n"


def test_a_file_that_others_may_not_read_is_copied_for_nobody_else(shell: list[str], folder: Path) -> None:
    secret = at(folder, FIREBIRD)
    secret.chmod(0o600)
    run(shell, folder, "apply")
    assert secret.stat().st_mode & 0o777 == 0o600
    kept = folder / "saved"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert (kept / "before" / FIREBIRD).stat().st_mode & 0o777 == 0o600
    assert {path.name for path in kept.iterdir()} == {
        "before",
        "none",
        "root",
        "values",
        "written",
        "writing",
    }
    assert at(folder, OWN).stat().st_mode & 0o777 == 0o644
    assert at(folder, OWN).parent.stat().st_mode & 0o777 == 0o755


def test_a_file_keeps_its_attributes_and_owner(shell: list[str], folder: Path) -> None:
    path = at(folder, FIREBIRD)
    path.chmod(0o444)
    try:
        os.setxattr(path, "user.dyno", b"kept")
    except OSError as refused:
        pytest.skip(f"the disk of the tests takes no attributes: {refused.strerror}")
    if IS_ROOT:
        os.chown(path, 1234, 77)
    before = path.stat()
    for script in ("apply", "undo"):
        # Held open, because a file system gives the number of a file that is gone to the next one.
        with path.open("rb") as held:
            assert run(shell, folder, script).returncode == 0
            after = path.stat()
            assert after.st_ino != os.fstat(held.fileno()).st_ino, "written beside it and renamed"
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
        assert os.getxattr(path, "user.dyno") == b"kept"


def test_a_link_stays_and_leads_to_a_file_of_the_tree(shell: list[str], folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.cnf"
    outside.write_text("of another host\n")
    target = at(folder, str(outside).lstrip("/"))
    target.write_text("[mysqld]\n")
    at(folder, OWN).symlink_to(outside)
    assert run(shell, folder, "apply").returncode == 0
    assert at(folder, OWN).is_symlink()
    assert target.read_text() == FILES["90-dyno.cnf"]
    assert outside.read_text() == "of another host\n"
    assert run(shell, folder, "undo").returncode == 0
    assert at(folder, OWN).is_symlink() and target.read_text() == "[mysqld]\n"


def of_nobody(folder: Path) -> Path:
    """The folder of the server's own file, which another account may write, as Debian's `postgres` may."""
    shared = at(folder, OWN).parent
    shared.mkdir(parents=True, exist_ok=True)
    os.chown(shared, 65534, 65534)
    return shared


@AS_ROOT
def test_no_link_of_another_account_is_followed(shell: list[str], folder: Path) -> None:
    shared, secret = of_nobody(folder), at(folder, "etc/secret")
    secret.write_text("of root\n")
    for name, target in ((OWN, "/etc/secret"), (ENVIRONMENT, "/etc/mysql/there/secret")):
        at(folder, name).parent.mkdir(parents=True, exist_ok=True)
        at(folder, name).symlink_to(target)
    (shared / "there").symlink_to("/etc")
    said = run(shell, folder, "apply")
    assert said.returncode == 1
    told = "is a link, and the account nobody may write"
    for place in ("/etc/mysql/90-dyno.cnf", "/etc/mysql/there"):
        assert f"{place} {told}" in said.stderr
    assert secret.read_text() == "of root\n" and not (folder / "saved/before/etc/mysql").exists()
    checked = run(shell, folder, "check")
    assert "unknown  /etc/mysql/90-dyno.cnf: left /etc/mysql/90-dyno.cnf alone" in checked.stdout
    at(folder, OWN).unlink()
    assert "wrote /etc/mysql/90-dyno.cnf" in run(shell, folder, "apply").stdout
    at(folder, OWN).unlink()
    at(folder, OWN).symlink_to("/etc/secret")
    undone = run(shell, folder, "undo")
    assert (
        undone.returncode == 1
        and "is a link, and the account nobody may write in /etc/mysql" in undone.stderr
    )
    assert secret.read_text() == "of root\n" and at(folder, OWN).is_symlink()


@AS_ROOT
def test_what_lies_in_the_place_of_the_next_contents_leads_nowhere(shell: list[str], folder: Path) -> None:
    shared, elsewhere = of_nobody(folder), at(folder, "etc/elsewhere")
    elsewhere.mkdir()
    (shared / ".90-dyno.cnf.dyno").symlink_to(elsewhere)
    assert "wrote /etc/mysql/90-dyno.cnf" in run(shell, folder, "apply").stdout
    assert at(folder, OWN).read_text() == FILES["90-dyno.cnf"] and at(folder, OWN).stat().st_uid == 0
    assert list(elsewhere.iterdir()) == [] and [path.name for path in shared.iterdir()] == ["90-dyno.cnf"]


@AS_ROOT
@pytest.mark.skipif(on_machine("dash") is None, reason="no shell dash on this machine")
def test_whoever_swaps_folders_meanwhile_has_no_other_file_written(folder: Path) -> None:
    """Another account may rename what lies in a folder of its own at any moment."""
    shared, elsewhere = of_nobody(folder), at(folder, "etc/elsewhere")
    elsewhere.mkdir()
    (elsewhere / "90-dyno.cnf").write_text("of root\n")
    os.chown(shared.parent, 65534, 65534)
    aside, link, ended = shared.with_name("aside"), shared.with_name("link"), threading.Event()
    link.symlink_to(elsewhere)

    def swap() -> None:
        while not ended.is_set():
            for path, name in ((shared, aside), (link, shared), (shared, link), (aside, shared)):
                # The script has made a folder meanwhile.
                with suppress(OSError):
                    path.rename(name)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(6):
            run(["dash"], folder, "apply")
            run(["dash"], folder, "undo")
    finally:
        ended.set()
        swapper.join()
    assert (elsewhere / "90-dyno.cnf").read_text() == "of root\n"
    assert [path.name for path in elsewhere.iterdir()] == ["90-dyno.cnf"]


@AS_ROOT
def test_a_role_refuses_a_place_that_another_account_leads_to(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chown(shared, 65534, 65534)
    (shared / "link").symlink_to("/etc/passwd")
    places = {
        "/etc/sysctl.d/90-dyno.conf": (0, "own\n", ""),
        str(shared / "file"): (0, "shared\n", ""),
        str(shared / "link"): (1, "", "is a link, and "),
    }
    for place, (code, told, why) in places.items():
        said = subprocess.run(
            ["sh", str(SCRIPTS / PLACE), place], capture_output=True, text=True, check=False
        )
        assert (said.returncode, said.stdout) == (code, told) and why in said.stderr, said.stderr


def test_links_in_a_circle_and_folders_are_left_alone(shell: list[str], folder: Path) -> None:
    at(folder, OWN).symlink_to("90-dyno.cnf")
    at(folder, ENVIRONMENT).mkdir()
    said = run(shell, folder, "apply")
    assert said.returncode == 1
    assert "left /etc/mysql/90-dyno.cnf alone: its links lead in a circle" in said.stderr
    assert "left /etc/server/environment alone: it is no file" in said.stderr
    assert at(folder, FIREBIRD).read_text().startswith("# begin dyno\n")


def test_a_recipe_that_was_edited_and_applied_again_is_undone_as_well(
    shell: list[str], applied: Path
) -> None:
    for name in ("90-dyno.cnf", "firebird.conf"):
        (applied / name).write_text("Edited = 1\n")
    table = (applied / "recipe.tsv").read_text()
    (applied / "recipe.tsv").write_text(table.replace("nr_hugepages\t75", "nr_hugepages\t80"))
    assert run(shell, applied, "apply").returncode == 0
    assert at(applied, OWN).read_text() == "Edited = 1\n"
    assert at(applied, PAGES).read_text() == "80\n"
    said = run(shell, applied, "undo")
    assert (said.returncode, said.stderr) == (0, "")
    assert host(applied) == HOST


def test_the_block_of_an_earlier_recipe_comes_back(shell: list[str], folder: Path) -> None:
    earlier = "# begin dyno\nDefaultDbCachePages = 9\n# end dyno\nTempCacheLimit = 64M\n"
    at(folder, FIREBIRD).write_text(earlier)
    for added in ("", "Other = 1\n"):
        run(shell, folder, "apply")
        assert "DefaultDbCachePages = 9" not in at(folder, FIREBIRD).read_text()
        with at(folder, FIREBIRD).open("a") as file:
            file.write(added)
        assert run(shell, folder, "undo").returncode == 0
        assert at(folder, FIREBIRD).read_text() == earlier + added


def test_a_folder_of_copies_is_of_one_tree(shell: list[str], applied: Path) -> None:
    for script in ("apply", "undo"):
        said = run(shell, applied, script, DESTDIR="/nonexistent/tree")
        assert said.returncode == 1
        assert "give it as DESTDIR" in said.stderr


def test_where_all_is_in_effect_a_check_says_so(shell: list[str], applied: Path) -> None:
    (applied.parent / "the host/sys/cpufreq/boost").write_text("1\n")
    said = run(shell, applied, "check")
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
def test_what_differs_is_named(shell: list[str], applied: Path, path: str, text: str, named: str) -> None:
    (applied.parent / "the host" / path).write_text(text)
    said = run(shell, applied, "check")
    [line] = [line for line in said.stdout.splitlines() if line.startswith("DIFFERS")]
    assert said.returncode == 1
    assert named in line


def test_a_setting_that_differs_is_named_with_both_values(shell: list[str], applied: Path) -> None:
    said = run(shell, applied, "check", CLIENT="printf innodb_io_capacity\\t200")
    assert said.returncode == 1
    assert "DIFFERS  innodb_io_capacity: the recipe has 345, here is 200" in said.stdout


@pytest.mark.parametrize(
    ("client", "code", "told"),
    [
        ("printf \\n", 0, 'ok       init_connect = ""'),
        ("printf init_connect\\t\\n", 0, 'ok       init_connect = ""'),
        ("printf 345", 1, 'DIFFERS  init_connect: the recipe has "", here is 345'),
        ("true", 2, "unknown  init_connect: the server was not asked"),
        ("false", 2, "unknown  init_connect: the server was not asked"),
    ],
)
def test_a_setting_may_be_empty_and_a_server_that_says_nothing_was_not_asked(
    shell: list[str], folder: Path, client: str, code: int, told: str
) -> None:
    (folder / "recipe.tsv").write_text('setting\tinit_connect\t""\tSHOW init_connect\n')
    said = run(shell, folder, "check", CLIENT=client)
    assert said.returncode == code, said.stdout
    assert told in said.stdout


def test_what_cannot_be_read_is_neither_in_effect_nor_different(shell: list[str], applied: Path) -> None:
    (applied.parent / "the host/sys/cpufreq/boost").write_text("1\n")
    said = run(shell, applied, "check", CLIENT="false", PID="78")
    assert said.returncode == 2
    unknown = [line for line in said.stdout.splitlines() if line.startswith("unknown")]
    assert [line.split()[1] for line in unknown] == ["version:", "innodb_io_capacity:", "LD_PRELOAD:"]


@pytest.mark.skipif(on_machine("findmnt") is None, reason="needs findmnt: apt install mount")
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


@pytest.mark.skipif(on_machine("shellcheck") is None, reason="needs shellcheck: apt install shellcheck")
@pytest.mark.parametrize("script", (*PROGRAMS, *SOURCED))
def test_a_script_is_clean(script: str) -> None:
    command = ["shellcheck", "--external-sources", "--shell=sh", str(SCRIPTS / script)]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""
