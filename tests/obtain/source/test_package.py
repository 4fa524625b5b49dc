"""A distribution's source package: unpacked as the distribution builds it, or refused."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.errors import BuildFailed, DynoError, UserError
from dbdyno.host import cache, paths
from dbdyno.obtain.source.package import ARCHIVES, MANIFEST, _version_of, fetched, kept, lay_package
from dbdyno.obtain.source.recipe import SourcePackage
from tests.needs import needs_patch, on_machine
from tests.obtain import signed_repository
from tests.obtain.signed_repository import SignedRepository

CHANGE = b"--- a/toy.c\n+++ b/toy.c\n@@ -1 +1 @@\n-int toy;\n+int patched;\n"


needs_apt = pytest.mark.skipif(
    not all(on_machine(program) for program in ("apt-get", "dpkg", "gpg", "patch")),
    reason="needs apt, dpkg, gpg and patch, which this machine lacks",
)


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def package(folder: Path, series: bytes = b"change.patch\n", change: bytes = CHANGE) -> list[Path]:
    debian = {"debian/patches/series": series, "debian/patches/change.patch": change, "debian/rules": b""}
    return [
        packed(folder / "toy_3.1.orig.tar.xz", {"toy-3.1/toy.c": b"int toy;\n"}),
        packed(folder / "toy_3.1.orig-www.tar.xz", {"www/index.html": b"hello"}),
        packed(folder / "toy_3.1-2.debian.tar.xz", debian),
    ]


@needs_patch
def test_a_package_is_laid_with_its_parts_and_patches(tmp_path: Path) -> None:
    lay_package(package(tmp_path), tmp_path / "tree")
    assert (tmp_path / "tree" / "toy.c").read_text() == "int patched;\n"
    assert (tmp_path / "tree" / "www" / "index.html").read_text() == "hello"


def test_comments_and_empty_patches_of_a_series_change_nothing(tmp_path: Path) -> None:
    lay_package(package(tmp_path, b"# none\nchange.patch -p1 # why\n", b"only words\n"), tmp_path / "tree")
    assert (tmp_path / "tree" / "toy.c").read_text() == "int toy;\n"


@needs_patch
def test_a_patch_of_the_distribution_that_does_not_apply_fails(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match=r"change\.patch does not apply"):
        lay_package(package(tmp_path, change=CHANGE.replace(b"int toy", b"long toy")), tmp_path / "tree")


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("damage", [lambda content: content[:60], lambda content: b"none"])
def test_an_archive_that_is_torn_is_named(
    tmp_path: Path, number: int, damage: Callable[[bytes], bytes]
) -> None:
    files = package(tmp_path)
    files[number].write_bytes(damage(files[number].read_bytes()))
    with pytest.raises(DynoError, match=f"cannot unpack {re.escape(files[number].name)}"):
        lay_package(files, tmp_path / "tree")


def test_a_patch_that_the_series_names_and_nobody_packed_is_a_message(tmp_path: Path) -> None:
    with pytest.raises(DynoError, match=r"cannot lay out toy_3\.1\.orig\.tar\.xz: .*lost\.patch"):
        lay_package(package(tmp_path, b"lost.patch\n"), tmp_path / "tree")


@needs_patch
def test_the_distributions_parts_replace_those_of_upstream(tmp_path: Path) -> None:
    files = package(tmp_path)
    upstream = {"toy.c": b"int toy;\n", "debian/rules.old": b"", "www/old.html": b""}
    packed(files[0], {f"toy-3.1/{name}": content for name, content in upstream.items()})
    lay_package(files, tmp_path / "tree")
    assert not (tmp_path / "tree" / "debian" / "rules.old").exists()
    assert {path.name for path in (tmp_path / "tree" / "www").iterdir()} == {"index.html"}


def test_the_format_1_is_refused_because_its_changes_would_be_missing(tmp_path: Path) -> None:
    changes = tmp_path / "toy_3.1-2.diff.gz"
    with pytest.raises(DynoError, match=r"source format 1\.0") as refused:
        lay_package([*package(tmp_path)[:1], changes], tmp_path / "tree")
    assert "source.origin" in refused.value.hint


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    evil = packed(tmp_path / "toy_3.1.orig.tar.xz", {"../../escaped": b"x"})
    with pytest.raises(DynoError, match="outside"):
        lay_package([evil], tmp_path / "tree")
    assert not list(tmp_path.parent.glob("escaped"))


def test_a_package_of_another_format_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(DynoError, match="hold no upstream archive") as refused:
        lay_package([tmp_path / "toy_3.1.diff.gz"], tmp_path / "tree")
    assert "source.origin" in refused.value.hint


def test_a_copy_that_is_here_is_taken_for_its_own_suite_alone(homes: Path, tmp_path: Path) -> None:
    def make(making: Path) -> tuple[str, str]:
        (making / ARCHIVES).mkdir()
        package(making / ARCHIVES, series=b"")
        manifest = '{"of": "toy of bookworm", "version": "3.1-2", "digest": "d1"}'
        (making / MANIFEST).write_text(manifest)
        return "toy", "a test"

    cache.shelf("sources").once("toy_3.1-2-d1", make)
    found = kept(SourcePackage(package="toy", suite="bookworm"))
    assert found is not None and found.digest == "d1" and found.title == "Debian bookworm, toy 3.1-2"
    found.lay(tmp_path / "laid")
    assert (tmp_path / "laid" / "toy.c").is_file()
    assert kept(SourcePackage(package="toy", suite="trixie")) is None


TOY = SourcePackage(package="toy", suite=signed_repository.SUITE)


def repository_of(folder: Path, source: dict[str, bytes], lost: tuple[str, ...] = ()) -> SignedRepository:
    """A mirror that holds a source package of these archives."""
    asked = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return signed_repository.make(
        folder / "repository",
        package="toy",
        version="1:3.1-2",
        files={"usr/bin/toy": b""},
        architecture=asked.stdout.strip(),
        source=source,
        lost=lost,
    )


@pytest.fixture
def repository(tmp_path: Path, homes: Path) -> SignedRepository:
    """A mirror that holds the source package of `package`."""
    return repository_of(tmp_path, {path.name: path.read_bytes() for path in package(tmp_path)})


@needs_apt
def test_a_source_package_is_fetched_once(repository: SignedRepository, tmp_path: Path) -> None:
    told: list[str] = []
    found = fetched(TOY, mirror=repository.mirror, keyring=repository.keyring, tell=told.append)
    assert found.title == "Debian trixie, toy 3.1-2"
    found.lay(tmp_path / "laid")
    assert (tmp_path / "laid" / "toy.c").read_text() == "int patched;\n"
    assert kept(TOY) is not None and told
    [copy] = (paths.cache() / "sources").glob(f"*/{ARCHIVES}")
    archives = {"toy_3.1.orig.tar.xz", "toy_3.1.orig-www.tar.xz", "toy_3.1-2.debian.tar.xz", "toy_3.1-2.dsc"}
    assert {path.name for path in copy.iterdir()} == archives
    told.clear()
    again = fetched(TOY, mirror="file:///nowhere", keyring=repository.keyring, tell=told.append)
    assert (again.digest, told) == (found.digest, [])


@needs_apt
def test_a_source_is_fetched_and_kept_by_its_version(repository: SignedRepository) -> None:
    pinned = TOY.but(version="1:3.1-2")
    found = fetched(pinned, mirror=repository.mirror, keyring=repository.keyring)
    assert kept(pinned) is not None and found.title == "Debian trixie, toy 3.1-2"
    other = TOY.but(version="1:3.0-1")
    assert kept(other) is None
    with pytest.raises(UserError, match=r"trixie has no source of toy 1:3\.0-1") as refused:
        fetched(other, mirror=repository.mirror, keyring=repository.keyring)
    assert refused.value.hint == "it has 1:3.1-2"


@needs_apt
@pytest.mark.parametrize("served", [True, False])
def test_a_version_that_the_mirror_lacks_leads_to_those_that_it_serves(
    tmp_path: Path, homes: Path, served: bool
) -> None:
    archives = {path.name: path.read_bytes() for path in package(tmp_path)}
    repository = repository_of(tmp_path, archives, lost=("1:3.10-1", "1:3.9-1"))
    if not served:
        (repository.folder / "pool" / "toy_3.1-2.dsc").unlink()
    with pytest.raises(DynoError) as refused:
        fetched(TOY, mirror=repository.mirror, keyring=repository.keyring)
    if served:
        said = 'of 2 other versions that trixie lists, it serves `source.origin = "debian:trixie=1:3.1-2"`'
    else:
        said = "of 2 other versions that trixie lists (1:3.9-1, 1:3.1-2), it serves none"
    assert refused.value.hint.endswith(said)


@needs_apt
def test_a_source_of_a_format_that_cannot_be_unpacked_is_not_kept(tmp_path: Path, homes: Path) -> None:
    repository = repository_of(tmp_path, {"toy_3.1.orig.tar.xz": b"x", "toy_3.1-2.diff.gz": b"x"})
    with pytest.raises(DynoError, match=r"source format 1\.0"):
        fetched(TOY, mirror=repository.mirror, keyring=repository.keyring)
    assert kept(TOY) is None


@needs_apt
def test_a_source_whose_index_was_changed_is_refused(repository: SignedRepository) -> None:
    signed = repository.in_release.read_bytes()
    repository.in_release.write_bytes(signed.replace(b"Origin: Debian", b"Origin: Nobody"))
    with pytest.raises(DynoError) as refused:
        fetched(TOY, mirror=repository.mirror, keyring=repository.keyring)
    assert "not what Debian signed" in refused.value.hint
    assert "--mirror" not in refused.value.hint and "source.origin" in refused.value.hint
    assert kept(TOY) is None


@needs_apt
@pytest.mark.parametrize("cut", [0, 40], ids=["changed", "truncated"])
def test_an_archive_that_is_not_the_promised_one_is_refused(repository: SignedRepository, cut: int) -> None:
    archive = repository.folder / "pool" / "toy_3.1.orig.tar.xz"
    content = bytearray(archive.read_bytes())
    content[30] ^= 0xFF
    archive.write_bytes(content[: len(content) - cut])
    with pytest.raises(DynoError) as refused:
        fetched(TOY, mirror=repository.mirror, keyring=repository.keyring)
    assert "this machine's apt sources" in refused.value.hint and "source.origin" in refused.value.hint
    assert kept(TOY) is None


def copy_of(version: str, name: str, **beside: str) -> None:
    """A kept copy of the toy's source."""

    def make(making: Path) -> tuple[str, str]:
        (making / ARCHIVES).mkdir()
        manifest = {"of": "toy of trixie", "version": version, "digest": name, **beside}
        (making / MANIFEST).write_text(json.dumps(manifest))
        return "toy", "a test"

    cache.shelf("sources").once(name, make)


def test_the_latest_copy_is_taken_as_debian_counts_versions(homes: Path) -> None:
    for version in ("11.8.9-1", "11.8.10-1", "11.8.10~rc1-1"):
        copy_of(version, f"toy_{version}")
    found = kept(TOY)
    assert found is not None and found.title == "Debian trixie, toy 11.8.10-1"


def test_a_copy_that_a_study_pinned_is_for_its_version_alone(homes: Path) -> None:
    copy_of("3.1-2", "toy_3.1-2-pinned", pinned="1:3.1-2")
    assert kept(TOY) is None
    assert kept(TOY.but(version="1:3.1-2")) is not None


@needs_apt
def test_a_pinned_copy_does_not_hinder_the_suites_own(repository: SignedRepository) -> None:
    for wanted in (TOY.but(version="1:3.1-2"), TOY):
        found = fetched(wanted, mirror=repository.mirror, keyring=repository.keyring)
        assert found.title == "Debian trixie, toy 3.1-2"
    assert len(cache.shelf("sources").names()) == 2


def test_a_package_without_a_description_is_refused() -> None:
    with pytest.raises(DynoError, match=r"toy\.tar\.xz hold no description"):
        _version_of(["toy.tar.xz"])
