"""Fetching from a Debian archive: what is accepted, what is refused, and what a crash leaves."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from dbdyno.errors import DynoError, Unreachable, UserError
from dbdyno.host import paths
from dbdyno.obtain import apt, debian
from dbdyno.obtain.tarball import harmless, unpack
from tests.needs import on_machine
from tests.obtain import signed_repository
from tests.obtain.signed_repository import SignedRepository

pytestmark = pytest.mark.skipif(
    not all(on_machine(program) for program in ("apt-get", "dpkg", "gpg")),
    reason="needs apt, dpkg and gpg, which this machine lacks",
)

RECIPE = debian.DebianRecipe(
    engine="toy",
    packages=("toy-server",),
    server="toy-server",
    binary="usr/sbin/toyd",
    suites={"3.1": signed_repository.SUITE},
)


@pytest.fixture
def repository(tmp_path: Path, homes: Path) -> SignedRepository:
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    )
    return signed_repository.make(
        tmp_path / "repository",
        package="toy-server",
        version="1:3.1.4-2",
        files={"usr/sbin/toyd": b"#!/bin/sh\necho toyd 3.1.4\n", "usr/share/toy/big": bytes(300_000)},
        architecture=architecture.stdout.strip(),
    )


def fetch(repository: SignedRepository, version: str = "3.1") -> debian.Fetched:
    return debian.fetch(RECIPE, version, mirror=repository.mirror, keyring=repository.keyring)


def test_a_fetched_engine_is_complete_and_says_where_it_came_from(repository: SignedRepository) -> None:
    there = fetch(repository)
    assert there.version == "3.1.4"
    assert (there.prefix / RECIPE.binary).read_bytes().startswith(b"#!/bin/sh")
    manifest = json.loads((there.prefix / debian.MANIFEST).read_text())
    assert manifest["suite"] == signed_repository.SUITE
    assert [one["name"] for one in manifest["packages"]] == [repository.archive.name.replace("1:", "1%3a")]
    assert len(manifest["packages"][0]["sha256"]) == 64
    assert debian.fetched("toy") == [there]
    assert debian.offers(RECIPE) == []


def test_what_is_there_already_is_not_unpacked_again(repository: SignedRepository) -> None:
    first = fetch(repository)
    mark = first.prefix / "mark"
    mark.touch()
    assert fetch(repository) == first
    assert mark.exists()


def test_nothing_but_the_engine_is_left(repository: SignedRepository) -> None:
    prefix = fetch(repository).prefix
    left = {path.name for path in prefix.parent.iterdir()}
    assert left == {prefix.name}


def test_an_index_that_was_changed_is_refused(repository: SignedRepository) -> None:
    signed = repository.in_release.read_bytes()
    repository.in_release.write_bytes(signed.replace(b"Origin: Debian", b"Origin: Nobody"))
    with pytest.raises(DynoError) as refused:
        fetch(repository)
    assert refused.value.exit_code == 1
    assert "InRelease" in refused.value.message
    assert "not what Debian signed" in refused.value.hint
    assert debian.fetched("toy") == []


def test_an_index_without_a_signature_is_refused(repository: SignedRepository) -> None:
    text = repository.in_release.read_text()
    release = text.split("\n\n", 1)[1].split("-----BEGIN PGP SIGNATURE", 1)[0]
    repository.in_release.with_name("Release").write_text(release)
    repository.in_release.unlink()
    with pytest.raises(DynoError, match="not signed"):
        fetch(repository)
    assert debian.fetched("toy") == []


def test_a_key_that_the_keyring_lacks_is_refused_with_the_remedy(repository: SignedRepository) -> None:
    with pytest.raises(DynoError) as refused:
        debian.fetch(RECIPE, "3.1", mirror=repository.mirror, keyring=apt.KEYRINGS[0])
    assert "debian-archive-keyring" in refused.value.hint


def test_a_missing_keyring_is_named(repository: SignedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "KEYRINGS", (Path("/nowhere/keyring.gpg"),))
    with pytest.raises(UserError, match="/nowhere/keyring"):
        debian.fetch(RECIPE, "3.1", mirror=repository.mirror)


@pytest.mark.parametrize("cut", [0, 1000], ids=["changed", "truncated"])
def test_a_package_that_is_not_the_promised_one_is_refused(repository: SignedRepository, cut: int) -> None:
    content = bytearray(repository.archive.read_bytes())
    content[500] ^= 0xFF
    repository.archive.write_bytes(content[: len(content) - cut])
    with pytest.raises(DynoError) as refused:
        fetch(repository)
    assert "mirror" in refused.value.hint
    assert debian.fetched("toy") == []


def test_a_mirror_without_the_suite_is_named(repository: SignedRepository) -> None:
    shutil.rmtree(repository.folder / "dists")
    with pytest.raises(DynoError) as refused:
        fetch(repository)
    assert "does not have that suite" in refused.value.hint


def test_a_mirror_that_is_no_address_is_the_users_mistake(repository: SignedRepository) -> None:
    with pytest.raises(UserError, match="not the address of a mirror"):
        debian.fetch(RECIPE, "3.1", mirror="trixie", keyring=repository.keyring)


def test_a_version_that_no_suite_holds_is_the_users_mistake(repository: SignedRepository) -> None:
    with pytest.raises(UserError) as unknown:
        fetch(repository, "9.9")
    assert "toy@3.1 (trixie)" in unknown.value.hint
    with pytest.raises(UserError, match=r"holds toy 3\.1\.4, not 3\.1\.99"):
        fetch(repository, "3.1.99")


def test_a_fetch_removes_what_a_killed_one_left(repository: SignedRepository) -> None:
    shelf = paths.cache() / "engines"
    work = shelf / "toy-trixie.making"
    (work / "unpacked" / "usr").mkdir(parents=True)
    (work / "unpacked" / "half").touch()
    (work / "cache/archives/partial").mkdir(parents=True)
    (work / "cache/archives/partial" / repository.archive.name).write_bytes(b"half a package")
    there = fetch(repository)
    assert not (there.prefix / "half").exists()
    assert not work.exists()


def test_a_folder_without_a_manifest_is_not_taken_for_an_engine(repository: SignedRepository) -> None:
    prefix = fetch(repository).prefix
    (prefix / debian.MANIFEST).unlink()
    (prefix / RECIPE.binary).write_text("broken")
    assert debian.fetched("toy") == []
    assert (fetch(repository).prefix / RECIPE.binary).read_text() != "broken"


def test_two_fetches_at_once_take_turns(repository: SignedRepository) -> None:
    got: list[debian.Fetched] = []
    threads = [threading.Thread(target=lambda: got.append(fetch(repository))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 2
    assert got[0] == got[1]


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_killed_fetch_holds_up_nobody(repository: SignedRepository, call: int, tmp_path: Path) -> None:
    """Kills a fetch while apt works for it, at apt's first, second or third call, and fetches again."""
    (tmp_path / "bin").mkdir()
    slow, calls = tmp_path / "bin" / "apt-get", tmp_path / "calls"
    slow.write_text(f'#!/bin/sh\necho >>{calls}\nsleep 0.5\nexec {on_machine("apt-get")} "$@"\n')
    slow.chmod(0o755)
    calls.touch()
    script = (
        "import sys; from pathlib import Path; from tests.obtain.test_debian import RECIPE; "
        "from dbdyno.obtain import debian; "
        "debian.fetch(RECIPE, '3.1', mirror=sys.argv[1], keyring=Path(sys.argv[2]),"
        " tell=lambda line: print(line, flush=True))"
    )
    root = Path(__file__).parents[2]
    victim = subprocess.Popen(
        [sys.executable, "-c", script, repository.mirror, str(repository.keyring)],
        stdout=subprocess.DEVNULL,
        cwd=root,
        env={**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}"},
    )
    while calls.stat().st_size < call:
        assert victim.poll() is None, "it ended before that call"
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    assert fetch(repository).version == "3.1.4"


def test_a_package_cannot_write_outside_its_folder(tmp_path: Path, homes: Path) -> None:
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    )
    evil = signed_repository.make(
        tmp_path / "evil",
        package="toy-server",
        version="1:3.1.4-2",
        files={"../../escaped": b"x", "usr/sbin/toyd": b""},
        architecture=architecture.stdout.strip(),
    )
    with pytest.raises(DynoError, match="outside"):
        fetch(evil)
    assert not list(tmp_path.rglob("escaped"))


def test_a_package_is_unpacked_without_special_bits(tmp_path: Path) -> None:
    """Python 3.11.2, which Debian 12 ships, has no filter of its own to do this."""
    path = tmp_path / "packed.tar"
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo("/usr/bin/special")
        entry.mode = 0o6777
        archive.addfile(entry)
        link = tarfile.TarInfo("usr/away")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    target = tmp_path / "target"
    target.mkdir()
    with tarfile.open(path) as archive:
        members = {member.name: member.mode for member in harmless(archive, target)}
    assert members == {"usr/bin/special": 0o755, "usr/away": 0o644}


def test_a_link_cannot_lead_a_later_file_outside(tmp_path: Path) -> None:
    path = tmp_path / "packed.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("away")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("away/escaped"))
    target = tmp_path / "target"
    target.mkdir()
    with tarfile.open(path) as archive, pytest.raises(tarfile.TarError, match="outside"):
        unpack(archive, target)
    assert not (tmp_path / "escaped").exists()


def test_the_machines_own_mirror_is_found_when_it_runs_debian() -> None:
    try:
        found = apt.sources("trixie")
    except UserError as refused:
        pytest.skip(f"no mirror of Debian: {refused.message}")
    assert found[0].suite == "trixie"
    assert all(source.uri.startswith(("http", "file", "mirror", "copy", "cdrom")) for source in found)
    assert found[0].keyring.is_file()


def test_a_mirror_whose_index_nobody_has_fetched_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sources.list").write_text(
        "deb http://mirror.invalid/debian bookworm main\n"
        "deb http://mirror.invalid/security bookworm-security main\n"
        "deb http://mirror.invalid/ubuntu noble main\n"
    )
    for folder in ("state", "state/lists", "state/lists/partial", "cache"):
        (tmp_path / folder).mkdir()
    (tmp_path / "apt.conf").write_text(
        f'Dir::State "{tmp_path}/state";\nDir::Cache "{tmp_path}/cache";\n'
        f'Dir::Etc::sourcelist "{tmp_path}/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    found = [(source.uri, source.suite) for source in apt.sources("trixie")]
    assert found == [
        ("http://mirror.invalid/debian", "trixie"),
        ("http://mirror.invalid/security", "trixie-security"),
    ]


def test_a_machine_without_apt_is_told_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError) as refused:
        apt.sources("trixie")
    assert "by its path" in refused.value.hint


def test_without_a_network_the_way_to_bring_an_engine_is_told(
    repository: SignedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = "http://localhost:1/debian"
    with pytest.raises(Unreachable) as unreachable:
        debian.fetch(RECIPE, "3.1", mirror=silent, keyring=repository.keyring)
    message, hint = unreachable.value.message, unreachable.value.hint
    assert message.startswith("toy@3.1 is not on this machine, and Debian trixie cannot be reached: "), (
        message
    )
    assert "\n" not in message and "`dyno engines fetch toy@3.1`" in hint
    assert f"copy ~/.cache/dyno/engines/*toy-* from there into {paths.cache_place()}/engines" in hint
    elsewhere = fetch(repository).prefix
    with monkeypatch.context() as here:
        here.setenv("XDG_CACHE_HOME", str(repository.folder / "brought"))
        shutil.copytree(elsewhere, paths.cache_place() / "engines" / elsewhere.name)
        told: list[str] = []
        brought = debian.fetch(RECIPE, "3.1", mirror=silent, keyring=repository.keyring, tell=told.append)
        assert (brought.prefix / RECIPE.binary).is_file() and brought.prefix != elsewhere
        assert told[-1].endswith("the toy 3.1.4 that is here stays")


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (
            "W: GPG error: InRelease: gpgv, gpgv2 or gpgv1 required for verification, but neither",
            "install gpgv",
        ),
        ("Sub-process /usr/bin/sqv returned an error code (1): Missing key 4CB5", "debian-archive-keyring"),
        (
            "The following signatures couldn't be verified: NO_PUBKEY 6ED0E7B82643E131",
            "debian-archive-keyring",
        ),
        ("E: Failed to fetch http://mirror.invalid/pool/t/toy_1.dsc  404  Not Found", "its own index lists"),
        ("E: Failed to fetch http://mirror.invalid/dists/sid/InRelease  404  Not Found", "that suite"),
        ("E: Could not resolve 'mirror.invalid'", "cannot be reached"),
        (
            "E: Failed to fetch http://localhost:1/InRelease  Unable to connect to localhost:1:",
            "cannot be reached",
        ),
        ("E: Failed to fetch copy:/mirror/pool/toy_1.deb  Undetermined Error", "what its index says"),
        ("E: You don't have enough free space: No space left on device", "make room"),
    ],
)
def test_what_apt_says_becomes_a_remedy(said: str, remedy: str) -> None:
    assert remedy in apt.hint(said)
    # A study, which asks for sources, has no such option.
    assert remedy in apt.hint(said, "deb-src") and "--mirror" not in apt.hint(said, "deb-src")


def test_a_fetch_that_meets_a_full_disk_leaves_nothing(
    repository: SignedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extractall", full)
    with pytest.raises(DynoError, match="No space left"):
        fetch(repository)
    assert list((paths.cache() / "engines").iterdir()) == []
