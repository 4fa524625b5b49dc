"""Builds are made once, whole or not at all, without the network, and go on where they were cut short."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbdyno.errors import Blocked, BuildFailed, DynoError
from dbdyno.host import cache, paths
from dbdyno.host.cache import silently
from dbdyno.obtain.source import commands, making
from dbdyno.obtain.source.build import ALWAYS, Flags
from dbdyno.obtain.source.making import Materials, account_of, made, prepared, remove_torn
from dbdyno.obtain.source.toolchain import toolchain
from dbdyno.obtain.source.tree import Patch
from tests.needs import needs_any_gcc, needs_patch, needs_root
from tests.obtain.source.making_cases import COMPILE, materials

pytestmark = [
    pytest.mark.usefixtures("homes"),
    needs_any_gcc,
]

COUNT = ("sh", "-c", "echo once >> {source}/../../count")


def test_a_build_is_made_once_and_tells_how(tmp_path: Path) -> None:
    wanted, told = materials(tmp_path, COUNT, COMPILE), list[str]()
    folder = made(wanted, told.append)
    assert subprocess.run([folder / "prefix" / "toy"], check=False).returncode == 3
    account = account_of(folder)
    assert (account.key, account.words, account.source) == (
        wanted.build.key,
        "gcc -O1",
        str(tmp_path / "toy"),
    )
    assert "toy, gcc -O1: step 2, 2 of 2" in told
    assert not (folder / "work").exists() and "-O1" in (folder / "build.log").read_text()
    cache.release()
    assert made(wanted, told.append) == folder
    assert (paths.cache() / "builds" / "count").read_text() == "once\n"


def test_a_source_is_prepared_once_for_all_builds(tmp_path: Path) -> None:
    generate = [{"name": "generate", "command": ["sh", "-c", "echo x >> generated"], "folder": "{source}"}]
    one = materials(tmp_path, generate=generate)
    other = Materials(one.recipe, one.source, (), one.toolchain, Flags(compile=("-O2",)), "gcc -O2")
    trees = {prepared(each, silently) for each in (one, other)}
    assert one.build.key != other.build.key and len(trees) == 1
    assert (trees.pop() / "generated").read_text() == "x\n"


def test_builds_that_differ_in_the_linkers_flags_share_their_objects(tmp_path: Path) -> None:
    count = "echo once >> {source}/../../count; {cc} $CFLAGS $LDFLAGS -c -o {build}/toy.o {source}/toy.c"
    link = ("{cc}", "{cflags}", "-o", "{prefix}/toy", "{build}/toy.o", "{ldflags}")
    plain = materials(tmp_path, ("sh", "-c", count), link)
    compiling = plain.recipe.steps[0].but(shared=True)
    recipe = plain.recipe.but(steps=(compiling, plain.recipe.steps[1]))
    plain = replace(plain, recipe=recipe)
    linked = replace(plain, flags=plain.flags + Flags(link=("-fno-such-flag",)))
    others = [
        replace(plain, seed=7),
        replace(plain, flags=plain.flags + Flags(link=("-Wl,-z,now",))),
        replace(plain, flags=plain.flags + Flags(compile=("-O2",))),
    ]
    folders = [made(each, silently) for each in (plain, *others)]
    assert all(subprocess.run([one / "prefix" / "toy"], check=False).returncode == 3 for one in folders)
    assert all("toy.o" in (one / "build.log").read_text() for one in folders)
    with pytest.raises(BuildFailed, match="step 2: "):
        made(linked, silently)
    assert (paths.cache() / "sources" / "count").read_text() == "once\n" * 2


def test_what_a_build_writes_into_its_source_stays_its_own(tmp_path: Path) -> None:
    change = ("sh", "-c", "echo 'int main(void) { return 9; }' >{source}/toy.c; touch {source}/more")
    changing = materials(tmp_path, change, COMPILE)
    assert subprocess.run([made(changing, silently) / "prefix" / "toy"], check=False).returncode == 9
    shared = prepared(changing, silently)
    assert [path.name for path in shared.iterdir()] == ["toy.c"]
    plain = materials(tmp_path, COMPILE)
    assert prepared(plain, silently) == shared
    folder = made(plain, silently)
    assert subprocess.run([folder / "prefix" / "toy"], check=False).returncode == 3
    assert not (folder / "tree").exists()


def test_a_build_for_this_cpu_is_another_one_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = replace(materials(tmp_path), flags=Flags(compile=("-march=native",)))
    here = native.build
    assert here.target and not materials(tmp_path).build.target
    monkeypatch.setattr(making, "native_target", lambda *_: ("-march=another",))
    assert native.build.key != here.key


def test_a_seed_makes_another_build_and_the_script_stays_beside_it(tmp_path: Path) -> None:
    plain = materials(tmp_path)
    seeded = replace(plain, seed=7)
    assert len({each.build.key for each in (plain, seeded, replace(plain, seed=8))}) == 3
    assert "script" not in plain.build.model_dump()
    folder = made(seeded, silently)
    assert account_of(folder).layout == "7" and account_of(made(plain, silently)).layout == ""
    assert f"-Wl,-T,{folder}.making/layout.ld" in (folder / "build.log").read_text()
    assert not (made(plain, silently) / "layout.ld").exists()


@needs_patch
def test_a_patch_makes_another_source_and_another_build(tmp_path: Path) -> None:
    plain = materials(tmp_path)
    change = b"--- a/toy.c\n+++ b/toy.c\n@@ -1 +1 @@\n"
    change += b"-int main(void) { return 3; }\n+int main(void) { return 4; }\n"
    patch = Patch(name="four.patch", content=change)
    patched = Materials(plain.recipe, plain.source, (patch,), plain.toolchain, plain.flags, "gcc -O1")
    answers = [
        subprocess.run([made(each, silently) / "prefix" / "toy"], check=False).returncode
        for each in (plain, patched)
    ]
    assert answers == [3, 4]
    [told] = account_of(made(patched, silently)).patches
    assert told == f"four.patch {patch.digest[:12]}"
    assert (tmp_path / "toy" / "toy.c").read_text() == "int main(void) { return 3; }\n"


def test_the_compilers_first_error_is_the_cause_and_nothing_is_kept(tmp_path: Path) -> None:
    broken = materials(tmp_path, COUNT, COMPILE, code="int main(void) { return 3 }\n")
    for _ in range(2):
        with pytest.raises(BuildFailed, match=r"step 2: toy\.c:1:\d+: error: expected ';'") as failed:
            made(broken, silently)
        assert "error: expected" in failed.value.log
    # The second one was told at once.
    assert (paths.cache() / "builds" / "count").read_text() == "once\n"
    assert cache.shelf("builds").names() == []
    assert not list((paths.cache() / "builds").glob("*.making"))


def test_commands_that_make_no_program_are_no_build(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="made no toy"):
        made(materials(tmp_path, ("true",)), silently)


def test_a_link_to_what_was_not_built_is_no_build(tmp_path: Path) -> None:
    link = ("ln", "-s", "/bin/sh", "{prefix}/toy")
    with pytest.raises(BuildFailed, match="made no toy below the prefix"):
        made(materials(tmp_path, link), silently)


@pytest.mark.parametrize(("made_here", "needed"), [("toy.c", False), ("other.c", True)])
def test_what_a_step_needs_is_asked_for_unless_its_file_is_there(
    tmp_path: Path, made_here: str, needed: bool
) -> None:
    lemon = {"name": "lemon", "command": ["true"], "folder": "{source}", "makes": made_here}
    wanted = materials(tmp_path, generate=[{**lemon, "needs": {"no-such-program": "nsp"}}])
    if not needed:
        made(wanted, silently)
        return
    with pytest.raises(Blocked, match="a build needs no-such-program") as refused:
        made(wanted, silently)
    assert refused.value.hint == "apt-get install nsp"
    assert list((paths.cache() / "sources").glob("*/tree")) == []


def test_a_build_has_no_network(tmp_path: Path) -> None:
    if commands.wrapper() is None:
        pytest.skip("this kernel refuses a network namespace")
    listing = ("sh", "-c", "ls /sys/class/net >/dev/null; cat /proc/net/dev >{prefix}/toy")
    interfaces = (made(materials(tmp_path, listing), silently) / "prefix" / "toy").read_text()
    assert [line.split(":")[0].strip() for line in interfaces.splitlines()[2:]] == ["lo"]


def test_a_source_that_asks_for_the_network_is_told_so(tmp_path: Path) -> None:
    if commands.wrapper() is None:
        pytest.skip("this kernel refuses a network namespace")
    asking = ("sh", "-c", "echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6")
    with pytest.raises(BuildFailed, match="the source asked for the network"):
        made(materials(tmp_path, asking), silently)


def test_a_full_disk_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = ("sh", "-c", "echo 'cc1: error: write: No space left on device' >&2; exit 1")
    with pytest.raises(BuildFailed, match="the disk is full"):
        made(materials(tmp_path, full), silently)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(DynoError, match="a build of toy needs 1 MiB"):
        made(materials(tmp_path), silently)


@needs_root
@pytest.mark.parametrize("says", ["echo little", "seq 9999"])
def test_a_disk_that_fills_up_in_mid_build_leaves_nothing(tmp_path: Path, says: str) -> None:
    """Whether the log still finds room or not."""
    builds = paths.cache() / "builds"
    builds.mkdir()
    if (
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", builds], check=False).returncode
        != 0
    ):
        pytest.skip("this host refuses a mount")
    try:
        filling = ("sh", "-c", f"head -c 8M /dev/zero >rest; {says}; exit 1")
        with pytest.raises(BuildFailed, match="the disk is full") as failed:
            made(materials(tmp_path, filling), silently)
        assert "make room" in failed.value.hint
        assert not list(builds.glob("*.making"))
        assert (made(materials(tmp_path), silently) / "prefix" / "toy").is_file()
    finally:
        cache.release()
        subprocess.run(["umount", builds], check=True)


PROJECT = {
    "one.c": """
        #include <assert.h>
        #include <stdio.h>
        int doubled(int);
        static int own(int value) { assert(value > 0); return value + 1; }
        int main(void) { printf("%s of %s %s", __FILE__, __DATE__, __TIME__); return own(doubled(2)); }
    """,
    "two.c": """
        static int own(int value) { return value << 1; }
        int doubled(int value) { return own(value); }
    """,
    "three.c": "int tripled(int value) { return 3 * value; }\n",
}


@pytest.mark.parametrize("flags", [("-O2",), ("-O2", "-g"), ("-O2", "-flto=auto")], ids=" ".join)
def test_the_same_key_gives_the_same_file_wherever_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """From scratch, from another folder, below another cache: several files, an archive, paths and dates."""
    objects = [("{cc}", "{cflags}", "-c", f"{{source}}/{name}") for name in PROJECT]
    archive = ("sh", "-c", "${AR:-ar} rcs rest.a two.o three.o")
    link = ("{cc}", "{cflags}", "-o", "{prefix}/toy", "one.o", "rest.a", "{ldflags}")
    found = []
    for name in ("here", "another-place-with-a-longer-name"):
        folder = tmp_path / name
        (folder / "toy").mkdir(parents=True)
        for file, code in PROJECT.items():
            (folder / "toy" / file).write_text(code)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        asked = materials(folder, *objects, archive, link)
        wanted = replace(asked, flags=Flags(compile=(*flags, "-frecord-gcc-switches"), link=ALWAYS[1]))
        found.append((wanted.build.key, (made(wanted, silently) / "prefix" / "toy").read_bytes()))
    assert found[0] == found[1]


INTERRUPTED = """
import sys
from pathlib import Path
from tests.obtain.source.test_making import STOPPED, materials
from dbdyno.obtain.source.making import made
made(materials(Path(sys.argv[1]), *STOPPED), lambda line: print(line, flush=True))
"""
STOPPED = (
    (
        "sh",
        "-c",
        "echo run >>first; touch -d @1000 first; touch here; "
        "until test -e {source}/../../go; do sleep 0.1; done",
    ),
    ("sh", "-c", "cp first {prefix}/toy"),
)


def until(condition: Path, process: subprocess.Popen[str]) -> None:
    while not condition.exists():
        assert process.poll() is None
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
def test_a_build_that_was_cut_short_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    name = materials(tmp_path, *STOPPED).build.name
    work = paths.cache() / "builds" / f"{name}.making" / "work"
    victim = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    until(work / "here", victim)
    victim.send_signal(how)
    victim.communicate()
    assert (work / "first").read_text() == "run\n"
    (paths.cache() / "builds" / "go").touch()
    told: list[str] = []
    folder = made(materials(tmp_path, *STOPPED), told.append)
    assert (folder / "prefix" / "toy").read_text() == "run\nrun\n"
    assert "going on with a build of toy that was interrupted" in told


def test_a_build_that_goes_on_has_its_source_whole(tmp_path: Path) -> None:
    """What a killed build may have torn of its own copy is laid again, and what it made of it stays."""
    wanted = materials(tmp_path, ("sh", "-c", "cp {source}/made {source}/toy.c {prefix}; touch {prefix}/toy"))
    left = paths.cache() / "builds" / f"{wanted.build.name}.making"
    (left / "work").mkdir(parents=True)
    shutil.copytree(prepared(wanted, silently), left / "tree")
    (left / "tree" / "toy.c").write_text("int ma")
    (left / "tree" / "made").write_text("long ago")
    os.utime(left / "tree" / "made", (1000, 1000))
    prefix = made(wanted, silently) / "prefix"
    assert (prefix / "made").read_text() == "long ago"
    assert (prefix / "toy.c").read_text() == "int main(void) { return 3; }\n"


def test_a_build_that_goes_on_counts_all_its_parts(tmp_path: Path) -> None:
    wanted = materials(tmp_path)
    left = paths.cache() / "builds" / f"{wanted.build.name}.making"
    (left / "work").mkdir(parents=True)
    (left / "spent.json").write_text('{"spent_s": 1000.0, "began_unix_s": 5000.0}')
    (left / "build.log").touch()
    os.utime(left / "build.log", (5500, 5500))
    folder = made(wanted, silently)
    assert account_of(folder).took_s >= 1500.0
    assert sorted(path.name for path in folder.iterdir()) == [
        "account.json",
        "build.json",
        "build.log",
        "prefix",
    ]


def test_of_two_processes_one_makes_it(tmp_path: Path) -> None:
    (paths.cache() / "builds").mkdir()
    (paths.cache() / "builds" / "go").touch()
    materials(tmp_path)
    start = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    both = [
        subprocess.Popen(start, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
        for _ in range(2)
    ]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("step 1, 1 of 2" in text for text in said) == 1


def test_files_that_may_be_torn_are_made_again(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, age_s in (("old.o", 100), ("deep/new.o", 1), ("newest.c", 0), (".ninja_log", 0)):
        path = tmp_path / name
        path.touch()
        os.utime(path, (1_000_000 - age_s, 1_000_000 - age_s))
    remove_torn(tmp_path)
    assert {path.name for path in tmp_path.rglob("*.*")} == {"old.o", ".ninja_log"}


def test_the_archivers_of_a_link_are_those_of_what_it_leads_to(tmp_path: Path) -> None:
    for name in ("gcc-12", "gcc-ar-12", "gcc-nm-12", "gcc-ar"):
        (tmp_path / name).touch()
    (tmp_path / "cc").symlink_to("gcc-12")
    (tmp_path / "gcc").symlink_to("gcc-12")
    compiler = toolchain("gcc")
    named = {
        name: making._archivers(compiler.but(cc=str(tmp_path / name))) for name in ("cc", "gcc", "gcc-12")
    }
    of_12 = {"AR": str(tmp_path / "gcc-ar-12"), "NM": str(tmp_path / "gcc-nm-12")}
    assert named == {"cc": of_12, "gcc": of_12, "gcc-12": of_12}


@pytest.mark.parametrize(
    ("number", "message", "hint"),
    [
        (errno.ENOSPC, "the disk is full", "make room"),
        (errno.EDQUOT, "the disk is full", "make room"),
        (errno.EACCES, "Permission denied: /a/place", "look whether /a/place is there"),
    ],
)
def test_what_the_system_refuses_is_told_by_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, message: str, hint: str
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/a/place")

    monkeypatch.setattr(making, "_carry_out", refused)
    with pytest.raises(BuildFailed, match=message) as failed:
        made(materials(tmp_path), silently)
    assert hint in failed.value.hint


def test_a_build_that_goes_on_needs_room_for_the_rest_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(making, "require_disk", lambda _, needed_bytes, _what: asked.append(needed_bytes))
    build = materials(tmp_path)
    fresh, resumed = tmp_path / "fresh", tmp_path / "resumed"
    for folder in (fresh, resumed):
        folder.mkdir()
    (resumed / "object").write_bytes(bytes(256 << 10))
    for folder in (fresh, resumed):
        making._make(folder, build, silently, None)
    whole_bytes, _, rest_bytes, _ = asked
    assert whole_bytes == build.recipe.room_mib << 20
    assert rest_bytes == whole_bytes - (resumed / "object").stat().st_blocks * 512
