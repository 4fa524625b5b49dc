"""Tarballs as vendors publish them."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.errors import UserError
from dbdyno.host import cache
from dbdyno.obtain import tarball
from dbdyno.study.reference import Reference

SERVER = "#!/bin/sh\necho 'mariadbd  Ver 11.4.2-MariaDB for Linux on x86_64'\n"


def _tarball(folder: Path, text: str = SERVER) -> Path:
    top = folder / "mariadb-11.4.2-linux-x86_64"
    (top / "bin").mkdir(parents=True)
    server = top / "bin" / "mariadbd"
    server.write_text(text)
    server.chmod(0o755)
    packed = folder / f"{top.name}.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(top, top.name)
    return packed


def _sum(packed: Path) -> str:
    return hashlib.sha256(packed.read_bytes()).hexdigest()


def test_a_server_is_found_in_a_tarball_which_is_unpacked_once(homes: Path) -> None:
    packed = _tarball(homes)
    obtaining = registry.engine("mariadb").obtaining
    found = [obtaining.locate(Reference("mariadb", path=str(packed))) for _ in range(2)]
    assert found[0] == found[1] and found[0].version == "11.4.2"
    assert _sum(packed) in found[0].origin and "no checksum lies beside it" in found[0].origin
    assert len(cache.shelf("engines").names()) == 1


@pytest.mark.parametrize("form", tarball.SUMS)
def test_a_tarball_is_what_its_checksum_says(homes: Path, form: str) -> None:
    packed = _tarball(homes)
    sums = homes / form.format(name=packed.name)
    sums.write_text(f"{'0' * 64}  other.tar.gz\n{_sum(packed)}  {packed.name}\n")
    assert tarball.unpacked(packed).checked == sums.name
    sums.write_text(f"{'0' * 64}  {packed.name}\n")
    packed.touch()
    with pytest.raises(UserError, match=f"but {sums.name} says {'0' * 64}"):
        tarball.unpacked(packed)


@pytest.mark.parametrize("lost_bytes", [1, 20, 60])
def test_a_tarball_that_is_torn_is_refused_and_leaves_nothing(homes: Path, lost_bytes: int) -> None:
    """Even where every file in it is whole."""
    packed = _tarball(homes)
    packed.write_bytes(packed.read_bytes()[:-lost_bytes])
    with pytest.raises(UserError, match="cannot be unpacked"):
        tarball.unpacked(packed)
    assert cache.shelf("engines").names() == []


def test_a_tarball_that_is_exchanged_before_it_is_unpacked_is_refused(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = _tarball(homes)
    other = _tarball(homes / "other", SERVER.replace("11.4.2", "11.4.3"))
    checked = tarball._checked

    def exchanged(path: Path, sha256: str) -> str:
        other.rename(path)
        return checked(path, sha256)

    monkeypatch.setattr(tarball, "_checked", exchanged)
    with pytest.raises(UserError, match="changed while it was unpacked"):
        tarball.unpacked(packed)
    assert cache.shelf("engines").names() == []
